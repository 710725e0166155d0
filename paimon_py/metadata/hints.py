"""Hint files: a decimal id that helps to find the newest or oldest snapshot without listing.

A hint is written late, best effort and out of order: it may be missing, stale, garbage or too high, and may only affect
the number of requests.

Source: format.md §1.3; Java `HintFileUtils`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from paimon_py.errors import StorageError
from paimon_py.storage.store import FileMissingError, Get, Put


class HintStore(Get, Put, Protocol):
    """The store operations that this module uses."""


def read_hint(store: Get, path: str) -> int | None:
    """The id in a hint file; None if it does not exist, cannot be read, or contains something else."""
    try:
        return _read_hint(store, path)
    except StorageError:
        return None


def raise_hint(
    store: HintStore, path: str, value: int, seen: int | None = None, *, may_begin: Callable[[], bool] | None = None
) -> None:
    """Raise a hint unless it is already as high, or its directory is gone.

    Args:
        seen: the recently read value of the hint, if any.
        may_begin: called to decide whether to write the hint if there is none.
    An error of the store here only affects later request counts.
    """
    try:
        current = _read_hint(store, path) if seen is None else seen
        if current is None and may_begin is not None and not may_begin():
            return
        if current is None or current < value:
            store.put(path, str(value).encode(), within=path.rpartition("/")[0])
    except StorageError:
        return


def _read_hint(store: Get, path: str) -> int | None:
    """The id in a hint file; None if it does not exist or contains something else. Raises: StorageError"""
    try:
        digits = store.get(path).strip()
    except FileMissingError:
        return None
    return int(digits) if digits.isdigit() and len(digits) <= 19 else None
