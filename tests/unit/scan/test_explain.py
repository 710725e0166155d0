"""`scan.explain()`: are its numbers those of the read that follows, and those of the files themselves?"""

from __future__ import annotations

import io
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from unit.scan.build import opened, table

from paimon_py import AddColumn, col
from paimon_py.scan.explain import RowGroups
from paimon_py.scan.measure import ScanMeter

FORMATS = ["parquet", "orc", "avro"]
FIELDS = [("k", "INT NOT NULL"), ("v", "BIGINT"), ("s", "STRING"), ("pos", "ROW<x INT, y STRING>")]
APPEND = {"bucket": "-1", "write-only": "true"}
KEYED = {"bucket": "1", "write-only": "true"}
SMALL = {"parquet.block.size": "20000", "orc.stripe.size": "10000", "orc.compress": "none"}
"""Row groups of some hundred rows, stripes of 1024."""


def batch(keys, value=None, kinds=None):
    keys = list(keys)
    columns = {
        "k": pa.array(keys, pa.int32()),
        "v": pa.array(keys if value is None else [value] * len(keys), pa.int64()),
        "s": [f"{key:07}" for key in keys],
        "pos": pa.array([{"x": key, "y": str(key)} for key in keys], pa.struct([("x", pa.int32()), ("y", pa.string())])),
    }
    return pa.table(columns if kinds is None else {**columns, "_row_kind": kinds})


def filled(file_format, options, batches, primary_key=(), fields=FIELDS):
    made = table(fields, primary_key=primary_key, options={**options, "file.format": file_format})
    for each in batches:
        made.write_arrow(each)
    return made


def part_rows(made, scan):
    """Rows of every row group or stripe of every file of a scan, as another reader tells them."""
    found = []
    for split in scan.splits():
        for file in split.files:
            path = f"{made._root.path}/bucket-{split.bucket}/{file.name}"
            data = io.BytesIO(made._root.store.get(path))
            if file.name.endswith("parquet"):
                meta = pq.read_metadata(data)
                found.append([meta.row_group(at).num_rows for at in range(meta.num_row_groups)])
            elif file.name.endswith("orc"):
                source = orc.ORCFile(data)
                found.append([source.read_stripe(at, columns=["k"]).num_rows for at in range(source.nstripes)])
            else:
                found.append([])
    return found


def agreed(scan):
    """The analysis, after comparing it with the plan and with the rows that the scan returns."""
    plan = scan.explain(analyze=True)
    done = plan.analysis
    rows = scan.to_arrow().num_rows
    if scan._where is None or scan._limit is None:
        assert done.rows_returned == rows == scan.count()
    assert done.rows_returned == rows <= done.rows_merged
    others = done.files_by_index + done.files_by_key + done.files_by_order + done.files_by_limit
    assert done.files_opened + others + done.files_by_metadata == plan.file_count
    if scan._limit is None:
        assert done.files_by_limit == done.files_by_order == 0
        if not done.files_by_key:
            assert (done.row_groups, done.files_by_index) == (plan.row_groups, plan.index_files)
    assert done.row_groups_read <= done.row_groups.read
    return done


@pytest.mark.parametrize("file_format", FORMATS)
def test_row_groups_are_those_of_the_files_and_skipped_ones_are_not_read(file_format):
    made = filled(file_format, {**APPEND, **SMALL}, [batch(range(0, 6000)), batch(range(6000, 12000))])
    scan = made.scan()
    groups = part_rows(made, scan)
    assert all(len(of_file) > 2 for of_file in groups) or file_format == "avro"
    everything = agreed(scan)
    assert everything.row_groups == RowGroups(all=sum(map(len, groups)))
    assert everything.row_groups_read == sum(map(len, groups))
    assert (everything.files_opened, everything.rows_read, everything.rows_merged) == (2, 12000, 12000)
    found = agreed(made.scan(where="k >= 6700 AND k < 6710"))
    assert (found.files_opened, found.rows_returned) == (1, 10)
    if file_format != "avro":
        bounds = [sum(groups[1][:at]) for at in range(len(groups[1]) + 1)]
        hit = next(at for at in range(len(groups[1])) if bounds[at] <= 700 < bounds[at + 1])
        assert found.row_groups == RowGroups(all=len(groups[1]), statistics=len(groups[1]) - 1)
        assert found.rows_read == found.rows_merged == groups[1][hit]
        text = str(made.scan(where="k >= 6700 AND k < 6710").explain())
        assert f"row groups 1 of {len(groups[1])} read, skipped: statistics {len(groups[1]) - 1}" in text


def test_row_groups_of_all_ranges_of_rows_count():
    options = {**APPEND, "row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    made = filled("parquet", options, [batch(range(0, 100)), batch(range(100, 200))])
    made.update("k > 50", {"v": 7})
    (split,) = made.scan().splits()
    assert [section.aligned for section in split.sections] == [True, True] and len(split.files) == 4
    assert agreed(made.scan()).row_groups == RowGroups(all=4)


@pytest.mark.parametrize("file_format", FORMATS)
def test_every_row_of_every_version_is_read_and_one_is_left_per_key(file_format):
    made = filled(
        file_format, KEYED, [batch(range(100)), batch(range(50, 150)), batch(range(10), kinds=["-D"] * 10)], ["k"]
    )
    done = agreed(made.scan(where="v >= 100"))
    assert (done.rows_read, done.rows_merged, done.rows_returned, done.files_opened) == (210, 140, 50, 3)
    alone = agreed(made.scan(columns=[]))
    assert (alone.rows_read, alone.rows_merged, alone.rows_returned) == (210, 140, 140)
    by_key = agreed(made.scan(where="k >= 120"))
    assert (by_key.files_opened, by_key.rows_read, by_key.rows_returned) == (1, 100, 30)


@pytest.mark.parametrize("file_format", FORMATS)
def test_dead_rows_are_read_but_not_left(file_format):
    made = filled(file_format, {**APPEND, "deletion-vectors.enabled": "true"}, [batch(range(100)), batch(range(100, 200))])
    made.delete("k < 30 OR k >= 190")
    done = agreed(made.scan())
    assert (done.rows_read, done.rows_merged, done.rows_returned) == (200, 160, 160)
    counted = agreed(made.scan(columns=[]))
    assert (counted.files_opened, counted.files_by_metadata, counted.rows_read, counted.rows_returned) == (0, 2, 0, 160)
    keyed = filled(file_format, {**KEYED, "deletion-vectors.enabled": "true"}, [batch(range(5000))], ["k"])
    keyed.compact(full=True)
    keyed.write_arrow(batch(range(40)))
    keyed.compact()
    done = agreed(keyed.scan())
    assert (done.rows_read, done.rows_merged, done.files_opened) == (5040, 5000, 2)


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("place", ["500 b", "10 mb"], ids=["beside", "embedded"])
def test_rows_that_indexes_leave_out_are_not_read_from_their_row_groups(file_format, place):
    options = {"file-index.bitmap.columns": "v", "file-index.in-manifest-threshold": place}
    values = [value for value in (1, 2, 3) for _ in range(2000)]
    one = batch(range(6000)).set_column(1, "v", pa.array(values, pa.int64()))
    two = batch(range(6000)).set_column(1, "v", pa.array([1, 3] * 3000, pa.int64()))
    made = filled(file_format, {**APPEND, **SMALL, **options}, [one, two])
    scan = made.scan(where="v = 2")
    plan, done = scan.explain(), agreed(scan)
    groups = part_rows(made, made.scan())[0]
    assert done.files_opened == 1 and done.rows_merged == done.rows_returned == 2000
    if place == "500 b":
        assert (plan.index_files, plan.index_rows, done.files_by_index) == (1, 10000, 1)
    else:
        assert (plan.skipped.index, plan.index_rows, done.files_by_index) == (1, 4000, 0)
    starts = [sum(groups[:at]) for at in range(len(groups) + 1)]
    hit = [at for at in range(len(groups)) if starts[at] < 4000 and starts[at + 1] > 2000]
    assert done.row_groups.all == len(groups) and done.row_groups.read == done.row_groups_read == len(hit)
    assert done.rows_read == (sum(groups[at] for at in hit) if groups else 6000)
    assert done.row_groups.skipped == len(groups) - len(hit) > 0 or not groups


def test_statistics_are_named_before_indexes():
    values = [*range(0, 3000, 2)]
    data = batch(range(1500)).set_column(1, "v", pa.array(values, pa.int64()))
    options = {"file-index.bitmap.columns": "v", "file-index.in-manifest-threshold": "10 mb"}
    made = filled("parquet", {**APPEND, **SMALL, **options}, [data])
    (groups,) = part_rows(made, made.scan())
    edge = groups[0] * 2
    done = agreed(made.scan(where=f"v IN (0, {edge + 1}, {edge + 4}) AND v != 0"))
    assert done.row_groups.statistics == len(groups) - 2 + (0 if len(groups) > 1 else 1)
    assert done.row_groups.read == 1 and done.rows_returned == 1


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_limit_ends_the_scan_before_all_files_are_opened(file_format):
    made = filled(file_format, {**APPEND, **SMALL}, [batch(range(start, start + 3000)) for start in range(0, 12000, 3000)])
    groups = part_rows(made, made.scan())
    made._root.store.reset()
    plan = made.scan(limit=3001).explain(analyze=True)
    assert (plan.file_count, plan.skipped.limit, len(set(opened(made)))) == (2, 2, 2)
    assert (plan.analysis.files_opened, plan.analysis.rows_returned) == (2, 3001)
    assert plan.row_groups.all == sum(map(len, groups[:2]))
    filtered = made.scan(where="v >= 0", limit=5).explain(analyze=True).analysis
    assert (filtered.files_opened, filtered.files_by_limit, filtered.rows_returned) == (1, 3, 5)
    assert filtered.row_groups.all == len(groups[0]) >= filtered.row_groups_read
    nothing = made.scan(limit=0).explain(analyze=True)
    assert (nothing.file_count, nothing.analysis.files_opened, nothing.analysis.rows_returned) == (0, 0, 0)


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("order", ["k", ("k", "descending"), ("s", "descending")])
def test_first_rows_of_clustered_files_are_found_in_few(file_format, order):
    made = filled(file_format, APPEND, [batch(range(start, start + 100)) for start in range(0, 5000, 100)])
    done = agreed(made.scan(order_by=order, limit=150))
    assert (done.files_opened, done.files_by_order, done.rows_returned) == (2, 48, 150)
    assert "order 48" in str(made.scan(order_by=order, limit=150).explain(analyze=True))


def test_later_row_groups_are_left_out_once_the_first_rows_are_known():
    made = filled("parquet", {**APPEND, **SMALL}, [batch(range(4000)), batch([3, *range(3000, 7000)])])
    first, second = map(len, part_rows(made, made.scan()))
    done = agreed(made.scan(order_by="k", limit=10))
    assert (done.files_opened, done.rows_returned) == (2, 10)
    assert done.row_groups == RowGroups(all=first + second, statistics=second - 1)
    assert done.row_groups_read == done.row_groups.read


@pytest.mark.parametrize("file_format", FORMATS)
def test_fields_inside_rows_are_read_of_the_same_row_groups(file_format):
    made = filled(file_format, {**APPEND, **SMALL}, [batch(range(4000))])
    done = agreed(made.scan(columns=["pos.x"], where="k < 10"))
    whole = agreed(made.scan(columns=["pos"], where="k < 10"))
    assert (done.rows_read, done.rows_returned) == (whole.rows_read, 10)
    assert done.bytes_read <= whole.bytes_read


def test_a_column_that_no_file_has_needs_no_file():
    made = filled("parquet", APPEND, [batch(range(10))])
    made.alter(AddColumn("new", "INT"))
    done = agreed(made.scan(columns=["new"]))
    assert (done.files_opened, done.files_by_metadata, done.rows_read, done.rows_returned) == (0, 1, 0, 10)
    assert made.scan(columns=["new"]).explain().row_groups == RowGroups()


def test_rows_that_have_expired_are_read_until_a_compaction_drops_them():
    fields = [("k", "INT NOT NULL"), ("t", "INT")]
    options = {**KEYED, "record-level.expire-time": "1 d", "record-level.time-field": "t"}
    made = table(fields, primary_key=["k"], options=options)
    made.write_arrow(pa.table({"k": pa.array([1, 2, 3], pa.int32()), "t": pa.array([1, 2, 2**31 - 1], pa.int32())}))
    assert agreed(made.scan()).rows_read == 3
    made.compact(full=True)
    done = agreed(made.scan())
    assert (done.rows_read, done.rows_returned) == (1, 1)


def test_files_behind_the_last_key_are_not_opened():
    options = {**KEYED, "target-file-size": "20 kb"}
    made = filled("parquet", options, [batch(range(0, 20000)), batch(range(0, 20000, 2), value=7)], ["k"])
    made.compact(full=True)
    made.write_arrow(batch([0, 19999], value=1))
    plan = made.scan(where="k <= 5").explain(analyze=True)
    done = plan.analysis
    assert done.rows_returned == 6 and done.files_opened + done.files_by_key == plan.file_count


class Told(io.BytesIO):
    """Tells how much is read of it."""

    def __init__(self, data, read):
        super().__init__(data)
        self.log = read

    def read(self, size=-1):
        found = super().read(size)
        self.log.append(len(found))
        return found


def test_files_that_nothing_else_explains_were_left_to_the_limit():
    meter = ScanMeter()
    meter.files_opened, meter.files_by_index, meter.files_by_key = 1, 20, 300
    meter.files_by_metadata, meter.files_by_order = 4_000, 50_000
    found = meter.analysis(files=654_321, rows_returned=0)
    assert found.files_by_limit == 600_000
    assert (found.files_opened, found.files_by_index, found.files_by_key) == (1, 20, 300)
    assert (found.files_by_metadata, found.files_by_order) == (4_000, 50_000)


def test_bytes_are_those_that_the_store_hands_out():
    data = [batch(range(3000)), batch(range(1000, 5000)), batch(range(10), kinds=["-D"] * 10)]
    for file_format in FORMATS:
        options = {**KEYED, "file-index.bloom-filter.columns": "s", "file-index.in-manifest-threshold": "1 b"}
        made = filled(file_format, options, data, ["k"])
        scan = made.scan(where="s = '0002000'")
        expected = scan.explain(analyze=True).analysis.bytes_read
        read, real = [], made._root.store.open_read

        made._root.store.open_read = lambda path, real=real, read=read: Told(real(path).read(), read)
        assert scan.to_arrow().num_rows == 1
        assert sum(read) == expected > 0


LAYOUTS = {
    "append": ({}, ()),
    "marked": ({"deletion-vectors.enabled": "true"}, ()),
    "keyed": ({"bucket": "2"}, ("k",)),
    "marked keys": ({"bucket": "1", "deletion-vectors.enabled": "true"}, ("k",)),
    "first row": ({"bucket": "1", "merge-engine": "first-row"}, ("k",)),
    "summed": (
        {"bucket": "1", "merge-engine": "aggregation", "fields.v.aggregate-function": "max",
         "fields.s.aggregate-function": "last_value", "fields.pos.aggregate-function": "last_value"}, ("k",),
    ),
}  # fmt: skip
WHERES = [
    None, "k < 40", "v = 3", "v IS NULL", "s >= '0000090' AND v != 2", "k IN (1, 50, 170) OR v = 1", col("pos", "x") > 150,
    col("v") == 2.5, "k = 77",
]  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("file_format", FORMATS)
def test_numbers_agree_with_the_read_in_random_lives(layout, file_format):
    draw = random.Random(f"{layout} {file_format}")
    options, primary_key = LAYOUTS[layout]
    index = {} if layout == "first row" else {"file-index.bitmap.columns": "v", "file-index.bsi.columns": "k"}
    made = filled(file_format, {**APPEND, **options, **index, "parquet.block.size": "2000"}, [], primary_key)
    for step in range(5):
        keys = sorted(draw.sample(range(200), 60))
        values = pa.array([draw.choice([None, 1, 2, 3]) for _ in keys], pa.int64())
        made.write_arrow(batch(keys).set_column(1, "v", values))
        if layout != "append" and step in (1, 3):
            made.compact(full=step == 1)
        if layout == "marked":
            made.delete(col("k") == keys[0])
    for where in WHERES:
        for columns in (None, ["s"], []):
            agreed(made.scan(where=where, columns=columns))
        agreed(made.scan(where=where, limit=7))
        agreed(made.scan(where=where, order_by=[("v", "descending"), "k"], limit=7))


def test_merged_rows_that_do_not_match_are_counted_before_the_filter():
    made = filled("parquet", KEYED, [batch(range(100)), batch(range(50, 150), value=7)], primary_key=["k"])
    done = agreed(made.scan(where=col("v") == 7))
    assert (done.rows_read, done.rows_merged, done.rows_returned) == (200, 150, 101)
