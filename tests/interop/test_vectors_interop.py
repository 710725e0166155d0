"""VECTOR columns that we write are read by Java, compacted by Java, and read by us again; and the other way."""

from __future__ import annotations

import random

import pytest
from pair import Kind, Pair

pytestmark = pytest.mark.java

ELEMENTS = ["BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"]
COLUMNS = [["id", "INT NOT NULL"], *([f"v{name.lower()}", {"type": "VECTOR", "element": name, "length": at % 3 + 1}] for at, name in enumerate(ELEMENTS))]
KINDS = {
    "parquet": Kind(COLUMNS, options={"bucket": "-1"}),
    "avro": Kind(COLUMNS, options={"bucket": "-1", "file.format": "avro"}),
    "pk parquet": Kind(COLUMNS, primary_key=["id"], options={"bucket": "1"}),
    "pk avro levels": Kind(COLUMNS, primary_key=["id"], options={"bucket": "1", "file.format.per.level": "0:avro"}),
}


def values(rng: random.Random, element: str, length: int):
    if rng.random() < 0.2:
        return None
    bits = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}.get(element)
    if element == "BOOLEAN":
        return [rng.random() < 0.5 for _ in range(length)]
    if bits is not None:
        return [rng.choice((0, -(1 << bits), (1 << bits) - 1, rng.randrange(100))) for _ in range(length)]
    return [rng.choice((0.0, -1.5, 0.25, 2.0**20, float(rng.randrange(1000)))) for _ in range(length)]


def rows(rng: random.Random, count: int) -> list[dict]:
    return [
        {"id": at, **{name: values(rng, kind["element"], kind["length"]) for name, kind in COLUMNS[1:]}}
        for at in rng.sample(range(50), count)
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", "oj")
def test_vectors_are_the_same_for_both(java, tmp_path, kind, first):
    rng = random.Random(f"{kind} {first}")
    pair = Pair(java("2.0.0"), tmp_path)
    pair.create(KINDS[kind], first)
    expected: dict[int, dict] = {}
    for turn in range(4):
        new = rows(rng, 8)
        if (turn % 2 == 0) == (first == "o"):
            pair.table().write_arrow(new)
        else:
            pair.step("write", rows=new)
        new = [{**row, "id": row["id"]} for row in new]
        if KINDS[kind].primary_key:
            expected |= {row["id"]: row for row in new}
        else:
            expected |= {len(expected) + at: row for at, row in enumerate(new)}
        if turn == 2:
            pair.step("compact", full=True)
        ours = sorted(map(str, (dict(row) for row in pair.table().to_arrow().to_pylist())))
        theirs = sorted(str({name: value for name, value in row.items() if name != "_kind"}) for row in pair.step("read"))
        assert ours == theirs == sorted(map(str, expected.values()))
