"""Deletes by key alone in the sink: the row of the key as it is then is deleted."""

from __future__ import annotations

import json
import random

import pytest

from paimon_py import Catalog, Schema
from paimon_py.cdc import Event, Routes, Sink

COLUMNS = {"id": "int64", "region": "string", "ver": "int64", "v": "string"}
LOOSE = Schema([("id", "BIGINT NOT NULL"), ("region", "STRING"), ("ver", "BIGINT"), ("v", "STRING")])
STRICT = Schema([("id", "BIGINT NOT NULL"), ("region", "STRING"), ("ver", "BIGINT"), ("v", "STRING NOT NULL")])
SEQUENCE = {"bucket": "1", "sequence.field": "ver"}
TABLES = {
    "sequence": (LOOSE, {}, SEQUENCE),
    "NOT NULL": (STRICT, {}, {"bucket": "1"}),
    "sequence, NOT NULL": (STRICT, {}, SEQUENCE),
    "two sequences": (LOOSE, {}, {"bucket": "2", "sequence.field": "ver,region"}),
    "descending": (STRICT, {}, {**SEQUENCE, "sequence.field.sort-order": "descending"}),
    "vectors": (STRICT, {}, {**SEQUENCE, "deletion-vectors.enabled": "true"}),
    "dynamic": (STRICT, {}, {"sequence.field": "ver"}),
    "partitions that are not in the key": (STRICT, {"partition_by": ["region"]}, {}),
    "input changelog": (STRICT, {}, {**SEQUENCE, "changelog-producer": "input"}),
    "lookup changelog": (STRICT, {}, {**SEQUENCE, "changelog-producer": "lookup"}),
    "partial update": (LOOSE, {}, {**SEQUENCE, "merge-engine": "partial-update",
                                   "partial-update.remove-record-on-delete": "true", "ignore-update-before": "true"}),
    "aggregation": (LOOSE, {}, {**SEQUENCE, "merge-engine": "aggregation", "ignore-update-before": "true",
                                "aggregation.remove-record-on-delete": "true",
                                "fields.default-aggregate-function": "last_value"}),
}  # fmt: skip


@pytest.fixture
def catalog(tmp_path):
    made = Catalog.open(str(tmp_path / "wh"))
    made.create_database("lake")
    return made


def event(op, before, after, key):
    fields = [{"field": name, "type": kind} for name, kind in COLUMNS.items()]
    filled = [None if row is None else {**dict.fromkeys(COLUMNS), **row} for row in (before, after)]
    payload = {"op": op, "before": filled[0], "after": filled[1], "source": {"table": "t"}}
    value = {"schema": {"fields": [{"field": "after", "fields": fields}]}, "payload": payload}
    about = {"schema": {"fields": fields[:1]}, "payload": {"id": key}}
    return Event(json.dumps(value).encode(), json.dumps(about).encode())


def row(key, ver, v="a", region="eu"):
    return {"id": key, "region": region, "ver": ver, "v": v}


def create(key, ver, v="a", region="eu"):
    return event("c", None, row(key, ver, v, region), key)


BY_KEY = {
    "the key alone": lambda key: event("d", None, None, key),
    "NULL elsewhere": lambda key: event("d", {"id": key}, None, key),
    "a part of the row": lambda key: event("d", {"id": key, "region": "us"}, None, key),
}


def rows(catalog):
    return sorted(tuple(row.values()) for row in catalog.table("lake.t").to_arrow().to_pylist())


def make(catalog, what):
    columns, more, options = TABLES[what]
    return catalog.create_table("lake.t", columns, primary_key=["id"], options=options, **more)


@pytest.mark.parametrize("what", BY_KEY)
@pytest.mark.parametrize("kind", ["sequence", "NOT NULL", "partitions that are not in the key"])
def test_the_row_is_gone(catalog, kind, what):
    make(catalog, kind)
    sink = Sink(catalog, "lake", user="u")
    sink.write([create(1, 5), create(2, 6)], identifier=1)
    assert sink.write([BY_KEY[what](1), BY_KEY[what](9)], identifier=2).dead == 0
    assert rows(catalog) == [(2, "eu", 6, "a")]
    assert sink.write([BY_KEY[what](1)], identifier=3).rows == {"t": 0}, "there is nothing to delete any more"


@pytest.mark.parametrize("kind", TABLES)
def test_steps_of_any_size_end_as_the_source(catalog, kind):
    """Inserts, updates and deletes by key alone, cut into steps at random, with compactions between them."""
    pick = random.Random(kind)
    make(catalog, kind)
    falls = kind == "descending"
    source: dict[int, tuple] = {}
    events = []
    for number in range(60):
        key, ver, v = pick.randrange(6), -number if falls else number, f"v{number}"
        before = None if key not in source else dict(zip(COLUMNS, source[key], strict=True))
        if before is not None and pick.random() < 0.4:
            events.append(BY_KEY[pick.choice(list(BY_KEY))](key))
            del source[key]
            continue
        after = row(key, ver, v, pick.choice(["eu", "us"]))
        events.append(event("c" if before is None else "u", before, after, key))
        source[key] = tuple(after.values())
    sink = Sink(catalog, "lake", user="u")
    step = 0
    while events:
        part, events = events[: (size := pick.randrange(1, 20))], events[size:]
        step += 1
        assert sink.write(part, identifier=step).dead == 0
        assert sink.write(part, identifier=step).rows in ({"t": 0}, {}), "the same step again changes nothing"
        if pick.random() < 0.3:
            catalog.table("lake.t").compact(full=pick.random() < 0.5)
    catalog.table("lake.t").compact(full=True)
    assert rows(catalog) == sorted(source.values())


def test_a_row_that_came_late_is_not_what_is_deleted(catalog):
    """The newest row by the sequence stands for the delete, wherever it came from."""
    make(catalog, "sequence")
    sink = Sink(catalog, "lake", user="u")
    sink.write([create(1, 9), create(2, 3), create(3, 4)], identifier=1)
    late = [create(1, 5), BY_KEY["the key alone"](1), create(2, 8), BY_KEY["the key alone"](2), create(2, 8, "again")]
    assert sink.write(late, identifier=2).dead == 0
    assert rows(catalog) == [(2, "eu", 8, "again"), (3, "eu", 4, "a")]


def test_the_changelog_has_the_whole_row(catalog):
    table = make(catalog, "input changelog")
    sink = Sink(catalog, "lake", user="u")
    sink.write([create(1, 5, "old")], identifier=1)
    sink.write([BY_KEY["the key alone"](1)], identifier=2)
    (told,) = table.changes(1, 2).to_arrow().to_pylist()
    assert (told["_row_kind"], told["ver"], told["v"]) == ("-D", 5, "old")


def test_an_update_whose_row_before_is_incomplete(catalog):
    """Its +U stands for both, as for an event without a row before."""
    make(catalog, "NOT NULL")
    sink = Sink(catalog, "lake", user="u")
    sink.write([create(1, 5)], identifier=1)
    assert sink.write([event("u", {"id": 1}, row(1, 6, "b"), 1)], identifier=2).dead == 0
    assert rows(catalog) == [(1, "eu", 6, "b")]


def test_a_key_that_moves_away_from_an_incomplete_row(catalog):
    make(catalog, "sequence, NOT NULL")
    sink = Sink(catalog, "lake", user="u", routes=Routes(keys={"t": ("id",)}))
    sink.write([create(1, 5)], identifier=1)
    assert sink.write([event("u", {"id": 1}, row(2, 6), 2)], identifier=2).dead == 0
    assert rows(catalog) == [(2, "eu", 6, "a")]


def test_rows_that_wait_unseen_cannot_stand_for_a_delete(catalog):
    catalog.create_table("lake.t", STRICT, primary_key=["id"], options={"bucket": "-2"})
    sink = Sink(catalog, "lake", user="u")
    sink.write([create(1, 5)], identifier=1)
    assert sink.write([BY_KEY["the key alone"](1)], identifier=2).dead == 1


def test_a_row_without_a_value_that_it_needs_is_a_dead_letter_still(catalog):
    make(catalog, "NOT NULL")
    sink = Sink(catalog, "lake", user="u")
    assert sink.write([event("c", None, {"id": 1}, 1)], identifier=1).dead == 1
    nothing = event("d", {"id": None}, None, 1)
    assert sink.write([nothing], identifier=2).dead == 1
