"""Debezium's events, recorded from a PostgreSQL and made by hand, into tables."""

from __future__ import annotations

import base64
import datetime
import json
import random
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_py import Catalog, OptionError, Table, UsageError
from paimon_py.cdc import Change, Event, InvalidEvent, NoChange, Routes, Sink, events_of, of_lines
from paimon_py.cdc.debezium import UNAVAILABLE, decode
from paimon_py.executors import LocalExecutor

RECORDED = Path(__file__).with_name("postgres-events.tsv")


def recorded():
    with RECORDED.open(encoding="utf-8") as lines:
        return list(of_lines(lines))


def event(op, before=None, after=None, columns=None, key=None, **more):
    """An event with a schema if `columns` (name to Connect type or field) are given."""
    value = {"op": op, "before": before, "after": after, "source": {"schema": "s", "table": "t"}, **more}
    if columns is not None:
        fields = [{"field": name, **(kind if isinstance(kind, dict) else {"type": kind})} for name, kind in columns.items()]
        value = {"schema": {"fields": [{"field": "after", "fields": fields}]}, "payload": value}
    if key is not None:
        fields = [{"field": name, **({"type": (columns or {}).get(name, "int64")})} for name in key]
        key = json.dumps({"schema": {"fields": fields}, "payload": key} if columns is not None else key).encode()
    return Event(value=json.dumps(value).encode(), key=key, topic="p.s.t", position="0:1")


@pytest.fixture
def catalog(tmp_path):
    return Catalog.open(str(tmp_path / "wh"))


def sink(catalog, **more):
    return Sink(catalog, "lake", user="u", **more)


def rows(catalog, name="t"):
    return sorted(catalog.table(f"lake.{name}").to_arrow().to_pylist(), key=str)


def reasons(catalog):
    return [row["reason"] for row in catalog.table("lake.cdc_dead_letters").to_arrow().to_pylist()]


def test_a_recorded_postgresql_arrives_as_it_ended(catalog):
    done = sink(catalog).write(recorded(), identifier=1)
    assert (done.rows, done.dead, done.altered) == ({"orders": 6, "plain": 5}, 0, {"orders": 3})
    first, second = rows(catalog, "orders")
    assert first["price"] == Decimal("2.250") and first["name"] == "b" and first["raw"] == b"\x00\xff"
    assert first["t"] == datetime.datetime(2024, 2, 29, 12, 34, 56, 789000)
    assert first["tz"] == datetime.datetime(2024, 2, 29, 10, 34, 56, 123456)
    assert first["tm"] == datetime.time(12, 34, 56, 789000) and first["free"] == "12345.6789"
    assert second == dict.fromkeys(first) | {
        "id": 3, "name": "c", "price": Decimal("12345678901.125"), "n": 100000, "extra": "new",
    }  # fmt: skip
    assert rows(catalog, "plain") == [{"k": 5, "v": "y" * 9}]


@pytest.mark.parametrize("cut", [1, 3, 5])
def test_steps_of_any_size_end_in_the_same_rows(catalog, cut):
    given = recorded()
    target = sink(catalog)
    for start in range(0, len(given), cut):
        for _ in range(2):
            target.write(given[start : start + cut], identifier=start)
    assert [row["id"] for row in rows(catalog, "orders")] == [1, 3]
    assert rows(catalog, "plain") == [{"k": 5, "v": "y" * 9}]


@pytest.mark.parametrize(("verb", "executor"), [("write_arrow", None), ("commit", LocalExecutor())])
def test_a_step_that_stopped_between_two_tables_is_made_whole(catalog, monkeypatch, verb, executor):
    target, commit = sink(catalog), getattr(Table, verb)

    def stopping(table, data, **label):
        if table.location.endswith("plain"):
            raise KeyboardInterrupt
        return commit(table, data, **label)

    damaged = [*recorded(), Event(value=b"{")]
    with monkeypatch.context() as patch:
        patch.setattr(Table, verb, stopping)
        with pytest.raises(KeyboardInterrupt):
            target.write(damaged, identifier=4, executor=executor)
    assert target.write(damaged, identifier=4).rows == {"orders": 0, "plain": 5}
    assert len(reasons(catalog)) == 1 and len(catalog.table("lake.orders").snapshots()) == 1


def test_kinds_of_rows():
    both = {"id": 1, "v": "a"}, {"id": 1, "v": "b"}
    assert decode(event("u", *both, key={"id": 1})).rows == (("-U", both[0]), ("+U", both[1]))
    assert decode(event("u", None, both[1], key={"id": 1})).rows == (("+U", both[1]),)
    moved = {"id": 2, "v": "b"}
    assert [kind for kind, _ in decode(event("u", both[0], moved, key={"id": 2})).rows] == ["-D", "+I"]
    assert decode(event("r", None, moved)).rows == (("+I", moved),)
    assert decode(event("d", None, None, key={"id": 1})).rows == (("-D", {"id": 1}),)


def test_large_values_that_did_not_change_come_from_the_row_before_or_are_refused(catalog):
    columns = {"id": "int64", "v": "string"}
    whole = event("u", {"id": 1, "v": "long"}, {"id": 1, "v": UNAVAILABLE}, columns, {"id": 1})
    assert decode(whole).rows[1] == ("+U", {"id": 1, "v": "long"})
    for lost in ([UNAVAILABLE], {"k": UNAVAILABLE}):
        assert isinstance(decode(event("u", None, {"id": 1, "v": lost}, columns, {"id": 1})), InvalidEvent)
        assert isinstance(decode(event("u", {"id": 1, "v": lost}, {"id": 1, "v": "x"}, columns, {"id": 1})), InvalidEvent)
    lacking = event("u", None, {"id": 1, "v": UNAVAILABLE}, columns, {"id": 1})
    first = event("c", None, {"id": 1, "v": "old"}, columns, {"id": 1})
    assert sink(catalog).write([first, lacking], identifier=1).dead == 1
    assert rows(catalog) == [{"id": 1, "v": "old"}] and "REPLICA IDENTITY FULL" in reasons(catalog)[0]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "tombstone"), (b"null", "tombstone"), (b'{"schema": null, "payload": null}', "tombstone"),
        (b'{"ts_ms": 1}', "heartbeat"), (b'{"status": "BEGIN", "id": "1"}', "transaction"),
        (b'{"ddl": "x", "tableChanges": []}', "schema change"), (b'{"op": "m"}', "message"),
    ],
)  # fmt: skip
def test_events_without_rows_are_counted(value, reason):
    assert decode(Event(value=value)) == NoChange(reason)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int8", 128), ("int16", "1"), ("int32", 1.5), ("int64", 2**63), ("int64", True), ("float", 1e39), ("double", "1"),
        ("boolean", 1), ("string", 1), ("bytes", "ä"), ({"type": "int32", "name": "io.debezium.time.Date"}, "x"),
        ({"type": "int64", "name": "io.debezium.time.MicroTime"}, 1),
        ({"type": "string", "name": "io.debezium.time.ZonedTimestamp"}, "infinity"),
        ({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
          "parameters": {"scale": "2", "connect.decimal.precision": "3"}}, "J28="),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_a_dead_letter_and_its_neighbours_arrive(catalog, kind, value):
    columns = {"id": "int64", "v": kind}
    given = [event("c", None, {"id": n, "v": value if n == 1 else None}, columns, {"id": n}) for n in range(3)]
    assert sink(catalog).write(given, identifier=1).dead == 1
    assert [row["id"] for row in rows(catalog)] == [0, 2]
    letter = catalog.table("lake.cdc_dead_letters").to_arrow().to_pylist()[0]
    assert "'v'" in letter["reason"] and letter["value"] == given[1].value and letter["position"] == "0:1"


def test_values_arrive_exactly(catalog):
    decimal = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal"}
    columns = {
        "id": "int64", "f": "float", "d": "double", "n": {**decimal, "parameters": {"scale": "37", "connect.decimal.precision": "38"}},
        "wide": {**decimal, "parameters": {"scale": "2", "connect.decimal.precision": "60"}},
        "t": {"type": "int64", "name": "io.debezium.time.NanoTimestamp"},
        "b": {"type": "bytes", "name": "io.debezium.data.Bits", "parameters": {"length": "9"}}, "s": "struct",
    }  # fmt: skip
    unscaled = -12345678901234567890123456789012345678
    n = base64.b64encode(unscaled.to_bytes(16, "big", signed=True)).decode()
    row = {"id": 1, "f": 0.1, "d": "NaN", "n": n, "wide": "AJY=", "t": -1, "b": "AgE=", "s": {"x": [1.5]}}
    assert sink(catalog).write([event("c", None, row, columns, {"id": 1})], identifier=1).dead == 0
    table = catalog.table("lake.t").to_arrow()
    got = table.drop_columns(["d", "t"]).to_pylist()[0]
    assert table["t"].cast(pa.int64()).to_pylist() == [-1] and str(table["d"][0]) == "nan"
    assert got["n"] == Decimal("-1.2345678901234567890123456789012345678")
    assert (got["wide"], got["b"], got["f"]) == ("1.50", b"\x01\x02", pa.scalar(0.1, pa.float32()).as_py())
    assert got["s"] == '{"x":[1.5]}'


def test_without_a_schema_all_columns_are_text(catalog):
    given = [event("c", None, {"id": 1, "p": True, "q": [1], "r": None}, key={"id": 1})]
    given.append(Event(value=given[0].value.replace(b"true", b"1.50").replace(b'"id": 1', b'"id": 2'), key=b'{"id": 2}'))
    sink(catalog).write(given, identifier=1)
    one, two = rows(catalog)
    assert one == {"id": "1", "p": "true", "q": "[1]", "r": None} and two["p"] == "1.50"


def test_types_of_another_family_are_dead_letters(catalog):
    good = event("c", None, {"id": 1, "v": 5}, {"id": "int64", "v": "int64"}, {"id": 1})
    other = event("c", None, {"id": 2, "v": "x"}, {"id": "int64", "v": "string"}, {"id": 2})
    narrow = event("c", None, {"id": 3, "v": 7}, {"id": "int64", "v": "int16"}, {"id": 3})
    assert sink(catalog).write([good, other, narrow], identifier=1).dead == 1
    assert rows(catalog) == [{"id": 1, "v": 5}, {"id": 3, "v": 7}]
    assert reasons(catalog) == ["column 'v' is BIGINT in the table and STRING in the event"]


def test_tables_without_a_key_take_new_rows_only(catalog):
    columns = {"v": "int32"}
    given = [event("c", None, {"v": 1}, columns), event("d", {"v": 1}, None, columns), event("t")]
    assert sink(catalog).write(given, identifier=1).dead == 2
    assert rows(catalog) == [{"v": 1}]


def test_routes(catalog):
    with pytest.raises(UsageError, match="primary key"):
        sink(catalog, routes=Routes(without=("plain.k",))).write(recorded(), identifier=1)
    routes = Routes(including="orders|plain", excluding="orders", prefix="pg_", without=("plain.v", "orders.id"))
    done = sink(catalog, routes=routes).write(recorded(), identifier=1)
    assert done.skipped["table orders is not taken"] == 5 and rows(catalog, "pg_plain") == [{"k": 5}]
    with pytest.raises(UsageError, match="dead letters"):
        sink(catalog, routes=Routes(names={"plain": "cdc_dead_letters"})).write(recorded(), identifier=2)
    assert Routes(names={"a": "b"}, prefix="x").target("a") == "b"
    with pytest.raises(UsageError, match="pattern"):
        Routes(including="(")


def test_events_come_in_many_forms():
    values = [b"{}", None]
    assert [event.value for event in events_of(pa.array(values))] == values
    table = pa.table({"value": ["{}"], "partition": [3], "offset": [9], "topic": ["x"]})
    assert list(events_of(table)) == [Event(value=b"{}", topic="x", position="3:9", partition=3, offset=9)]
    mixed = pa.table({"value": ["c", "a", "b"], "topic": ["y", "x", "x"], "partition": [0, 1, 0], "offset": [1, 5, 9]})
    for given in (mixed, mixed.combine_chunks().to_batches()[0], mixed.to_reader()):
        assert [event.value for event in events_of(given)] == [b"b", b"a", b"c"]
    for wrong in ("{}", 7, [7], pa.table({"x": [1]})):
        with pytest.raises(UsageError):
            list(events_of(wrong))


def _damaged(seed, given):
    rng = random.Random(seed)
    chosen = rng.choice(given)
    value = bytearray(chosen.value or b"null")
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(value) or 1)
        way = rng.randrange(4)
        if way == 0:
            value[place : place + 1] = bytes([rng.randrange(256)])
        elif way == 1:
            del value[place : place + rng.randint(1, 40)]
        elif way == 2:
            value[place:place] = rng.choice([b"null", b"[]", b"{}", b"-1", b'"\\ud800"', b"1e999", b"[" * 3000, b'"op":"t",'])
        else:
            words = [b'"int64"', b'"string"', b'"int32"', b'"bytes"', b"null", b"true", b'"after"', b'"scale"', b'"u"', b'"c"']
            value = bytearray(bytes(value).replace(rng.choice(words), rng.choice(words), rng.randint(1, 3)))
    key = chosen.key if rng.random() < 0.8 else (chosen.key or b"x")[: rng.randrange(1, 60)]
    return Event(value=bytes(value), key=key, topic=chosen.topic, position=str(seed))


def test_damage_ends_in_dead_letters(catalog):
    given = [event for event in recorded() if event.value is not None]
    damaged = [_damaged(seed, given) for seed in range(1500)]
    decoded = [decode(event) for event in damaged]
    assert all(isinstance(what, (InvalidEvent, Change, NoChange)) for what in decoded)
    done = sink(catalog).write(damaged, identifier=1)
    counted = sum(isinstance(what, InvalidEvent) for what in decoded)
    assert done.dead >= counted > 100
    assert done.dead == catalog.table("lake.cdc_dead_letters").count()


def test_options_that_no_table_can_have_stop_the_sink_and_bury_nothing(catalog):
    with pytest.raises(OptionError, match="'bucket' is 'x'"):
        Sink(catalog, "lake", user="u", options={"bucket": "x"})


def test_documents_are_told_from_rows():
    document = {"op": "c", "after": '{"_id": 1}', "source": {"db": "d", "collection": "c"}}
    found = decode(Event(value=json.dumps(document).encode()))
    assert isinstance(found, InvalidEvent) and "documents of a collection have no columns" in found.reason
