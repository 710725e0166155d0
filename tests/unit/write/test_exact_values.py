"""Rows of Python values and frames: a value is stored exactly, or refused."""

from __future__ import annotations

import datetime
import decimal
import uuid

import numpy as np
import pandas as pd
import pytest

from paimon_py import Catalog, PaimonError, Schema, SchemaError

NANOS = "2024-01-01 00:00:00.123456789"


def stored(tmp_path, kind, data):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d", exist_ok=True)
    table = catalog.create_table("d.exact", Schema({"id": "INT", "c": kind}))
    table.write_arrow(data)
    return table.to_arrow().sort_by("id")["c"]


def test_polars_objects_are_written_as_values_and_not_as_addresses(tmp_path):
    polars = pytest.importorskip("polars")
    values = [uuid.UUID(int=1), None, uuid.UUID(int=3)]
    frame = polars.DataFrame({"id": [0, 1, 2], "c": polars.Series(values, dtype=polars.Object)})
    for number, data in enumerate((frame, frame.lazy())):
        found = stored(tmp_path / str(number), "BYTES", data)
        assert found.to_pylist() == [value and value.bytes for value in values]
    with pytest.raises(PaimonError, match="c: "):
        stored(tmp_path / "refused", "INT", frame)


def rows_and_frames(value):
    """A row, and a frame with its columns in each order."""
    frame = pd.DataFrame({"id": [0], "c": [value]}).astype({"id": "int32"})
    return [{"id": 0, "c": value}], frame, frame[["c", "id"]]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("TIMESTAMP(6)", pd.Timestamp(NANOS)),
        ("TIMESTAMP_LTZ(6)", pd.Timestamp(NANOS, tz="UTC")),
        ("TIMESTAMP(6)", np.datetime64(NANOS)),
        ("DOUBLE", 2**60 + 1),
        ("FLOAT", 16_777_217),
        ("ARRAY<TIMESTAMP(6)>", [pd.Timestamp(NANOS)]),
        ("ROW<a TIMESTAMP(3)>", {"a": pd.Timestamp(NANOS)}),
        ("ARRAY<DOUBLE>", [2**53 + 1]),
    ],
    ids=str,
)
def test_digits_that_a_column_does_not_keep_are_refused_in_rows_and_in_frames(tmp_path, kind, value):
    for number, data in enumerate(rows_and_frames(value)):
        with pytest.raises(PaimonError):
            stored(tmp_path / str(number), kind, data)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("TIMESTAMP(9)", pd.Timestamp(NANOS)),
        ("ARRAY<TIMESTAMP(9)>", [pd.Timestamp(NANOS), None]),
        ("ROW<a TIMESTAMP(9), b STRING>", {"a": pd.Timestamp(NANOS), "b": "x"}),
        ("DOUBLE", 2**53),
        ("FLOAT", 16_777_216),
    ],
    ids=str,
)
def test_digits_that_a_column_keeps_are_kept_in_rows_and_in_frames(tmp_path, kind, value):
    for number, data in enumerate(rows_and_frames(value)):
        found = stored(tmp_path / str(number), kind, data)
        assert "123456789" in str(found[0].as_py()) or found[0].as_py() == value


@pytest.mark.parametrize("in_list", [False, True])
def test_integers_that_python_does_not_write_are_refused_by_their_column(in_list):
    value = [10**5000] if in_list else 10**5000
    catalog = Catalog.open("memory://long-integers/wh")
    catalog.drop_database("d", missing_ok=True, cascade=True)
    catalog.create_database("d")
    kinds = [("n", "INT"), ("x", "DOUBLE"), ("c", "STRING"), ("m", "DECIMAL(5, 2)"), ("xs", {"type": "ARRAY", "element": "BIGINT"})]
    table = catalog.create_table("d.t", Schema([("k", "INT"), *kinds]))
    table.write_arrow([{"k": 1}])
    for name, _ in kinds:
        for call in (lambda name=name: table.write_arrow([{name: value}]), lambda name=name: table.update("k = 1", {name: value})):
            with pytest.raises(SchemaError, match=rf"(?s){name}: a number of thousands of digits") as caught:
                call()
            assert caught.value.fields == (name,)
    assert table.refresh().snapshot().id == 1


NAIVE = datetime.datetime(2024, 1, 1)
IN_ZONE = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=5)))


@pytest.mark.parametrize("kind", ["TIMESTAMP(6)", "TIMESTAMP_LTZ(6)", "ARRAY<TIMESTAMP(6)>", "MAP<INT, TIMESTAMP_LTZ(6)>"])
@pytest.mark.parametrize("values", [(NAIVE, IN_ZONE), (IN_ZONE, NAIVE), (pd.NaT, NAIVE, IN_ZONE)], ids=["naive", "aware", "null"])
def test_times_with_and_without_a_zone_do_not_mix(tmp_path, kind, values):
    inner = [{1: value} if "MAP" in kind else [value] if "ARRAY" in kind else value for value in values]
    rows = [{"id": number, "c": value} for number, value in enumerate(inner)]
    frame = pd.DataFrame({"id": pd.Series(range(len(rows)), dtype="int32"), "c": pd.Series(inner, dtype=object)})
    for number, data in enumerate((rows, frame)):
        with pytest.raises(SchemaError, match=r"column c: .*time zone"):
            stored(tmp_path / str(number), kind, data)


def test_nan_in_a_frame_is_null_whatever_the_other_columns_hold(tmp_path):
    for number, other in enumerate(([1, 2], [{1: 1}, {2: 2}])):
        frame = pd.DataFrame({"id": pd.Series([0, 1], dtype="int32"), "c": [np.nan, 0.5], "m": pd.Series(other, dtype=object)})
        catalog = Catalog.open(tmp_path / str(number))
        catalog.create_database("d")
        table = catalog.create_table("d.t", Schema({"id": "INT", "c": "DOUBLE", "m": ("BIGINT", "MAP<INT, INT>")[number]}))
        table.write_arrow(frame)
        assert table.to_arrow().sort_by("id")["c"].to_pylist() == [None, 0.5]


def test_sparse_columns_of_pandas_are_written(tmp_path):
    frame = pd.DataFrame({"id": pd.Series([0, 1, 2], dtype="int32"), "c": pd.arrays.SparseArray([np.nan, 0.0, 1.5])})
    assert stored(tmp_path, "DOUBLE", frame).to_pylist() == [None, 0.0, 1.5]


def test_a_decimal_that_is_no_number_is_refused_by_name(tmp_path):
    for number, data in enumerate(rows_and_frames(decimal.Decimal("Infinity"))):
        with pytest.raises(SchemaError, match=r"column c: Decimal\('Infinity'\) \(row 0\) does not fit .*not a number"):
            stored(tmp_path / str(number), "DECIMAL(5, 2)", data)


def test_integers_of_128_bits_from_polars_are_refused_with_a_way(tmp_path):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"id": [0], "c": polars.Series([1], dtype=polars.Int128)})
    with pytest.raises(PaimonError, match=r"128-bit integers, such as with pl.col\(name\).cast"):
        stored(tmp_path, "DECIMAL(38, 0)", frame)
    cast = frame.with_columns(polars.col("c").cast(polars.Decimal(38, 0)))
    assert stored(tmp_path / "cast", "DECIMAL(38, 0)", cast).to_pylist() == [decimal.Decimal(1)]
