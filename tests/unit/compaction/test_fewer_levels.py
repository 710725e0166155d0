"""Compaction of tables whose options ask for fewer levels than their buckets have."""

from __future__ import annotations

import pytest

from paimon_py import Catalog, SetOption

SEQUENCED = {"merge-engine": "deduplicate", "sequence.field": "s"}
SUMS = {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}


@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize("engine", [{"merge-engine": "partial-update"}, SUMS, SEQUENCED])
def test_a_row_in_a_level_above_takes_part_in_the_merge(engine, vectors):
    catalog = Catalog.open("memory://fewer")
    catalog.drop_database("d", missing_ok=True, cascade=True)
    catalog.create_database("d")
    columns = {"k": "INT NOT NULL", "s": "INT", "v": "INT"}
    options = {"bucket": "1", "changelog-producer": "lookup", "deletion-vectors.enabled": vectors, **engine}
    table = catalog.create_table("d.t", columns, primary_key=["k"], options=options)
    table.write_arrow([{"k": 1, "s": 2, "v": 10}, {"k": 2, "s": 2, "v": 20}])
    table.compact(full=True)
    table.alter(SetOption("num-sorted-run.compaction-trigger", "4"))  # 5 levels; the rows are in the sixth
    stream = table.stream(from_="latest")
    stream.poll()
    table.write_arrow([{"k": 1, "s": 1, "v": None}])
    assert {row["k"]: row["v"] for row in table.scan().to_arrow().to_pylist()} == {1: 10, 2: 20}
    assert max(table.system("files").to_arrow()["level"].to_pylist()) == 5
    told = [row for step in iter(stream.poll, None) for row in step.to_arrow().to_pylist()]
    assert all(row["v"] == 10 for row in told)
