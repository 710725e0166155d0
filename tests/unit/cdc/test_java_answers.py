"""What Java's CDC parsers and expressions answered, recorded, and what we answer; where we differ is named here.

`java-answers.json` was made by a program around Java's classes `DebeziumJsonRecordParser`, `CanalRecordParser`, `MaxwellRecordParser`
and `ComputedColumnUtils`, compiled from Paimon's source at 2.1-SNAPSHOT (commit 25dacde5): no release carries them in a jar of its own.
"""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_py.cdc import Change, Event, InvalidEvent, NoChange, Routes, canal, debezium, maxwell
from paimon_py.cdc.columns import MISFITS, build
from paimon_py.cdc.computed import STRING, compute, parse
from paimon_py.cdc.shaping import Shaping
from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.files.casts.cast import cast
from paimon_py.spec.type_text import parse_type, sql_type

ANSWERS = json.loads(Path(__file__).with_name("java-answers.json").read_text(encoding="utf-8"), parse_float=Decimal)


def valued(text, kind):
    """A text as a value; decimals not by Arrow's casts, whose division of 256 bits errs for some numbers."""
    arrow = to_arrow_type(kind)
    if pa.types.is_decimal(arrow) and text is not None:
        return pa.array([Decimal(text)], arrow)
    return cast(pa.array([text], pa.string()), STRING, kind)


def printed(array, kind):
    return array[0].as_py() if pa.types.is_binary(array.type) else cast(array, kind, STRING)[0].as_py()


def test_computed_columns():
    """Ours is stricter with overflow and far years, and takes ISO texts and times before 1970."""
    differing = []
    for text, kind, given, *java in ANSWERS["computed"]:
        try:
            source = parse_type(kind)
            array, result = compute(parse(text), valued(given, source), source)
            ours = [printed(array, result), sql_type(result)]
        except MISFITS:
            ours = [None, None]
        if ours != java:
            differing.append((text, kind, given, ours, java))
    assert len(ANSWERS["computed"]) - len(differing) > 500
    for text, kind, given, ours, java in differing:
        if java == [None, None]:
            assert given == "2024-02-29T10:11:12" or given in ("-1", "-5", "-1500"), (text, kind, given, ours)
        else:
            far = kind in ("BIGINT", "STRING") and len(given) >= 13
            wraps = "truncate" in text and given in ("-2147483648", "-128", "-32768", "-99.99")
            assert ours == [None, None] and (far or wraps), (text, kind, given, ours, java)


DIFFERENT = {
    "time": "milliseconds are kept: TIME(3), in Java TIME(0)", "time(3)": "as time",
    "geometry": "as real bytes in test_values", "set('a','b')": "names are taken, too", "bit(9)": "numbers, as Canal writes", "serial": "not a type that the log names",
    "int zerofill": "taken, in Java refused", "enum('a','b')": "names are taken, in Java numbers only",
    "varbinary(4)": "Canal writes bytes as Latin-1, which Java writes down as UTF-8", "blob": "as varbinary",
}  # fmt: skip


def test_types_and_values_of_canal():
    for kind, modes, given, *java in ANSWERS["canal"]:
        if kind in DIFFERENT:
            continue
        value = {"database": "d", "table": "t", "type": "INSERT", "data": [{"v": given}], "mysqlType": {"v": kind}, "pkNames": []}
        event = Event(json.dumps(value, default=float).encode())
        change = Shaping(Routes(types=tuple(modes))).shape(canal.decode(event), event)
        assert isinstance(change, Change), (kind, change)
        column = change.columns[0]
        assert sql_type(column.type) == java[0], kind
        check(build(column, [given]), column.type, java[1], kind)


def check(ours, kind, java, what):
    if java is None or java == "null":
        assert ours[0].as_py() is None, what
    elif pa.types.is_binary(ours.type):
        assert ours[0].as_py() == java.encode(), what
    elif pa.types.is_string(ours.type):
        assert ours[0].as_py() == java, what
    else:
        assert ours.equals(valued(java, kind)), (what, ours, java)


LEFT_AS_NUMBERS = {
    "io.debezium.time.Time", "io.debezium.time.NanoTimestamp", "org.apache.kafka.connect.data.Date",
    "org.apache.kafka.connect.data.Timestamp", "org.apache.kafka.connect.data.Time",
}  # fmt: skip
"""Java leaves these times as INT and BIGINT."""


def test_types_and_values_of_debezium():
    compared = 0
    for plain, name, parameters, given, *java in ANSWERS["debezium"]:
        field = {"field": "v", "type": plain, "name": name, "parameters": parameters}
        column = debezium.column_of(field)
        if name in LEFT_AS_NUMBERS:
            assert java[0] in ("INT", "BIGINT") and sql_type(column.type) != java[0]
            continue
        if plain == "float64":
            assert (sql_type(column.type), java[0]) == ("DOUBLE", "FLOAT"), "Java loses digits"
            continue
        if name == "io.debezium.time.MicroTime":
            assert (sql_type(column.type), java[0]) == ("TIME(3)", "TIME(0)")
            continue
        if name == "org.apache.kafka.connect.data.Decimal" and "connect.decimal.precision" not in parameters and parameters["scale"] != "0":
            assert (sql_type(column.type), java[0]) == ("DECIMAL(38, 2)", "DECIMAL(20, 0)"), "Java cuts the digits after the point"
            continue
        assert sql_type(column.type) == java[0], (plain, name)
        if name == "io.debezium.data.Bits" or plain in ("struct", "array", "map"):
            continue  # Java holds base64, and prints objects as its own maps: {a=1}
        check(build(column, [given]), column.type, java[1], (plain, name))
        compared += 1
    assert compared > 50


DECODERS = {"canal-json": canal.decode, "maxwell-json": maxwell.decode, "debezium-json": debezium.decode}
ONLY_OURS = {"bootstrap-insert", "u"}
"""Kinds of events that Java refuses: of Maxwell's bootstrap, and updates without the row before."""


@pytest.mark.parametrize("number", range(len(ANSWERS["kinds"])))
def test_kinds_and_rows(number):
    """Java says -D and +I for an update, where we say -U and +U."""
    format_, value, key, java = ANSWERS["kinds"][number]
    ours = DECODERS[format_](Event(json.dumps(value, default=float).encode(), None if key is None else json.dumps(key).encode()))
    payload = value.get("payload", value)
    kind = payload.get("op", payload.get("type"))
    if isinstance(ours, (InvalidEvent, NoChange)):
        assert not java, ours
        return
    if java is None:
        assert kind in ONLY_OURS or (kind == "d" and payload["before"] is None), (kind, ours)
        return
    told = {"-U": "-D", "+U": "+I"}
    assert [told.get(row_kind, row_kind) for row_kind, _ in ours.rows] == [row_kind for row_kind, _ in java]
    columns = {column.name: column for column in ours.columns}
    for (_, row), (_, wanted) in zip(ours.rows, java, strict=True):
        for name, column in columns.items():
            if not isinstance(row.get(name), (list, dict)):
                check(build(column, [row.get(name)]), column.type, wanted.get(name), (number, name))
