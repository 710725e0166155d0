"""Tables with file indexes: written with every file, used for skipping, never changing what is read."""

from __future__ import annotations

import datetime
import random

import pyarrow as pa
import pytest

from paimon_py import (
    AddColumn,
    Catalog,
    CorruptionError,
    DropColumn,
    OptionError,
    RemoveOption,
    RenameColumn,
    Schema,
    SetOption,
    UnsupportedError,
    UpdateColumnType,
    UsageError,
    col,
)
from paimon_py.codec.file_index import container
from paimon_py.scan.split import Split

COLUMNS = [
    ("k", "INT NOT NULL"),
    ("n", "INT"),
    ("x", "DOUBLE"),
    ("s", "STRING"),
    ("d", "DECIMAL(9, 2)"),
    ("m", {"type": "MAP", "key": "STRING NOT NULL", "value": "INT"}),
]
INDEXES = {
    "file-index.bloom-filter.columns": "s,k",
    "file-index.bloom-filter.s.items": "100",
    "file-index.bloom-filter.k.items": "100",
    "file-index.bitmap.columns": "n,s,m[a]",
    "file-index.bsi.columns": "d,n",
    "file-index.range-bitmap.columns": "x,n",
}
EMBEDDED = {"file-index.in-manifest-threshold": "10 mb"}
ENGINES = [{}, {"deletion-vectors.enabled": "true"}, {"merge-engine": "partial-update"}]
OFF = {"file-index.read.enabled": "false"}


def catalog(tmp_path):
    made = Catalog.open(str(tmp_path))
    made.create_database("db", exist_ok=True)
    return made


def table(tmp_path, options, columns=COLUMNS, **arguments):
    return catalog(tmp_path).create_table("db.t", Schema(columns), options=options, **arguments)


def rows(count, seed, first_key=0):
    dice = random.Random(seed)
    maybe = lambda value: None if dice.random() < 0.2 else value  # noqa: E731
    return pa.table(
        {
            "k": pa.array(range(first_key, first_key + count), pa.int32()),
            "n": pa.array([maybe(dice.randrange(-9, 9)) for _ in range(count)], pa.int32()),
            "x": [maybe(dice.choice([0.0, -0.0, float("nan"), float("inf"), 2.5, -3.5])) for _ in range(count)],
            "s": [maybe(dice.choice("abcdefgh") * dice.randrange(3)) for _ in range(count)],
            "d": pa.array([maybe(dice.randrange(-300, 300)) for _ in range(count)], pa.decimal128(9, 2)),
            "m": pa.array([maybe([("a", maybe(3)), ("b", 4)]) for _ in range(count)], pa.map_(pa.string(), pa.int32())),
        }
    )


def predicates(dice):
    n, s, d = dice.randrange(-10, 10), dice.choice("abcdefghi"), dice.randrange(-310, 310)
    x = dice.choice([0.0, -0.0, float("nan"), 2.5, 7.0])
    leaves = [
        col("n") == n, col("n") < n, col("n").isin([n, 3]), col("n").is_null(), col("n") != n, col("x") == x, col("x") > x,
        col("x") <= x, col("s") == s, col("s").not_in([s, "aa"]), col("s").starts_with(s), col("d") >= d, col("d") == d,
        col("k") == n * 7, col("k") < 90,
    ]  # fmt: skip
    one, two, three = (dice.choice(leaves) for _ in range(3))
    return [one, one & two, one | two, (one | two) & three, ~(one & two)]


def found(scan):
    return sorted(map(repr, scan.to_arrow().to_pylist()))


def agree(opened, seed, count=1):
    dice = random.Random(seed)
    for _ in range(count):
        for predicate in predicates(dice):
            want = found(opened.scan(where=predicate, options=OFF))
            assert found(opened.scan(where=predicate)) == want, predicate
            assert opened.scan(where=predicate).count() == len(want)


def index_files(tmp_path):
    return sorted(tmp_path.rglob("*.index"))


@pytest.mark.parametrize("fmt", ["parquet", "orc", "avro"])
def test_append_tables_read_the_same_with_indexes_and_without(tmp_path, fmt):
    append_life(tmp_path, fmt, EMBEDDED if fmt == "orc" else {}, 1)


@pytest.mark.full
@pytest.mark.parametrize("fmt", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("place", [{}, EMBEDDED], ids=["beside", "embedded"])
def test_append_tables_read_the_same_with_indexes_and_without_for_many_filters(tmp_path, fmt, place):
    append_life(tmp_path, fmt, place, 40)


def append_life(tmp_path, fmt, place, count):
    opened = table(tmp_path, {**INDEXES, **place, "file.format": fmt})
    for seed in range(3):
        opened.write_arrow(rows(50, seed, 50 * seed))
    assert len(index_files(tmp_path)) == (0 if place else 3)
    agree(opened, 1, count)
    opened.compact(full=True)
    agree(opened, 2, count)


@pytest.mark.parametrize("options", ENGINES, ids=str)
def test_keyed_tables_read_the_same_with_indexes_and_without(tmp_path, options):
    keyed_life(tmp_path, options, 1)


@pytest.mark.full
@pytest.mark.parametrize("options", ENGINES, ids=str)
def test_keyed_tables_read_the_same_with_indexes_and_without_for_many_filters(tmp_path, options):
    keyed_life(tmp_path, options, 20)


def keyed_life(tmp_path, options, count):
    opened = table(tmp_path, {**INDEXES, **EMBEDDED, **options, "bucket": "2"}, primary_key=["k"])
    for seed in range(4):
        opened.write_arrow(rows(60, seed, 25 * seed))
    agree(opened, 8, count)
    opened.compact(full=True)
    agree(opened, 9, count)
    opened.write_arrow(rows(10, 7, 40))
    agree(opened, 10, count)


def test_rows_and_files_are_really_skipped_and_explained(tmp_path):
    opened = table(tmp_path, {"file-index.bitmap.columns": "n", "file-index.in-manifest-threshold": "0 b"})
    for low in (0, 1):
        opened.write_arrow(pa.table({"k": pa.array(range(100), pa.int32()), "n": pa.array([low, low + 8] * 50, pa.int32())}))
    plan = opened.scan(where=col("n") == 8).explain()
    assert (plan.file_count, plan.index_files, plan.index_rows) == (2, 1, 150)
    assert "indexes    skip 1 of these files and 150 of their rows" in str(plan)
    assert opened.scan(where=col("n") == 8).count() == 50
    plan = opened.scan(where=col("n") == 4).explain()
    assert (plan.file_count, plan.index_files, plan.row_count) == (2, 2, 200)
    opened.alter(SetOption("file-index.in-manifest-threshold", "1 mb"))
    opened.compact(full=True)
    opened.write_arrow(pa.table({"k": pa.array([7], pa.int32()), "n": pa.array([5], pa.int32())}))
    plan = opened.scan(where=col("n") == 4).explain()
    assert plan.file_count == 0 and plan.skipped.index + plan.skipped.stats == plan.skipped.files > 0
    assert plan.skipped.index >= 1 and "index 1" in str(plan)


def test_splits_carry_indexes_only_where_a_filter_can_use_them(tmp_path):
    opened = table(tmp_path, {**INDEXES, **EMBEDDED})
    opened.write_arrow(rows(50, 1))
    (plain,) = opened.scan().splits()
    (filtered,) = opened.scan(where=col("n") == 1).splits()
    assert plain.files[0].embedded_index is None
    assert filtered.files[0].embedded_index is not None
    assert Split.from_bytes(bytes(filtered)) == filtered


def indexes_in_entries(opened):
    return [file.embedded_index for split in opened.scan(where=col("k") >= 0).splits() for file in split.files]


def test_an_index_as_large_as_the_threshold_lies_in_the_entry_whoever_makes_it(tmp_path):
    """The writer, and the rewrite of the indexes of a file that has none."""
    opened = table(tmp_path, {"file-index.bitmap.columns": "n", "file-index.in-manifest-threshold": "10 mb"})
    opened.write_arrow(rows(20, 3))
    (index,) = indexes_in_entries(opened)
    opened.alter(RemoveOption("file-index.bitmap.columns"))
    opened.truncate()
    opened.write_arrow(rows(20, 3))
    assert indexes_in_entries(opened) == [None]
    opened.alter(SetOption("file-index.bitmap.columns", "n"), SetOption("file-index.in-manifest-threshold", f"{len(index)} b"))
    opened.rewrite_file_index()
    opened.write_arrow(rows(20, 3))
    assert indexes_in_entries(opened) == [index, index] and index_files(tmp_path) == []


def test_an_index_lies_in_the_entry_up_to_the_threshold(tmp_path):
    opened = table(tmp_path, {"file-index.bitmap.columns": "m[a],m[zz]", "file-index.in-manifest-threshold": "10 mb"})
    opened.write_arrow(rows(20, 3))
    (entry,) = [entry for manifest in opened.snapshot().manifests() for entry in manifest.entries()]
    assert set(container.decode(entry.file.embedded_index, "entry")) == {"m[a]", "m[zz]"}
    opened.alter(SetOption("file-index.in-manifest-threshold", f"{len(entry.file.embedded_index) - 1} b"))
    opened.write_arrow(rows(20, 3))
    (path,) = index_files(tmp_path)
    assert path.read_bytes() == entry.file.embedded_index
    assert path.name.startswith("data-") and path.name.endswith(".parquet.index")


def test_aborted_writes_leave_no_index_file(tmp_path):
    opened = table(tmp_path, {**INDEXES, "target-file-row-num": "10"})
    with pytest.raises(ZeroDivisionError), opened.writer() as writer:
        writer.write_arrow(rows(50, 1))
        writer.flush() if hasattr(writer, "flush") else None
        raise ZeroDivisionError
    assert index_files(tmp_path) == []
    with pytest.raises(UsageError), opened.writer() as writer:
        writer.write_arrow(rows(50, 1))
        writer.write_arrow(pa.table({"nothing": [1]}))
    assert index_files(tmp_path) == []


def test_indexes_follow_columns_through_schema_changes(tmp_path):
    opened = table(tmp_path, {"file-index.bsi.columns": "n", **EMBEDDED})
    opened.write_arrow(rows(40, 1))
    before = found(opened.scan(columns=["k"], where=col("n") > 3))
    opened.alter(UpdateColumnType("n", "BIGINT"), SetOption("file-index.bsi.columns", "k"))
    opened.alter(RenameColumn("n", "z"), AddColumn("n", "INT"))
    assert before and found(opened.scan(columns=["k"], where=col("z") > 3)) == before
    assert opened.scan(where=col("z") > 3).explain().index_rows > 0
    assert opened.scan(where=col("n").is_null()).count() == 40
    opened.alter(DropColumn("z"))
    with pytest.raises(OptionError, match="'z', which is not a column"):
        opened.alter(SetOption("file-index.bsi.columns", "z"))


def test_a_damaged_or_missing_index_stops_the_read(tmp_path):
    opened = table(tmp_path, {"file-index.bitmap.columns": "s", "file-index.in-manifest-threshold": "0 b"})
    opened.write_arrow(rows(50, 1))
    (path,) = index_files(tmp_path)
    good = path.read_bytes()
    for bad in (good[:-1], good[:20], b"", b"x" + good[1:]):
        path.write_bytes(bad)
        with pytest.raises(CorruptionError, match="index"):
            opened.scan(where=col("s").is_null() | (col("s") == "hh")).to_arrow()
        assert opened.scan(where=col("s") == "a", options=OFF).count() >= 0
    path.unlink()
    with pytest.raises(CorruptionError, match="does not exist, but snapshot"):
        opened.scan(where=col("s") == "a").to_arrow()


BAD = {
    "no column": ({"file-index.bsi.columns": "zz"}, "'zz', which is not a column"),
    "no type": ({"file-index.magic.columns": "n"}, "does not exist; the kinds are bloom-filter, bitmap, bsi, range-bitmap"),
    "no type at all": ({"file-index.columns": "n"}, "does not exist"),
    "nearly a type": ({"file-index.bloom_filter.columns": "n"}, "did you mean 'file-index.bloom-filter.columns'"),
    "nearly an option": ({"file-index.bitmap.columns": "n", "file-index.bitmap.n.versoin": "1"}, "did you mean 'version'"),
    "wrong type": ({"file-index.bsi.columns": "s"}, "bsi indexes do not support STRING"),
    "map itself": ({"file-index.bitmap.columns": "m"}, "bitmap indexes do not support MAP"),
    "key of no map": ({"file-index.bitmap.columns": "n[a]"}, "needs a MAP with text keys, not INT"),
    "decimal": ({"file-index.bitmap.columns": "d"}, "bitmap indexes do not support DECIMAL"),
    "empty name": ({"file-index.bitmap.columns": "n,,s"}, "has an empty name"),
    "other column": ({"file-index.bitmap.columns": "n", "file-index.bitmap.s.version": "1"}, "does not name 's'"),
    "version": ({"file-index.bitmap.columns": "n", "file-index.bitmap.n.version": "3"}, "must be 1 or 2"),
    "items": ({"file-index.bloom-filter.columns": "n", "file-index.bloom-filter.n.items": "0"}, "a whole number"),
    "fpp": ({"file-index.bloom-filter.columns": "n", "file-index.bloom-filter.n.fpp": "1"}, "between 0 and 1"),
    "chunk": ({"file-index.range-bitmap.columns": "n", "file-index.range-bitmap.n.chunk-size": "x"}, "a size such as"),
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_index_options_are_refused_by_name(tmp_path, name):
    options, message = BAD[name]
    with pytest.raises(OptionError, match=message.replace("[", r"\[")):
        table(tmp_path, options)
    assert catalog(tmp_path).tables("db") == []


def test_tables_with_an_index_of_a_later_release_are_read_and_not_written(tmp_path):
    opened = table(tmp_path, {"file-index.bitmap.columns": "n"})
    opened.write_arrow(rows(20, 1))
    (path,) = tmp_path.rglob("schema-0")
    path.write_text(path.read_text().replace("file-index.bitmap.columns", "file-index.magic.columns"))
    later = catalog(tmp_path).table("db.t")
    assert later.scan(where=col("n").is_null()).count() == opened.scan(where=col("n").is_null()).count()
    with pytest.raises(UnsupportedError, match="file-index.magic"):
        later.write_arrow(rows(20, 2))


def test_a_rewrite_gives_old_files_the_missing_indexes(tmp_path):
    opened = table(tmp_path, {"file-index.bitmap.columns": "n"}, partition_by=None)
    for seed in range(3):
        opened.write_arrow(rows(50, seed))
    assert opened.rewrite_file_index().snapshot_id is None
    opened.alter(*(SetOption(name, text) for name, text in {**INDEXES, **EMBEDDED}.items()))
    before = found(opened.scan())
    result = opened.rewrite_file_index()
    assert opened.snapshot().id == result.snapshot_id == 4
    assert str(opened.snapshot().commit_kind).endswith("COMPACT")
    assert found(opened.scan()) == before
    for file in (file for split in opened.scan(where=col("k") >= 0).splits() for file in split.files):
        assert set(container.decode(file.embedded_index, "entry")) == {"s", "k", "n", "m[a]", "d", "x"}
    assert opened.rewrite_file_index().snapshot_id is None
    agree(opened, 4)


def test_a_rewrite_uses_the_names_and_types_of_old_files_and_drops_what_nobody_wants(tmp_path):
    opened = table(tmp_path, {"file-index.bitmap.columns": "s", **EMBEDDED})
    opened.write_arrow(rows(50, 1))
    opened.alter(UpdateColumnType("n", "BIGINT"), SetOption("file-index.bitmap.columns", "k"))
    opened.alter(RenameColumn("n", "z"), AddColumn("n", "INT"))
    opened.alter(SetOption("file-index.bsi.columns", "z,n"), SetOption("file-index.in-manifest-threshold", "0 b"))
    opened.rewrite_file_index()
    (path,) = index_files(tmp_path)
    assert {name: set(kinds) for name, kinds in container.decode(path.read_bytes(), "file").items()} == {
        "k": {"bitmap"},
        "n": {"bsi"},
    }
    assert opened.scan(where=col("z") == 3).explain().index_rows > 0
    assert found(opened.scan(where=col("z") == 3)) == found(opened.scan(where=col("z") == 3, options=OFF))


def test_a_rewrite_of_keyed_tables_keeps_deletion_vectors_and_takes_partitions(tmp_path):
    opened = table(
        tmp_path, {"bucket": "1", "deletion-vectors.enabled": "true"}, partition_by=["n"], primary_key=["n", "k"],
        columns=[("n", "INT NOT NULL"), *(column for column in COLUMNS if column[0] != "n")],
    )  # fmt: skip
    data = rows(60, 1).set_column(1, "n", pa.array([number % 3 for number in range(60)], pa.int32()))
    for piece in (data, data.slice(10, 20), data.slice(5, 3)):
        opened.write_arrow(piece.select(opened.schema.names))
        opened.compact(full=len(piece) == 60)
    before = found(opened.scan())
    opened.alter(SetOption("file-index.range-bitmap.columns", "x"), SetOption("file-index.in-manifest-threshold", "0 b"))
    opened.rewrite_file_index(partitions=[{"n": 1}])
    some = index_files(tmp_path)
    assert some and all("n=1" in str(path) for path in some)
    opened.rewrite_file_index(where="n < 1")
    opened.rewrite_file_index()
    assert len(index_files(tmp_path)) > len(some)
    assert found(opened.scan()) == before
    agree(opened, 3)
    with pytest.raises(UsageError, match=r"rewrite_file_index\(where=…\) chooses partitions"):
        opened.rewrite_file_index(where=col("x") > 1)
    opened.compact(full=True)
    assert found(opened.scan()) == before


def test_index_files_lie_beside_data_files_outside_the_table(tmp_path):
    outside = {"data-file.external-paths": (tmp_path / "out").as_uri(), "data-file.external-paths.strategy": "round-robin"}
    opened = table(tmp_path / "in", {**INDEXES, **outside})
    opened.write_arrow(rows(30, 1))
    assert [path.name.rpartition(".")[2] for path in index_files(tmp_path / "out")] == ["index"]
    agree(opened, 5)
    opened.alter(SetOption("file-index.bsi.columns", "k"))
    opened.rewrite_file_index()
    assert len(index_files(tmp_path / "out")) == 2 and not index_files(tmp_path / "in")
    agree(opened, 6)


def test_values_that_orc_files_give_back_differently_are_not_looked_up(tmp_path):
    columns = [("c", "CHAR(5)"), ("z", "TIMESTAMP(3) WITH LOCAL TIME ZONE"), ("t", "TIMESTAMP(3)")]
    opened = table(tmp_path, {"file-index.bitmap.columns": "c,z,t", "file.format": "orc"}, columns)
    old, new = datetime.datetime(1500, 1, 1), datetime.datetime(2024, 1, 1)
    zoned = new.replace(tzinfo=datetime.timezone.utc)
    times = [datetime.datetime(1700, 1, 1), new]
    instants = pa.array([zoned, None], pa.timestamp("ms", "UTC"))
    opened.write_arrow(pa.table({"c": ["a ", "b"], "z": instants, "t": pa.array(times, pa.timestamp("ms"))}))
    for where in (col("c") == "a", col("c") == "a ", col("z") == zoned, col("t") == old, col("t") < old):
        scan = opened.scan(where=where)
        assert found(scan) == found(opened.scan(where=where, options=OFF))
        assert scan.explain().index_rows == 0
    assert opened.scan(where=col("t") == new).explain().index_rows == 1
