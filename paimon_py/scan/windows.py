"""How much memory a merge window may take: less where several splits are read at the same time."""

from __future__ import annotations

from paimon_py.lanes import lanes_here
from paimon_py.lsm.merge import WINDOW_BYTES

_LEAST_BYTES = 8 << 20


def window_bytes() -> int:
    """Bytes of one window of a merge by the calling thread."""
    return max(_LEAST_BYTES, WINDOW_BYTES // lanes_here())
