"""Found by typing what a new user would: values cut or shifted in silence, defaults in old rows, views of texts."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from paimon_py import (
    Catalog,
    OptionError,
    SchemaError,
    SetOption,
    Table,
    UnsupportedError,
    UpdateColumnDefault,
    UsageError,
)

_UTC = dt.timezone.utc
_NOON = dt.datetime(2024, 1, 1, 12)


@pytest.fixture
def catalog(tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("db")
    return catalog


def rows_of(table: Table) -> list[dict[str, object]]:
    return Table.open(table.location).scan().to_arrow().sort_by("id").to_pylist()


# -- values ---------------------------------------------------------------------------------------------------------------

_TYPES = {
    "s": pa.string(),
    "bi": pa.binary(),
    "day": pa.date32(),
    "clock": pa.time32("ms"),
    "ts": pa.timestamp("us"),
    "secs": pa.timestamp("s"),
    "ltz": pa.timestamp("us", tz="UTC"),
    "amount": pa.decimal128(9, 2),
    "n": pa.int8(),
    "tags": pa.list_(pa.date32()),
    "m": pa.map_(pa.string(), pa.timestamp("us")),
}


@pytest.fixture
def wide(catalog):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), *_TYPES.items()])
    table = catalog.create_table("db.wide", schema, primary_key=["id"], options={"bucket": "1"})
    table.write_arrow(pa.table({"id": [1]}))
    return table


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("ts", dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2))), "has a time zone"),
        ("ts", pd.Timestamp("2024-01-01T00:00:00.123456789"), "is finer than the column"),
        ("ts", np.datetime64("2024-01-01T00:00:00.123456789"), r"does not fit TIMESTAMP\(6\) without loss"),
        ("ts", "2024-01-01", "pass a datetime.datetime"),
        ("secs", dt.datetime(2024, 1, 1, 0, 0, 0, 5), r"does not fit TIMESTAMP\(0\) without loss"),
        ("clock", dt.time(1, 2, 3, 4), "is finer than the column"),
        ("clock", dt.time(1, tzinfo=_UTC), "pass a datetime.time without a time zone"),
        ("day", dt.datetime(2024, 1, 1, 5), "pass a datetime.date"),
        ("day", np.datetime64("2024-01-01T05:00"), "is finer than the column"),
        ("s", b"bytes", "pass a str"),
        ("bi", "text", "pass bytes"),
        ("amount", 1.5, "pass an int or a decimal.Decimal"),
        ("n", 2**70, "out of range|too large"),
        ("n", np.int64(300), "300 .*does not fit TINYINT without loss"),
        ("tags", [dt.datetime(2024, 1, 1, 5)], "pass a datetime.date"),
        ("m", {"a": dt.datetime(2024, 1, 1, tzinfo=_UTC)}, "has a time zone"),
    ],
)
def test_an_update_never_cuts_or_shifts_a_value(wide, column, value, words):
    with pytest.raises(SchemaError, match=words):
        wide.update("id = 1", {column: value})
    assert wide.snapshot().id == 1


@pytest.mark.parametrize(
    ("column", "value", "stored"),
    [
        ("ts", np.datetime64("2024-01-01T12:00"), _NOON),
        ("ts", dt.date(2024, 1, 1), dt.datetime(2024, 1, 1)),
        ("ts", pd.NaT, None),
        ("ltz", dt.datetime(2024, 1, 1, 14, tzinfo=dt.timezone(dt.timedelta(hours=2))), _NOON.replace(tzinfo=_UTC)),
        ("day", np.datetime64("2024-01-01"), dt.date(2024, 1, 1)),
        ("amount", np.int64(3), Decimal("3.00")),
        ("bi", bytearray(b"x"), b"x"),
        ("tags", np.array(["2024-01-01"], "datetime64[D]"), [dt.date(2024, 1, 1)]),
        ("m", {"a": _NOON}, [("a", _NOON)]),
    ],
)
def test_an_update_takes_the_same_value_in_another_form(wide, column, value, stored):
    wide.update("id = 1", {column: value})
    assert rows_of(wide)[0][column] == stored


@pytest.mark.parametrize("key", [1.5, 1.0, True, Decimal(1), "1", 2**70])
def test_a_lookup_does_not_find_a_row_by_another_value(wide, key):
    with pytest.raises(SchemaError, match="key column 'id'"):
        wide.lookup([key])


def test_a_lookup_by_time_does_not_drop_the_zone_or_the_hour(catalog):
    fields = [pa.field("day", pa.date32(), nullable=False), pa.field("ts", pa.timestamp("ms"), nullable=False)]
    table = catalog.create_table("db.t", pa.schema(fields), primary_key=["day", "ts"], options={"bucket": "1"})
    table.write_arrow(pa.table({"day": [dt.date(2024, 1, 1)], "ts": pa.array([_NOON], pa.timestamp("ms"))}))
    assert table.lookup({"day": dt.datetime(2024, 1, 1), "ts": np.datetime64("2024-01-01T12:00")}).num_rows == 1
    for key in [
        (_NOON, _NOON),
        (dt.date(2024, 1, 1), _NOON.replace(tzinfo=_UTC)),
        (dt.date(2024, 1, 1), _NOON.replace(microsecond=7)),
    ]:
        with pytest.raises(SchemaError, match="key column"):
            table.lookup([key])


@pytest.mark.parametrize("column", [np.array([1]), pd.Series([1]), pl.Series("id", [1])], ids=["numpy", "pandas", "polars"])
def test_keys_may_be_a_column_of_another_library(wide, column):
    assert wide.lookup(column, columns=["id"]).to_pylist() == [{"id": 1}]


@pytest.mark.parametrize("keys", [1, "1", {1}, None, range(3)])
def test_what_is_no_key_is_refused_with_the_forms_of_a_key(wide, keys):
    with pytest.raises(UsageError, match="lookup takes keys as {'id': …}"):
        wide.lookup(keys)


def test_a_partition_to_overwrite_is_not_rounded(catalog):
    schema = pa.schema([("id", pa.int64()), ("month", pa.int32())])
    table = catalog.create_table("db.t", schema, partition_by=["month"])
    data = pa.table({"id": [1], "month": pa.array([3], pa.int32())})
    table.write_arrow(data)
    with pytest.raises(UsageError, match="does not fit"):
        table.write_arrow(data, overwrite={"month": 3.7})


# -- defaults ---------------------------------------------------------------------------------------------------------------

_KINDS = {
    "append": {},
    "append with vectors": {"options": {"deletion-vectors.enabled": "true"}},
    "primary key": {"primary_key": ["id"], "options": {"bucket": "1"}},
    "dynamic": {"primary_key": ["id"]},
}


@pytest.mark.parametrize("kind", _KINDS)
def test_rows_that_a_change_does_not_name_keep_their_nulls_though_the_column_has_a_default_now(catalog, kind):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("a", pa.int64()), ("c", pa.string())])
    table = catalog.create_table("db.t", schema, **_KINDS[kind])
    table.write_arrow(pa.table({"id": [1, 2, 3, 4], "a": [1, 2, 3, 4]}))
    table.alter(UpdateColumnDefault("c", "new"))
    table.delete("id = 4")
    table.update("id = 1", {"a": 10})
    table.merge(pa.table({"id": [2, 7], "a": [20, 70]}), on=["id"], when_matched_update=True, when_not_matched_insert=True)
    assert [(row["id"], row["a"], row["c"]) for row in rows_of(table)] == [
        (1, 10, None),
        (2, 20, None),
        (3, 3, None),
        (7, 70, "new"),
    ]
    table.update("id = 7", {"c": None})
    assert rows_of(table)[-1]["c"] is None


# -- options ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["column", "colums", "cols"])
def test_a_misspelled_option_that_would_make_no_index_is_refused(catalog, name):
    with pytest.raises(OptionError, match="did you mean 'file-index.bitmap.columns'"):
        catalog.create_table("db.t", pa.schema([("id", pa.int64())]), options={f"file-index.bitmap.{name}": "id"})


def test_waiting_rows_are_not_left_behind_when_buckets_are_postponed_no_more(catalog):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    table = catalog.create_table("db.t", schema, primary_key=["id"], options={"bucket": "-2"})
    table.write_arrow(pa.table({"id": [1]}))
    with pytest.raises(UsageError, match=r"publish them with compact\(\) first"):
        table.alter(SetOption("bucket", "1"))
    table.compact()
    table.alter(SetOption("bucket", "1"))
    table.write_arrow(pa.table({"id": [2]}))
    assert rows_of(table) == [{"id": 1}, {"id": 2}]


def test_a_sequence_field_without_an_order_is_refused_before_the_first_row(catalog):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("seen", pa.list_(pa.int64()))])
    options = {"bucket": "1", "sequence.field": "seen"}
    with pytest.raises(UnsupportedError, match="a sequence.field of type ARRAY<BIGINT>"):
        catalog.create_table("db.t", schema, primary_key=["id"], options=options)


# -- arguments ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda table: table.update("id = 1", {5: 1}), "update takes names of columns, not 5"),
        (lambda table: table.lookup([1], columns="id"), "columns must be a list of names"),
        (lambda table: table.delete("lowr(s) = 'x'"), "function lowr does not exist; did you mean lower"),
        (lambda table: table.delete("lower(id) = 'x'"), r'lower\(col\("id"\)\): lower takes strings, not int64'),
        (lambda table: table.upsert(table, on=["id"]), r"call scan\(\) first"),
        (lambda table: table.upsert(pl.LazyFrame({"z": [1]}), on=["id"]), "no column 'id' to find rows by"),
        (lambda table: table.upsert(iter([{"id": 1}]), on=["id"]), r"list\(rows\)"),
        (lambda table: table.upsert(pa.table({"id": [1], "z": [1]}), on=["id"]), "'z', which the table does not have; leave them out$"),
        (lambda table: table.compact(partitions=[{"day": 1}]), "not a partition key of the table; its keys: none"),
        (lambda table: table.compact(progress=5), "progress is a function"),
        (lambda table: table.scan(limit=-1), "limit must be a whole number of rows"),
        (lambda table: table.scan().head(1.5), "head must be a whole number of rows"),
    ],
)
def test_a_wrong_argument_is_refused_with_the_way_out(wide, act, words):
    with pytest.raises(UsageError, match=words):
        act(wide)
    assert wide.snapshot().id == 1


@pytest.mark.parametrize("share", [5, (0,), "ab", (0.5, 2), (True, 2), (2, 2)])
def test_a_share_of_a_load_that_names_no_writer_is_refused(catalog, share):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    table = catalog.create_table("db.t", schema, primary_key=["id"])
    with pytest.raises(UsageError, match="share is the number|whole numbers|writer .* does not exist"):
        table.writer(share=share)
    with pytest.raises(UsageError, match="whole numbers"):
        table.writer_numbers(pa.table({"id": [1]}), 1.5)


def test_a_clustering_strategy_that_is_no_text_is_refused(catalog):
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    with pytest.raises(UsageError, match="a clustering strategy is one of"):
        table.compact(order_by=["id"], strategy=5)
    with pytest.raises(OptionError, match="give order_by="):
        table.compact(strategy="zorder")


def test_numbers_of_rows_and_snapshots_may_come_from_numpy_and_be_large(wide):
    assert wide.scan(snapshot_id=np.int64(1), limit=np.int64(3)).count() == 1
    assert wide.scan(limit=2**70).to_arrow().num_rows == 1


# -- sources ------------------------------------------------------------------------------------------------------------------

_VIEWS = pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.uint32()), pa.array(["a", "b"], pa.string_view()))


@pytest.mark.parametrize(
    ("column", "array", "stored"),
    [
        ("s", _VIEWS, ["a", None, "b"]),
        ("s", pl.Series(["a", None, "b"], dtype=pl.Categorical).to_arrow(), ["a", None, "b"]),
        ("s", pa.RunEndEncodedArray.from_arrays([1, 2, 3], ["a", None, "b"]), ["a", None, "b"]),
        ("texts", pa.array([["a"], None, []], pa.list_view(pa.string_view())), [["a"], None, []]),
        ("texts", pa.array([["a"], None, ["b"]], pa.list_(pa.string_view(), 1)), [["a"], None, ["b"]]),
        ("pos", pa.StructArray.from_arrays([_VIEWS], ["x"]), [{"x": "a"}, {"x": None}, {"x": "b"}]),
        ("names", pa.array([[("a", "b")], None, []], pa.map_(pa.string_view(), pa.string_view())), [[("a", "b")], None, []]),
    ],
)
def test_views_of_texts_may_lie_in_dictionaries_lists_and_maps_of_what_is_written_and_merged(catalog, column, array, stored):
    texts = [("s", pa.string()), ("texts", pa.list_(pa.string())), ("pos", pa.struct([("x", pa.string())]))]
    names = ("names", pa.map_(pa.string(), pa.string()))
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), *texts, names])
    given = pa.table({"id": [1, 2, 3], column: array})
    for name, settings in _KINDS.items():
        table = catalog.create_table(f"db.{name.replace(' ', '_')}", schema, **settings)
        table.write_arrow(given)
        assert [row[column] for row in rows_of(table)] == stored
        table.merge(given.slice(1), on=["id"], when_matched_update=True, when_not_matched_insert=True)
        assert [row[column] for row in rows_of(table)] == stored


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"id": 1, "pos": {"x": 1}}], r"not rows: create_table\(name, pa\.Table\.from_pylist\(rows\)\)"),
        ([{"id": 1, "name": "a"}, {"id": 2}], r"pa\.Table\.from_pylist\(rows\).*write_arrow\(rows\)"),
        ({"id": [1, 2]}, r"create_table\(name, pa\.table\(rows\)\)"),
    ],
)
def test_rows_in_the_place_of_columns_are_refused_with_the_call_that_takes_them(catalog, rows, words):
    with pytest.raises(UsageError, match=words):
        catalog.create_table("db.rows", rows)
    given = pa.Table.from_pylist(rows) if isinstance(rows, list) else pa.table(rows)
    table = catalog.create_table("db.rows", given)
    table.write_arrow(rows if isinstance(rows, list) else given)
    assert table.scan().count() == len(given)
    assert catalog.create_table("db.fields", [{"name": "id", "type": "INT"}]).scan().count() == 0
