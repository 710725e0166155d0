"""Directories that are marked as in use: with the lock of this system, without any, and with one that fails."""

import os

import pytest

from paimon_py.env import TemporarySpill
from paimon_py.file_locks import mark_in_use, remove_if_abandoned, system_lock


def test_a_marked_directory_is_not_abandoned_until_its_mark_is_closed(tmp_path):
    lock, removed = system_lock(), []
    if lock is None:
        pytest.skip("this system has no locks that end with their process")
    mark = mark_in_use(str(tmp_path), lock)
    assert mark is not None
    remove_if_abandoned(str(tmp_path), lock, removed.append)
    assert removed == []
    os.close(mark)
    remove_if_abandoned(str(tmp_path), lock, removed.append)
    assert removed == [str(tmp_path)]


def test_a_system_without_locks_marks_nothing_and_removes_nothing(tmp_path):
    removed = []
    assert mark_in_use(str(tmp_path), None) is None
    (tmp_path / "in-use").touch()
    remove_if_abandoned(str(tmp_path), None, removed.append)
    assert removed == []
    place = TemporarySpill(str(tmp_path), lock=None)
    file = place.create()
    with file.open_write() as stream:
        stream.write(b"rows")
    with file.open_read() as stream:
        assert stream.read() == b"rows"
    file.delete()
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [os.path.basename(os.path.dirname(file.path))]


def test_a_lock_that_fails_leaves_the_directory_unmarked(tmp_path):
    def fails(descriptor):
        raise OSError("no locks on this disk")

    assert mark_in_use(str(tmp_path), fails) is None
    removed = []
    remove_if_abandoned(str(tmp_path), fails, removed.append)
    assert removed == []
