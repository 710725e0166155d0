"""ANALYZE: what is found, where it is stored, who takes it over, and what is left when a call fails."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from unit.commit.support import Clock

from paimon_py import AddColumn, Catalog, CommitUnknownError, CorruptionError, Schema, UnsupportedError, UsageError
from paimon_py.codec.distinct import DistinctCount
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.statistics import read_statistics
from paimon_py.spec.statistics import ColumnStatistics
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.table import Table
from paimon_py.testing.fault_store import MODES, FaultStore, for_each_fault

PATH = "/w/d.db/t"
COLUMNS = [("k", "INT NOT NULL"), ("v", "STRING"), ("n", "BIGINT")]


def opened(store):
    root = TableRoot(store, PATH, Env(Clock(1_700_000_100_000), None, SerialPool()))
    return Table(root, root.schemas.latest(), "d.t")


def made(columns=COLUMNS, key=("k",), **options):
    store = MemoryStore()
    catalog = Catalog(store, "/w", env=Env(Clock(), None, SerialPool()))
    catalog.create_database("d")
    options = {"bucket": "1" if key else "-1", **options}
    catalog.create_table("d.t", Schema(columns), primary_key=list(key), options=options)
    return store


def rows(*keys, v="é", n=7):
    return pa.table({"k": pa.array(keys, pa.int32()), "v": [v] * len(keys), "n": pa.array([n] * len(keys), pa.int64())})


def stored(store):
    return [status.name for status in store.list(f"{PATH}/statistics")]


def test_rows_and_columns_are_counted_as_readers_see_them():
    store = made()
    opened(store).write_arrow(rows(1, 2, 3))
    opened(store).write_arrow(rows(3, 4, v="three", n=None))
    before = opened(store).snapshot().value
    size = sum(one.file_size_in_bytes for one in opened(store).partitions())
    told = []
    found = opened(store).analyze(["n", "v", "k"], progress=lambda *far: told.append(far))
    assert (found.snapshot_id, found.schema_id, found.merged_record_count) == (2, 0, 4)
    assert found.merged_record_size == size * 4 // 5
    assert dict(found.columns) == {
        "k": ColumnStatistics(column_id=0, distinct_count=4, min=1, max=4, null_count=0, avg_len=4, max_len=4),
        "v": ColumnStatistics(column_id=1, distinct_count=2, null_count=0, avg_len=3, max_len=5),
        "n": ColumnStatistics(column_id=2, distinct_count=1, min=7, max=7, null_count=2, avg_len=8, max_len=8),
    }
    assert list(found.columns) == ["n", "v", "k"] and told[-1] == (5, 5, "rows")
    assert opened(store).statistics() == found
    after = opened(store).snapshot().value
    assert (after.id, after.commit_kind, after.total_record_count, after.delta_record_count) == (3, "ANALYZE", 5, 0)
    assert stored(store) == [after.statistics] and after.statistics.startswith("stat-")
    assert (after.schema_id, after.watermark, after.index_manifest) == (before.schema_id, before.watermark, before.index_manifest)
    assert opened(store).scan().count() == 4 and opened(store).changes(2, 3).to_arrow().num_rows == 0


def test_without_columns_no_data_file_is_read():
    store = made(key=())
    opened(store).write_arrow(rows(1, 2, 2))
    for status in store.list(f"{PATH}/bucket-0"):
        store.put(status.path, b"damaged")
    found = opened(store).analyze()
    assert (found.merged_record_count, dict(found.columns)) == (3, {})
    text = store.get(f"{PATH}/statistics/{stored(store)[0]}").decode()
    assert text == (
        f'{{\n  "snapshotId" : 1,\n  "schemaId" : 0,\n  "mergedRecordCount" : 3,\n  "mergedRecordSize" : '
        f'{found.merged_record_size},\n  "colStats" : {{ }}\n}}'
    )


def test_an_empty_table_has_no_statistics():
    store = made()
    assert opened(store).analyze(all_columns=True) is None and opened(store).statistics() is None
    assert opened(store).snapshot() is None and stored(store) == []
    opened(store).write_arrow(rows(1))
    opened(store).truncate()
    found = opened(store).analyze(["k", "v"])
    assert (found.merged_record_count, found.merged_record_size) == (0, 0)
    assert found.columns["k"] == ColumnStatistics(column_id=0, distinct_count=0, null_count=0, avg_len=4, max_len=4)
    assert found.columns["v"] == ColumnStatistics(column_id=1, distinct_count=0, null_count=0, avg_len=0, max_len=0)


def test_later_snapshots_take_statistics_over_while_the_schema_stays():
    store = made()
    opened(store).write_arrow(rows(1, 2))
    found = opened(store).analyze(["k"])
    opened(store).write_arrow(rows(3))
    opened(store).compact(full=True)
    assert opened(store).statistics() == opened(store).statistics(2) == found
    again = opened(store).analyze(["k", "n"])
    assert opened(store).statistics() == again != found and len(stored(store)) == 2
    assert opened(store).statistics(1) is None
    opened(store).alter(AddColumn("x", "INT"))
    opened(store).write_arrow(rows(4))
    assert opened(store).statistics() is None
    opened(store).expire_snapshots(retain_min=1, retain_max=1)
    assert stored(store) == []


def test_statistics_are_of_the_schema_that_they_are_asked_under():
    store = made()
    opened(store).write_arrow(rows(1, 2))
    opened(store).alter(AddColumn("x", "INT"))
    found = opened(store).analyze(["x"])
    assert (found.snapshot_id, found.schema_id) == (1, 1)
    assert found.columns["x"] == ColumnStatistics(column_id=3, distinct_count=0, null_count=2, avg_len=4, max_len=4)
    opened(store).write_arrow(pa.table({"k": pa.array([3], pa.int32()), "v": ["v"], "n": [1], "x": pa.array([1], pa.int32())}))
    assert opened(store).statistics() == found


MOMENT = datetime.datetime(2024, 2, 29, 1, 2, 3, 450_000)
TYPES = {
    "TINYINT": ([3, -5, None], "-5", "3", -5, 3, 1),
    "BOOLEAN": ([True, False], "false", "true", False, True, 1),
    "DECIMAL(10, 2)": ([Decimal("1.50"), Decimal("-0.01")], "-0.01", "1.50", Decimal("-0.01"), Decimal("1.50"), 8),
    "DECIMAL(30, 1)": ([Decimal("1" * 25), Decimal(0)], "0.0", "1" * 25 + ".0", Decimal("0.0"), Decimal("1" * 25 + ".0"), 16),
    "FLOAT": ([1.5, float("nan"), -2.0], "-2.0", "NaN", -2.0, float("nan"), 4),
    "DOUBLE": ([1e20, float("inf"), 0.1], "0.1", "Infinity", 0.1, float("inf"), 8),
    "DATE": ([MOMENT.date(), datetime.date(1960, 1, 1)], "-3653", "19782", datetime.date(1960, 1, 1), MOMENT.date(), 4),
    "TIME(3)": ([datetime.time(1, 2, 3)], "3723000", "3723000", datetime.time(1, 2, 3), datetime.time(1, 2, 3), 4),
    "TIMESTAMP(3)": ([MOMENT], "2024-02-29 01:02:03.450", "2024-02-29 01:02:03.450", MOMENT, MOMENT, 8),
    "TIMESTAMP(0)": ([MOMENT.replace(microsecond=0)], "2024-02-29 01:02:03", "2024-02-29 01:02:03",
                     MOMENT.replace(microsecond=0), MOMENT.replace(microsecond=0), 8),
    "TIMESTAMP(9)": ([np.datetime64("2024-02-29T01:02:03.000000001")], "2024-02-29 01:02:03.000000001",
                     "2024-02-29 01:02:03.000000001", "2024-02-29 01:02:03.000000001", "2024-02-29 01:02:03.000000001", 8),
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": (
        [MOMENT.replace(tzinfo=datetime.timezone.utc)], "2024-02-29 01:02:03.450000", "2024-02-29 01:02:03.450000",
        MOMENT.replace(tzinfo=datetime.timezone.utc), MOMENT.replace(tzinfo=datetime.timezone.utc), 8),
}  # fmt: skip


@pytest.mark.parametrize("kind", TYPES)
def test_bounds_are_stored_as_java_does_and_read_as_values(kind):
    values, low_text, high_text, low, high, size = TYPES[kind]
    store = made([("c", kind)], key=())
    table = opened(store)
    table.write_arrow(pa.table({"c": pa.array(values, table.scan().schema.field("c").type)}))
    found = table.analyze(["c"]).columns["c"]
    data = json.loads(store.get(f"{PATH}/statistics/{stored(store)[0]}"))["colStats"]["c"]
    assert (data["min"], data["max"], data["avgLen"], data["maxLen"]) == (low_text, high_text, size, size)
    assert repr((found.min, found.max)) == repr((low, high)) and repr(opened(store).statistics().columns["c"]) == repr(found)
    assert found.distinct_count == len(values) - values.count(None)


def test_a_column_of_nothing_but_nan_or_null():
    store = made([("a", "DOUBLE"), ("b", "DOUBLE"), ("c", "BYTES")], key=())
    opened(store).write_arrow(pa.table({"a": [float("nan")] * 3, "b": pa.nulls(3, pa.float64()), "c": [b"1", b"22", b"22"]}))
    found = opened(store).analyze(all_columns=True).columns
    assert [repr(found["a"].min), repr(found["a"].max), found["a"].distinct_count] == ["nan", "nan", 1]
    assert (found["b"].min, found["b"].max, found["b"].null_count) == (None, None, 3)
    assert (found["c"].distinct_count, found["c"].avg_len, found["c"].max_len) == (2, 2, 2)


def test_all_columns_leave_those_out_that_cannot_be_analyzed():
    store = made([("a", "ARRAY<INT>"), ("b", "INT")], key=())
    opened(store).write_arrow(pa.table({"a": pa.array([[1]], pa.list_(pa.int32())), "b": pa.array([1], pa.int32())}))
    assert list(opened(store).analyze(all_columns=True).columns) == ["b"]
    with pytest.raises(UnsupportedError, match="'a' is ARRAY<INT>"):
        opened(store).analyze(["a"])


@pytest.mark.parametrize(
    ("given", "word"),
    [({"columns": ["kk"]}, "no column 'kk'; did you mean 'k'"), ({"columns": "k"}, "columns"), ({"columns": [1]}, "a list of names, not 1"),
     ({"columns": ["k"], "all_columns": True}, "not both"), ({"progress": 5}, "progress is a function")],
)  # fmt: skip
def test_nonsense_is_refused(given, word):
    store = made()
    opened(store).write_arrow(rows(1))
    with pytest.raises(UsageError, match=word):
        opened(store).analyze(**given)
    assert stored(store) == [] and opened(store).snapshot().id == 1


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", '{"snapshotId": 1, "schemaId": 0, "colStats": 5}', '{"snapshotId": true, "schemaId": 0}',
     '{"snapshotId": 1, "schemaId": 0, "colStats": {"z": {"colId": 1}}}',
     '{"snapshotId": 1, "schemaId": 0, "colStats": {"k": {"colId": 1, "min": "x"}}}',
     '{"snapshotId": 1, "schemaId": 0, "colStats": {"k": {"colId": 1, "max": 5}}}',
     '{"snapshotId": 1, "schemaId": 0, "colStats": {"k": {}}}'],
)  # fmt: skip
def test_damaged_statistics_are_named(text):
    store = made()
    opened(store).write_arrow(rows(1))
    opened(store).analyze(["k"])
    path = f"{PATH}/statistics/{stored(store)[0]}"
    store.put(path, text.encode())
    with pytest.raises(CorruptionError, match="stat-"):
        opened(store).statistics()
    store.delete(path)
    with pytest.raises(CorruptionError, match="stat-"):
        opened(store).statistics()
    opened(store).write_arrow(rows(2))
    assert opened(store).scan().count() == 2


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.full)])
def test_whatever_fails_statistics_are_there_or_not(every):
    original = made()
    opened(original).write_arrow(rows(1, 2, 3))

    def check(store, outcome):
        left = opened(store)
        found, latest = left.statistics(), left.snapshot()
        assert latest.id in (1, 2) and (found is None) == (latest.id == 1)
        assert outcome.result is None or outcome.result == found
        if outcome.result is None and found is None and not outcome.crashed and not isinstance(outcome.error, CommitUnknownError):
            assert stored(store) == [] or outcome.fault.verb == "delete"
        assert left.scan().count() == 3
        assert left.analyze(["k"]).merged_record_count == 3

    share = lambda call, mode: (call + MODES.index(mode)) % every == 0  # noqa: E731
    assert for_each_fault(original.copy, lambda store: opened(store).analyze(["k"]), check, share=share) > 8


class Meanwhile(FaultStore):
    """Somebody writes right before snapshot 2 is published."""

    def put_new(self, path, data, **extra):
        if path.endswith("/snapshot-2") and not self.store.list(f"{PATH}/snapshot")[-1].name.endswith("-2"):
            opened(self.store).write_arrow(rows(9))
        return super().put_new(path, data, **extra)


def test_what_others_commit_meanwhile_stays_and_takes_statistics_over():
    store = made()
    opened(store).write_arrow(rows(1, 2))
    found = opened(Meanwhile(store)).analyze(["k"])
    assert (found.snapshot_id, found.merged_record_count) == (1, 2)
    kinds = [one.commit_kind for one in opened(store).snapshots()]
    assert kinds == ["APPEND", "APPEND", "ANALYZE"] and opened(store).scan().count() == 3
    assert opened(store).statistics() == found and len(stored(store)) == 1


def test_a_tag_keeps_the_statistics_of_its_snapshot():
    store = made()
    opened(store).write_arrow(rows(1, 2))
    found = opened(store).analyze(["k"])
    opened(store).create_tag("kept")
    opened(store).write_arrow(rows(3))
    opened(store).analyze()
    opened(store).expire_snapshots(retain_min=1, retain_max=1)
    assert len(stored(store)) == 2
    assert read_statistics(opened(store)._root, opened(store)._root.tags.get("kept").snapshot) == found
    opened(store).delete_tag("kept")
    assert stored(store) == [opened(store).snapshot().value.statistics]


def test_a_branch_has_its_own_statistics_after_those_that_it_began_with():
    store = made()
    opened(store).write_arrow(rows(1, 2))
    first = opened(store).analyze(["k"])
    opened(store).create_tag("t")
    opened(store).create_branch("b", from_="t")
    branch = opened(store).branch("b")
    assert branch.statistics() == first
    branch.write_arrow(rows(3))
    second = branch.analyze(["n"])
    assert (branch.statistics(), opened(store).statistics()) == (second, first) and second.merged_record_count == 3
    for table in (branch, opened(store)):
        table.write_arrow(rows(4))
        table.expire_snapshots(retain_min=1, retain_max=1)
    assert (opened(store).branch("b").statistics(), opened(store).statistics()) == (second, first)


def test_streams_and_row_operations_pass_over_a_snapshot_that_only_analyzes():
    store = made()
    opened(store).write_arrow(rows(1, 2))
    stream = opened(store).stream(from_="full")
    assert stream.poll().to_arrow().num_rows == 2
    opened(store).analyze(["k"])
    assert stream.poll() is None
    opened(store).delete("k = 1")
    assert stream.poll().to_arrow().num_rows == 1
    assert opened(store).changes(1, 2).to_arrow().num_rows == 0 and opened(store).statistics().merged_record_count == 2


# -- distinct values ---------------------------------------------------------------------------------------------------


def counted(*arrays):
    count = DistinctCount()
    for array in arrays:
        count.add(array)
    return count.result()


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.float64(), pa.decimal128(25, 2), pa.binary(), pa.timestamp("us")])
def test_few_values_are_counted_exactly(kind):
    numbers = pa.array([*range(5000), None, *range(5000)])
    values = numbers.cast(pa.string()).cast(kind) if kind in (pa.string(), pa.binary()) else numbers.cast(kind)
    assert counted(values, values.slice(100, 7000), values.slice(0, 0)) == 5000


def test_signs_of_zero_and_kinds_of_nan_do_not_count():
    odd = np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(np.float64)
    assert counted(pa.array([0.0, -0.0, float("nan"), 1.0]), pa.array(odd)) == 3
    assert counted(pa.array([True, False, None, True])) == 2


@pytest.mark.parametrize("seed", range(6))
def test_many_values_are_estimated(seed):
    rng = np.random.default_rng(seed)
    total = int(rng.integers(20_000, 600_000))
    chosen = rng.choice(2**40, total, replace=False)
    kind = [pa.int64(), pa.string(), pa.float64()][seed % 3]
    arrays = [pa.array(part).cast(kind) for part in np.array_split(np.concatenate([chosen, chosen[: total // 2]]), 20)]
    assert abs(counted(*arrays) / total - 1) < 0.04
