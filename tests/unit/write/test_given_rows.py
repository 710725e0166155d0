"""What a user may hand over as rows: lists of mappings, generators, lazy frames, datasets, relations."""

from __future__ import annotations

import datetime
import decimal

import pyarrow as pa
import pyarrow.dataset
import pytest
from unit.public import new_catalog

from paimon_py import Schema, SchemaError, UsageError

COLUMNS = [("k", "BIGINT NOT NULL"), ("v", "STRING")]
ROWS = [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}, {"k": 3, "v": None}]


@pytest.fixture
def keyed(tmp_path):
    return new_catalog(str(tmp_path)).create_table("d.t", Schema(COLUMNS), primary_key=["k"], options={"bucket": "1"})


@pytest.fixture
def wide(tmp_path):
    columns = [
        ("i", "TINYINT"), ("f", "FLOAT"), ("n", "DECIMAL(10, 2)"), ("d", "DATE"), ("t", "TIMESTAMP(3)"), ("b", "BYTES"),
        ("m", "MAP<STRING, INT>"), ("r", "ROW<x INT, y STRING>"), ("a", "ARRAY<BIGINT>"),
    ]  # fmt: skip
    return new_catalog(str(tmp_path)).create_table("d.w", Schema(columns))


def sources():
    polars, duckdb = map(pytest.importorskip, ("polars", "duckdb"))
    table = pa.Table.from_pylist(ROWS)
    connection = duckdb.connect()
    connection.register("given", table)
    frame = polars.from_arrow(table)
    return {
        "mappings": ROWS,
        "a tuple of mappings": tuple(ROWS),
        "a generator of batches": (batch for batch in table.to_batches(max_chunksize=1)),
        "a generator of frames": (frame.slice(at, 1) for at in range(3)),
        "a list of tables": [table.slice(0, 2), table.slice(2)],
        "a lazy frame": frame.lazy().with_columns(polars.col("k")),
        "a dataset": pyarrow.dataset.dataset(table),
        "a relation": connection.sql("select * from given"),
    }


@pytest.mark.parametrize("verb", ["write_arrow", "upsert", "merge"])
def test_rows_of_every_kind_are_written(keyed, verb):
    for name, rows in sources().items():
        if verb == "merge":
            keyed.merge(rows, on=["k"], when_matched_update=True, when_not_matched_insert=True)
        else:
            getattr(keyed, verb)(rows)
        assert sorted(keyed.to_arrow().to_pylist(), key=lambda row: row["k"]) == ROWS, name
        keyed.truncate()


def test_values_of_mappings_take_the_types_of_the_columns(wide):
    row = {
        "i": 7, "f": 0.5, "n": decimal.Decimal("1.5"), "d": datetime.date(2024, 2, 29),
        "t": datetime.datetime(2024, 2, 29, 1, 2, 3), "b": b"x", "m": {"a": 1}, "r": {"x": 1}, "a": [1, None],
    }  # fmt: skip
    wide.write_arrow([row, {"m": {}, "i": None}, {"a": []}])
    first, second, third = wide.to_arrow().to_pylist()
    assert first == {**row, "n": decimal.Decimal("1.50"), "m": [("a", 1)], "r": {"x": 1, "y": None}}
    assert second == {**dict.fromkeys(row), "m": []}
    assert third == {**dict.fromkeys(row), "a": []}


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([{"i": 300}], SchemaError, "300"),
        ([{"i": "x"}], SchemaError, "i: string given, TINYINT needed"),
        ([{"i": 1}, {"i": "x"}], SchemaError, r"column i: 'x' \(row 1\) does not fit TINYINT: pass a whole number, not 'x'"),
        ([{"i": 1}, {"i": 2**70, "m": {"a": "b"}}], SchemaError, r"(?s)column i: 1180591620717411303424 \(row 1\) .*; change the value.*column m: \{'a': 'b'\} \(row 1\) .*pass a whole number, not 'b'"),
        ([{"m": {"a": 1}}, {"m": {"a": 2**40}}], SchemaError, r"column m: \{'a': 1099511627776\} \(row 1\) does not fit MAP<STRING, INT>: .* out of range; .*widen"),
        ([{"j": 1}, {"j": "x"}], SchemaError, "column j: the values have incompatible types"),
        ([{"j": 1}], SchemaError, "j: int64 given"),
        ([{"i": 1}, 2], UsageError, "row 1 is 2"),
        ([{1: 1}], UsageError, "row 0 is {1: 1}"),
        ([{}], UsageError, "none of these rows has a value"),
        ([1, 2], UsageError, "rows are mappings .*; the first item is 1"),
        (({"i": 1} for _ in range(2)), UsageError, r"list\(rows\)"),
        (iter([pa.table({"i": [1]}), pa.table({"f": [1.0]})]), UsageError, "item 1 has the columns f: double"),
        ({"i": [1]}, UsageError, r"pyarrow.table\(…\)"),
    ],
    ids=[
        "too large", "another type", "types that differ", "several columns", "inside a map", "types that differ in no column",
        "no such column", "a number among mappings", "names that are numbers",
        "no column", "numbers", "a generator of mappings", "two schemas", "a mapping",
    ],
)
def test_input_that_is_not_rows_is_refused_with_a_hint(wide, rows, error, message):
    with pytest.raises(error, match=message):
        wide.write_arrow(rows)
    assert wide.snapshot() is None


def test_no_rows_have_the_columns_of_the_table(wide):
    wide.write_arrow([])
    wide.write_arrow(iter(()))
    assert wide.count() == 0


def without_values():
    pandas, polars = map(pytest.importorskip, ("pandas", "polars"))
    nothing = float("nan")
    return [
        pandas.DataFrame({"k": [1, 2], "c": [nothing, nothing]}), pandas.DataFrame({"k": [1, 2], "c": [None, None]}),
        pandas.DataFrame({"k": [1, 2], "c": [pandas.NaT, pandas.NaT]}), polars.DataFrame({"k": [1, 2], "c": [None, None]}),
        polars.DataFrame({"k": [1, 2], "c": polars.Series([None, None], dtype=polars.Duration)}),
        pa.table({"k": [1, 2], "c": pa.nulls(2, pa.float64())}), pa.record_batch({"k": [1, 2], "c": pa.nulls(2, pa.bool_())}),
    ], [
        pandas.DataFrame({"k": [], "c": []}), pandas.DataFrame({"k": [1], "c": ["x"]}).iloc[:0], polars.DataFrame({"k": [], "c": []}),
        polars.DataFrame({"k": ["x"], "c": [1.5]}).clear(), pa.table({"k": pa.array([], pa.string()), "c": pa.array([], pa.uint64())}),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["INT", "STRING", "DECIMAL(9, 2)", "TIMESTAMP_LTZ(6)", "DATE", "ARRAY<INT>", "MAP<STRING, INT>", "ROW<a INT>"])
def test_a_column_without_values_fits_every_type(tmp_path, kind):
    table = new_catalog(str(tmp_path)).create_table("d.t", Schema({"k": "BIGINT", "c": kind}))
    missing, empty = without_values()
    for data in (*missing, *empty):
        table.write_arrow(data)
    assert table.to_arrow()["k"].to_pylist() == [1, 2] * len(missing)
    assert table.to_arrow()["c"].null_count == 2 * len(missing)


def test_a_column_without_values_does_not_fit_one_that_is_not_null(keyed):
    with pytest.raises(SchemaError, match="k"):
        keyed.write_arrow(pa.table({"k": pa.nulls(2, pa.float64()), "v": ["a", "b"]}))
    assert keyed.snapshot() is None


NOON = datetime.datetime(2024, 5, 1, 12)
INSTANT = NOON.replace(tzinfo=datetime.timezone.utc)


def test_rows_get_no_zone_by_guess(tmp_path):
    table = new_catalog(str(tmp_path)).create_table("d.t", Schema({"k": "BIGINT NOT NULL", "at": "TIMESTAMP_LTZ(6)"}), primary_key=["k"], options={"bucket": "1"})
    table.write_arrow([{"k": 1, "at": INSTANT}])
    pandas, polars = map(pytest.importorskip, ("pandas", "polars"))
    columns = {"k": [1], "at": [NOON]}
    for data in ([{"k": 1, "at": NOON}], pandas.DataFrame(columns), polars.DataFrame(columns), pa.table(columns)):
        with pytest.raises(SchemaError, match="zone"):
            table.write_arrow(data)
    for value in (NOON, NOON.date()):
        with pytest.raises(SchemaError, match=r"no time zone.*value.replace\(tzinfo=timezone.utc\).*value.astimezone\(\)"):
            table.update("k = 1", {"at": value})
    assert table.scan(where=f"at = '{NOON}'").count() == 1
    assert table.to_arrow()["at"].to_pylist() == [INSTANT]


def test_an_error_of_a_generator_is_the_callers_and_nothing_is_written(keyed):
    def failing():
        yield pa.table({"k": [1]})
        raise LookupError("no more pages")

    with pytest.raises(LookupError, match="no more pages"):
        keyed.write_arrow(failing())
    assert keyed.snapshot() is None
