"""Streams of Java's tables with row tracking: the rows of all steps, applied by row id, are those of every scan."""

from __future__ import annotations

import golden
import pytest
from locate import CORPUS

from paimon_py import Catalog

CASES = [case for case in golden.cases(str(CORPUS)) if case.stage <= 6 and {"row-tracking", "data-evolution"} & set(case.tags)]
BROKEN = ("evolve-broken-ranges", "blob-descriptors")


def apply(rows, batches):
    """Apply changes to rows by id; old values must be those that were there."""
    for row in batches.to_pylist():
        number = row["_ROW_ID"]
        if row.pop("_row_kind") in ("-D", "-U"):
            assert repr(rows.pop(number)) == repr(row)
        else:
            assert number not in rows
            rows[number] = row


@pytest.mark.parametrize("case", [case for case in CASES if case.name not in BROKEN], ids=lambda case: case.name)
def test_applied_steps_are_the_rows_of_each_snapshot(case, tmp_path):
    table = Catalog.open(golden.unpack(case, tmp_path)).table(case.table)
    snapshots = table.snapshots()
    if snapshots[0].id > 1:
        pytest.skip("the first snapshots have expired")
    names = [*table.scan().schema.names, "_ROW_ID"]
    latest = table._root.schemas.latest().id
    rows, told = {}, {}
    for step in table.stream(from_=1, columns=names, until="now"):
        for split in step.splits():
            told.setdefault(step.snapshot_id, []).append(step.read(bytes(split)).read_all())
    for snapshot in snapshots:
        for batches in told.get(snapshot.id, []):
            apply(rows, batches)
        if snapshot.value.schema_id == latest:
            found = table.scan(snapshot_id=snapshot.id, columns=names).to_arrow().to_pylist()
            assert sorted(map(repr, rows.values())) == sorted(map(repr, found)), snapshot.id
    middle, rows = snapshots[len(snapshots) // 2], {}
    apply(rows, table.changes(0, middle.id, mode="diff", columns=names).to_arrow())
    for mode in ("auto", "diff"):
        ahead = dict(rows)
        apply(ahead, table.changes(middle.id, mode=mode, columns=names).to_arrow())
        assert sorted(map(repr, ahead.values())) == sorted(map(repr, table.scan(columns=names).to_arrow().to_pylist()))
