import errno
import multiprocessing
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from paimon_py.errors import AlreadyExistsError, StorageError, StorageUnknownError, UnsupportedError
from paimon_py.storage import local_store
from paimon_py.storage.local_store import LocalStore
from paimon_py.testing.store_suite import StoreSuite


class TestLocalStore(StoreSuite):
    @pytest.fixture
    def store(self):
        return LocalStore()

    @pytest.fixture
    def root(self, tmp_path):
        return tmp_path.as_posix()


class TestLocalStoreWithoutFsync(TestLocalStore):
    @pytest.fixture
    def store(self):
        return LocalStore(fsync=False)


def _race(arguments):
    root, writer, rounds = arguments
    store = LocalStore(fsync=False)
    return [store.put_new(f"{root}/snapshot-{turn}", b"%d" % writer) for turn in range(rounds)]


def test_exactly_one_of_several_racing_processes_creates_a_file(tmp_path):
    rounds = 200
    context = multiprocessing.get_context("spawn")
    with context.Pool(4) as pool:
        results = pool.map(_race, [(tmp_path.as_posix(), writer, rounds) for writer in range(4)], chunksize=1)
    for turn in range(rounds):
        winners = [writer for writer in range(4) if results[writer][turn]]
        assert len(winners) == 1
        assert (tmp_path / f"snapshot-{turn}").read_bytes() == b"%d" % winners[0]
    assert len(os.listdir(tmp_path)) == rounds


def test_a_link_that_was_made_despite_an_error_counts(tmp_path, monkeypatch):
    real = os.link

    def lying(source, target):
        real(source, target)
        raise OSError(errno.EEXIST, "file exists")

    monkeypatch.setattr(local_store.os, "link", lying)
    assert LocalStore().put_new(str(tmp_path / "f"), b"x") is True
    assert os.listdir(tmp_path) == ["f"]


def test_a_file_system_without_hard_links_is_refused_by_name(tmp_path, monkeypatch):
    def unsupported(source, target):
        raise OSError(errno.EPERM, "not permitted")

    monkeypatch.setattr(local_store.os, "link", unsupported)
    with pytest.raises(UnsupportedError, match="hard links"):
        LocalStore().put_new(str(tmp_path / "f"), b"x")
    assert os.listdir(tmp_path) == []


def test_a_failed_write_leaves_no_file_and_raises(tmp_path, monkeypatch):
    def full(descriptor, data):
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(local_store.os, "write", full)
    with pytest.raises(StorageError, match="no space left") as caught:
        LocalStore().put_new(str(tmp_path / "f"), b"x")
    assert (caught.value.operation, caught.value.transient) == ("put_new", False)
    with pytest.raises(StorageError):
        LocalStore().put(str(tmp_path / "f"), b"x")
    assert os.listdir(tmp_path) == []


def test_a_directory_that_cannot_be_synced_leaves_the_outcome_unknown(tmp_path, monkeypatch):
    def broken(path):
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(local_store, "_sync_directory", broken)
    with pytest.raises(StorageUnknownError):
        LocalStore().put_new(str(tmp_path / "f"), b"x")


def test_a_stream_is_synced_before_close_returns(tmp_path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(
        local_store.os, "fsync", lambda descriptor: (synced.append(os.fstat(descriptor)), real(descriptor))
    )
    with LocalStore().open_write(str(tmp_path / "new/f")) as sink:
        sink.write(b"12345")
    inodes = [status.st_ino for status in synced]
    assert (tmp_path / "new/f").stat().st_ino in inodes
    assert (tmp_path / "new").stat().st_ino in inodes
    assert tmp_path.stat().st_ino in inodes
    assert [status.st_size for status in synced if status.st_ino == (tmp_path / "new/f").stat().st_ino] == [5]


def test_errors_while_closing_a_stream_are_storage_errors(tmp_path, monkeypatch):
    def broken(descriptor):
        raise OSError(errno.EIO, "input/output error")

    sink = LocalStore().open_write(str(tmp_path / "f"))
    sink.write(b"1")
    monkeypatch.setattr(local_store.os, "fsync", broken)
    with pytest.raises(StorageError, match="input/output"):
        sink.close()
    assert sink.closed


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts open files in /proc")
def test_opening_a_directory_fails_without_leaking_a_descriptor(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(StorageError):
        LocalStore().get(str(tmp_path))
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_tree_is_deleted_while_others_add_and_remove_files(tmp_path, monkeypatch):
    directory = tmp_path / "t"
    (directory / "a" / "b").mkdir(parents=True)
    remove, happened = shutil.rmtree, []

    def beside(path):
        if not happened:
            happened.append("a file inside vanished before it was opened")
            raise FileNotFoundError(errno.ENOENT, "no such file", str(directory / "a" / "b"))
        if len(happened) == 1:
            happened.append("a file was put into an emptied directory")
            raise OSError(errno.ENOTEMPTY, "directory not empty", str(directory / "a"))
        remove(path)

    monkeypatch.setattr(shutil, "rmtree", beside)
    LocalStore().delete_tree(str(directory))
    assert not directory.exists()
    assert len(happened) == 2


def test_a_tree_that_never_becomes_empty_is_an_error(tmp_path, monkeypatch):
    def busy(path):
        raise OSError(errno.ENOTEMPTY, "directory not empty", path)

    monkeypatch.setattr(shutil, "rmtree", busy)
    with pytest.raises(StorageError, match="other processes keep changing"):
        LocalStore().delete_tree(str(tmp_path))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on Windows")
def test_a_forked_child_writes_nothing_to_a_file_of_its_parent(tmp_path):
    script = (
        "import gc, os, sys\n"
        "from paimon_py.errors import StorageError\n"
        "from paimon_py.storage.local_store import LocalStore\n"
        "def fork(end):\n"
        "    process = os.fork()\n"
        "    if process == 0:\n"
        "        end()\n"
        "        sys.exit(0)\n"
        "    assert os.waitpid(process, 0)[1] == 0\n"
        "def refused():\n"
        "    try:\n"
        "        sink.write(b'x' * 200_000)\n"
        "    except StorageError as error:\n"
        "        assert 'another process' in str(error)\n"
        "    else:\n"
        "        os._exit(3)\n"
        "sink = LocalStore().open_write(sys.argv[1])\n"
        "sink.write(b'abc')\n"
        "fork(lambda: sink.close())\n"
        "fork(lambda: None)\n"
        "fork(refused)\n"
        "sink.write(b'def')\n"
        "sink.close()\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script, str(tmp_path / "f")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "f").read_bytes() == b"abcdef"


def test_the_new_name_of_a_directory_does_not_exist_before_the_rename(tmp_path, monkeypatch):
    rename, seen = os.rename, []

    def watched(source, target):
        seen.append(os.path.lexists(target))
        rename(source, target)

    monkeypatch.setattr(local_store.os, "rename", watched)
    (tmp_path / "old" / "d").mkdir(parents=True)
    LocalStore().rename_directory(str(tmp_path / "old"), str(tmp_path / "new"))
    assert seen == [False]
    assert sorted(os.listdir(tmp_path)) == ["new"]


def test_a_directory_that_appears_at_the_new_name_is_kept(tmp_path, monkeypatch):
    rename = os.rename

    def late(source, target):
        os.makedirs(os.path.join(target, "theirs"))
        rename(source, target)

    monkeypatch.setattr(local_store.os, "rename", late)
    (tmp_path / "old" / "mine").mkdir(parents=True)
    with pytest.raises(AlreadyExistsError):
        LocalStore().rename_directory(str(tmp_path / "old"), str(tmp_path / "new"))
    assert os.listdir(tmp_path / "new") == ["theirs"]
    assert os.listdir(tmp_path / "old") == ["mine"]


def test_a_file_is_written_once(tmp_path):
    store = LocalStore()
    store.open_write(str(tmp_path / "f")).close()
    with pytest.raises(StorageError):
        store.open_write(str(tmp_path / "f"))


@pytest.mark.parametrize(("number", "reason"), [(errno.EACCES, "Permission denied"), (errno.EROFS, "Read-only file system")])
def test_a_refusal_names_what_the_user_may_not_do(tmp_path, monkeypatch, number, reason):
    def refuse(path, *_, **__):
        raise OSError(number, os.strerror(number), str(path))

    for function in ("open", "makedirs", "listdir", "scandir", "remove", "unlink"):
        monkeypatch.setattr(local_store.os, function, refuse)
    place = str(tmp_path / "f")
    for call, verb in (("make_directory", "write"), ("delete", "delete"), ("open_write", "write")):
        with pytest.raises(StorageError) as found:
            getattr(LocalStore(), call)(place)
        assert str(found.value) == f"the user of this process may not {verb} {place}: {reason}"


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")
def test_a_forbidden_directory_is_a_storage_error(tmp_path):
    directory = pathlib.Path(tmp_path, "closed")
    directory.mkdir(mode=0o500)
    with pytest.raises(StorageError):
        LocalStore().put_new(str(directory / "f"), b"1")


def test_what_the_system_says_of_directories_is_no_size_of_files(tmp_path):
    (tmp_path / "full" / "inner").mkdir(parents=True)
    (tmp_path / "full" / "f").write_bytes(b"12345")
    store = LocalStore()
    assert [(one.name, one.is_directory, one.size_bytes) for one in sorted(store.list(f"{tmp_path}/full"), key=lambda one: one.name)] == [
        ("f", False, 5), ("inner", True, 0),
    ]  # fmt: skip
    whole = store.stat(f"{tmp_path}/full")
    assert whole.is_directory and whole.size_bytes == 0
    for nothing in ("none", "none/below", "full/f/below", "full/f/below/it"):
        assert store.stat(f"{tmp_path}/{nothing}") is None
