"""Data files by path or URL: which store is asked, and what a pickle carries."""

from __future__ import annotations

import pickle

import pytest

from paimon_py.errors import CorruptionError
from paimon_py.spec.redact import shown_url
from paimon_py.storage.data_store import DataStore
from paimon_py.storage.local_store import LocalStore
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.storage.store import FileMissingError


def put(files: DataStore, path: str, data: bytes) -> None:
    with files.open_write(path) as sink:
        sink.write(data)


def get(files: DataStore, path: str) -> bytes:
    with files.open_read(path) as source:
        return source.read()


def never(url, options):
    raise AssertionError(f"{url} is at home")


def roots(*texts):
    return lambda: texts


@pytest.mark.parametrize("url", ["file:/else/f", "file:///else/f", "FILE:/else/f"])
@pytest.mark.parametrize("root", ["file:/else", "FILE:///else", "file:/"])
def test_file_urls_of_a_local_table_are_paths_of_its_own_store(url, root):
    home = MemoryStore()
    files = DataStore(home, "/w/t", opener=never, roots=roots("s3://b/x", root))
    put(files, url, b"x")
    assert home.get("/else/f") == get(files, url) == b"x"
    assert files.stat(url).size_bytes == 1
    files.delete(url)
    assert files.stat(url) is None


def test_a_percent_sign_in_a_file_url_is_a_percent_sign(tmp_path):
    files = DataStore(LocalStore(), str(tmp_path / "t"), roots=roots(f"file:{tmp_path}"))
    put(files, f"file:{tmp_path}/p=a%3Ab/f", b"x")
    assert (tmp_path / "p=a%3Ab" / "f").read_bytes() == b"x"


def test_other_stores_are_opened_once_with_the_options_of_the_table():
    home, other, calls = MemoryStore(), MemoryStore(), []

    def opener(url, options):
        calls.append((url, options))
        return other, url.replace("s3a:", "s3:")

    files = DataStore(home, "s3://mine/w/t", {"s3.access-key": "a"}, opener=opener, roots=roots("s3a://theirs/x", "s3a://mine"))
    home.make_directory("s3://mine/w/t")
    put(files, "s3a://theirs/x/f", b"1")
    put(files, "s3a://theirs/x/g", b"2")
    assert other.get("s3://theirs/x/g") == b"2"
    put(files, "s3a://mine/x/h", b"3")
    put(files, "s3://mine/w/t/i", b"4")
    assert home.get("s3://mine/x/h") == b"3" and home.get("s3://mine/w/t/i") == b"4"
    assert calls == [("s3a://theirs/x", {"s3.access-key": "a"}), ("s3a://mine/x", {"s3.access-key": "a"})]


def test_only_files_below_the_table_need_its_directory():
    home = MemoryStore()
    files = DataStore(home, "/w/t", opener=never, roots=roots("file:/w/t2"))
    with pytest.raises(FileMissingError, match="/w/t does not exist"):
        files.open_write("/w/t/bucket-0/f")
    put(files, "file:/w/t2/f", b"x")
    assert home.stat("/w/t") is None and home.get("/w/t2/f") == b"x"


def test_a_local_disk_is_reached_from_a_table_in_memory(tmp_path):
    files = DataStore(MemoryStore(), "memory://w/t", roots=roots(f"file:{tmp_path}"))
    put(files, f"file:{tmp_path}/f", b"x")
    assert (tmp_path / "f").read_bytes() == b"x"


class Untouched:
    """A store that nobody asks for anything."""

    def __getattr__(self, verb):
        raise AssertionError(f"{verb} was called")


OUTSIDE = [
    "/w/t/../u/f", "/w/t/b/./f", "/w/t/", "/w/t//f", "/w/t/b/../../u/f", "/w/t/a\0b", "/w/t/..",
    "/w/t", "/w/t2/f", "/w/u/f", "f", "", "C:/else/f", "file:/w/t2/f", "file:/else2/f", "file:/else", "file:/else/",
    "file:/else/../w/t/f", "file:/else//f", "file:///else/./f", "file://host/else/f", "file:else/f", "file:/w/t/f",
    "s3://b/x2/f", "s3://b/x", "s3://c/x/f", "s3a://b/x/f", "s3://b/x/../f", "s3://u@b/x/f", "S3://b2/x/f",
    "ftp://b/x/f", "http://b/x/f", "memory://b/x/f", "memory:/b/x/f", "s3:b/x/f", "file:/else\n/f", "\nfile:/else/f",
]  # fmt: skip


@pytest.mark.parametrize("path", OUTSIDE)
def test_nothing_outside_the_table_and_its_external_roots_is_accessed(path):
    files = DataStore(Untouched(), "/w/t", opener=never, roots=roots("file:/else", "s3://b/x", "s3://bb"))
    for verb in (files.open_read, files.open_write, files.stat, files.delete):
        with pytest.raises(CorruptionError) as caught:
            verb(path)
        assert caught.value.path == shown_url(path) and repr(shown_url(path)) in str(caught.value)


def test_external_roots_are_read_on_first_use_and_then_cached():
    asked = []

    def declared():
        for text in ("file:/new", "file:/old", "file:/oldest"):
            asked.append(text)
            yield text

    files = DataStore(MemoryStore(), "/w/t", opener=never, roots=declared)
    assert files.stat("/w/t/f") is None and asked == []
    for _ in range(2):
        assert files.stat("file:/old/f") is None
    assert asked == ["file:/new", "file:/old"]


def test_external_roots_may_also_come_from_the_options_of_an_opened_table():
    files = DataStore(MemoryStore(), "/w/t", {"data-file.external-paths": "file:///a, file:/b/"}, opener=never)
    assert files.stat("file:/a/f") is files.stat("file:/b/f") is None
    again = pickle.loads(pickle.dumps(DataStore(LocalStore(), "/w/t", {"data-file.external-paths": "file:///a"})))
    assert list(again.external_roots()) == ["file:/a"]


def test_secrets_appear_in_neither_pickles_nor_messages():
    options = {"s3.endpoint": "http://e", "s3.access-key": "AK", "s3.secret-key": "SK", "fs.azure.sas.fixed.token": "T"}
    files = DataStore(LocalStore(), "/w/t", options)
    data = pickle.dumps(files)
    assert not any(word in data for word in (b"AK", b"SK", b"token")) and "AK" not in repr(files)
    assert pickle.loads(data).public_options == {"s3.endpoint": "http://e"}
