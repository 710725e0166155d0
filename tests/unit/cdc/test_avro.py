"""Debezium's events in Avro with a registry."""

from __future__ import annotations

import datetime
import io
import json
import random
import struct
from decimal import Decimal

import fastavro
import pytest

from paimon_py import Catalog, StorageError, UsageError
from paimon_py.cdc import Change, Event, InvalidEvent, NoChange, Sink, avro_decoder, registry


def optional(kind):
    return ["null", kind]


COLUMNS = {
    "id": "long", "small": {"type": "int", "connect.type": "int16"}, "s": optional("string"), "raw": optional("bytes"), "f": optional("float"),
    "d": optional("double"), "ok": optional("boolean"), "day": optional({"type": "int", "connect.name": "io.debezium.time.Date"}),
    "at": optional({"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}),
    "n": optional({"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2, "connect.name": "org.apache.kafka.connect.data.Decimal"}),
    "e": optional({"type": "string", "connect.name": "io.debezium.data.Enum", "connect.parameters": {"allowed": "a,b"}}),
    "t": optional({"type": "int", "logicalType": "time-millis"}), "tags": optional({"type": "array", "items": optional("string")}),
    "free": optional({"type": "record", "name": "VariableScaleDecimal", "namespace": "io.debezium.data", "connect.name": "io.debezium.data.VariableScaleDecimal",
                      "fields": [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}]}),
    "again": optional("io.debezium.data.VariableScaleDecimal"),
}  # fmt: skip


def envelope(columns):
    row = {"type": "record", "name": "Value", "fields": [{"name": name, "type": kind, "default": None} if isinstance(kind, list) else {"name": name, "type": kind} for name, kind in columns.items()]}
    source = {"type": "record", "name": "Source", "namespace": "io.debezium", "fields": [
        {"name": "db", "type": "string"}, {"name": "schema", "type": "string"}, {"name": "table", "type": "string"}, {"name": "ts_ms", "type": "long"},
    ]}  # fmt: skip
    return {"type": "record", "name": "Envelope", "namespace": "pg.public.t", "fields": [
        {"name": "before", "type": ["null", row], "default": None}, {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "source", "type": source}, {"name": "op", "type": "string"}, {"name": "ts_ms", "type": optional("long")},
    ]}  # fmt: skip


KEY = {"type": "record", "name": "Key", "namespace": "pg.public.t", "fields": [{"name": "id", "type": "long"}]}
NARROW = {"id": "long", "v": "int"}
WIDE = {"id": "long", "v": optional("long"), "more": optional("string")}
SCHEMAS = {1: KEY, 2: envelope(COLUMNS), 3: envelope(NARROW), 4: envelope(WIDE), 5: {"type": "record"}, 6: "int"}


def written(number, record):
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, fastavro.parse_schema(SCHEMAS[number]), record)
    return struct.pack(">bI", 0, number) + sink.getvalue()


def event(number, op, before, after):
    source = {"db": "d", "schema": "public", "table": "t", "ts_ms": 5}
    value = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 6}
    return Event(written(number, value), written(1, {"id": (after or before)["id"]}))


class Server:
    """A registry that counts what it is asked."""

    def __init__(self):
        self.asked = []
        self.failing = False

    def send(self, address, headers):
        self.asked.append((address, dict(headers)))
        if self.failing:
            raise OSError("gone")
        number = int(address.rpartition("/")[2])
        return json.dumps({"schema": json.dumps(SCHEMAS[number])}).encode() if number in SCHEMAS else None


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def catalog(tmp_path):
    return Catalog.open(str(tmp_path / "wh"))


def sink(catalog, server):
    return Sink(catalog, "lake", user="u", format=avro_decoder(registry("http://r/", headers={"x": "y"}, send=server.send)))


ROW = {
    "id": 1, "small": 300, "s": "ä", "raw": b"\x00\xff", "f": 0.5, "d": float("inf"), "ok": True, "day": 19782, "at": 1_709_201_472_123_456,
    "n": Decimal("-1.50"), "e": "a", "t": datetime.time(0, 0, 1, 5000), "tags": ["x", None], "free": {"scale": 2, "value": b"\x00\x96"},
    "again": {"scale": 0, "value": b"\x07"},
}  # fmt: skip


def test_types_and_values(catalog, server):
    target = sink(catalog, server)
    nothing = {name: None if isinstance(kind, list) else 0 for name, kind in COLUMNS.items()} | {"id": 2}
    done = target.write([event(2, "c", None, ROW), event(2, "r", None, nothing)], identifier=1)
    assert (done.dead, done.rows) == (0, {"t": 2})
    one, two = catalog.table("lake.t").to_arrow().sort_by("id").to_pylist()
    assert one == {
        **ROW, "day": datetime.date(2024, 2, 29), "at": datetime.datetime(2024, 2, 29, 10, 11, 12, 123456), "free": "1.50", "again": "7",
        "tags": '["x",null]',
    }  # fmt: skip
    assert two == dict.fromkeys(ROW) | {"id": 2, "small": 0}
    assert catalog.table("lake.t").schema.primary_keys == ("id",)
    assert server.asked == [("http://r/schemas/ids/2", {"x": "y"}), ("http://r/schemas/ids/1", {"x": "y"})]


def test_columns_are_added_and_widened_and_rows_go(catalog, server):
    given = [event(3, "c", None, {"id": 1, "v": 5}), event(3, "c", None, {"id": 2, "v": 6})]
    wide = [event(4, "u", {"id": 1, "v": 5, "more": None}, {"id": 1, "v": 2**40, "more": "x"}), event(4, "d", {"id": 2, "v": None, "more": None}, None)]
    tombstone = Event(None, wide[1].key)
    done = sink(catalog, server).write([*given, *wide, tombstone], identifier=1)
    assert (done.dead, done.skipped, done.altered) == (0, {"tombstone": 1}, {"t": 2})
    assert catalog.table("lake.t").to_arrow().to_pylist() == [{"id": 1, "v": 2**40, "more": "x"}]


def test_what_cannot_be_read_is_a_dead_letter(catalog, server):
    good = event(3, "c", None, {"id": 1, "v": 5})
    given = [
        Event(b""), Event(b"\x01abcd"), Event(b"\x00\x00\x00\x00\x09x"), Event(good.value[:-1], good.key), Event(good.value + b"x", good.key),
        Event(good.value, b"\x00\x00\x00\x00\x01"), Event(b"\x00\x00\x00\x00\x05x"), Event(written(6, 7)), good,
    ]  # fmt: skip
    done = sink(catalog, server).write(given, identifier=1)
    assert (done.dead, done.rows) == (8, {"t": 1})
    reasons = catalog.table("lake.cdc_dead_letters").to_arrow()["reason"].to_pylist()
    assert sum("no schema 9" in reason for reason in reasons) == 1


def test_a_registry_that_fails_stops_the_step_and_buries_nothing(catalog, server):
    target, given = sink(catalog, server), [event(3, "c", None, {"id": 1, "v": 5})]
    server.failing = True
    with pytest.raises(StorageError, match="schema 3"):
        target.write(given, identifier=1)
    server.failing = False
    assert target.write(given, identifier=1).rows == {"t": 1}
    for answer in (b"<html>", b"{}"):
        with pytest.raises(StorageError, match="not a registry"):
            registry("http://r", send=lambda address, headers, answer=answer: answer)(1)
    with pytest.raises(UsageError):
        registry("r:8081")
    with pytest.raises(UsageError, match="decoder"):
        Sink(catalog, "lake", user="u", format="debezium-avro")
    parts = json.dumps({"schema": "{}", "schemaType": "PROTOBUF"}).encode()
    other = Sink(catalog, "lake", user="u", format=avro_decoder(registry("http://r", send=lambda address, headers: parts)))
    assert other.write(given, identifier=2).dead == 1


def test_damage_never_escapes(server):
    decode = avro_decoder(registry("http://r", send=server.send))
    given = [event(2, "c", None, ROW), event(4, "u", {"id": 1, "v": 5, "more": "x"}, {"id": 1, "v": 6, "more": "y"})]
    bad = 0
    for seed in range(800):
        rng = random.Random(seed)
        chosen = rng.choice(given)
        value = bytearray(chosen.value)
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(5, len(value))
            value[place : place + rng.randint(0, 4)] = rng.randbytes(rng.randint(0, 3))
        decoded = decode(Event(bytes(value), chosen.key))
        assert isinstance(decoded, (InvalidEvent, Change, NoChange))
        bad += isinstance(decoded, InvalidEvent)
    assert bad > 100


def test_a_registry_is_asked_over_http(server, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    import threading
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = server.send(self.path, self.headers)
            self.send_response(200 if body else 404)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *arguments):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as web:
        thread = threading.Thread(target=web.serve_forever)
        thread.start()
        try:
            schemas = registry(f"http://127.0.0.1:{web.server_port}", headers={"Authorization": "Basic x"})
            assert json.loads(schemas(1)) == KEY and schemas(99) is None
            assert server.asked[0][1]["Authorization"] == "Basic x"
        finally:
            web.shutdown()
            thread.join()
    with pytest.raises(StorageError):
        schemas(1)
