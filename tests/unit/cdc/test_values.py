"""Each value of a source is in the table exactly, or its event is a dead letter; columns that are left out cost nothing."""

from __future__ import annotations

import base64
import datetime
import json
import struct
from decimal import Decimal

import pytest

from paimon_py import Catalog, UsageError
from paimon_py.cdc import Change, Event, Routes, Sink, SourceColumn
from paimon_py.cdc.evolve import to_nanoseconds
from paimon_py.cdc.geometry import geo_json, of_mysql
from paimon_py.spec.schema_changes import AddColumn, UpdateColumnType
from paimon_py.spec.type_text import parse_type, sql_type
from paimon_py.spec.types import Field

UNAVAILABLE = "__debezium_unavailable_value"
TIME, CONNECT, DATA = "io.debezium.time.", "org.apache.kafka.connect.data.", "io.debezium.data."


@pytest.fixture
def catalog(tmp_path):
    return Catalog.open(str(tmp_path / "wh"))


def of_debezium(kind, value, number=1, op="c"):
    fields = [{"field": "id", "type": "int64"}, {"field": "v", **kind}]
    after = {"id": number, "v": value}
    payload = {"op": op, "before": None, "after": after, "source": {"table": "t"}}
    text = json.dumps({"schema": {"fields": [{"field": "after", "fields": fields}]}, "payload": payload})
    return Event(text.encode(), json.dumps({"schema": {"fields": fields[:1]}, "payload": {"id": number}}).encode())


def of_canal(kind, value, number=1):
    types = {"id": "bigint", "v": kind}
    said = {"table": "t", "type": "INSERT", "data": [{"id": str(number), "v": value}], "mysqlType": types, "pkNames": ["id"]}
    return Event(json.dumps(said).encode())


def stored(catalog, format_, events, **routes):
    """The values that arrived by the numbers of their events, the type of the column, and the reasons of dead letters."""
    sink = Sink(catalog, "lake", user="u", format=format_, routes=Routes(**routes))
    done = sink.write(events, identifier=1)
    found, kind = {}, None
    if "t" in catalog.tables("lake"):
        table = catalog.table("lake.t")
        found = {row["id"]: row.get("v") for row in table.to_arrow().to_pylist()}
        kind = next((sql_type(field.type) for field in table.schema.fields if field.name == "v"), None)
    reasons = catalog.table("lake.cdc_dead_letters").to_arrow()["reason"].to_pylist() if done.dead else []
    assert len(found) + done.dead == len(events)
    return found, kind, reasons


DAY = 86_400
EDGES = (-(1 << 63), -(1 << 31) - 1, -DAY * 10**6, -3_600, -1, 0, 1, 999, DAY * 10**3 - 1, DAY * 10**3, DAY * 10**6 - 1000, DAY * 10**6, 3_020_399 * 10**6, 1 << 31, (1 << 63) - 1, 1 << 63)


def clock(micros):
    return (datetime.datetime.min + datetime.timedelta(microseconds=micros)).time()


@pytest.mark.parametrize(
    ("plain", "name", "unit"),
    [("int32", TIME + "Time", 1000), ("int32", CONNECT + "Time", 1000), ("int64", TIME + "MicroTime", 1)],
)
def test_a_time_is_within_a_day_or_a_dead_letter(catalog, plain, name, unit):
    events = [of_debezium({"type": plain, "name": name}, value, number) for number, value in enumerate(EDGES)]
    found, kind, _ = stored(catalog, "debezium-json", events)
    fits = {number: value * unit for number, value in enumerate(EDGES) if 0 <= value * unit < DAY * 10**6 and value * unit % 1000 == 0}
    assert kind == "TIME(3)" and found == {number: clock(micros) for number, micros in fits.items()}


@pytest.mark.parametrize("text", ["-01:00:00", "24:00:00", "25:00:00", "838:59:59", "-00:00:01", "10:60:00", "10:00:60", "1:00:00"])
def test_a_time_of_canal_is_within_a_day_or_a_dead_letter(catalog, text):
    found, _, reasons = stored(catalog, "canal-json", [of_canal("time", text), of_canal("time", "23:59:59", 2)])
    assert found == {2: datetime.time(23, 59, 59)} and "'v'" in reasons[0]


WHOLE = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


@pytest.mark.parametrize("plain", WHOLE)
def test_integers_of_every_size(catalog, plain):
    edges = sorted({sign * (1 << bits) + more for bits in (7, 8, 15, 16, 31, 32, 63, 64) for sign in (1, -1) for more in (-1, 0, 1)})
    found, _, _ = stored(catalog, "debezium-json", [of_debezium({"type": plain}, value, number) for number, value in enumerate(edges)])
    end = 1 << (WHOLE[plain] - 1)
    assert found == {number: value for number, value in enumerate(edges) if -end <= value < end}


STRANGE = (None, True, 0, 1, -1, 1.5, 1e400, "", "x", "1", "NaN", "2024-02-29", "2024-02-29T10:00:00Z", "AQI=", [], [1], {}, {"a": 1}, {"scale": 1, "value": "AQI="})
KINDS = [
    *({"type": plain} for plain in ("int8", "int16", "int32", "int64", "float", "float32", "double", "boolean", "bytes", "string", "struct", "array", "map")),
    *({"type": "int64", "name": TIME + name} for name in ("Timestamp", "MicroTimestamp", "NanoTimestamp", "MicroTime", "NanoTime", "MicroDuration")),
    *({"type": "int32", "name": TIME + name} for name in ("Date", "Time", "Year")),
    *({"type": "string", "name": TIME + name} for name in ("ZonedTimestamp", "ZonedTime", "IsoDate", "Interval")),
    *({"type": "int64", "name": CONNECT + name} for name in ("Timestamp", "Date", "Time")),
    *({"type": "string", "name": DATA + name} for name in ("Json", "Xml", "Enum", "EnumSet", "Uuid", "Ltree")),
    *({"type": "struct", "name": DATA + name} for name in ("VariableScaleDecimal", "geometry.Point", "geometry.Geometry", "geometry.Geography")),
    {"type": "bytes", "name": DATA + "Bits", "parameters": {"length": "12"}},
    {"type": "bytes", "name": CONNECT + "Decimal", "parameters": {"scale": "2", "connect.decimal.precision": "4"}},
    {"type": "bytes", "name": CONNECT + "Decimal", "parameters": {}}, {"type": "bytes", "name": CONNECT + "Decimal", "parameters": {"scale": "30", "connect.decimal.precision": "65"}},
    {"type": "nonsense"}, {"type": None}, {"type": "bytes", "name": DATA + "Bits"},
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(KINDS)))
def test_each_strange_value_is_exact_or_a_dead_letter_alone(catalog, number):
    """One value that does not fit takes no other with it, and NULL is NULL."""
    events = [of_debezium(KINDS[number], value, place) for place, value in enumerate(STRANGE)]
    found, kind, _ = stored(catalog, "debezium-json", events)
    assert not found or found[0] is None
    for place, value in found.items():
        given, plain = STRANGE[place], KINDS[number].get("name") or KINDS[number]["type"]
        if kind in ("TINYINT", "SMALLINT", "INT", "BIGINT"):
            assert found[place] is None or (type(given) is int and value == given)
        elif kind in ("FLOAT", "DOUBLE"):
            assert given is None or str(float(given)) == str(value)
        elif kind == "BOOLEAN":
            assert value is given
        elif isinstance(value, str) and isinstance(given, str) and plain not in (CONNECT + "Decimal",):
            assert value == given


def test_instants_with_nanoseconds_are_exact(catalog):
    kind = {"type": "string", "name": TIME + "ZonedTimestamp"}
    texts = ["2024-07-01T12:00:00.123456000Z", "2024-07-01T12:00:00.123456Z", "2024-07-01T14:00:00+02:00", "9999-12-31T23:59:59.999999Z"]
    found, type_, _ = stored(catalog, "debezium-json", [of_debezium(kind, text, number) for number, text in enumerate(texts)])
    assert type_ == "TIMESTAMP(6)" and len(found) == 4
    assert found[0] == found[1] == datetime.datetime(2024, 7, 1, 12, 0, 0, 123456)


def test_finer_instants_widen_the_column(catalog):
    kind = {"type": "string", "name": TIME + "ZonedTimestamp"}
    texts = ["2024-07-01T12:00:00Z", "2024-07-01T12:00:00.123456789Z", "2024-07-01T12:00:00.1234567891Z", "9999-12-31T23:59:59.000000001Z"]
    _, type_, reasons = stored(catalog, "debezium-json", [of_debezium(kind, text, number) for number, text in enumerate(texts)])
    nanos = catalog.table("lake.t").to_arrow()["v"].cast("int64").to_pylist()
    assert type_ == "TIMESTAMP(9)" and len(reasons) == 2
    assert sorted(nanos) == [1719835200 * 10**9, 1719835200123456789]


def test_no_column_becomes_unreadable_for_nanoseconds(catalog):
    kind = {"type": "string", "name": TIME + "ZonedTimestamp"}
    sink = Sink(catalog, "lake", user="u")
    sink.write([of_debezium(kind, "9999-12-31T00:00:00Z", 1)], identifier=1)
    assert sink.write([of_debezium(kind, "2024-07-01T12:00:00.123456789Z", 2)], identifier=2).dead == 1
    assert catalog.table("lake.t").to_arrow().num_rows == 1
    assert "nanoseconds" in catalog.table("lake.cdc_dead_letters").to_arrow()["reason"][0].as_py()


SET, ENUM = "set('a','b','c''d')", "enum('a','b','c''d')"
OF_CANAL = {
    (SET, "3"): (["a", "b"], "ARRAY<STRING>"), (SET, "0"): ([], "ARRAY<STRING>"), (SET, "a,c'd"): (["a", "c'd"], "ARRAY<STRING>"),
    (SET, ""): ([], "ARRAY<STRING>"), (SET, None): (None, "ARRAY<STRING>"), (ENUM, "3"): ("c'd", "STRING"), (ENUM, "b"): ("b", "STRING"),
    ("bit(12)", "266"): (b"\x01\x0a", "BINARY(2)"), ("bit(64)", str((1 << 64) - 1)): (b"\xff" * 8, "BINARY(8)"),
    ("bit(12)", "AQo="): (b"\x01\x0a", "BINARY(2)"), ("nvarchar(10)", "ä"): ("ä", "STRING"), ("nchar(3)", "x"): ("x", "STRING"),
}  # fmt: skip


@pytest.mark.parametrize("what", OF_CANAL)
def test_types_of_mysql_that_java_takes(catalog, what):
    found, kind, _ = stored(catalog, "canal-json", [of_canal(*what)])
    assert (found[1], kind) == OF_CANAL[what]


@pytest.mark.parametrize("what", [(SET, "8"), (SET, "-1"), (SET, "z"), ("bit(12)", "65536"), ("bit(12)", "-1"), ("geometry", "z"), ("point", "\u0100")])
def test_values_of_mysql_that_do_not_fit(catalog, what):
    found, _, reasons = stored(catalog, "canal-json", [of_canal(*what)])
    assert not found and len(reasons) == 1


def test_a_set_as_text_reads_as_in_java(catalog):
    found, kind, _ = stored(catalog, "canal-json", [of_canal(SET, "3")], types=("to-string",))
    assert (found["1"], kind) == ("[a,b]", "STRING")


def point(x, y, order="<", kind=1):
    return struct.pack(order + "BIdd", order == "<", kind, x, y)


def line(*points, order="<", kind=2):
    return struct.pack(order + "BII", order == "<", kind, len(points)) + b"".join(struct.pack(order + "dd", *each) for each in points)


def collected(kind, *parts):
    return struct.pack("<BII", 1, kind, len(parts)) + b"".join(parts)


RING = struct.pack("<I", 5) + struct.pack("<10d", 1, 1, 2, 1, 2, 2, 1, 2, 1, 1)
SHAPES = {
    point(1, 1): '{"coordinates":[1,1],"type":"Point","srid":0}',
    point(1.5, -2, ">"): '{"coordinates":[1.5,-2],"type":"Point","srid":0}',
    line((3, 0), (3, 3), (3, 5)): '{"coordinates":[[3,0],[3,3],[3,5]],"type":"LineString","srid":0}',
    struct.pack("<BII", 1, 3, 1) + RING: '{"coordinates":[[[1,1],[2,1],[2,2],[1,2],[1,1]]],"type":"Polygon","srid":0}',
    collected(4, point(1, 1), point(2, 2, ">")): '{"coordinates":[[1,1],[2,2]],"type":"MultiPoint","srid":0}',
    collected(5, line((1, 1), (2, 2))): '{"coordinates":[[[1,1],[2,2]]],"type":"MultiLineString","srid":0}',
    collected(7, point(10, 10), line((15, 15), (20, 20))): '{"geometries":[{"type":"Point","coordinates":[10,10]},'
    '{"type":"LineString","coordinates":[[15,15],[20,20]]}],"type":"GeometryCollection","srid":0}',
    struct.pack("<BIIdd", 1, 0x20000001, 4326, 1, 2): '{"coordinates":[1,2],"type":"Point","srid":4326}',
    struct.pack("<BIddd", 1, 1001, 1, 2, 3): '{"coordinates":[1,2,3],"type":"Point","srid":0}',
}  # fmt: skip
"""Texts as Java's tests of `KafkaCanalSyncTableActionITCase` have them."""


@pytest.mark.parametrize("data", SHAPES)
def test_geometries_read_as_in_java(catalog, data):
    assert geo_json(data) == SHAPES[data] and of_mysql(bytes(4) + data) == SHAPES[data]
    found, kind, _ = stored(catalog, "canal-json", [of_canal("geometry", (bytes(4) + data).decode("latin-1"))])
    assert (found[1], kind) == (SHAPES[data], "STRING")
    catalog.drop_table("lake.t")
    given = {"wkb": base64.b64encode(data).decode(), "srid": None}
    sink = Sink(catalog, "other", user="u")
    sink.write([of_debezium({"type": "struct", "name": DATA + "geometry.Geometry"}, given)], identifier=1)
    assert catalog.table("other.t").to_arrow()["v"].to_pylist() == [SHAPES[data]]


def test_every_cut_or_lengthened_geometry_is_refused():
    for data in SHAPES:
        for damaged in (*(data[:size] for size in range(len(data))), data + b"\0", b"\x02" + data[1:]):
            with pytest.raises(ValueError, match="geometry|WKB"):
                geo_json(damaged)


def test_reference_systems_are_kept():
    assert geo_json(point(1, 2), 4326).endswith('"srid":4326}')
    assert of_mysql(struct.pack("<I", 4326) + point(1, 2)).endswith('"srid":4326}')


LEFT_OUT = {
    "an unknown type of MySQL": ("canal-json", of_canal("vector(3)", "x")), "no type at all": ("canal-json", of_canal(7, "x")),
    "an unknown type of Connect": ("debezium-json", of_debezium({"type": "nonsense"}, 1)),
    "a type without its numbers": ("debezium-json", of_debezium({"type": "bytes", "name": DATA + "Bits"}, "AQ==")),
    "a large value that is not there": ("debezium-json", of_debezium({"type": "string"}, UNAVAILABLE, op="u")),
    "a time of two days": ("debezium-json", of_debezium({"type": "int64", "name": TIME + "MicroTime"}, 2 * DAY * 10**6)),
    "bits that are none": ("canal-json", of_canal("bit(3)", "!")), "a geometry that is none": ("canal-json", of_canal("point", "z")),
}  # fmt: skip


@pytest.mark.parametrize("routes", [{"without": ("t.v",)}, {"without": ("v",)}, {"only": ("t.id",)}])
@pytest.mark.parametrize("what", LEFT_OUT)
def test_columns_that_are_left_out_are_not_decoded(catalog, what, routes):
    format_, event = LEFT_OUT[what]
    assert stored(catalog, format_, [event], **routes) == ({1: None}, None, [])
    assert catalog.table("lake.t").schema.names == ("id",)


@pytest.mark.parametrize("what", LEFT_OUT)
def test_columns_that_are_kept_make_a_dead_letter(catalog, what):
    format_, event = LEFT_OUT[what]
    found, kind, reasons = stored(catalog, format_, [event])
    assert not found and "v" in reasons[0]


def test_a_decoder_that_fails_stops_the_step_before_anything_is_there(catalog):
    def failing(event):
        if event.value == b"2":
            raise ZeroDivisionError("mine")
        return Change("", "t", (SourceColumn("id", parse_type("INT"), "int32"),), ("id",), (("+I", {"id": 1}),))

    sink = Sink(catalog, "lake", user="u", format=failing)
    with pytest.raises(ZeroDivisionError, match="mine"):
        sink.write([b"1", b"2"], identifier=1)
    assert catalog.databases() == []
    assert sink.write([b"1", b"3"], identifier=1).rows == {"t": 2}


def test_a_decoder_that_makes_something_else(catalog):
    with pytest.raises(UsageError, match="NoneType, as of the one at '0'"):
        Sink(catalog, "lake", user="u", format=lambda event: None).write([b"1"], identifier=1)
    assert catalog.databases() == []


def test_decimals_of_every_width(catalog):
    kind = {"type": "bytes", "name": CONNECT + "Decimal", "parameters": {"scale": "2", "connect.decimal.precision": "4"}}
    numbers = [0, 1, -1, 9999, -9999, 10_000, -10_000, 1 << 100]
    given = [base64.b64encode(number.to_bytes(16, "big", signed=True)).decode() for number in numbers]
    found, _, _ = stored(catalog, "debezium-json", [of_debezium(kind, text, place) for place, text in enumerate(given)])
    assert found == {place: Decimal(number).scaleb(-2) for place, number in enumerate(numbers) if abs(number) < 10_000}


def in_bytes(number):
    return base64.b64encode(number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)).decode()


@pytest.mark.parametrize("digits", [199, 201, 1000, 147_000])
@pytest.mark.parametrize("sign", [1, -1])
def test_numbers_of_many_digits_arrive_with_all_of_them(catalog, digits, sign):
    """PostgreSQL's numbers have up to 147,455 digits."""
    number = sign * (10 ** (digits - 1) + 7)
    point = digits - 16
    shown = ("-" if sign < 0 else "") + "1" + "0" * (point - 1) + "." + "0" * 15 + "7"
    fixed = {"type": "bytes", "name": CONNECT + "Decimal", "parameters": {"scale": "16", "connect.decimal.precision": str(digits)}}
    free = {"type": "struct", "name": DATA + "VariableScaleDecimal"}
    for kind, value in ((fixed, in_bytes(number)), (free, {"scale": 16, "value": in_bytes(number)})):
        catalog.drop_database("lake", missing_ok=True, cascade=True)
        found, declared, _ = stored(catalog, "debezium-json", [of_debezium(kind, value)])
        assert declared == "STRING" and found == {1: shown}


def test_numbers_that_no_database_has_are_dead_letters(catalog):
    fixed = {"type": "bytes", "name": CONNECT + "Decimal", "parameters": {"scale": "39"}}
    free = {"type": "struct", "name": DATA + "VariableScaleDecimal"}
    long = base64.b64encode(b"\x7f" * 1_000_000).decode()
    events = [of_debezium(fixed, long), of_debezium(free, {"scale": 0, "value": long}, 2)]
    for number, text in enumerate(("1e999999999", "1e-999999999", "-1e200000"), 3):
        event = of_debezium(fixed, 0, number)
        events.append(Event(event.value.replace(b'"v": 0', f'"v": {text}'.encode()), event.key))
    found, _, reasons = stored(catalog, "debezium-json", events)
    assert found == {} and len(reasons) == len(events)
    assert all("more digits than those of any database" in reason for reason in reasons)


@pytest.mark.parametrize(
    ("kind", "text", "micros"),
    [
        ("timestamp", "2024-01-01 00:00:00.0", 0), ("datetime", "2024-01-01 00:00:00.000000", 0), ("datetime(3)", "2024-01-01 00:00:00.120000", 120_000),
        ("datetime(6)", "2024-01-01 00:00:00.500000", 500_000), ("datetime(3)", "2024-01-01 00:00:00.123400", None), ("timestamp", "2024-01-01 00:00:00.5", None),
        ("datetime", "2024-01-01 00:00:00.", None),
    ],
)  # fmt: skip
def test_zeros_at_the_end_of_a_time_fit_any_precision(catalog, kind, text, micros):
    found, _, _ = stored(catalog, "canal-json", [of_canal(kind, text)])
    start = datetime.datetime(2024, 1, 1)  # noqa: DTZ001
    assert found == ({} if micros is None else {1: start + datetime.timedelta(microseconds=micros)})


def test_finer_instants_are_the_only_change_that_narrows_the_years():
    kinds = [f"{name}({digits})" for name in ("TIMESTAMP", "TIMESTAMP_LTZ") for digits in range(10)] + ["STRING", "BIGINT"]
    for before in kinds:
        fields = [Field(0, "k", parse_type("INT")), Field(1, "v", parse_type(before))]
        for after in kinds:
            asked = [UpdateColumnType("v", parse_type(after)), AddColumn("new", parse_type("TIMESTAMP(9)"))]
            finer = [kind in (f"TIMESTAMP({digits})" for digits in (7, 8, 9)) for kind in (before, after)]
            assert to_nanoseconds(fields, asked) == (("v",) if finer == [False, True] else ()), (before, after)


@pytest.mark.parametrize("old", [None, {"v": UNAVAILABLE}, {"v": "old"}], ids=str)
@pytest.mark.parametrize("new", ["new", None, UNAVAILABLE])
def test_a_large_value_that_did_not_change_is_taken_from_the_old_row_or_missed(catalog, old, new):
    """Postgres writes a marker for it, also into the old row; the marker itself is never stored."""
    before = None if old is None else {"id": 1, **old}
    payload = {"op": "u", "before": before, "after": {"id": 1, "v": new}, "source": {"table": "t"}}
    fields = [{"field": "id", "type": "int64"}, {"field": "v", "type": "string", "optional": True}]
    value = json.dumps({"schema": {"fields": [{"field": name, "fields": fields} for name in ("before", "after")]}, "payload": payload})
    key = json.dumps({"schema": {"fields": fields[:1]}, "payload": {"id": 1}})
    found, _, reasons = stored(catalog, "debezium-json", [Event(value.encode(), key.encode())])
    kept = {"new": "new", None: None}.get(new, (old or {}).get("v"))
    if UNAVAILABLE in (kept, (old or {}).get("v")) or (new == UNAVAILABLE and kept is None):
        assert found == {} and "large value" in reasons[0]
    else:
        assert (found, reasons) == ({1: kept}, [])
