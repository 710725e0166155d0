"""Follows a table with row tracking by its row ids."""

from __future__ import annotations

from paimon_py import Table


def apply(rows, changes):
    """Apply changes to rows by id; old values must be those that were there."""
    for row in changes:
        number = row["_ROW_ID"]
        if row.pop("_row_kind") in ("-D", "-U"):
            assert rows.pop(number) == row
        else:
            assert rows.setdefault(number, row) is row


def check_followed(table: Table) -> None:
    """Check that the steps of a stream, and the changes between states, lead to the rows of the table."""
    names = [*table.scan().schema.names, "_ROW_ID"]
    wanted = {row["_ROW_ID"]: row for row in table.scan(columns=names).to_arrow().to_pylist()}
    rows: dict[int, dict] = {}
    for step in table.stream(from_=1, columns=names, until="now"):
        apply(rows, step.to_arrow().to_pylist())
    assert rows == wanted
    middle = table.snapshots()[len(table.snapshots()) // 2].id
    for modes in (("auto", "diff"), ("diff", "auto")):
        rows = {}
        for mode, (start, end) in zip(modes, ((0, middle), (middle, None)), strict=True):
            apply(rows, table.changes(start, end, mode=mode, columns=names).to_arrow().to_pylist())
        assert rows == wanted
