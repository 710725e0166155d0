"""The explanation of a scan: its plan, what indexes leave out, and, if the scan is run, what was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paimon_py.scan.ends import Ends
from paimon_py.scan.explain import Analysis, Explanation
from paimon_py.scan.measure import ScanMeter, row_groups_of

if TYPE_CHECKING:
    from paimon_py.scan.scan import Scan


def explain_scan(scan: Scan, *, analyze: bool) -> Explanation:
    """Explain what `scan` would read, and with `analyze` what it did read; `Scan.explain` gives the costs."""
    plan = scan._whole_plan
    estimates = list(scan._root.env.pool.map(scan._estimate, plan.splits))
    order = None
    if scan._order:
        order = ", ".join(f"{field.name} {'descending' if down else 'ascending'}" for field, down in scan._order)
    state = scan._state
    last = state.last if isinstance(state, Ends) else None if state is None else state.snapshot
    return Explanation(
        table=scan._root.path,
        snapshot_id=None if last is None else last.id,
        since=state.since if isinstance(state, Ends) else None,
        schema_id=scan._request.schema.id,
        columns=tuple(field.name for field in scan._projection.fields),
        predicate=None if scan._request.predicate is None else repr(scan._request.predicate),
        limit=scan.limit,
        order_by=order,
        splits=plan.splits,
        pushed=plan.pushed,
        skipped=plan.skipped,
        index_files=sum(each.index_files for each in estimates),
        index_rows=sum(each.index_rows for each in estimates),
        row_groups=row_groups_of(estimates),
        analysis=_analyze(scan) if analyze else None,
    )


def _analyze(scan: Scan) -> Analysis:
    """Run the scan and count."""
    meter = ScanMeter()
    returned = sum(batch.num_rows for batch in scan._rows(meter=meter))
    return meter.analysis(files=sum(len(split.files) for split in scan._whole_plan.splits), rows_returned=returned)
