"""Fields inside ROW columns as columns of a scan."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import paimon_py
from paimon_py.errors import UsageError
from tests.unit.scan.build import table

FIELDS = [
    ("k", "INT NOT NULL"),
    ("pos", "ROW<x INT, y STRING, deep ROW<a BIGINT NOT NULL, b STRING> NOT NULL>"),
    ("tags", "ARRAY<ROW<t INT>>"),
]
ROWS = [
    {"k": 1, "pos": {"x": 1, "y": "one", "deep": {"a": 10, "b": "ten"}}, "tags": [{"t": 1}]},
    {"k": 2, "pos": None, "tags": None},
    {"k": 3, "pos": {"x": None, "y": None, "deep": {"a": 30, "b": None}}, "tags": []},
]


def filled(file_format="parquet", **kwargs):
    store = table(FIELDS, options={"file.format": file_format, "bucket": "1", **kwargs.pop("options", {})}, **kwargs)
    store.write_arrow(pa.Table.from_pylist(ROWS, schema=store.scan().schema))
    return store


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("keyed", [True, False])
def test_fields_inside_rows_are_columns_of_their_own(file_format, keyed):
    options = {"merge-engine": "partial-update"} if keyed else {"bucket": "-1"}
    store = filled(file_format, primary_key=("k",) if keyed else (), options={**options, "write-only": "true"})
    if keyed:
        store.write_arrow(pa.Table.from_pylist(ROWS, schema=store.scan().schema))
    scan = store.scan(columns=["pos.deep.a", "k", "pos.x", "pos.y", "pos.deep"])
    assert scan.schema.names == ["pos.deep.a", "k", "pos.x", "pos.y", "pos.deep"]
    assert scan.schema.field("pos.deep.a").nullable and scan.schema.field("pos.y").type == pa.string()
    assert scan.to_arrow().to_pylist() == [
        {"pos.deep.a": 10, "k": 1, "pos.x": 1, "pos.y": "one", "pos.deep": {"a": 10, "b": "ten"}},
        {"pos.deep.a": None, "k": 2, "pos.x": None, "pos.y": None, "pos.deep": None},
        {"pos.deep.a": 30, "k": 3, "pos.x": None, "pos.y": None, "pos.deep": {"a": 30, "b": None}},
    ]
    assert store.scan(columns=["pos.x"]).to_arrow().schema == store.scan(columns=["pos.x"]).schema
    first = store.scan(columns=["pos.deep.b"], order_by=("k", "descending"), limit=3).to_arrow()
    assert first.column("pos.deep.b").to_pylist() == [None, None, "ten"]
    some = store.scan(columns=["pos.x"], where=paimon_py.col("pos", "deep", "a") == 10).to_arrow()
    assert some.to_pylist() == [{"pos.x": 1}]


def test_a_column_that_has_the_dot_in_its_name_comes_first():
    store = table([("pos", "ROW<y INT, z INT>"), ("pos.y", "INT")], options={"bucket": "-1"})
    row = {"pos": {"y": 1, "z": 2}, "pos.y": 3}
    store.write_arrow(pa.Table.from_pylist([row], schema=store.scan().schema))
    assert store.scan(columns=["pos.y", "pos.z"]).to_arrow().to_pylist() == [{"pos.y": 3, "pos.z": 2}]


def test_only_the_leaves_that_are_asked_for_are_decoded(monkeypatch):
    asked = []
    before = pq.ParquetFile.iter_batches

    def iter_batches(self, *args, **kwargs):
        asked.append(kwargs["columns"])
        return before(self, *args, **kwargs)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", iter_batches)
    store = filled(options={"bucket": "-1"})
    assert store.scan(columns=["pos.deep.a"]).to_arrow().num_rows == 3
    assert store.scan(columns=["pos"]).to_arrow().num_rows == 3
    assert asked == [["pos.deep.a"], ["pos"]]


def test_old_files_give_their_fields_by_id():
    store = filled(options={"bucket": "-1"})
    store.alter(
        paimon_py.RenameColumn(["pos", "x"], "east"), paimon_py.AddColumn(["pos", "x"], "STRING"),
        paimon_py.UpdateColumnType(["pos", "deep", "b"], "STRING"),
    )  # fmt: skip
    found = store.scan(columns=["pos.east", "pos.x"]).to_arrow().to_pylist()
    assert found == [{"pos.east": east, "pos.x": None} for east in (1, None, None)]


@pytest.mark.parametrize("name", ["pos.z", "pos.", "tags.t", "tags.element.t", "k.x", ".x", "pos.x.y"])
def test_a_field_that_is_not_there_is_refused_by_name(name):
    with pytest.raises(UsageError, match="there is no column"):
        filled(options={"bucket": "-1"}).scan(columns=[name])
    with pytest.raises(UsageError, match="more than once"):
        filled(options={"bucket": "-1"}).scan(columns=["pos.x", "pos.x"])


def test_lookups_return_whole_columns():
    with pytest.raises(UsageError, match="whole columns"):
        filled(primary_key=("k",)).lookup([1], columns=["pos.x"])
