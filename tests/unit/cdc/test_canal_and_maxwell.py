"""Events of Canal and Maxwell into tables."""

from __future__ import annotations

import datetime
import json
import random
from decimal import Decimal

import pytest

from paimon_py import Catalog
from paimon_py.cdc import Change, Event, InvalidEvent, NoChange, Routes, Sink, canal, maxwell

TYPES = {
    "id": "bigint(20)", "u": "bigint(20) unsigned", "n": "decimal(10,2)", "flag": "tinyint(1)", "small": "tinyint unsigned",
    "e": "enum('a','it''s')", "s": "varchar(5)", "b": "blob", "d": "date", "t": "datetime(3)", "tm": "time", "f": "double",
}  # fmt: skip
ROW = {
    "id": "1", "u": "18446744073709551615", "n": "-1.50", "flag": "1", "small": "255", "e": "2", "s": "äöüßé", "b": "\u00ff\u0000",
    "d": "2024-02-29", "t": "2024-02-29 10:11:12.123", "tm": "10:11:12", "f": "1e300",
}  # fmt: skip


def of_canal(kind, data, old=None, types=TYPES, **more):
    value = {"database": "d", "table": "t", "type": kind, "data": data, "old": old, "mysqlType": types, "pkNames": ["id"]}
    return Event(value=json.dumps({**value, "isDdl": False, **more}).encode(), topic="canal", position="0:1")


def of_maxwell(kind, data=None, **more):
    return Event(value=json.dumps({"database": "d", "table": "t", "type": kind, "data": data, **more}).encode())


@pytest.fixture
def catalog(tmp_path):
    return Catalog.open(str(tmp_path / "wh"))


def rows(catalog):
    return sorted(catalog.table("lake.t").to_arrow().to_pylist(), key=str)


def test_canal_types_and_kinds(catalog):
    sink = Sink(catalog, "lake", user="u", format="canal-json")
    two = {**dict.fromkeys(ROW), "id": "2"}
    gone = {**dict.fromkeys(ROW), "id": "3"}
    given = [of_canal("INSERT", [ROW, two, gone]), of_canal("DELETE", [gone])]
    given.append(of_canal("UPDATE", [{**two, "s": "x", "id": "4"}], [{"s": None, "id": "2"}]))
    assert sink.write(given, identifier=1).dead == 0
    one, four = rows(catalog)
    assert one == {
        "id": 1, "u": Decimal(2**64 - 1), "n": Decimal("-1.50"), "flag": True, "small": 255, "e": "it's", "s": "äöüßé",
        "b": b"\xff\x00", "d": datetime.date(2024, 2, 29), "t": datetime.datetime(2024, 2, 29, 10, 11, 12, 123000),
        "tm": datetime.time(10, 11, 12), "f": 1e300,
    }  # fmt: skip
    assert four == {**dict.fromkeys(ROW), "id": 4, "s": "x"}
    assert catalog.table("lake.t").schema.primary_keys == ("id",)


def test_canal_columns_are_added_and_widened(catalog):
    sink = Sink(catalog, "lake", user="u", format="canal-json")
    first = of_canal("INSERT", [{"id": "1", "s": "ab"}], types={"id": "bigint", "s": "varchar(2)"})
    second = of_canal("INSERT", [{"id": "2", "s": "abc", "x": "7"}], types={"id": "bigint", "s": "varchar(3)", "x": "int"})
    assert sink.write([first, second], identifier=1).altered == {"t": 2}
    assert rows(catalog) == [{"id": 1, "s": "ab", "x": None}, {"id": 2, "s": "abc", "x": 7}]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", "x"), ("u", "-1e30"), ("n", "1.234"), ("flag", "2"), ("small", "70000"), ("s", "sixsix"), ("d", "0000-00-00"),
        ("t", "2024-02-29 10:11:12.1234"), ("tm", "25:00:00"), ("f", "1e999"), ("f", "NaN"), ("b", "\u0100"), ("s", 7),
    ],
)  # fmt: skip
def test_canal_values_that_do_not_fit_are_dead_letters(catalog, name, value):
    sink = Sink(catalog, "lake", user="u", format="canal-json")
    good = of_canal("INSERT", [{**ROW, "id": "9"}])
    assert sink.write([of_canal("INSERT", [{**ROW, name: value}]), good], identifier=1).dead == 1
    assert [row["id"] for row in rows(catalog)] == [9]


def test_events_of_canal_without_rows():
    assert canal.decode(of_canal("ALTER", None, isDdl=True)) == NoChange("schema change")
    for bad in (of_canal("TRUNCATE", None), of_canal("X", [ROW]), of_canal("UPDATE", [ROW], []), of_canal("INSERT", [{"id": "1"}])):
        assert isinstance(canal.decode(bad), InvalidEvent)
    for kind in ("vector(3)", [], {"a": 1}, 5, None):
        assert isinstance(canal.decode(of_canal("INSERT", [{"g": "1"}], types={"g": kind})), InvalidEvent)


def test_maxwell(catalog):
    sink = Sink(catalog, "lake", user="u", format="maxwell-json", routes=Routes(keys={"t": ("id",)}))
    given = [
        of_maxwell("bootstrap-start"), of_maxwell("bootstrap-insert", {"id": 1, "v": 1.50}), of_maxwell("insert", {"id": 2, "v": "b"}),
        of_maxwell("update", {"id": 3, "v": "b", "w": True}, old={"id": 2}), of_maxwell("delete", {"id": 7, "v": "x"}),
        of_maxwell("table-alter"), of_maxwell("insert"), of_maxwell("strange", {}),
    ]  # fmt: skip
    done = sink.write(given, identifier=1)
    assert (done.dead, done.skipped) == (2, {"bootstrap": 1, "schema change": 1})
    assert rows(catalog) == [{"id": "1", "v": "1.5", "w": None}, {"id": "3", "v": "b", "w": "true"}]
    assert maxwell.decode(of_maxwell("insert", {"k": 1}, primary_key_columns=["k"])).keys == ("k",)


@pytest.mark.parametrize("format", ["canal-json", "maxwell-json"])
def test_damage_ends_in_dead_letters(catalog, format):
    given = [of_canal("INSERT", [ROW]), of_canal("UPDATE", [ROW], [{"id": "5"}])]
    decode = canal.decode
    if format == "maxwell-json":
        decode, given = maxwell.decode, [of_maxwell("insert", ROW), of_maxwell("update", ROW, old={"id": "7"}, primary_key_columns=["id"])]
    damaged = []
    for seed in range(600):
        rng = random.Random(seed)
        value = bytearray(rng.choice(given).value)
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(len(value))
            value[place : place + rng.randint(0, 12)] = rng.choice([b"", b"null", b"[]", b'"', b"{}", b"7", b'"x":', b"\xff", b'"\\ud800"'])
        damaged.append(Event(value=bytes(value), position=str(seed)))
    assert all(isinstance(decode(event), (InvalidEvent, Change, NoChange)) for event in damaged)
    done = Sink(catalog, "lake", user="u", format=format).write(damaged, identifier=1)
    assert done.dead == catalog.table("lake.cdc_dead_letters").count() > 100


@pytest.mark.parametrize("format", ["canal-json", "maxwell-json"])
def test_an_update_without_its_old_values_replaces_the_row(catalog, format):
    if format == "canal-json":
        types = {"id": "int", "v": "text"}
        made = [of_canal(kind, [{"id": "1", "v": text}], types=types) for kind, text in (("INSERT", "a"), ("UPDATE", "b"))]
    else:
        made = [of_maxwell(kind, {"id": 1, "v": text}, primary_key_columns=["id"]) for kind, text in (("insert", "a"), ("update", "b"))]
    for routes in (Routes(), Routes(names={"t": "other"}, keys={"t": ("id",)})):
        assert Sink(catalog, "lake", user="u", format=format, routes=routes).write(made, identifier=1).dead == 0
        assert catalog.table(f"lake.{'other' if routes.keys else 't'}").to_arrow()["v"].to_pylist() == ["b"]
