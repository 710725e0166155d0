"""Nested values as JSON: random types and values are written by Python's `json`, and read back."""

from __future__ import annotations

import datetime
import io
import json
import random

import pyarrow as pa
import pytest

from paimon_py.write import json_texts
from paimon_py.write.json_texts import from_json_texts, holds_map, with_entries

NOON = datetime.datetime(2024, 2, 29, 12, 30, 1, 500_000)
LEAVES = {
    pa.int64(): lambda rng: rng.choice([0, -1, 2**53 + 1, -(2**63), 2**63 - 1]),
    pa.string(): lambda rng: rng.choice(["", "a", 'q"\\ü\n', "null", "[1]", "{}"]),
    pa.bool_(): lambda rng: rng.random() < 0.5,
    pa.float64(): lambda rng: rng.choice([0.5, -1e300, 3.0]),
    pa.date32(): lambda rng: NOON.date() + datetime.timedelta(days=rng.randrange(-9999, 9999)),
    pa.timestamp("us"): lambda rng: NOON + datetime.timedelta(days=rng.randrange(-9999, 9999), microseconds=rng.choice([0, 1, 499_999])),
}
KEYS = [pa.int64(), pa.string(), pa.bool_(), pa.date32(), pa.timestamp("us")]


def random_type(rng, depth):
    shape = rng.choice(["leaf", "map", "list", "struct"]) if depth else "leaf"
    if shape == "map":
        return pa.map_(rng.choice(KEYS), random_type(rng, depth - 1))
    if shape == "list":
        return pa.list_(random_type(rng, depth - 1))
    if shape == "struct":
        return pa.struct([(name, random_type(rng, depth - 1)) for name in ("a", "b", "ü c")[: rng.randint(1, 3)]])
    return rng.choice(list(LEAVES))


def random_value(rng, kind):
    if rng.random() < 0.2:
        return None
    if pa.types.is_map(kind):
        keys = {LEAVES[kind.key_type](rng) for _ in range(rng.randrange(4))}
        return [(key, random_value(rng, kind.item_type)) for key in sorted(keys)]
    if pa.types.is_list(kind):
        return [random_value(rng, kind.value_type) for _ in range(rng.randrange(4))]
    if pa.types.is_struct(kind):
        return {field.name: random_value(rng, field.type) for field in kind}
    return LEAVES[kind](rng)


def plain(rng, value, kind):
    """A value for `json.dumps`: MAPs are objects, or arrays of entries."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        items = [(key, plain(rng, item, kind.item_type)) for key, item in value]
        if rng.random() < 0.2:
            return [{"key": plain(rng, key, kind.key_type), "value": item} for key, item in items]
        return {key_text(key): item for key, item in items}
    if pa.types.is_list(kind):
        return [plain(rng, item, kind.value_type) for item in value]
    if pa.types.is_struct(kind):
        return {field.name: plain(rng, value[field.name], field.type) for field in kind}
    return key_text(value) if isinstance(value, datetime.date) else value


def key_text(key):
    if isinstance(key, datetime.datetime):
        return key.isoformat(" ")
    return key.isoformat() if isinstance(key, datetime.date) else key


def nested_type(seed):
    rng = random.Random(seed)
    while True:
        kind = random_type(rng, 3)
        if pa.types.is_nested(kind):
            return rng, kind


@pytest.mark.parametrize("seed", range(150))
def test_texts_become_the_values_that_json_wrote(seed):
    rng, kind = nested_type(seed)
    values = [random_value(rng, kind) for _ in range(rng.choice([0, 1, 20]))]
    texts = [json.dumps(plain(rng, value, kind), indent=rng.choice([None, 1]), ensure_ascii=rng.random() < 0.5) for value in values]
    given = pa.array([None if value is None and rng.random() < 0.5 else text for value, text in zip(values, texts, strict=True)], pa.string())
    found = from_json_texts(given, kind)
    found.validate(full=True)
    assert found.type == kind and found.to_pylist() == pa.array(values, kind).to_pylist()


@pytest.mark.parametrize(("text", "kind"), [
    ('[{"key": null, "value": 1}]', pa.map_(pa.string(), pa.int64())), ('[{"value": 1}]', pa.map_(pa.string(), pa.int64())),
    ('{"x": 1}', pa.map_(pa.int64(), pa.int64())), ("{", pa.map_(pa.string(), pa.int64())), ('{"b": 1}', pa.struct([("a", pa.int64())])),
    ('["2024-02-30"]', pa.list_(pa.date32())), ('{"2024-02-30": 1}', pa.map_(pa.date32(), pa.int64())), ("[1, x]", pa.list_(pa.int64())),
    ('{"a": 1} {"a": 2}', pa.map_(pa.string(), pa.int64())),
])  # fmt: skip
def test_texts_of_other_values_are_refused(text, kind):
    with pytest.raises(pa.ArrowInvalid):
        from_json_texts(pa.array(["null", text]), kind)


def as_entries(value, kind):
    """A plain value with its MAPs as entries whose keys are JSON values."""
    if value is None or not holds_map(kind):
        return value
    if pa.types.is_list(kind):
        return [as_entries(item, kind.value_type) for item in value]
    if pa.types.is_struct(kind):
        return {field.name: as_entries(value[field.name], field.type) for field in kind}
    if isinstance(value, list):
        return value
    return [{"key": key, "value": as_entries(item, kind.item_type)} for key, item in value.items()]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("ends", [True, False])
def test_lines_of_a_file_keep_all_other_values(seed, ends, monkeypatch):
    rng = random.Random(seed)
    monkeypatch.setattr(json_texts, "_CHUNK_BYTES", rng.choice([1, 7, 64, 1 << 20]))
    kind = pa.map_(pa.string(), rng.choice([pa.int64(), pa.list_(pa.map_(pa.string(), pa.string()))]))
    written, wanted = [], []
    for number in range(rng.choice([0, 1, 12])):
        value = plain(random.Random(1), random_value(rng, kind), kind)
        other = rng.choice([None, 1.25, "null", {"a": [None, "ü"]}, [], True])
        row = {"m": value, "t": other, "n": 10**30 + number, "x": {"m": {"k": 1}}}
        written.append(json.dumps(row, ensure_ascii=False).encode())
        wanted.append({**row, "m": as_entries(value, kind)})
    data = b"\n".join(written) + (b"\n" if ends and written else b"")
    with with_entries(io.BytesIO(data), {"m": kind}, {"t"}) as source:
        found = [json.loads(line) for line in iter(source.readline, b"")]
    for row in found:
        if row["t"] is not None:
            assert isinstance(row["t"], str)
            row["t"] = json.loads(row["t"])
    assert found == wanted
