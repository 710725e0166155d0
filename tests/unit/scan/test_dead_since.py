"""Changes of rows with ids after deletes: of files that both states have, only the parts with dead rows are read."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from interop.followed import apply
from unit.public import new_catalog, reopened

from paimon_py.formats.parquet import format as parquet
from paimon_py.formats.parquet import write as parquet_write
from paimon_py.scan import dead_since

ROWS = 4000
TRACKED = {"row-tracking.enabled": "true", "deletion-vectors.enabled": "true", "write-only": "true"}
KINDS = {"one file for all columns": TRACKED, "files for some columns": {**TRACKED, "data-evolution.enabled": "true"}}


@pytest.fixture
def decoded(monkeypatch):
    """The rows of row groups that were decoded."""
    monkeypatch.setattr(parquet_write, "ROW_GROUP_ROWS", 100)
    counts = []
    stretch = parquet.ParquetOpenFile._stretch

    def counted(self, groups, plan, batch_rows):
        counts.append(sum(self._group_rows[group] for group in groups))
        return stretch(self, groups, plan, batch_rows)

    monkeypatch.setattr(parquet.ParquetOpenFile, "_stretch", counted)
    return counts


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_after_a_delete_reads_the_parts_with_its_rows(tmp_path, kind, decoded):
    table = new_catalog(tmp_path / "w").create_table("d.t", pa.schema([("i", pa.int64()), ("s", pa.string())]), options=KINDS[kind])
    table.write_arrow(pa.table({"i": np.arange(ROWS), "s": [f"x{n}" for n in range(ROWS)]}))
    table.delete("i IN (7, 3999)")
    table.delete("i = 250")
    decoded.clear()
    found = reopened(table).changes(2, 3, mode="diff", columns=["i", "_ROW_ID"]).to_arrow().to_pylist()
    assert found == [{"i": 250, "_ROW_ID": 250, "_row_kind": "-D"}]
    assert 0 < sum(decoded) <= 200
    decoded.clear()
    steps = [step.to_arrow().to_pylist() for step in reopened(table).stream(from_=2, columns=["s"], until="now")]
    assert [[row["s"] for row in step] for step in steps] == [["x7", "x3999"], ["x250"]]
    assert 0 < sum(decoded) <= 600
    decoded.clear()
    assert reopened(table).scan(where="_ROW_ID = 8", columns=["s"]).to_arrow().to_pylist() == [{"s": "x8"}]
    assert sum(decoded) <= 100


@pytest.mark.parametrize("most", [3, 65_536])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_changes_lead_from_one_state_to_the_other(tmp_path, kind, seed, most, monkeypatch):
    """With deletes, updates and compactions between the states, and conditions on ids."""
    monkeypatch.setattr(dead_since, "_IDS_MAX", most)
    dice = random.Random(f"{kind} {seed}")
    table = new_catalog(tmp_path / "w").create_table(
        "d.t", pa.schema([("i", pa.int64()), ("s", pa.string())]), options={**KINDS[kind], "compaction.min.file-num": "2"}
    )
    names = ["i", "s", "_ROW_ID"]
    states = {}
    for number in range(12):
        verb = dice.choice(["write", "delete", "delete", "delete", "update", "compact"]) if number else "write"
        low = dice.randrange(300)
        if verb == "write":
            table.write_arrow(pa.table({"i": np.arange(low, low + 60), "s": [str(number)] * 60}))
        elif verb == "delete":
            table.delete(f"i % 7 = {dice.randrange(7)} AND i > {low}")
        elif verb == "update":
            table.update(f"i = {low}", {"s": "new"})
        else:
            table.compact(full=True)
        table = reopened(table)
        rows = table.scan(columns=names).to_arrow().to_pylist()
        states[table.snapshot().id] = {row["_ROW_ID"]: row for row in rows}
    for _ in range(12):
        start, end = sorted(dice.sample(sorted(states), 2))
        rows = dict(states[start])
        apply(rows, table.changes(start, end, mode="diff", columns=names).to_arrow().to_pylist())
        assert rows == states[end]
        where = f"_ROW_ID < {dice.randrange(200)}"
        some = table.changes(start, end, mode="diff", columns=names, where=where).to_arrow().to_pylist()
        every = table.changes(start, end, mode="diff", columns=names).to_arrow().to_pylist()
        limit = int(where.rpartition(" ")[2])
        assert some == [row for row in every if row["_ROW_ID"] < limit]
