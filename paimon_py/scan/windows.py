"""The memory of a merge: less if several splits are read in parallel."""

from __future__ import annotations

from collections.abc import Sequence

from paimon_py.lsm.groups import Engine
from paimon_py.lsm.merge import MergeWindow, Plan
from paimon_py.lsm.order import MergeOrder
from paimon_py.memory import MemoryShares
from paimon_py.parallel import active_workers

_LEAST_BYTES = 8 << 20
_LEAST_ROWS = 32_768


def read_plan(
    order: MergeOrder, engine: Engine, columns: Sequence[str], *, drop_deletes: bool, memory: MemoryShares,
    first_rows: int | None = None,
) -> Plan:  # fmt: skip
    """The parameters for merges in the calling thread: all workers together use about the memory of one.

    Args:
        memory: what the process has; windows are smaller where it has little.
        first_rows: the caller may need only this number of rows.
    """
    lanes, window = active_workers(), MergeWindow().within(memory)
    return Plan(
        order=order,
        engine=engine,
        columns=tuple(columns),
        drop_deletes=drop_deletes,
        window_rows=max(min(_LEAST_ROWS, window.rows), window.rows // lanes),
        window_bytes=max(min(_LEAST_BYTES, window.size_bytes), window.size_bytes // lanes),
        first_rows=first_rows,
    )
