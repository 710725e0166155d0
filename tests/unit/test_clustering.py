"""Sorted compaction and incremental clustering through the public verbs: rows stay, files part, queries read less."""

from __future__ import annotations

import datetime
import itertools
import math
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from unit.public import KEYED, new_catalog, refused, reopened

from paimon_py import (
    AddColumn,
    CompactionTask,
    OptionError,
    RenameColumn,
    Schema,
    SetOption,
    UnsupportedError,
    UsageError,
)
from paimon_py.lsm.external_sort import ExternalSort
from paimon_py.lsm.merge import MergeWindow
from paimon_py.lsm.spill import SpilledRuns, SpillSettings
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.clustering import Clustering
from paimon_py.spec.type_text import parse_type
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.store_spill import StoreSpill

SMALL = {"target-file-row-num": "100"}
POINTS = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("v", pa.string())])
INCREMENTAL = {"clustering.incremental": "true", "clustering.columns": "a,b", "num-sorted-run.compaction-trigger": "3"}


@pytest.fixture
def catalog(tmp_path):
    return new_catalog(tmp_path / "w")


def points(table, side=40, batches=3):
    """Every point of a square once, in no order, in a few files."""
    cells = list(itertools.product(range(side), repeat=2))
    random.Random(side).shuffle(cells)
    for part in range(batches):
        a, b = zip(*cells[part::batches])
        table.write_arrow(pa.table({"a": a, "b": b, "v": [f"{x}/{y}" for x, y in zip(a, b)]}))
    return table


def multiset(table):
    columns = reopened(table).scan().to_arrow().to_pydict()
    return Counter(repr(row) for row in zip(*columns.values()))


def live(table):
    root = reopened(table)._root
    return root.manifests.live_entries(root.snapshots.latest()).entries()


def levels(table):
    return Counter(entry.file.level for entry in live(table))


def rows_of_files(table, *names):
    """The rows of every live file of a table without partitions, as they lie there."""
    found = []
    for entry in live(table):
        path = Path(table.location) / f"bucket-{entry.bucket}" / entry.file.name
        found.append(list(zip(*pq.read_table(path, columns=list(names)).to_pydict().values())))
    return found


def rows_to_read(table, where):
    """How many rows lie in the files that a query has to read."""
    return sum(file.row_count for split in reopened(table).scan(where=where).splits() for file in split.files)


def test_files_are_disjoint_in_the_order_that_was_asked_for(catalog):
    table = points(catalog.create_table("d.t", POINTS, options=SMALL))
    before = multiset(table)
    result = table.compact(full=True, order_by=["b", "a"])
    assert multiset(table) == before
    assert result.snapshot_id == 4
    assert reopened(table).snapshot().commit_kind.value == "COMPACT"
    inside = rows_of_files(table, "b", "a")
    assert len(inside) == 16
    assert all(rows == sorted(rows) for rows in inside)
    assert sum(sorted(inside), []) == sorted(itertools.product(range(40), repeat=2))
    assert {entry.file.level for entry in live(table)} == {0}
    assert rows_to_read(table, "b = 7") <= 200


@pytest.mark.parametrize("strategy", ["zorder", "hilbert"])
def test_a_box_touches_a_small_share_of_files_on_a_curve(catalog, strategy):
    table = points(catalog.create_table("d.t", POINTS, options=SMALL), side=64)
    before = multiset(table)
    boxes = [f"a >= {x} AND a < {x + 8} AND b >= {y} AND b < {y + 8}" for x in range(0, 64, 24) for y in range(4, 56, 17)]
    unsorted = sum(rows_to_read(table, box) for box in boxes)
    table.compact(full=True, order_by=["a", "b"], strategy=strategy)
    assert multiset(table) == before
    assert rows_to_read(table, "a < 8 AND b < 8") <= 400
    assert sum(rows_to_read(table, box) for box in boxes) * 8 < unsorted
    columns = sum(rows_to_read(table, f"{name} = 33") for name in "ab")
    table.compact(full=True, order_by=["a", "b"], strategy="order")
    assert columns < sum(rows_to_read(table, f"{name} = 33") for name in "ab"), "a curve serves both columns"


def test_rows_that_are_equal_keep_their_order(catalog):
    table = catalog.create_table("d.t", POINTS, options={"target-file-row-num": "1000"})
    table.write_arrow(pa.table({"a": [1, 0] * 150, "b": [0] * 300, "v": [f"{n:03}" for n in range(300)]}))
    for strategy in ("order", "zorder"):
        table.compact(full=True, order_by=["a"], strategy=strategy)
        values = [row for rows in sorted(rows_of_files(table, "a", "v")) for row in rows]
        assert values == sorted(values)


KINDS = {
    "BOOLEAN": lambda rng: rng.random() < 0.5,
    "TINYINT": lambda rng: rng.randrange(-128, 128),
    "INT": lambda rng: rng.randrange(-5, 5),
    "BIGINT": lambda rng: rng.choice([-(2**63), -1, 0, 2**63 - 1]),
    "FLOAT": lambda rng: rng.choice([-math.inf, -0.0, 0.0, 1.5, math.nan]),
    "DOUBLE": lambda rng: rng.choice([rng.gauss(0, 1), math.nan, -0.0]),
    "STRING": lambda rng: "ä" * rng.randrange(3) + str(rng.randrange(50)),
    "BYTES": lambda rng: rng.randbytes(rng.randrange(12)),
    "BINARY(3)": lambda rng: rng.randbytes(3),
    "DECIMAL(9, 2)": lambda rng: Decimal(rng.randrange(-(10**9) + 1, 10**9)).scaleb(-2),
    "DECIMAL(38, 0)": lambda rng: Decimal(rng.randrange(-(10**37), 10**37)),
    "DATE": lambda rng: datetime.date(1970, 1, 1) + datetime.timedelta(rng.randrange(-400, 400)),
    "TIMESTAMP(6)": lambda rng: datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=rng.randrange(-(10**7), 10**7)),
}  # fmt: skip


@pytest.mark.parametrize("strategy", ["order", "zorder", "hilbert"])
def test_rows_of_every_type_with_nulls_stay_what_they_are_also_by_way_of_the_disk(catalog, strategy):
    rng = random.Random(strategy)
    names = [f"c{n}" for n in range(len(KINDS))]
    columns = [*zip(names, KINDS), ("nested", "ROW<x INT, y ARRAY<STRING>>"), ("_ROW", "INT")]
    table = catalog.create_table("d.t", Schema(columns), options={"target-file-row-num": "70", "write-buffer-size": "64 kb"})
    for count in (1, 150, 200):
        data = {name: [None if rng.random() < 0.2 else make(rng) for _ in range(count)] for name, make in zip(names, KINDS.values())}
        data["nested"] = [rng.choice([None, {"x": n, "y": ["p", None]}]) for n in range(count)]
        data["_ROW"] = list(range(count))
        schema = reopened(table).scan().to_arrow().schema
        table.write_arrow(pa.table({name: pa.array(values, schema.field(name).type) for name, values in data.items()}))
    before = multiset(table)
    order_by = rng.sample(names, 5)
    table.compact(full=True, order_by=order_by, strategy=strategy)
    assert multiset(table) == before
    assert len(live(table)) >= 5


@pytest.mark.parametrize("strategy", ["order", "zorder", "hilbert"])
def test_sorting_by_way_of_the_disk_is_the_same_and_leaves_nothing_there(catalog, strategy):
    schema = catalog.create_table("d.t", POINTS).schema
    rng = random.Random(5)
    rows = {name: [rng.choice([None, *range(6)]) for _ in range(2000)] for name in "ab"} | {"v": [str(n) for n in range(2000)]}
    batches = pa.table(rows, schema=POINTS).to_batches(max_chunksize=300)
    clustering = Clustering(("a", "b"), strategy)
    place = StoreSpill(MemoryStore())
    memory = ExternalSort(schema, clustering, SpilledRuns(place, SpillSettings()), MergeWindow())
    wanted = pa.Table.from_batches(memory.sort(batches))
    for limit, runs in ((3000, 2), (20_000, 128)):
        sort = ExternalSort(schema, clustering, SpilledRuns(place, SpillSettings(run_bytes=limit, max_runs=runs)), MergeWindow())
        found = []
        for batch in sort.sort(batches):
            assert place.paths()
            found.append(batch)
        sort.clear()
        assert pa.Table.from_batches(found).to_pydict() == wanted.to_pydict()
        assert place.paths() == []
    if strategy == "order":
        assert wanted.to_pylist() == sorted(wanted.to_pylist(), key=lambda row: [(-1 if row[n] is None else row[n]) for n in "ab"])


def test_partitions_and_buckets_are_sorted_for_themselves_and_others_left_alone(catalog):
    table = catalog.create_table(
        "d.t", POINTS, partition_by=["a"], options={"bucket": "2", "bucket-key": "v", "bucket-append-ordered": "false", "write-only": "true"}
    )  # fmt: skip
    for _ in range(2):
        table.write_arrow(pa.table({"a": [1, 2] * 10, "b": [*range(20, 0, -1)], "v": [str(n) for n in range(20)]}))
    before = multiset(table)
    untouched = {e.file.name for e in live(table)}
    table.compact(order_by=["b"], partitions=[{"a": 2}])
    assert multiset(table) == before
    assert len({e.file.name for e in live(table)} & untouched) == 4
    values = reopened(table).scan(where="a = 2").to_arrow().column("b").to_pylist()
    assert Counter(values) == Counter(dict.fromkeys(range(1, 20, 2), 2))
    table.compact(order_by=["b"], where="a = 1")
    assert not {e.file.name for e in live(table)} & untouched
    assert multiset(table) == before


def test_dead_rows_go_and_their_vectors_with_them(catalog):
    table = points(catalog.create_table("d.t", POINTS, options={**SMALL, "deletion-vectors.enabled": "true"}), side=20)
    table.delete("a = 3 OR b = 4")
    before = multiset(table)
    assert vectors(table)
    table.compact(full=True, order_by=["a", "b"])
    assert multiset(table) == before
    assert not vectors(table)
    assert sum(entry.file.row_count for entry in live(table)) == sum(before.values()) == 19 * 19


def vectors(table):
    root = reopened(table)._root
    name = root.snapshots.latest().index_manifest
    return OpenTable(root, table.schema).deletion_places(root.manifests.read_index(name)) if name else {}


def test_old_files_are_sorted_in_the_new_schema(catalog):
    table = points(catalog.create_table("d.t", POINTS, options=SMALL), side=10)
    table.alter(RenameColumn("b", "c"), AddColumn("n", parse_type("INT")))
    table.compact(order_by=["n", "c"])
    assert table.scan(where="c = 3").count() == 10
    assert table.scan().to_arrow().column_names == ["a", "c", "v", "n"]


def test_tasks_sort_in_other_processes(catalog):
    table = points(catalog.create_table("d.t", POINTS, options=SMALL), side=20)
    before = multiset(table)
    (task,) = table.compaction_tasks(order_by=["a", "b"], strategy="hilbert")
    assert CompactionTask.from_bytes(bytes(task)) == task
    table.commit(reopened(table).run_compaction(bytes(task)))
    assert multiset(table) == before
    assert rows_to_read(table, "a < 5 AND b < 5") <= 200


def test_the_strategy_comes_from_the_caller_or_the_number_of_columns(catalog):
    options = {"clustering.columns": "b, a"}
    table = points(catalog.create_table("d.t", POINTS, options=options), side=4, batches=1)
    assert strategy_of(table, order_by=["a"]) == (("a",), "order")
    assert strategy_of(table, order_by=["a", "b"]) == (("a", "b"), "order")
    assert strategy_of(table, order_by=["a", "b"], strategy="auto") == (("a", "b"), "zorder")
    assert strategy_of(table, order_by=["a"], strategy="auto") == (("a",), "order")
    assert strategy_of(table, strategy="hilbert") == (("b", "a"), "hilbert")
    wide = catalog.create_table("d.wide", Schema([(f"c{n}", "INT") for n in range(6)]))
    wide.write_arrow(pa.table({f"c{n}": pa.array([1], pa.int32()) for n in range(6)}))
    assert strategy_of(wide, order_by=[f"c{n}" for n in range(5)], strategy="auto")[1] == "hilbert"


def strategy_of(table, **asked):
    (task,) = table.compaction_tasks(**asked)
    return task.clustering.columns, task.clustering.strategy


def test_an_empty_table_has_nothing_to_sort(catalog):
    table = catalog.create_table("d.t", POINTS)
    assert table.compact(full=True, order_by=["a"]).snapshot_id is None
    table.write_arrow(POINTS.empty_table())
    assert table.compact(full=True, order_by=["a"]).snapshot_id is None


def test_bad_requests_are_refused_before_a_file_is_touched(catalog):
    columns = [("a", "INT"), ("p", "INT"), ("r", "ROW<x INT>"), ("l", "ARRAY<INT>")]
    table = catalog.create_table("d.t", Schema(columns), partition_by=["p"])
    for asked, error, words in [
        ({"order_by": ["nope"]}, UsageError, ["nope"]),
        ({"order_by": []}, UsageError, ["at least one"]),
        ({"order_by": "a"}, UsageError, ["list", '["a"]']),
        ({"order_by": ["a", "a"]}, UsageError, ["twice"]),
        ({"order_by": ["p"]}, UsageError, ["partition key"]),
        ({"order_by": ["r"]}, UnsupportedError, ["'r'", "no order"]),
        ({"order_by": ["l"]}, UnsupportedError, ["'l'", "no order"]),
        ({"order_by": ["a"], "strategy": "spiral"}, UsageError, ["spiral", "hilbert"]),
        ({"order_by": ["a"], "strategy": "hilbert"}, UsageError, ["two columns"]),
        ({"strategy": "order"}, OptionError, ["clustering.columns"]),
    ]:
        with refused(table, error, *words):
            table.compact(full=True, **asked)
        with refused(table, error, *words):
            table.compaction_tasks(**asked)
    keyed = catalog.create_table("d.k", KEYED, primary_key=["p", "k"], options={"bucket": "1"})
    with refused(keyed, UsageError, "primary key"):
        keyed.compact(order_by=["v"])
    ordered = catalog.create_table("d.o", POINTS, options={"bucket": "2", "bucket-key": "a"})
    with refused(ordered, UsageError, "bucket-append-ordered"):
        ordered.compact(order_by=["b"])
    own = catalog.create_table("d.i", POINTS, options=INCREMENTAL)
    with refused(own, UsageError, "clustering.incremental"):
        own.compact(order_by=["b"])


# -- incremental clustering --------------------------------------------------------------------------------------------


def test_new_files_are_clustered_level_by_level(catalog):
    table = catalog.create_table("d.t", POINTS, options={**INCREMENTAL, **SMALL})
    cells = list(itertools.product(range(30), repeat=2))
    random.Random(2).shuffle(cells)
    seen = []
    for at in range(0, 900, 90):
        a, b = zip(*cells[at : at + 90])
        table.write_arrow(pa.table({"a": a, "b": b, "v": ["v"] * 90}))
        table.compact()
        runs = levels(table)
        seen.append(tuple(sorted(runs)))
        assert reopened(table).scan().count() == at + 90
        assert runs[0] + len(runs) - (0 in runs) <= 3, "more runs than the trigger wants"
    assert len(set(seen)) > 2, seen
    table.compact(full=True)
    assert list(levels(table)) == [3]
    assert {entry.file.schema_id for entry in live(table)} == {0}
    assert rows_to_read(table, "a < 4 AND b < 4") <= 200
    assert table.compact(full=True).snapshot_id is None, "one run on the top level is clustered"
    assert multiset(table) == Counter(repr((a, b, "v")) for a, b in cells)


def test_other_columns_cluster_anew_only_when_everything_is_asked_for(catalog):
    table = points(catalog.create_table("d.t", POINTS, options={**INCREMENTAL, **SMALL}), side=20)
    before = multiset(table)
    table.compact(full=True)
    table.alter(SetOption("clustering.columns", "v"))
    assert table.compact().snapshot_id is None
    assert table.compact(full=True).snapshot_id is not None
    assert multiset(table) == before
    values = [row for rows in sorted(rows_of_files(table, "v")) for row in rows]
    assert values == sorted(values)


def test_writers_of_a_table_that_clusters_leave_its_buckets_alone(catalog):
    options = {**INCREMENTAL, "bucket": "1", "bucket-key": "a", "bucket-append-ordered": "false", "compaction.min.file-num": "2"}
    table = points(catalog.create_table("d.t", POINTS, options=options), side=10, batches=6)
    assert levels(table) == {0: 6}
    assert {snapshot.commit_kind.value for snapshot in table.snapshots()} == {"APPEND"}
    before = multiset(table)
    table.compact()
    assert set(levels(table)) == {3}
    assert multiset(table) == before


def test_rows_of_clustered_files_are_deleted_and_updated(catalog):
    for number, more in enumerate(({}, {"deletion-vectors.enabled": "true"})):
        table = points(catalog.create_table(f"d.t{number}", POINTS, options={**INCREMENTAL, **SMALL, **more}), side=20)
        table.compact(full=True)
        table.delete("a = 3")
        table.update("b = 4", {"v": "new"})
        assert table.scan().count() == 380
        assert table.scan(where="v = 'new'").count() == 19
        table.compact(full=True)
        assert table.scan().count() == 380
        assert table.scan(where="v = 'new'").count() == 19


def test_options_of_incremental_clustering_that_go_against_each_other_are_refused(catalog):
    for more, word in [
        ({"bucket": "2", "bucket-key": "a"}, "bucket-append-ordered"),
        ({"bucket": "2", "bucket-key": "a", "bucket-append-ordered": "false", "deletion-vectors.enabled": "true"}, "deletion-vectors"),
    ]:
        with refused(catalog, OptionError, "clustering.incremental", word):
            catalog.create_table("d.t", POINTS, options={**INCREMENTAL, **more})
    with refused(catalog, OptionError, "primary key"):
        catalog.create_table("d.t", KEYED, primary_key=["p", "k"], options={"bucket": "1", "clustering.incremental": "true"})
    table = catalog.create_table("d.none", POINTS, options={"clustering.incremental": "true"})
    table.write_arrow(pa.table({"a": [1], "b": [1], "v": ["v"]}))
    with refused(table, OptionError, "clustering.columns"):
        table.compact()
