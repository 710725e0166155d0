"""Fields inside ROW columns as columns of a scan."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from unit.scan.build import table

import paimon_py
from paimon_py.errors import UsageError

FIELDS = [
    ("k", "INT NOT NULL"),
    ("pos", "ROW<x INT, y STRING, deep ROW<a BIGINT NOT NULL, b STRING> NOT NULL>"),
    ("tags", "ARRAY<ROW<t INT>>"),
]
MARKS = {"type": "MAP", "key": "STRING NOT NULL", "value": "ROW<y INT>"}
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


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("pos.z", "'pos' has the fields x, y, deep"), ("pos.", "'pos' has the fields"), ("pos.deep.c", "'deep' has the fields a, b"),
        ("tags.t", "'tags' is ARRAY<ROW<t INT>>, which is returned whole"), ("tags.element.t", "'tags' is ARRAY"),
        ("marks.key", "'marks' is MAP<STRING.*only ROWs"), ("k.x", "'k' is INT NOT NULL"), (".x", "columns: k"),
        ("pos.x.y", "'x' is INT, which is returned whole"), ("POS.x", "does not exist"),
    ],
)  # fmt: skip
def test_a_field_that_is_not_there_is_refused_by_name(name, why):
    with pytest.raises(UsageError, match=f"column '{name}' does not exist; .*{why}" if name != "POS.x" else why):
        table([*FIELDS, ("marks", MARKS)], options={"bucket": "-1"}).scan(columns=[name])
    with pytest.raises(UsageError, match="more than once"):
        filled(options={"bucket": "-1"}).scan(columns=["pos.x", "pos.x"])


PICKS = ["pos.x", "pos.deep.a", "pos.deep.b", "pos.list", "pos.deep", "k", "marks", "tags"]


def picked(row, name):
    for part in name.split("."):
        row = None if row is None else row[part]
    return row


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("engine", [None, "deduplicate", "partial-update"])
def test_picked_fields_are_those_of_whole_columns_through_every_change(file_format, engine):
    options = {"file.format": file_format, "write-only": "true", "bucket": "1" if engine else "-1"}
    options |= {"merge-engine": engine} if engine else {}
    fields = [
        ("k", "INT NOT NULL"), ("marks", MARKS), ("tags", "ARRAY<ROW<t INT>>"),
        ("pos", "ROW<x INT, deep ROW<a INT, b STRING>, list ARRAY<ROW<u INT, w STRING>>>"),
    ]  # fmt: skip
    store = table(fields, primary_key=("k",) if engine else (), options=options)
    draw = random.Random(f"{file_format} {engine}")

    def value(kind):
        if draw.random() < 0.25:
            return None
        if pa.types.is_struct(kind):
            return {field.name: value(field.type) for field in kind}
        if pa.types.is_map(kind):
            return [("a", value(kind.item_type)), ("b", value(kind.item_type))]
        if pa.types.is_list(kind):
            return [value(kind.value_type) for _ in range(draw.randrange(3))]
        return "é" if pa.types.is_string(kind) else draw.randrange(100)

    def agree():
        schema = store.scan().schema
        rows = [{field.name: value(field.type) for field in schema} | {"k": key} for key in draw.sample(range(20), 12)]
        store.write_arrow(pa.Table.from_pylist(rows, schema=schema))
        whole = sorted(store.scan().to_arrow().to_pylist(), key=repr)
        names = [name for name in [*PICKS, "pos.new", "pos.deep.new", "pos.first"] if resolves(schema, name)]
        for columns in (names, names[::-1], *([name] for name in draw.sample(names, 4)), draw.sample(names, 3)):
            found = store.scan(columns=columns).to_arrow().to_pylist()
            expected = [{name: picked(row, name) for name in columns} for row in whole]
            assert sorted(map(repr, found)) == sorted(map(repr, expected)), columns
        some = store.scan(columns=["pos.deep.b", "k"], where=paimon_py.col("pos", "deep", "a") > 50).to_arrow().to_pylist()
        assert sorted(map(repr, some)) == sorted(
            repr({"pos.deep.b": picked(row, "pos.deep.b"), "k": row["k"]})
            for row in whole
            if (picked(row, "pos.deep.a") or 0) > 50
        )

    agree()
    for changes in (
        [paimon_py.UpdateColumnType(["pos", "deep", "a"], "BIGINT"), paimon_py.AddColumn(["pos", "deep", "new"], "STRING")],
        [paimon_py.RenameColumn(["pos", "x"], "first"), paimon_py.AddColumn(["pos", "x"], "STRING")],
        [paimon_py.AddColumn(["tags", "element", "more"], "STRING"), paimon_py.AddColumn(["marks", "value", "z"], "INT")],
        [paimon_py.DropColumn(["pos", "deep", "b"]), paimon_py.AddColumn(["pos", "deep", "b"], "STRING")],
        [paimon_py.AddColumn(["pos", "list", "element", "z"], "INT"), paimon_py.AddColumn(["pos", "new"], "ROW<q INT>")],
    ):
        store.alter(*changes)
        agree()


def resolves(schema, name):
    kind = pa.struct(list(schema))
    for part in name.split("."):
        if not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
            return False
        kind = kind.field(part).type
    return True


def test_lookups_return_whole_columns():
    with pytest.raises(UsageError, match="whole columns"):
        filled(primary_key=("k",)).lookup([1], columns=["pos.x"])
