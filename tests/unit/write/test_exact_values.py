"""Rows of Python values and frames: a value is stored exactly, or refused."""

from __future__ import annotations

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
