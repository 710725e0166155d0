"""Targets that take variants: their bytes, JSON texts, paths, and groups of Parquet files in which they are taken apart.

Nothing in the encoding tells damaged bytes from others, so that any answer is right that comes in bounded time.
"""

from __future__ import annotations

import contextlib

import pyarrow as pa
from fuzz.mutate import bytes_damaged, text_damaged
from fuzz.target import RIGHT, Target
from unit.codec.variant_values import json_text, json_value, value

from paimon_py import SchemaError, UsageError, Variant, variant
from paimon_py.codec.variant.arrays import of_encoded
from paimon_py.codec.variant.shred import shred
from paimon_py.codec.variant.unshred import unshred
from paimon_py.files.variant_parts import cast_array
from paimon_py.formats.parquet.shredding import with_groups
from paimon_py.formats.parquet.variants import parts_of
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Atomic, Field, Root
from paimon_py.spec.variant_paths import part_of, with_parts

WANTED = [
    parse_type({"type": "ROW", "fields": [
        {"id": 1, "name": "a", "type": "INT"}, {"id": 2, "name": "b", "type": {"type": "ARRAY", "element": "STRING"}},
        {"id": 3, "name": "c", "type": {"type": "ROW", "fields": [{"id": 4, "name": "a", "type": "DECIMAL(10, 2)"}]}},
    ]}),
    parse_type("BIGINT"), parse_type("STRING"), parse_type({"type": "ARRAY", "element": "DOUBLE"}),
]  # fmt: skip
KINDS = ["STRING", "BIGINT", "ARRAY<STRING>", "MAP<STRING, INT>", "ROW<a INT, b STRING>", "VARIANT", "DECIMAL(9, 2)", "TIMESTAMP(6)"]
PATHS = ["$", "$.a", "$.b[0]", "$.c.a", "$['a b']", "$[1]", "$.x"]


def damaged_variant(rng) -> Variant:
    made = variant([value(rng)]).get("$[0]")
    others = [made.value, made.metadata, b"\xff" * 9]
    if rng.random() < 0.7:
        return Variant(bytes_damaged(rng, made.value, others), made.metadata)
    return Variant(made.value, bytes_damaged(rng, made.metadata, others))


def of_bytes(rng):
    """One value, read in every way."""
    found = damaged_variant(rng)
    way = rng.randrange(4)
    if way == 0:
        found.to_python()
    elif way == 1:
        found.to_json()
    elif way == 2:
        found.get(rng.choice(PATHS), rng.choice(KINDS), or_null=rng.random() < 0.5)
    else:
        variant({"inside": found}).to_json()
    return RIGHT


def of_groups(rng):
    """Columns that are taken apart, damaged, and put together, whole or in parts."""
    wanted = rng.choice(WANTED)
    field = Field(0, "j", Atomic(Root.VARIANT))
    group = with_groups(pa.schema([("j", pa.null())]), [field], {"j": wanted}).field("j").type
    rows = [damaged_variant(rng) if rng.random() < 0.1 else variant([value(rng)]).get("$[0]") for _ in range(rng.randrange(1, 6))]
    array = shred(of_encoded(rows), wanted, group)
    for _ in range(rng.randrange(3)):
        at = rng.randrange(2)
        part = array.field(at)
        values = [None if one is None else bytes_damaged(rng, one, [b"\x00"]) if rng.random() < 0.5 else one for one in part.to_pylist()]
        fields = [array.field(number) for number in range(array.type.num_fields)]
        fields[at] = pa.array(values, pa.binary())
        array = pa.StructArray.from_arrays(fields, fields=[inner.with_nullable(True) for inner in array.type])
    if rng.random() < 0.5:
        unshred(array).validate(full=True)
    else:
        parts = [part_of(rng.choice(PATHS), parse_type(rng.choice(KINDS)), rng.random() < 0.7) for _ in range(2)]
        parts_of(array, with_parts(Atomic(Root.VARIANT), parts), cast_array).validate(full=True)
    return RIGHT


def of_json(rng):
    """Texts that are nearly JSON: what is read comes back as it was."""
    text = text_damaged(rng, json_text(json_value(rng)), ["{", "}", "[", "]", '"', ":", ",", "1e9", "-", "null", "\\u12", "NaN", "0.0", "[" * 5000])
    try:
        found = variant(text)
    except SchemaError:
        return RIGHT
    printed = variant(found.to_json()).to_json()
    return RIGHT if variant(printed).to_json() == printed else None


def of_paths(rng):
    """Texts that are nearly paths."""
    text = text_damaged(rng, rng.choice(PATHS), ["$", ".", "[", "]", "'", '"', "99999999999", "a"])
    with contextlib.suppress(UsageError):
        variant('{"a": [1, {"b": 2}]}').get(text, "STRING")
    return RIGHT


def targets():
    yield Target("variant-bytes", of_bytes, 6, named=False)
    yield Target("variant-groups", of_groups, 4, named=False)
    yield Target("variant-json", of_json, 4, named=False)
    yield Target("variant-paths", of_paths, 1, named=False)
