"""Limits the number of concurrent compactions by their memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paimon_py.lsm.merge import WINDOW_BYTES
from paimon_py.parallel import Budget

_TOGETHER_BYTES = 6 * WINDOW_BYTES
_MOST_OF_ONE = 3 * WINDOW_BYTES
_DECODED_FACTOR = 3


def compaction_budget(size_bytes: Callable[[Any], int]) -> Budget:
    """A budget for two compactions of any size, or for more small ones. `size_bytes`: the size of one's files."""

    def cost(work: object) -> int:
        return min(_DECODED_FACTOR * size_bytes(work), _MOST_OF_ONE)

    return Budget(_TOGETHER_BYTES, cost, lambda _result: 0)
