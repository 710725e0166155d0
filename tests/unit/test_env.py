"""The temporary directory of spilled rows: made when needed, private, and gone in the end."""

import gc
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from paimon_py.env import Env, TemporarySpill, ThreadPool

ROOT = Path(__file__).parents[2]


def test_nothing_is_made_before_the_first_file(tmp_path):
    TemporarySpill(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_files_are_written_once_read_again_and_deleted(tmp_path):
    place = TemporarySpill(str(tmp_path))
    first, second = place.create(), place.create()
    assert first.path != second.path
    with first.open_write() as sink:
        sink.write(b"rows")
    for _ in range(2):
        with first.open_read() as source:
            assert source.read() == b"rows"
    with pytest.raises(FileExistsError):
        first.open_write()
    first.delete()
    first.delete()
    second.delete()
    assert not os.path.exists(first.path)


def test_the_directory_is_private_and_goes_with_its_owner(tmp_path):
    place = TemporarySpill(str(tmp_path))
    with place.create().open_write() as sink:
        sink.write(b"rows")
    (directory,) = tmp_path.iterdir()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    del place
    gc.collect()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("end", ["", "raise SystemExit(3)", "raise KeyboardInterrupt", "os.kill(os.getpid(), signal.SIGINT)"])
def test_nothing_is_left_when_the_process_ends(tmp_path, end):
    code = (
        "import os, signal\nfrom paimon_py.env import TemporarySpill\n"
        f"place = TemporarySpill({str(tmp_path)!r})\n"
        "place.create().open_write().write(b'rows')\n"
        f"assert len(os.listdir({str(tmp_path)!r})) == 1\n{end}\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode in (0, 3, 1, 130, -signal.SIGINT), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_forked_child_has_a_directory_of_its_own_and_leaves_the_one_of_its_parent(tmp_path):
    code = (
        "import os\nfrom paimon_py.env import TemporarySpill\n"
        f"place = TemporarySpill({str(tmp_path)!r})\n"
        "mine = place.create()\nwith mine.open_write() as sink: sink.write(b'rows')\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    with place.create().open_write() as sink: sink.write(b'child')\n"
        f"    assert len(os.listdir({str(tmp_path)!r})) == 2\n"
        "    raise SystemExit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "with mine.open_read() as source: assert source.read() == b'rows'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next_one_that_spills(tmp_path):
    code = (
        "import os, signal\nfrom paimon_py.env import TemporarySpill\n"
        f"place = TemporarySpill({str(tmp_path)!r})\n"
        "place.create().open_write().write(b'rows')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = [subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode for _ in range(2)]
    assert killed == [-signal.SIGKILL] * 2
    left = sorted(tmp_path.iterdir())
    assert len(left) == 1, "the second process has removed what the first one left"
    unknown = tmp_path / "paimon-spill-without-a-lock"
    unknown.mkdir()
    place = TemporarySpill(str(tmp_path))
    with place.create().open_write() as sink:
        sink.write(b"rows")
    assert unknown in tmp_path.iterdir() and left[0] not in tmp_path.iterdir()


def test_the_directory_of_a_living_process_stays(tmp_path):
    mine = TemporarySpill(str(tmp_path)).create, TemporarySpill(str(tmp_path)).create
    places = [create() for create in mine]
    for place in places:
        with place.open_write() as sink:
            sink.write(b"rows")
    code = f"from paimon_py.env import TemporarySpill\nTemporarySpill({str(tmp_path)!r}).create()\n"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
    for place in places:
        with place.open_read() as source:
            assert source.read() == b"rows"


def test_an_environment_brings_a_place_of_its_own():
    assert Env().spill is not Env().spill


AT_THE_END = """
import threading
from paimon_py.env import ThreadPool

def late():
    threading.main_thread().join()
    print(sum(ThreadPool(calls=4).map(lambda n: n * n, range(10))))

ThreadPool().behind(late)
"""


def test_what_goes_on_behind_a_process_that_ends_is_done_to_its_end():
    done = subprocess.run([sys.executable, "-c", AT_THE_END], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("285\n", "", 0)


def test_no_item_is_begun_after_one_has_failed():
    begun = []

    def work(number):
        begun.append(number)
        raise ValueError(number)

    with pytest.raises(ValueError, match="0"):
        ThreadPool(calls=1).map(work, range(50))
    assert begun == [0]
