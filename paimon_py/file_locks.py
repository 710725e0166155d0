"""Locks on directories of a local disk that end with their process: the seam to the operating system.

A directory holds a file that its owner locks. Systems without `fcntl` (Windows) have no such locks here: a directory
cannot be marked there, and is never taken for abandoned.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Protocol

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_FILE = "in-use"


class FileLock(Protocol):
    """A function that locks an open file for one process; raises OSError if another process has it."""

    def __call__(self, descriptor: int) -> None: ...


def system_lock() -> FileLock | None:
    """The lock of this system; None if it has none that ends with the process."""
    if fcntl is None:
        return None
    return lambda descriptor: fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def mark_in_use(directory: str, lock: FileLock | None) -> int | None:
    """Mark a directory as in use while the returned file is open; None if it cannot be marked.

    The file is locked before it is renamed into place, so it is never visible unlocked.
    """
    if lock is None:
        return None
    path = os.path.join(directory, _FILE)
    file = os.open(path + ".new", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        lock(file)
        os.rename(path + ".new", path)
    except OSError:
        os.close(file)
        return None
    return file


def remove_if_abandoned(directory: str, lock: FileLock | None, remove: Callable[[str], object]) -> None:
    """Call `remove` for a directory of this user whose process has ended; do nothing if that is not certain."""
    if lock is None:
        return
    with contextlib.suppress(OSError):
        if os.lstat(directory).st_uid != os.getuid():
            return
        file = os.open(os.path.join(directory, _FILE), os.O_RDWR)
        try:
            lock(file)
            remove(directory)
        finally:
            os.close(file)
