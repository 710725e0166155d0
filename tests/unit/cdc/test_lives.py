"""Random lives of a source table, in steps that are repeated, against a dictionary."""

from __future__ import annotations

import datetime
import json
import random
from decimal import Decimal

import pytest

from paimon_py import Catalog
from paimon_py.cdc import Event, Sink


def field(name, kind="int64"):
    return {"field": name, "type": kind}


def happening(rng, model, names, kind):
    """One event of one of six keys, which the model follows; `before` is there or not."""
    key = rng.randrange(6)
    old = model.get(key)
    after = {name: rng.randrange(100) for name in names} | {"id": key}
    before = {name: old.get(name) for name in names} if old and rng.random() < 0.5 else None
    if old and rng.random() < 0.3:
        model.pop(key)
        payload = {"op": "d", "before": before, "after": None}
    else:
        model[key] = after
        payload = {"op": "u" if old else "c", "before": before, "after": after}
    columns = [field(name, kind if name == "v" else "int64") for name in names]
    value = {"schema": {"fields": [{"field": "after", "fields": columns}]}, "payload": {**payload, "source": {"table": "t"}}}
    return Event(
        value=json.dumps(value).encode(),
        key=json.dumps({"schema": {"fields": [field("id")]}, "payload": {"id": key}}).encode(),
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_table_ends_as_its_source(tmp_path, seed):
    rng, catalog = random.Random(seed), Catalog.open(str(tmp_path / "wh"))
    options = {"bucket": ("1", "2", "-1")[seed % 3], "changelog-producer": ("none", "input")[seed % 2]}
    sink = Sink(catalog, "lake", user="u", options=options)
    model, names, kinds = {}, ["id", "v"], ["int16", "int32", "int64"]
    for identifier in range(12):
        events = []
        for _ in range(rng.randrange(1, 15)):
            if rng.random() < 0.05:
                names = [*names, f"c{len(names)}"]
            shape = names if rng.random() < 0.8 else names[:2]
            kind = rng.choice(kinds[: 1 + identifier // 4])
            events.append(happening(rng, model, shape, kind))
        for _ in range(rng.choice([1, 2])):
            assert sink.write(events, identifier=identifier).dead == 0
    table = catalog.table("lake.t")
    expected = {key: {name: row.get(name) for name in table.schema.names} for key, row in model.items()}
    assert {row["id"]: row for row in table.to_arrow().to_pylist()} == expected


SET = ("a", "b", "c d")
MYSQL = {
    "int(11)": [("-2147483648", -(2**31)), ("5", 5)], "bigint unsigned": [("18446744073709551615", Decimal(2**64 - 1)), ("0", Decimal(0))],
    "varchar(8)": [("", ""), ("null", "null"), ("\u00e4\u20ac\U0001f600", "\u00e4\u20ac\U0001f600"), ("it''s", "it''s")], "double": [("0.1", 0.1), ("1E-5", 1e-5)],
    "decimal(10,2)": [("-0.01", Decimal("-0.01")), ("1.5", Decimal("1.50"))], "date": [("1000-01-01", datetime.date(1000, 1, 1))],
    "datetime(3)": [("2024-02-29 10:11:12.5", datetime.datetime(2024, 2, 29, 10, 11, 12, 500_000))], "time": [("23:59:59", datetime.time(23, 59, 59))],
    "set('a','b','c d')": [(str(bits), [name for at, name in enumerate(SET) if bits >> at & 1]) for bits in range(8)],
    "enum('a','b','c d')": [("3", "c d"), ("a", "a")], "bit(5)": [("17", b"\x11")], "blob": [("\u00ff\x00", b"\xff\x00"), ("", b"")],
}  # fmt: skip
"""Texts of MySQL's values, as they are in the events of Canal, and the values."""
WIDER = {"int(11)": "bigint", "varchar(8)": "text", "datetime(3)": "datetime(6)"}


class MySqlTable:
    """A table in MySQL with random rows, of which both programs write events; values are pairs of text and value."""

    def __init__(self, rng):
        self._rng = rng
        self.keys = ("id", "part")[: rng.choice([1, 2])]
        self.kinds = {name: rng.choice(["int(11)", "varchar(8)", "decimal(10,2)", "blob"]) for name in self.keys}
        self._pairs = dict(self.kinds)
        self.rows = {}
        for _ in range(3):
            self._add_column()

    def _add_column(self):
        name = f"c{len(self.kinds)}"
        self.kinds[name] = self._pairs[name] = self._rng.choice(list(MYSQL))
        self.rows = {key: {**row, name: (None, None)} for key, row in self.rows.items()}

    def _value(self, name):
        if name in self.keys or self._rng.random() < 0.85:
            return self._rng.choice(MYSQL[self._pairs[name]])
        return None, None

    def _key(self, row):
        return tuple(row[name][0] for name in self.keys)

    def change(self, most):
        """The kind of a statement, its new rows, and the old values of what an UPDATE changed."""
        rng, kind, rows, olds = self._rng, self._rng.choice(["INSERT", "UPDATE", "UPDATE", "DELETE"]), [], []
        if rng.random() < 0.05:
            self._add_column()
        widened = rng.choice(list(self.kinds))
        if widened not in self.keys and rng.random() < 0.1:
            self.kinds[widened] = WIDER.get(self.kinds[widened], self.kinds[widened])
        for _ in range(rng.randint(1, most)):
            key = rng.choice(list(self.rows)) if self.rows and kind != "INSERT" else None
            old = self.rows.get(key, {})
            names = [name for name in self.kinds if key is None or rng.random() < 0.4]
            row = {**old, **{name: self._value(name) for name in names}}
            if kind == "DELETE" and old:
                rows.append(self.rows.pop(key))
            elif (kind == "INSERT" or (old and row != old)) and self._key(row) not in self.rows.keys() - {key}:
                self.rows.pop(key, None)
                self.rows[self._key(row)] = row
                rows.append(row)
                olds.append({name: value for name, value in old.items() if value != row[name]})
        return kind, rows, olds


def texts(row):
    return {name: text for name, (text, _) in row.items()}


def of_canal(table, kind, rows, olds):
    old = [texts(each) for each in olds] if kind == "UPDATE" else None
    more = {"isDdl": False, "mysqlType": table.kinds, "pkNames": table.keys, "database": "shop", "table": "t"}
    return {"type": kind, "data": [texts(row) for row in rows], "old": old, **more}


def of_maxwell(table, kind, rows, olds):
    old = {"old": texts(olds[0])} if kind == "UPDATE" else {}
    more = {"primary_key_columns": table.keys, "database": "shop", "table": "t"}
    return {"type": kind.lower(), "data": texts(rows[0]), **old, **more}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("form", "event_of", "most"), [("canal", of_canal, 3), ("maxwell", of_maxwell, 1)])
def test_a_table_ends_as_its_source_in_mysql(tmp_path, form, event_of, most, seed):
    """Keys of one and two columns that change, statements with several rows, new columns, wider types, repeated steps."""
    rng, catalog = random.Random(seed), Catalog.open(str(tmp_path / "wh"))
    options = {"bucket": ("1", "2", "-1")[seed % 3], "changelog-producer": ("none", "input")[seed % 2]}
    source = MySqlTable(rng)
    for identifier in range(8):
        events = []
        for _ in range(rng.randint(1, 12)):
            kind, rows, olds = source.change(most)
            events += [json.dumps(event_of(source, kind, rows, olds)).encode()] if rows else []
        for _ in range(rng.choice([1, 2])):
            sink = Sink(catalog, "lake", user="u", options=options, format=f"{form}-json")
            assert sink.write(events, identifier=identifier).dead == 0
    table = catalog.table("lake.t")
    at = form == "canal"
    expected = [{name: row.get(name, (None, None))[at] for name in table.schema.names} for row in source.rows.values()]
    assert sorted(map(repr, table.to_arrow().to_pylist())) == sorted(map(repr, expected))
