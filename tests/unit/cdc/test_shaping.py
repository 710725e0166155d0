"""Computed and metadata columns, mapped types, partitions, shards, and columns that are taken or left."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal

import pyarrow as pa
import pytest

from paimon_py import Catalog, UsageError
from paimon_py.cdc import Event, Routes, Sink
from paimon_py.cdc.computed import compute, parse, type_of
from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.spec.type_text import parse_type, sql_type


@pytest.fixture
def catalog(tmp_path):
    return Catalog.open(str(tmp_path / "wh"))


def sink(catalog, **routes):
    return Sink(catalog, "lake", user="u", routes=Routes(**routes))


def rows(catalog, name="t"):
    return sorted(catalog.table(f"lake.{name}").to_arrow().to_pylist(), key=str)


def reasons(catalog):
    return [row["reason"] for row in catalog.table("lake.cdc_dead_letters").to_arrow().to_pylist()]


def types(catalog, name="t"):
    return {field.name: sql_type(field.type) for field in catalog.table(f"lake.{name}").schema.fields}


def event(op, before, after, columns, key=("id",), table="t", **source):
    fields = [{"field": name, **(kind if isinstance(kind, dict) else {"type": kind})} for name, kind in columns.items()]
    payload = {"op": op, "before": before, "after": after, "source": {"schema": "s", "table": table, **source}}
    value = {"schema": {"fields": [{"field": "after", "fields": fields}]}, "payload": payload}
    keys = {name: (after or before)[name] for name in key}
    said = {"schema": {"fields": [field for field in fields if field["field"] in key]}, "payload": keys}
    return Event(json.dumps(value).encode(), json.dumps(said).encode(), "x", "2:7", 2, 7, 1_700_000_000_123)


def value(text, given, kind):
    """What a computed column makes of one value of a type, and the type of the result."""
    source = parse_type(kind)
    made = compute(parse(text), pa.array([given, None], to_arrow_type(source)), source)
    assert type_of(parse(text), source) == made[1] and made[0].type == to_arrow_type(made[1])
    one, none = made[0].to_pylist()
    assert none is None or "cast" in text
    return one, sql_type(made[1])


AT = datetime.datetime(2024, 2, 29, 10, 11, 12, 123456)


@pytest.mark.parametrize(
    ("text", "given", "kind", "wanted"),
    [
        ("y=year(a)", AT, "TIMESTAMP(6)", (2024, "INT")), ("y=MONTH(a)", AT.date(), "DATE", (2, "INT")),
        ("y=day(a)", "2024-02-29 10:11:12.5", "STRING", (29, "INT")), ("y=hour(a)", "2024-02-29", "STRING", (0, "INT")),
        ("y=minute(a)", 1_709_201_472, "BIGINT", (11, "INT")), ("y=second(a, 3)", "1709201472123", "STRING", (12, "INT")),
        ("y=year(a, 6)", -1, "BIGINT", (1969, "INT")), ("y=year(a)", "9999-12-31", "STRING", (9999, "INT")),
        ("y=date_format(a, yyyy-MM-dd)", AT, "TIMESTAMP(3)", ("2024-02-29", "STRING")),
        ("y=date_format(a, yyyyMMdd'T'HHmmss.SSSSSS)", AT, "TIMESTAMP(6)", ("20240229T101112.123456", "STRING")),
        ("y=date_format(a, yy/M/d H:m:s''SS, 9)", 1_709_201_472_123_456_789, "BIGINT", ("24/2/29 10:11:12'12", "STRING")),
        ("y=substring(a, 1)", "äbc", "STRING", ("bc", "STRING")), ("y=substring(a,0,2)", 2024, "INT", ("20", "STRING")),
        ("y=truncate(a, 10)", -3, "INT", (-10, "INT")), ("y=truncate(a, 50)", Decimal("10.65"), "DECIMAL(4, 2)", (Decimal("10.50"), "DECIMAL(4, 2)")),
        ("y=truncate(a, 10)", Decimal("-0.03"), "DECIMAL(4, 2)", (Decimal("-0.10"), "DECIMAL(4, 2)")),
        ("y=truncate(a, 2)", "abc", "VARCHAR(5)", ("ab", "VARCHAR(5)")), ("y=truncate(a, 7)", 20, "TINYINT", (14, "TINYINT")),
        ("y=cast(7, INT)", True, "BOOLEAN", (7, "INT")), ("y=cast(x)", 1, "INT", ("x", "STRING")),
        ("y=cast(2024-02-29, DATE)", 1, "INT", (datetime.date(2024, 2, 29), "DATE")),
        ("y=upper(a)", "straße", "STRING", ("STRASSE", "STRING")), ("y=lower(a)", "ÄB", "STRING", ("äb", "STRING")),
        ("y=trim(a)", " \t x\u00a0 ", "STRING", ("x\u00a0", "STRING")),
    ],
)  # fmt: skip
def test_functions(text, given, kind, wanted):
    assert value(text, given, kind) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "y", "y=year", "y=now(a)", "y=concat(a,b)", "y=year()", "y=year(a, 4)", "y=year(a, 3, 3)", "y=substring(a)", "y=substring(a, x)",
        "y=substring(a, 3, 2)", "y=substring(a,2,2)", "y=substring(a, -1)", "y=truncate(a)", "y=upper(a, 1)", "y=cast(x, INT)", "y=cast(x, NONE)",
        "y=date_format(a, EEE)", "y=date_format(a, yyy)", "y=date_format(a, 'x)", "y=date_format(a, )", 7,
    ],
)  # fmt: skip
def test_what_is_no_computed_column_is_refused_at_once(text):
    with pytest.raises(UsageError):
        Routes(computed=(text,))


@pytest.mark.parametrize(
    ("text", "kind"),
    [("y=year(a)", "TIME(3)"), ("y=year(a, 3)", "DATE"), ("y=truncate(a, 2)", "DATE"), ("y=truncate(a, 0)", "INT"), ("y=upper(a)", "CHAR(3)")],
)
def test_functions_without_meaning_for_a_type_are_refused(text, kind):
    with pytest.raises(UsageError):
        type_of(parse(text), parse_type(kind))


COLUMNS = {"id": "int64", "at": {"type": "int64", "name": "io.debezium.time.Timestamp"}, "s": "string"}
MILLIS = 1_709_201_472_123


def test_computed_columns_are_there_from_the_first_event_and_may_be_partitions(catalog):
    target = sink(
        catalog, computed=("t.short=substring(name, 0, 2)", "name=upper(s)", "t.y=year(at)", "one=cast(1, INT)"),
        partitions={"t": ("y",)}, keys={"t": ("id", "y")},
    )  # fmt: skip
    given = [
        event("c", None, {"id": 1, "at": MILLIS, "s": "abc"}, COLUMNS), event("c", None, {"id": 2, "at": MILLIS, "s": "x"}, COLUMNS),
        event("c", None, {"id": 3, "at": None, "s": "abc"}, COLUMNS), event("c", None, {"id": 4, "at": 0, "s": None}, COLUMNS),
        event("c", None, {"id": 5, "s": "abc"}, {"id": "int64", "s": "string"}),
        event("d", {"id": 4, "at": 0, "s": None}, None, COLUMNS), event("u", {"id": 1, "at": MILLIS, "s": "abc"}, {"id": 1, "at": 0, "s": "cd"}, COLUMNS),
    ]  # fmt: skip
    assert target.write(given, identifier=1).dead == 3
    assert rows(catalog) == [
        {"id": 1, "at": datetime.datetime(1970, 1, 1), "s": "cd", "name": "CD", "y": 1970, "one": 1, "short": "CD"}
    ]
    assert catalog.table("lake.t").schema.partition_keys == ("y",) and types(catalog)["y"] == "INT NOT NULL"
    said = sorted(reasons(catalog))
    assert "'short'" in said[0] and "'y' is NOT NULL" in said[1] and "no column 'at'" in said[2]
    keyed = event("d", {"id": 1}, None, {"id": "int64"})
    assert target.write([keyed], identifier=2).dead == 1, "the partition of a key alone is not known"


def test_columns_of_two_origins_and_types_without_meaning_are_dead_letters(catalog):
    given = [event("c", None, {"id": 1, "s": "x"}, {"id": "int64", "s": "string"})]
    assert sink(catalog, computed=("s=cast(1)",)).write(given, identifier=1).dead == 1
    assert sink(catalog, computed=("x=year(id)", "y=truncate(s, 5)"), metadata={"op_ts": "s"}).write(given, identifier=2).dead == 1
    assert sink(catalog, computed=("x=upper(id)",)).write(given, identifier=3).dead == 1
    assert all("twice" in reason or "does not support" in reason for reason in reasons(catalog))


def test_metadata(catalog):
    names = {what: f"m_{what}" for what in ("database_name", "schema_name", "table_name", "op_ts", "topic", "partition", "offset", "timestamp")}
    given = [event("c", None, {"id": 1}, {"id": "int64"}, db="d", ts_ms=MILLIS), event("c", None, {"id": 2}, {"id": "int64"})]
    assert sink(catalog, metadata=names).write(given, identifier=1).dead == 0
    one, two = rows(catalog)
    assert types(catalog)["m_op_ts"] == "TIMESTAMP(3) WITH LOCAL TIME ZONE"
    utc = datetime.timezone.utc
    assert one == {
        "id": 1, "m_database_name": "d", "m_schema_name": "s", "m_table_name": "t", "m_topic": "x", "m_partition": 2, "m_offset": 7,
        "m_op_ts": datetime.datetime.fromtimestamp(MILLIS / 1000, utc), "m_timestamp": datetime.datetime(2023, 11, 14, 22, 13, 20, 123000, utc),
    }  # fmt: skip
    assert two["m_database_name"] is None and two["m_op_ts"] is None
    with pytest.raises(UsageError, match="metadata"):
        Routes(metadata={"when": "x"})


def of_canal(data, types, **more):
    root = {"database": "d", "table": "t", "type": "INSERT", "data": [data], "mysqlType": types, "pkNames": ["id"], "es": 5, **more}
    return Event(json.dumps(root).encode())


MYSQL = {"id": "bigint unsigned", "flag": "tinyint(1)", "c": "char(2)", "v": "varchar(3)", "l": "longtext", "b": "blob", "d": "date", "n": "decimal(4,1)"}
ROW = {"id": "7", "flag": "1", "c": "ab", "v": "abc", "l": "ä", "b": "\u00c3\u00a4", "d": "2024-02-29", "n": "1.5"}


def test_mapped_types_of_mysql(catalog):
    modes = ("tinyint1-not-bool", "char-to-string", "longtext-to-bytes", "bigint-unsigned-to-bigint", "to-nullable")
    target = Sink(catalog, "lake", user="u", format="canal-json", routes=Routes(types=modes))
    assert target.write([of_canal(ROW, MYSQL), of_canal({**ROW, "id": str(2**63)}, MYSQL)], identifier=1).dead == 1
    assert types(catalog) == {
        "id": "BIGINT NOT NULL", "flag": "TINYINT", "c": "STRING", "v": "STRING", "l": "BYTES", "b": "BYTES", "d": "DATE", "n": "DECIMAL(4, 1)",
    }  # fmt: skip
    assert rows(catalog)[0] | {"d": 0, "n": 0} == {
        "id": 7, "flag": 1, "c": "ab", "v": "abc", "l": "ä".encode(), "b": "ä".encode(), "d": 0, "n": 0,
    }  # fmt: skip
    with pytest.raises(UsageError, match="types"):
        Routes(types=("no-change",))
    with pytest.raises(UsageError, match="types"):
        Routes(types="to-string")


def test_everything_as_text(catalog):
    target = Sink(catalog, "lake", user="canal", format="canal-json", routes=Routes(types=("to-string",)))
    assert target.write([of_canal(ROW, MYSQL), of_canal({**ROW, "b": "\u00ff"}, MYSQL)], identifier=1).dead == 1
    assert set(types(catalog).values()) == {"STRING", "STRING NOT NULL"}
    assert rows(catalog) == [{**ROW, "b": "ä"}]
    columns = {
        **COLUMNS, "f": "double", "ok": "boolean", "raw": "bytes", "day": {"type": "int32", "name": "io.debezium.time.Date"},
        "bits": {"type": "bytes", "name": "io.debezium.data.Bits", "parameters": {"length": "9"}},
        "n": {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2", "connect.decimal.precision": "5"}},
    }  # fmt: skip
    row = {"id": 1, "at": MILLIS, "s": "x", "f": 1.5, "ok": True, "raw": "YWI=", "day": 0, "bits": "AgE=", "n": "AJY="}
    assert sink(catalog, types=("to-string",), names={"t": "pg"}).write([event("c", None, row, columns)], identifier=1).dead == 0
    assert rows(catalog, "pg") == [
        {"id": "1", "at": "2024-02-29 10:11:12.123", "s": "x", "f": "1.5", "ok": "true", "raw": "ab", "day": "1970-01-01",
         "bits": "0000000100000010", "n": "1.50"}
    ]  # fmt: skip


def test_types_that_change_as_the_mapping_says(catalog):
    keyed = {"id": "int64"}
    narrow, wide = ({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2", "connect.decimal.precision": p}} for p in ("4", "9"))
    target = sink(catalog, types=("decimal-no-change", "allow-non-string-to-string"))
    first = event("c", None, {"id": 1, "n": "AJY=", "v": 5}, {**keyed, "n": narrow, "v": "int32"})
    second = event("c", None, {"id": 2, "n": "AJY=", "v": "x"}, {**keyed, "n": wide, "v": "string"})
    large = event("c", None, {"id": 3, "n": "AX14QA==", "v": "y"}, {**keyed, "n": wide, "v": "string"})
    for _ in range(2):
        target.write([first, second, large], identifier=1)
    again = event("c", None, {"id": 4, "n": None, "v": True}, {**keyed, "n": narrow, "v": "boolean"})
    assert target.write([again], identifier=2).dead == 0
    assert types(catalog) == {"id": "BIGINT NOT NULL", "n": "DECIMAL(4, 2)", "v": "STRING"}
    assert [(row["id"], row["v"]) for row in rows(catalog)] == [(1, "5"), (2, "x"), (4, "true")]
    assert len(reasons(catalog)) == 1


def test_shards_and_columns(catalog):
    def of(schema, key):
        return event("c", None, {"id": key, "s": "x", "at": 0}, COLUMNS, schema=schema)

    given = [of("one", 1), of("two", 2), of("other", 3)]
    done = sink(catalog, databases="one|two", only=("t.id", "t.at"), without=("at",)).write(given, identifier=1)
    assert rows(catalog) == [{"id": 1}, {"id": 2}] and done.skipped == {"table t is not taken": 1}
    apart = sink(catalog, merge_shards=False, names={"two_t": "second"}, prefix="p_")
    assert set(apart.write(given, identifier=1).rows) == {"p_one_t", "second", "p_other_t"}
    with pytest.raises(UsageError, match="only"):
        Routes(only=("id",))
    with pytest.raises(UsageError, match="excluded"):
        sink(catalog, only=("t.s",)).write(given, identifier=2)


def test_a_partition_outside_the_key_finds_the_row_wherever_it_lies(catalog):
    target = sink(catalog, computed=("t.y=year(at)",), partitions={"t": ("y",)})
    given = [event("c", None, {"id": key, "at": MILLIS, "s": "x"}, COLUMNS) for key in range(4)]
    assert target.write(given, identifier=1).dead == 0
    moved = [
        event("u", None, {"id": 1, "at": 0, "s": "moved"}, COLUMNS), event("d", {"id": 2}, None, {"id": "int64"}),
        event("d", {"id": 3, "at": None, "s": None}, None, COLUMNS), event("u", None, {"id": 0, "at": None, "s": "null"}, COLUMNS),
    ]  # fmt: skip
    for _ in range(2):
        assert target.write(moved, identifier=2).dead == 0
    assert [(row["id"], row["y"], row["s"]) for row in rows(catalog)] == [(0, None, "null"), (1, 1970, "moved")]
    assert catalog.table("lake.t").schema.partition_keys == ("y",) and catalog.table("lake.t").schema.primary_keys == ("id",)


CASED = {"Id": "int64", "At": "int64", "v": "string"}


def test_names_that_differ_in_case_are_two_unless_routes_say_otherwise(catalog):
    upper, lower = {"id": "int64", "V": "string"}, {"id": "int64", "v": "string"}
    given = [event("c", None, {"id": 1, "v": "a"}, lower), event("c", None, {"id": 2, "V": "b"}, upper), event("c", None, {"id": 3, "v": "c"}, lower, table="T")]
    sink(catalog).write(given, identifier=1)
    assert catalog.table("lake.t").schema.names == ("id", "v", "V") and rows(catalog, "T") == [{"id": 3, "v": "c"}]
    Sink(catalog, "low", user="u", routes=Routes(case_sensitive=False)).write(given, identifier=1)
    assert catalog.tables("low") == ["t"]
    assert sorted(catalog.table("low.t").to_arrow().to_pylist(), key=str) == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}, {"id": 3, "v": "c"}]


def test_in_lower_case_everything_that_routes_name_is(catalog):
    target = sink(
        catalog, case_sensitive=False, keys={"T": ("Id", "Y")}, partitions={"T": ("Y",)}, computed=("T.Y=year(At,3)",), metadata={"table_name": "Of"}, without=("T.Gone",),
    )  # fmt: skip
    columns = {**CASED, "Gone": "string"}
    row = {"Id": 1, "At": MILLIS, "v": "x", "Gone": "y"}
    assert target.write([event("c", None, row, columns, key=("Id",), table="T")], identifier=1).dead == 0
    assert rows(catalog) == [{"id": 1, "at": MILLIS, "v": "x", "of": "T", "y": 2024}]
    schema = catalog.table("lake.t").schema
    assert (schema.primary_keys, schema.partition_keys) == (("id", "y"), ("y",))
    twice = event("c", None, {"Id": 2, "At": MILLIS, "v": "x", "V": "y"}, {**CASED, "V": "string"}, key=("Id",), table="T")
    moved = event("u", row, {**row, "Id": 3}, columns, key=("Id",), table="T")
    assert target.write([twice, moved], identifier=2).dead == 1
    assert "twice" in reasons(catalog)[0]
    assert [each["id"] for each in rows(catalog)] == [3]
