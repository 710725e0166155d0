"""Events that a table would merge with others or lose: keys of the source that change, deletes that are too old."""

from __future__ import annotations

import json

import pytest

from paimon_py import Catalog, Schema, SetOption
from paimon_py.cdc import Change, Event, Routes, Sink, SourceColumn
from paimon_py.spec.type_text import parse_type

COLUMNS = {"id": "int64", "region": "string", "ver": "int64", "v": "string"}
SCHEMA = Schema([("id", "BIGINT NOT NULL"), ("region", "STRING"), ("ver", "BIGINT"), ("v", "STRING")])


@pytest.fixture
def catalog(tmp_path):
    return Catalog.open(str(tmp_path / "wh"))


def event(op, before, after, key=("id",), names=("id", "region", "v"), said=None):
    fields = [{"field": name, "type": COLUMNS[name]} for name in names]
    filled = [None if row is None else {**dict.fromkeys(names), **row} for row in (before, after)]
    payload = {"op": op, "before": filled[0], "after": filled[1], "source": {"table": "t"}}
    value = {"schema": {"fields": [{"field": "after", "fields": fields}]}, "payload": payload}
    keys = said or {name: (after or before)[name] for name in key}
    about = {"schema": {"fields": [field for field in fields if field["field"] in keys]}, "payload": keys}
    return Event(json.dumps(value).encode(), json.dumps(about).encode() if keys else None)


def rows(catalog):
    return sorted(tuple(row.values()) for row in catalog.table("lake.t").to_arrow().to_pylist())


def reasons(catalog):
    return [row["reason"] for row in catalog.table("lake.cdc_dead_letters").to_arrow().to_pylist()]


@pytest.mark.parametrize("key", [("id", "region"), ("region",), ()])
def test_a_key_of_the_source_that_is_not_the_table_s(catalog, key):
    sink = Sink(catalog, "lake", user="u")
    sink.write([event("c", None, {"id": 1, "region": "eu"})], identifier=1)
    later = [event("c", None, {"id": 1, "region": "us"}, key), event("d", {"id": 1, "region": "eu"}, None, key)]
    assert sink.write(later, identifier=2).dead == 2
    assert rows(catalog) == [(1, "eu", None)]
    assert all("table ['id']" in reason and "Routes(keys={'t'" in reason for reason in reasons(catalog))


def test_within_one_step(catalog):
    both = [event("c", None, {"id": 1}), event("c", None, {"id": 1, "region": "us"}, ("id", "region"))]
    assert Sink(catalog, "lake", user="u").write(both, identifier=1).dead == 1
    assert rows(catalog) == [(1, None, None)]


def test_keys_that_routes_give_are_taken(catalog):
    routes = Routes(keys={"t": ("region", "id")})
    catalog.create_database("lake")
    catalog.create_table("lake.t", SCHEMA, primary_key=["id", "region"])
    sink = Sink(catalog, "lake", user="u", routes=routes)
    given = [event("c", None, {"id": 1, "region": "eu"}), event("c", None, {"id": 1, "region": "us"}, ())]
    assert sink.write(given, identifier=1).dead == 0
    assert [row[:2] for row in rows(catalog)] == [(1, "eu"), (1, "us")]


def test_a_key_of_routes_that_moves_leaves_no_row_behind(catalog):
    """Even where the table leaves out rows of kind -U: the row before is a delete."""
    sink = Sink(
        catalog, "lake", user="u", routes=Routes(keys={"t": ("id", "region")}), options={"ignore-update-before": "true"}
    )
    sink.write([event("c", None, {"id": 1, "region": "eu"}, names=("id", "region"))], identifier=1)
    moves = event("u", {"id": 1, "region": "eu"}, {"id": 1, "region": "us"}, names=("id", "region"))
    sink.write([moves], identifier=2)
    assert rows(catalog) == [(1, "us")]


def table(catalog, engine, columns=SCHEMA, **options):
    catalog.create_database("lake", exist_ok=True)
    more = {name.replace("_", "-"): text for name, text in options.items()}
    if engine != "grouped":
        more["sequence.field"] = "ver"
    more["merge-engine"] = {"grouped": "partial-update"}.get(engine, engine)
    if engine == "grouped":
        more["fields.ver.sequence-group"] = "v,region"
    return catalog.create_table("lake.t", columns, primary_key=["id"], options={"bucket": "1", **more})


NAMES = ("id", "region", "ver", "v")
BY_KEY = {
    "the key alone": event("d", None, None, names=NAMES, said={"id": 1}),
    "NULL elsewhere": event("d", {"id": 1}, None, names=NAMES),
    "a part of the row": event("d", {"id": 1, "region": "eu"}, None, names=NAMES),
}


@pytest.mark.parametrize("what", BY_KEY)
@pytest.mark.parametrize("engine", ["aggregation", "grouped"])
def test_a_delete_without_its_sequence_is_a_dead_letter(catalog, engine, what):
    table(catalog, engine)
    sink = Sink(catalog, "lake", user="u")
    sink.write([event("c", None, {"id": 1, "ver": 1, "v": "a"}, names=NAMES)], identifier=1)
    assert sink.write([BY_KEY[what]], identifier=2).dead == 1
    assert "'ver'" in reasons(catalog)[0] and "REPLICA IDENTITY FULL" in reasons(catalog)[0]
    assert rows(catalog) == [(1, None, 1, "a")]
    done = sink.write([event("d", {"id": 1, "ver": 1, "v": "a"}, None, names=NAMES)], identifier=3)
    assert done.dead == 0


def test_a_sequence_of_the_event_itself_needs_no_row_before(catalog):
    routes = Routes(metadata={"op_ts": "changed_at"})
    sink = Sink(catalog, "lake", user="u", routes=routes, options={"sequence.field": "changed_at", "bucket": "1"})
    said = []
    for at, op, after in ((1, "c", {"id": 1}), (2, "d", None)):
        one = event(op, None, after, names=("id",), said={"id": 1})
        value = json.loads(one.value)
        value["payload"]["source"]["ts_ms"] = at
        said.append(Event(json.dumps(value).encode(), one.key))
    assert [sink.write([one], identifier=at).dead for at, one in enumerate(said)] == [0, 0]
    assert rows(catalog) == []


@pytest.mark.parametrize(("engine", "dead"), [("deduplicate", 0), ("aggregation", 1)])
def test_an_update_whose_row_before_has_no_sequence(catalog, engine, dead):
    """Its +U stands for the key where only the newest row counts; elsewhere what is taken back comes too early."""
    table(catalog, engine, **({"fields.v.aggregate-function": "last_value"} if engine == "aggregation" else {}))
    sink = Sink(catalog, "lake", user="u")
    sink.write([event("c", None, {"id": 1, "ver": 1, "v": "a"}, names=NAMES)], identifier=1)
    update = event("u", {"id": 1, "v": "a"}, {"id": 1, "ver": 2, "v": "b"}, names=NAMES)
    assert sink.write([update], identifier=2).dead == dead
    assert rows(catalog) == [(1, None, 2 - dead, "ab"[1 - dead])]


def test_kinds_that_the_table_leaves_out_need_no_sequence(catalog):
    table(catalog, "deduplicate", ignore_delete="true")
    sink = Sink(catalog, "lake", user="u")
    sink.write([event("c", None, {"id": 1, "ver": 1, "v": "a"}, names=NAMES)], identifier=1)
    assert sink.write(list(BY_KEY.values()), identifier=2).dead == 0
    assert rows(catalog) == [(1, None, 1, "a")]


def test_several_updates_in_one_event_move_by_the_key_of_routes(catalog):
    columns = tuple(SourceColumn(name, parse_type("INT"), "int32") for name in ("a", "b"))
    pairs = (("-U", {"a": 1, "b": 1}), ("+U", {"a": 1, "b": 2}), ("-U", {"a": 2, "b": 1}), ("+U", {"a": 2, "b": 1}))
    sink = Sink(
        catalog, "lake", user="u", format=lambda event: Change("", "t", columns, ("a",), pairs),
        routes=Routes(keys={"t": ("a", "b")}), options={"changelog-producer": "input", "bucket": "1"},
    )  # fmt: skip
    sink.write([b"x"], identifier=1)
    assert rows(catalog) == [(1, 2), (2, 1)]


def test_a_key_that_widens_names_the_way_out(catalog):
    sink = Sink(catalog, "lake", user="u")
    sink.write([event("c", None, {"id": 1})], identifier=1)
    wide = json.loads(event("c", None, {"id": 2}).value)
    key = {"schema": {"fields": [{"field": "id", "type": "string"}]}, "payload": {"id": "x"}}
    catalog.drop_table("lake.t")
    catalog.create_table("lake.t", Schema([("id", "INT NOT NULL"), ("region", "STRING"), ("v", "STRING")]), primary_key=["id"])
    given = [Event(json.dumps(wide).encode(), json.dumps(key).encode())]
    assert sink.write(given, identifier=2).dead == 1
    assert "'A key that widens'" in reasons(catalog)[0] and "BIGINT" in reasons(catalog)[0]


@pytest.mark.parametrize(("engine", "kept"), [("partial-update", "b"), ("first-row", "a")])
def test_updates_where_rows_before_are_left_out(catalog, engine, kept):
    """The way that the reason names: updates go on, deletes are dead letters."""
    sink = Sink(catalog, "lake", user="u", options={"merge-engine": engine, "bucket": "1"})
    sink.write([event("c", None, {"id": 1, "v": "a"})], identifier=1)
    update = event("u", {"id": 1, "v": "a"}, {"id": 1, "v": "b"})
    assert sink.write([update], identifier=2).dead == 1
    assert "'ignore-update-before'" in reasons(catalog)[0]
    catalog.table("lake.t").alter(SetOption("ignore-update-before", "true"))
    gone, moved = event("d", {"id": 1, "v": "b"}, None), event("u", {"id": 1, "v": "b"}, {"id": 2, "v": "b"})
    assert sink.write([update, gone, moved], identifier=3).dead == 2
    assert rows(catalog) == [(1, None, kept)]


DECLARED = {"fields": [{"field": "after", "fields": [{"field": "id", "type": "int32"}, {"field": "v", "type": "string"}]}]}


def _told(op, before, after, key, schema=DECLARED):
    payload = {"op": op, "before": before, "after": after, "source": {"table": "t"}}
    return Event(json.dumps({"schema": schema, "payload": payload} if schema else payload).encode(), key)


def _of_key(number, kind=None):
    """A key with or without its schema, as converters of keys are configured apart from those of values."""
    payload = {"id": number}
    schema = {"fields": [{"field": "id", "type": kind}]}
    return json.dumps({"schema": schema, "payload": payload} if kind else payload).encode()


@pytest.mark.parametrize("schema", [DECLARED, None])
@pytest.mark.parametrize("kind", ["int32", None])
def test_a_delete_by_key_alone_has_the_types_of_its_table(catalog, schema, kind):
    """Only values, or only keys, declared types: each delete was a dead letter, since an INT is no STRING."""
    rows = [_told("c", None, {"id": number, "v": "a"}, _of_key(number, kind), schema) for number in (1, 2)]
    sink = Sink(catalog, "lake", user="u")
    assert sink.write(rows, identifier=1).dead == 0
    assert sink.write([_told("d", None, None, _of_key(1, kind), schema)], identifier=2).dead == 0
    assert catalog.table("lake.t").to_arrow()["v"].to_pylist() == ["a"]


@pytest.mark.parametrize("key", [b"Struct{id=1}", b"1", b'"1"', b"[1]", b"\x00\x00\x00\x00\x07\x02", b'{"schema": 7, "payload": {"id": 1}}'])
def test_a_key_that_cannot_be_read_is_not_needed_where_routes_name_it(catalog, key):
    events = [_told("c", None, {"id": 1, "v": "a"}, key), _told("u", {"id": 1, "v": "a"}, {"id": 1, "v": "b"}, key)]
    lost = Sink(catalog, "lake", user="u").write(events, identifier=1)
    assert (lost.dead, lost.rows) == (2, {})
    (reason, _) = catalog.table("lake.cdc_dead_letters").to_arrow()["reason"].to_pylist()
    assert "the key of the event cannot be read" in reason and "Routes(keys=…)" in reason
    sink = Sink(catalog, "lake", user="v", routes=Routes(keys={"t": ("id",)}))
    assert sink.write(events, identifier=1).dead == 0
    assert catalog.table("lake.t").to_arrow().to_pylist() == [{"id": 1, "v": "b"}]
    assert sink.write([_told("d", None, None, key)], identifier=2).dead == 1
    assert sink.write([_told("d", {"id": 1, "v": "b"}, None, key)], identifier=3).dead == 0
    assert catalog.table("lake.t").count() == 0
