"""Planning with only some manifests in memory gives the plan that all of them together give."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from paimon_py import Catalog, col
from paimon_py.codec.manifest.columns import compact
from paimon_py.metadata import manifests
from paimon_py.testing.named_files import name_files

SCHEMA = pa.schema([pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])
SHAPES = {
    "append": {"options": {"bucket": "-1", "write-only": "true"}},
    "keyed": {"primary_key": ["p", "k"], "options": {"bucket": "2", "write-only": "true"}},
    "evolving": {"options": {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true"}},
}
WHERE = [
    None, col("p") == 2, col("p") == 99, col("k") == 17, col("k") < 40, col("v") > 150, (col("p") == 1) & (col("k") > 60), col("v").is_null(),
]  # fmt: skip


def filled(catalog: Catalog, shape: str):
    """A table of many small files, some of which were deleted again, in manifests of a few entries."""
    rng = random.Random(shape)
    chosen = SHAPES[shape]
    options = {**chosen["options"], "manifest.merge-min-count": "1000", "manifest.full-compaction-threshold-size": "1 gb"}
    table = catalog.create_table(f"d.{shape}", SCHEMA, partition_by=["p"], **{**chosen, "options": options})
    for number in range(14):
        keys = rng.sample(range(number * 10, number * 10 + 40), 6)
        rows = {"p": [key % 4 for key in keys], "k": keys, "v": [rng.choice((None, key, 2 * key)) for key in keys]}
        table.write_arrow(pa.table(rows, SCHEMA))
        if number in (5, 9) and shape != "evolving":
            table.compact(full=True)
    return table


@pytest.fixture(params=SHAPES)
def table(request, tmp_path):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    filled(catalog, request.param)
    return lambda: catalog.table(f"d.{request.param}")


def planned(table, where):
    scan = table().scan(where=where)
    return [bytes(split) for split in scan.splits()], scan.explain()


@pytest.mark.parametrize("entries", [1, 3, 10])
def test_a_plan_in_parts_is_the_plan(table, monkeypatch, entries):
    whole = [planned(table, where) for where in WHERE]
    loaded, load = [], manifests.Manifests._load

    def counted(self, files, **told):
        found = load(self, files, **told)
        loaded.append(len(found))
        return found

    monkeypatch.setattr(manifests.Manifests, "_load", counted)
    monkeypatch.setattr(manifests, "PART_ENTRIES", 100)
    monkeypatch.setattr(manifests, "ENTRY_BYTES", 1 << 40)
    monkeypatch.setattr(
        manifests, "groups_of", lambda files, _: (files[at : at + entries] for at in range(0, len(files), entries))
    )
    assert [planned(table, where) for where in WHERE] == whole
    assert any(count <= 12 * entries for count in loaded)


def test_rows_of_a_plan_in_parts_are_the_rows(table, monkeypatch):
    whole = [table().scan(where=where).to_arrow() for where in WHERE]
    monkeypatch.setattr(manifests, "ENTRY_BYTES", 1 << 40)
    for where, rows in zip(WHERE, whole, strict=True):
        found = table().scan(where=where).to_arrow()
        assert found.sort_by("k").equals(rows.sort_by("k"))


def test_manifests_are_read_a_part_at_a_time(tmp_path, monkeypatch):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", SCHEMA, partition_by=["p"], options={"bucket": "-1"})
    table.write_arrow(pa.table({"p": [0, 1, 2], "k": [1, 2, 3], "v": [4, 5, 6]}, SCHEMA))
    name_files(table, 60_000, deleted=500)
    sizes, load = [], manifests.Manifests._load

    def counted(self, files, **told):
        found = load(self, files, **told)
        sizes.append(len(found))
        return found

    monkeypatch.setattr(manifests.Manifests, "_load", counted)
    monkeypatch.setattr(manifests, "PART_ENTRIES", 15_000)
    monkeypatch.setattr(manifests, "ENTRY_BYTES", 1 << 20)
    assert catalog.table("d.t").scan(where=col("k") == 77).splits() == []
    assert max(sizes) <= 15_000 and len(sizes) > 5


def test_compact_entries_are_the_entries(table):
    root = table()._root
    columns = root.manifests.live_entries(root.latest())
    rows = np.random.default_rng(1).permutation(len(columns))[: len(columns) // 2]
    some = columns.take(rows)
    found = compact(some)
    assert found.entries() == some.entries() and len(found.buffer) < len(some.buffer)
    assert compact(found) is found
    assert compact(columns.take(rows[:0])).entries() == []
