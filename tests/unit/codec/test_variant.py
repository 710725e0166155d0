"""The bytes of variants: what goes in comes out, and damaged ones end in an error of ours."""

from __future__ import annotations

import datetime
import random
import uuid
from decimal import Decimal

import pytest
from unit.codec.variant_values import json_text, json_value, value

import paimon_py
from paimon_py import CorruptionError, PaimonError, SchemaError, UsageError, Variant, variant
from paimon_py.codec.variant.layout import DEPTH_MAX
from paimon_py.spec.variant_paths import column_name, parse_path

OF_JAVA = [
    ('{"b":1,"a":2}', "020201000200040c010c02", "01020001026261", '{"a":2,"b":1}'),
    ("[]", "030000", "010000", "[]"),
    ("{}", "020000", "010000", "{}"),
    ("1.10", "20026e000000", "010000", "1.1"),
    ("-0.0", "200100000000", "010000", "0"),
    ("-0", "0c00", "010000", "0"),
    ("1e3", "1c0000000000408f40", "010000", "1000.0"),
    ("1E-7", "1c48afbc9af2d77a3e", "010000", "1.0E-7"),
    ("123456789012345678901234567890123456789", "1c800558693a38d747", "010000", "1.2345678901234568E38"),
    ("12345678901234567890123456789012345678", "28004ef338de509049c4133302f0f6b04909", "010000", "12345678901234567890123456789012345678"),
    ("99999999999999999999999999999999999999.5", "1cb1a1162ad3ced247", "010000", "1.0E38"),
    ("0.00000000000000000000000000000000000001", "282601000000000000000000000000000000", "010000", "0.00000000000000000000000000000000000001"),
    ("0.000000000000000000000000000000000000001", "1c832d55b12fc7d537", "010000", "1.0E-39"),
    ("1e400", "1c000000000000f07f", "010000", '"Infinity"'),
    ("1.2345678901", "240a351cdcdf02000000", "010000", "1.2345678901"),
    ("-9223372036854775809", "2800ffffffffffffff7fffffffffffffffff", "010000", "-9223372036854775809"),
    ('{"é":1,"z":2,"😀":3,"\uffff":4}', "02040100020302000406080c010c020c030c04", "0104000203070ac3a97af09f9880efbfbf", '{"z":2,"é":1,"😀":3,"\uffff":4}'),
    ('"\\u0001\\n\\t/\\"\\\\é\\u007f\\u2028😀"', None, "010000", '"\\u0001\\n\\t/\\"\\\\é\x7f\u2028😀"'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value", "metadata", "printed"), OF_JAVA, ids=[row[0][:20] for row in OF_JAVA])
def test_json_has_the_bytes_and_the_text_that_java_gives_it(text, value, metadata, printed):
    made = variant(text)
    assert made.metadata.hex() == metadata
    assert value is None or made.value.hex() == value
    assert made.to_json() == str(made) == printed


@pytest.mark.parametrize("text", ["", "NaN", "Infinity", "[1,]", "01", "1.", ".5", "+1", "{a:1}", "'a'", '{"a":1,"a":2}', "1 2", "// 1", '"a\tb"', '{"a":}', '"\\ud800"', "nul"])
def test_invalid_json_is_refused(text):
    with pytest.raises(SchemaError):
        variant(text)


def same(found, made) -> bool:
    """UUIDs come back as texts."""
    if isinstance(made, dict):
        return found.keys() == made.keys() and all(same(found[key], item) for key, item in made.items())
    return found == (str(made) if isinstance(made, uuid.UUID) else made)


@pytest.mark.parametrize("seed", range(40))
def test_json_round_trips(seed):
    rng = random.Random(seed)
    made = json_value(rng)
    found = variant(json_text(made))
    assert found == variant(made) if not isinstance(made, str) else True
    assert found.to_python() == made
    printed = variant(found.to_json()).to_json()  # doubles without an exponent are decimals now
    assert variant(printed).to_json() == printed


@pytest.mark.parametrize("seed", range(40))
def test_python_values_round_trip(seed):
    made = value(random.Random(seed))
    if not isinstance(made, str):
        assert same(variant(made).to_python(), made)
    assert same(variant([made]).get("$[0]").to_python(), made)


def test_times_and_bytes_print_as_java_prints_them():
    moment = datetime.datetime(2024, 5, 14, 12, 34, 56, 789000)
    shown = {
        '"2024-05-14 12:34:56.789"': moment,
        '"2024-05-14 12:34:56.789+00:00"': moment.replace(tzinfo=datetime.timezone.utc),
        '"1970-01-01 00:00:00+00:00"': datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc),
        '"2024-05-14"': moment.date(),
        '"YWJj"': b"abc",
        '"00010203-0405-0607-0809-0a0b0c0d0e0f"': uuid.UUID(bytes=bytes(range(16))),
        '"NaN"': float("nan"),
    }
    assert {variant(made).to_json(): made for made in shown.values()}.keys() == shown.keys()


@pytest.mark.parametrize("wrong", [object(), {1: 2}, Decimal("NaN"), Decimal(10) ** 39, {"a": {1}}, datetime.time(1), 1j, 10**40, "\ud800", {"\ud800": 1}])
def test_values_that_a_variant_cannot_hold_are_refused(wrong):
    with pytest.raises(SchemaError):
        variant([wrong] if isinstance(wrong, str) else wrong)


def test_depth_is_bounded():
    made = deep = []
    for _ in range(DEPTH_MAX + 5):
        deep.append([])
        deep = deep[0]
    with pytest.raises(SchemaError, match="deep"):
        variant(made)
    with pytest.raises(SchemaError, match="deep"):
        variant("[" * 100_000 + "]" * 100_000)


PATHS = {
    "$": (), "$.a": ("a",), "$['a']": ("a",), '$["a"]': ("a",), "$.a.b[1].c": ("a", "b", 1, "c"), "$.x y": ("x y",), "$['q.r']": ("q.r",),
    "$['e[0]']": ("e[0]",), '$["it\'s"]': ("it's",), "$.中": ("中",), "$.a.b[00]": ("a", "b", 0), "$.*": ("*",),
}  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_paths_are_those_of_java(path):
    assert parse_path(path) == PATHS[path]


@pytest.mark.parametrize("path", ["", "a", "$a", "$.", "$..a", "$['']", "$[a]", "$[-1]", "$['it\\'s']", "$ .a", "$[", None, 7])
def test_invalid_paths_are_refused(path):
    with pytest.raises(UsageError, match="path"):
        parse_path(path)


def test_parts_are_called_by_their_way():
    assert [column_name("p", path) for path in ("$", "$.a.b[2]", "$['x.y']")] == ["p", "p.a.b[2]", "p['x.y']"]


GOT = [
    ("12345678901", "INT", -539222987), ("1.5", "INT", 1), ("-0.5", "INT", 0), ("1e10", "INT", 2147483647), ("300", "TINYINT", 44), ('"1.5"', "INT", 1),
    ("2", "BOOLEAN", True), ('"true"', "BOOLEAN", True), ("true", "INT", 1), ("[1, {}]", "STRING", "[1,{}]"), ('"x"', "STRING", "x"), ("1.50", "STRING", "1.5"),
    ("[1, \"2\", null]", "ARRAY<INT>", [1, 2, None]), ('{"a": 1}', "ROW<a INT, z STRING>", {"a": 1, "z": None}), ('{"b": 1, "a": 2.5}', "MAP<STRING, INT>", [("a", 2), ("b", 1)]),
    ("null", "INT", None), ("99999.999", "DECIMAL(5, 2)", None), ('"2024-05-14"', "DATE", datetime.date(2024, 5, 14)), ("{}", "MAP<STRING, INT>", []),
    ("12345678901234567890", "DECIMAL(20, 0)", Decimal("12345678901234567890")), ('{"a": [1, {"b": 2}]}', "ROW<a ARRAY<STRING>>", {"a": ["1", '{"b":2}']}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "expected"), GOT)
def test_casts_are_those_of_java(text, kind, expected):
    assert variant(text).get("$", kind) == expected


@pytest.mark.parametrize(("text", "kind"), [('"x"', "INT"), ("1.5", "BOOLEAN"), ("[]", "INT"), ("{}", "ARRAY<INT>"), ("1", "ROW<a INT>"), ("true", "DATE"), ("[1]", "VARCHAR(3)"), ('["x"]', "ARRAY<INT>")])
def test_failed_casts_are_refused_or_give_null(text, kind):
    with pytest.raises(SchemaError, match="cannot be"):
        variant(text).get("$", kind)
    assert variant(text).get("$", kind, or_null=True) in (None, [None])


def test_a_path_that_leads_nowhere_gives_none():
    made = variant('{"a": {"b": [1, {"c": "x"}]}}')
    assert [made.get(path, "STRING") for path in ("$.zz", "$.a.b[5]", "$[0]", "$.a.b.c", "$.a[0]")] == [None] * 5
    assert made.get("$.zz") is None and made.get("$.a.b[1].c", "STRING") == "x"
    part = made.get("$.a.b")
    assert isinstance(part, Variant) and part == variant('[1, {"c": "x"}]')


def _damaged(rng, made):
    value, metadata = bytearray(made.value), bytearray(made.metadata)
    for _ in range(rng.randrange(1, 4)):
        data = rng.choice((value, metadata))
        way = rng.randrange(4)
        if way == 0 and data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif way == 1 and data:
            data[rng.randrange(len(data))] = rng.choice((0, 1, 2, 3, 127, 128, 255))
        elif way == 2:
            del data[rng.randrange(len(data) + 1) :]
        elif data:
            at = rng.randrange(len(data))
            data[at : at + rng.randrange(5)] = bytes(rng.randrange(256) for _ in range(rng.randrange(5)))
    return Variant(bytes(value), bytes(metadata))


@pytest.mark.parametrize("seed", range(60))
def test_damaged_bytes_end_in_an_error_of_ours_or_a_value(seed):
    rng = random.Random(seed)
    for _ in range(20):
        found = _damaged(rng, variant([value(rng)]))
        for call in (found.to_python, found.to_json, lambda: found.get("$[0]"), lambda: found.get("$[0].a", "STRING"), lambda: found.get("$", "ARRAY<STRING>", or_null=True)):
            try:
                call()
            except PaimonError as error:
                assert isinstance(error, (CorruptionError, SchemaError))


def test_overlapping_parts_do_not_multiply_the_size():
    level = b"\x00"
    for _ in range(20):  # arrays of 200 parts, all of which are the same one
        offsets = b"\0\0\0\0" * 200 + len(level).to_bytes(4, "little")
        level = b"\x0f" + bytes([200]) + offsets + level
    with pytest.raises(CorruptionError, match="its parts overlap"):
        Variant(level, b"\x01\x00\x00").to_python()
    with pytest.raises(CorruptionError, match="its parts overlap"):
        Variant(level, b"\x01\x00\x00").to_json()
    with pytest.raises(CorruptionError, match="its parts overlap"):
        Variant(level, b"\x01\x00\x00").get("$[0]")
    with pytest.raises(CorruptionError, match="its parts overlap"):
        Variant(level, b"\x01\x00\x00").get("$", "ARRAY<ARRAY<ARRAY<STRING>>>")


def test_public_names():
    assert paimon_py.variant is variant and paimon_py.Variant is Variant
