"""How much memory a merge may take: less where several splits are read at the same time."""

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
    """How the calling thread merges what it reads: all lanes together take about what one would take alone.

    Args:
        first_rows: after so many rows the caller may have enough.
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
