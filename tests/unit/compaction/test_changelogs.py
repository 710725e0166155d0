"""Changelogs that compactions write: folded, they are the table, and no change is told that did not happen."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit.commit.support import Clock, Ids

from paimon_py import Catalog
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.change_plan import ChangeSource, plan_step
from paimon_py.scan.read import Request, read_split
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.table import Table
from paimon_py.testing.store_spill import StoreSpill

WAREHOUSE = "memory://changing"
ROWS = pa.schema([pa.field("k", pa.int32(), nullable=False), ("s", pa.int32()), ("v", pa.int32()), ("w", pa.string())])

FULL = {"changelog-producer": "full-compaction"}
LOOKUP = {"changelog-producer": "lookup"}
VECTORS = {"deletion-vectors.enabled": "true"}
SUMS = {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}
PARTIAL = {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}
GROUPS = {"merge-engine": "partial-update", "fields.s.sequence-group": "v,w"}
ORDERED = {"sequence.field": "s"}
FIRST = {"merge-engine": "first-row", "ignore-delete": "true"}
ENGINES = {"deduplicate": {}, "sums": SUMS, "partial": PARTIAL, "groups": GROUPS, "ordered": ORDERED}

PARTS = "parts"
"""The columns by which the table is partitioned."""

CASES = {
    **{f"full {name}": {**FULL, **options} for name, options in ENGINES.items()},
    **{f"lookup {name}": {**LOOKUP, **options} for name, options in ENGINES.items()},
    **{f"lookup {name} vectors": {**LOOKUP, **VECTORS, **options} for name, options in ENGINES.items()},
    "lookup first-row": {**LOOKUP, **FIRST},
    "full after two": {**FULL, "full-compaction.delta-commits": "2"},
    "full force-lookup": {**FULL, **SUMS, "force-lookup": "true"},
    "full orc, changelog avro": {**FULL, "file.format": "orc", "changelog-file.format": "avro"},
    "lookup avro, top orc": {**LOOKUP, "file.format": "avro", "file.format.per.level": "5:orc"},
    "lookup gentle": {**LOOKUP, "lookup-compact": "gentle", "lookup-compact.max-interval": "3"},
    "lookup two buckets": {**LOOKUP, "bucket": "2"},
    "lookup dynamic": {**LOOKUP, "bucket": "-1"},
    "lookup moving": {**LOOKUP, "bucket": "-1", PARTS: "v"},
    "lookup moving vectors": {**LOOKUP, **VECTORS, "bucket": "-1", PARTS: "v"},
    "full moving": {**FULL, "bucket": "-1", PARTS: "v"},
    "lookup postponed": {**LOOKUP, "bucket": "-2"},
    "full postponed": {**FULL, "bucket": "-2"},
    "full deduplicated": {**FULL, "changelog-producer.row-deduplicate": "true"},
    "lookup deduplicated": {**LOOKUP, "changelog-producer.row-deduplicate": "true"},
}


def new_table(parts="", **options):
    store = MemoryStore()
    catalog = Catalog(store, WAREHOUSE, env=Env(Clock(), Ids("setup"), SerialPool()))
    catalog.create_database("db")
    catalog.create_table("db.t", ROWS, primary_key=["k"], partition_by=parts.split(), options={"bucket": "1", **options})
    root = TableRoot(store, f"{WAREHOUSE}/db.db/t", Env(Clock(), Ids("w"), SerialPool(), StoreSpill(MemoryStore())))
    return Table(root, root.schemas.latest(), "db.t")


def rows(changes):
    """Rows of (key, sequence, value, text, kind)."""
    columns = list(zip(*changes, strict=True)) or [[]] * 5
    schema = ROWS.append(pa.field("_row_kind", pa.string()))
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def held(table):
    return sorted(map(repr, (tuple(row.values()) for row in table.scan().to_arrow().to_pylist())))


def told(table, number):
    """The changelog of a snapshot as (row, kind), in file order."""
    asked = Request(schema=table.schema, columns=tuple(table.schema.names), predicate=None)
    planned = plan_step(table._root, asked, table._root.snapshots.get(number), ChangeSource.CHANGELOG)
    found = [
        row for split in planned.splits for batch in read_split(table._root, asked, split) for row in batch.to_pylist()
    ]
    return [(tuple(row.values())[:4], row["_row_kind"]) for row in found]


class Fold:
    """What somebody holds who follows the changelog, and refuses changes that cannot be."""

    def __init__(self, table, *, deduplicated=False):
        self.table, self.rows, self.deduplicated, self.seen = table, {}, deduplicated, 0
        self.keeps_kinds = table.options.get("merge-engine") == "first-row"

    def place(self, row):
        """A key that moves between partitions lies in both of them while one of them tells that it left."""
        return row[0], row[2] if self.table.schema.partition_keys else None

    def advance(self):
        latest = self.table._root.snapshots.latest()
        for number in range(self.seen + 1, (latest.id if latest else 0) + 1):
            before = None
            for row, kind in told(self.table, number):
                key = self.place(row)
                if kind in ("-U", "-D"):
                    assert self.rows.pop(key) == row
                    before = row if kind == "-U" else None
                else:
                    assert key not in self.rows
                    if not self.keeps_kinds:
                        assert (kind == "+U") == (before is not None and before[0] == row[0])
                    assert not (self.deduplicated and before == row)
                    self.rows[key], before = row, None
            assert before is None
            snapshot = self.table._root.snapshots.get(number)
            assert (snapshot.changelog_record_count or 0) == len(told(self.table, number))
            self.seen = number
        return self.rows


def changes_for(options):
    kinds = ["+I", "+U", "-D", "-U"]
    if options.get("fields.v.aggregate-function") or options.get("merge-engine") == "aggregation":
        kinds = ["+I", "+U"]
    if "fields.s.sequence-group" in options:
        kinds = ["+I", "+U"]
    number = st.integers(0, 3)
    value = st.one_of(st.none(), number)
    # Java upgrades a file whose only version of a key has no sequence as it is, but tells the key without its group.
    sequence = number if "fields.s.sequence-group" in options else value
    text = st.sampled_from(["a", "b", None])
    return st.lists(
        st.tuples(st.integers(0, 12), sequence, value, text, st.sampled_from(kinds)), min_size=1, max_size=8
    )


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_the_folded_changelog_is_the_table(options, data):
    table = new_table(**options, **{"num-sorted-run.compaction-trigger": "3", "num-levels": "6"})
    fold = Fold(table, deduplicated="changelog-producer.row-deduplicate" in options)
    for _ in range(data.draw(st.integers(1, 6))):
        table.write_arrow(rows(data.draw(changes_for(options))))
        if data.draw(st.integers(0, 3)) == 0:
            table.compact(full=data.draw(st.booleans()))
        fold.advance()
    table.compact(full=True)
    assert sorted(map(repr, fold.advance().values())) == held(table)
