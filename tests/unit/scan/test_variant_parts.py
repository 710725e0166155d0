"""Parts of VARIANT columns in `columns=` and `where=`: what `Variant.get` gives, whatever the files look like."""

from __future__ import annotations

import json
import pickle
import random

import pyarrow as pa
import pytest
from unit.codec.variant_values import json_text, json_value

from paimon_py import (
    Catalog,
    RenameColumn,
    Schema,
    SchemaError,
    SetOption,
    UnsupportedError,
    UsageError,
    Variant,
    col,
    variant,
)
from paimon_py.formats.parquet.variant_paths import part_paths
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Atomic, Root
from paimon_py.spec.variant_paths import part_of, with_parts

NAME = "variant.shreddingSchema"
LAYOUTS = [
    None, "BIGINT", {"type": "ARRAY", "element": "STRING"},
    {"type": "ROW", "fields": [{"id": 1, "name": "a", "type": "INT"}, {"id": 2, "name": "c", "type": {"type": "ROW", "fields": [{"id": 3, "name": "a", "type": "DECIMAL(20, 4)"}]}}]},
    {"type": "ROW", "fields": [{"id": 1, "name": "a", "type": "STRING"}, {"id": 2, "name": "b", "type": {"type": "ARRAY", "element": {"type": "ROW", "fields": [{"id": 3, "name": "a", "type": "DOUBLE"}]}}}, {"id": 4, "name": "c", "type": "VARIANT"}]},
]  # fmt: skip
PATHS = ["$", "$.a", "$.b", "$.c", "$.c.a", "$.b[0]", "$.b[1].a", "$[0]", "$[1].a", "$['a b']", "$.x.y"]
KINDS = ["BIGINT", "STRING", "DOUBLE", "DECIMAL(12, 3)", "ARRAY<STRING>", "MAP<STRING, STRING>", "ROW<a STRING, b INT>", "VARIANT", "TINYINT", "DATE"]
P = col("p").variant


def layout(kind) -> dict[str, str]:
    return {} if kind is None else {NAME: json.dumps({"type": "ROW", "fields": [{"id": 0, "name": "p", "type": kind}]})}


@pytest.fixture
def catalog(tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("db")
    return catalog


def payload(rng):
    made = json_value(rng)
    if rng.random() < 0.7:
        made = {"a": rng.choice((rng.randrange(-9, 9), json_value(rng, 4))), "b": [json_value(rng, 4), {"a": rng.choice((1.5, 2, "x"))}][: rng.randrange(3)], "c": {"a": json_value(rng, 4)}}
    return None if rng.random() < 0.1 else variant(json_text(made))


def filled(catalog, rng, *, keyed: bool):
    """A table whose files are laid out in all ways, and what is in it."""
    table = catalog.create_table("db.t", Schema({"id": "INT", "p": "VARIANT"}), primary_key=["id"] if keyed else None, options={"bucket": "1", "write-only": "true"} if keyed else {})
    rows: dict[int, Variant | None] = {}
    for number, kind in enumerate(LAYOUTS):
        options = layout(kind)
        if options:
            table.alter(SetOption(NAME, options[NAME]))
        new = {(rng.randrange(60) if keyed else number * 100 + at): payload(rng) for at in range(30)}
        table.write_arrow([{"id": at, "p": one} for at, one in new.items()])
        rows |= new
    return table, rows


def same(found, expected, kind: str) -> bool:
    if kind == "VARIANT":
        return (found and Variant(**found).to_json()) == (expected and expected.to_json())
    return found == expected or (found != found and expected != expected)


@pytest.mark.parametrize("keyed", [False, True], ids=["append", "pk"])
@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_what_the_value_itself_gives(catalog, keyed, kind):
    rng = random.Random(f"{keyed} {kind}")
    table, rows = filled(catalog, rng, keyed=keyed)
    columns = ["id", *(P(path, kind, or_null=True) for path in PATHS)]
    found = table.scan(columns=columns).to_arrow()
    assert found.num_rows == len(rows)
    for row in found.to_pylist():
        one = rows[row["id"]]
        for path, value in zip(PATHS, list(row.values())[1:]):
            expected = None if one is None else one.get(path, kind, or_null=True)
            assert same(value, expected, kind), (path, one and one.to_json())


@pytest.mark.parametrize("keyed", [False, True], ids=["append", "pk"])
def test_conditions_on_parts_are_exact(catalog, keyed):
    rng = random.Random(keyed)
    table, rows = filled(catalog, rng, keyed=keyed)
    number = {at: one and one.get("$.a", "BIGINT", or_null=True) for at, one in rows.items()}
    text = {at: one and one.get("$.c", "STRING") for at, one in rows.items()}
    a, c = P("$.a", "BIGINT", or_null=True), P("$.c", "STRING")
    asked = [
        (a == 3, lambda at: number[at] == 3), (a > 0, lambda at: number[at] is not None and number[at] > 0), (a.is_null(), lambda at: number[at] is None),
        (a.isin([1, 2, -5]), lambda at: number[at] in (1, 2, -5)), ((a >= -4) & (col("id") < 250) | c.is_not_null() & (a < -6), lambda at: number[at] is not None and ((number[at] >= -4 and at < 250) or (text[at] is not None and number[at] < -6))),
        (c.starts_with("{"), lambda at: text[at] is not None and text[at].startswith("{")), (~(a == 3), lambda at: number[at] is not None and number[at] != 3),
        (a < col("id"), lambda at: number[at] is not None and number[at] < at), (col("p").is_null() & a.is_null(), lambda at: rows[at] is None),
    ]  # fmt: skip
    for where, holds in asked:
        expected = {at for at in rows if holds(at)}
        scan = table.scan(columns=["id"], where=where)
        assert set(scan.to_arrow()["id"].to_pylist()) == expected and scan.count() == len(expected)
        whole = table.scan(where=where).to_arrow().to_pylist()
        assert {row["id"]: row["p"] and Variant(**row["p"]) for row in whole}.keys() == expected
        assert all((row["p"] and Variant(**row["p"]).to_json()) == (rows[row["id"]] and rows[row["id"]].to_json()) for row in whole)


def test_columns_are_called_by_their_way_and_survive_travel(catalog):
    table = catalog.create_table("db.t", Schema({"id": "INT", "p": "VARIANT"}))
    table.write_arrow([{"id": 1, "p": '{"a": {"b c": [5]}}'}])
    scan = table.scan(columns=[P("$.a['b c'][0]", "INT"), "p", P("$.a")], where=P("$.a['b c'][0]", "INT") == 5)
    assert scan.schema.names == ["p.a.b c[0]", "p", "p.a"]
    again = pickle.loads(pickle.dumps(scan))
    assert again.to_arrow() == scan.to_arrow() and again.to_arrow()["p.a.b c[0]"].to_pylist() == [5]
    assert [again.read(split).read_all().num_rows for split in scan.splits()] == [1]
    assert repr(P("$.a", "INT", or_null=True)) == 'col("p").variant("$.a", "INT", or_null=True)'
    assert "variant" in str(scan.explain())
    assert scan.schema.field("p.a").metadata[b"ARROW:extension:name"] == b"parquet.variant"


def test_parts_inside_rows(catalog):
    table = catalog.create_table("db.t", Schema({"id": "INT", "r": "ROW<v VARIANT, n INT>"}))
    table.write_arrow([{"id": 1, "r": {"v": variant('{"a": 1}'), "n": 2}}, {"id": 2, "r": None}, {"id": 3, "r": {"v": None, "n": 3}}])
    part = col("r", "v").variant("$.a", "INT")
    assert table.scan(columns=["id", part, "r.n"]).to_arrow().to_pylist() == [{"id": 1, "r.v.a": 1, "r.n": 2}, {"id": 2, "r.v.a": None, "r.n": None}, {"id": 3, "r.v.a": None, "r.n": 3}]
    assert table.scan(columns=["r.n"], where=part == 1).to_arrow().to_pylist() == [{"r.n": 2}]
    with pytest.raises(UsageError, match="returned whole"):
        table.scan(columns=["r"], where=part == 1)


def test_renamed_columns_follow(catalog):
    table = catalog.create_table("db.t", Schema({"id": "INT", "p": "VARIANT"}), options=layout(LAYOUTS[3]))
    table.write_arrow([{"id": 1, "p": '{"a": 1}'}])
    table.alter(RenameColumn("p", "q"))
    table.write_arrow([{"id": 2, "q": '{"a": 2}'}])
    assert table.scan(columns=[col("q").variant("$.a", "INT")]).to_arrow().to_pylist() == [{"q.a": 1}, {"q.a": 2}]
    with pytest.raises(UsageError, match="column 'p' does not exist"):
        table.scan(columns=[P("$.a")])


def test_changes_and_streams_have_parts(catalog):
    table = catalog.create_table("db.t", Schema({"id": "INT", "p": "VARIANT"}), primary_key=["id"], options={"bucket": "1"})
    table.write_arrow([{"id": 1, "p": '{"a": 1, "b": 1}'}, {"id": 2, "p": '{"a": 2}'}])
    table.write_arrow([{"id": 1, "p": '{"a": 1, "b": 2}'}, {"id": 2, "p": '{"a": 2}'}])
    found = table.changes(1, 2, columns=["id", P("$.a", "INT")], mode="diff").to_arrow().to_pylist()
    assert found == [{"id": 1, "p.a": 1, "_row_kind": "+U"}]
    assert table.changes(0, 2, columns=["id"], where=P("$.a", "INT") == 2).to_arrow()["id"].to_pylist() == [2, 2]
    stream = table.stream(from_="full", columns=["id", P("$.a", "INT")], where=P("$.a", "INT") == 1)
    assert next(iter(stream)).to_arrow().to_pylist() == [{"id": 1, "p.a": 1, "_row_kind": "+I"}]


def test_what_cannot_be_cast_fails_or_is_null(catalog):
    for number, kind in enumerate((None, LAYOUTS[4])):
        table = catalog.create_table(f"db.t{number}", Schema({"id": "INT", "p": "VARIANT"}), options=layout(kind))
        table.write_arrow([{"id": 1, "p": '{"a": "x"}'}, {"id": 2, "p": '{"a": "7"}'}, {"id": 3, "p": '{"a": {"k": 1}}'}])
        with pytest.raises(SchemaError, match=r"\$\.a.*cannot be INT.*or_null"):
            table.scan(columns=[P("$.a", "INT")]).to_arrow()
        assert table.scan(columns=[P("$.a", "INT", or_null=True)]).to_arrow()["p.a"].to_pylist() == [None, 7, None]


def test_what_is_no_part_is_refused(catalog):
    table = catalog.create_table("db.t", Schema({"id": "INT", "p": "VARIANT"}), primary_key=["id"], options={"bucket": "1"})
    with pytest.raises(UsageError, match="path"):
        P("a")
    with pytest.raises(SchemaError):
        P("$.a", "NO TYPE")
    with pytest.raises(UsageError, match="MULTISET"):
        P("$.a", "MULTISET<INT>")
    with pytest.raises(UsageError, match="already a part"):
        P("$.a").variant("$.b")
    with pytest.raises(UsageError, match="only VARIANT"):
        table.scan(columns=[col("id").variant("$.a")])
    with pytest.raises(UsageError, match="more than once"):
        table.scan(columns=[P("$.a", "INT"), P("$.a", "STRING")])
    with pytest.raises(UsageError, match="no order"):
        table.scan(where=P("$.a") == 1)
    with pytest.raises(UnsupportedError, match="parts of variants"):
        table.lookup([1], columns=[P("$.a", "INT")])


GROUP = pa.struct([
    ("metadata", pa.binary()), ("value", pa.binary()),
    ("typed_value", pa.struct([("user", pa.struct([("value", pa.binary()), ("typed_value", pa.struct([("id", pa.struct([("value", pa.binary()), ("typed_value", pa.int64())]))]))])), ("tags", pa.struct([("value", pa.binary()), ("typed_value", pa.list_(pa.struct([("value", pa.binary())])))]))])),
])  # fmt: skip
READ = [
    ("$.user.id", "BIGINT", ["p.typed_value.user.typed_value.id.value", "p.typed_value.user.typed_value.id.typed_value"]),
    ("$.user.id", "STRING", ["p.metadata", "p.typed_value.user.typed_value.id.value", "p.typed_value.user.typed_value.id.typed_value"]),
    ("$.user.name", "STRING", ["p.metadata", "p.typed_value.user.value"]),
    ("$.user", "STRING", ["p.metadata", "p.typed_value.user.value", "p.typed_value.user.typed_value"]),
    ("$.other", "INT", ["p.metadata", "p.value"]),
    ("$.tags[0]", "STRING", ["p.metadata", "p.typed_value.tags.value", "p.typed_value.tags.typed_value"]),
    ("$", "VARIANT", ["p.metadata", "p.value", "p.typed_value"]),
]


@pytest.mark.parametrize(("path", "kind", "columns"), READ)
def test_no_other_columns_are_read_than_those_of_the_part(path, kind, columns):
    parts = with_parts(Atomic(Root.VARIANT), [part_of(path, parse_type(kind), False)])
    assert part_paths("p", parts, GROUP) == columns


def test_reading_a_leaf_costs_a_part_of_the_file(catalog):
    kind = {"type": "ROW", "fields": [{"id": 1, "name": "n", "type": "INT"}]}
    table = catalog.create_table("db.t", Schema({"id": "INT", "p": "VARIANT"}), options=layout(kind))
    rng = random.Random(1)
    table.write_arrow([{"id": at, "p": variant({"n": at, "text": rng.randbytes(400)})} for at in range(3000)])
    leaf = table.scan(columns=[P("$.n", "INT")]).explain(analyze=True).analysis
    whole = table.scan(columns=["p"]).explain(analyze=True).analysis
    assert leaf.bytes_read < whole.bytes_read / 10
