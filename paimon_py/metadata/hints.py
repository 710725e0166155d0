"""Hint files: a decimal id that helps to find the newest or oldest snapshot without listing.

A hint is written late, best effort and out of order: it may be missing, stale, garbage or too high, and nothing may
depend on it but the number of requests.

Source: format.md §1.3; Java `HintFileUtils`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from paimon_py.errors import StorageError
from paimon_py.storage.store import FileMissingError, Get, Put


class HintStore(Get, Put, Protocol):
    """What this module asks of a store."""


def read_hint(store: Get, path: str) -> int | None:
    """The id in a hint file; None if there is none, or it cannot be read, or it holds something else."""
    try:
        return _read_hint(store, path)
    except StorageError:
        return None


def raise_hint(
    store: HintStore, path: str, value: int, seen: int | None = None, *, may_begin: Callable[[], bool] | None = None
) -> None:
    """Write a hint unless it is as high already, or its directory is gone.

    Args:
        seen: what the hint said a moment ago, if somebody looked.
        may_begin: asked whether to write the hint where there is none.
    A store that fails here changes nothing but later request counts.
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
    """The id in a hint file; None if there is none, or it holds something else. Raises: StorageError"""
    try:
        digits = store.get(path).strip()
    except FileMissingError:
        return None
    return int(digits) if digits.isdigit() and len(digits) <= 19 else None
