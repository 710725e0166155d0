"""The memory of a merge: less if several splits are read in parallel."""

from __future__ import annotations

from collections.abc import Sequence

from paimon_py.lsm.groups import Engine
from paimon_py.lsm.merge import WINDOW_BYTES, WINDOW_ROWS, Plan
from paimon_py.lsm.order import MergeOrder
from paimon_py.parallel import active_workers

_LEAST_BYTES = 8 << 20
_LEAST_ROWS = 32_768


def read_plan(
    order: MergeOrder, engine: Engine, columns: Sequence[str], *, drop_deletes: bool, first_rows: int | None = None
) -> Plan:
    """The parameters for merges in the calling thread: all workers together use about the memory of one.

    Args:
        first_rows: the caller may need only this number of rows.
    """
    lanes = active_workers()
    return Plan(
        order=order,
        engine=engine,
        columns=tuple(columns),
        drop_deletes=drop_deletes,
        window_rows=max(_LEAST_ROWS, WINDOW_ROWS // lanes),
        window_bytes=max(_LEAST_BYTES, WINDOW_BYTES // lanes),
        first_rows=first_rows,
    )
