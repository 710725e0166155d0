"""Files that hold a key twice: Java and we read, write and compact them to the same rows, in turns."""

from __future__ import annotations

import pytest
from engine_scripts import Script
from row_pair import RowPair

pytestmark = pytest.mark.java

ROWS = [{"k": "key-a", "v": 1}, {"k": "key-b", "v": 2}, {"k": "key-c", "v": 3}]
STEPS = [
    ("write", [{"k": "key-a", "v": 10}]),
    ("write", [{"k": "key-a", "v": 11}, {"k": "key-d", "v": 4}]),
    ("compact", False),
    ("write", [{"k": "key-a", "v": 1, "_kind": "-D"}]),
    ("compact", True),
    ("write", [{"k": "key-a", "v": 12}]),
    ("compact", True),
]
ENGINES = {
    "deduplicate": {},
    "aggregation": {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
    "ignoring": {"merge-engine": "partial-update", "ignore-delete": "true"},
    "lookup": {"changelog-producer": "lookup"},
}


def twice(pair):
    """Take the keys `b` of the newest file for `a`, so that the file has the keys a, a, c."""
    path = max((pair.path / "bucket-0").glob("data-*"), key=lambda path: path.stat().st_mtime_ns)
    data = path.read_bytes()
    assert data.count(b"key-b")
    path.write_bytes(data.replace(b"key-b", b"key-a"))


@pytest.mark.parametrize("turn", ["o", "oj", "jo"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", ["2.0.0", pytest.param("1.4.2", marks=pytest.mark.full)])
def test_java_and_we_agree_after_every_step(version, engine, turn, java, tmp_path):
    options = {"bucket": "1", "write-only": "true", "file.format": "avro", "file.compression": "null", **ENGINES[engine]}
    script = Script(engine, [["k", "STRING NOT NULL"], ["v", "INT"]], ["k"], [], options, STEPS)
    alone, mixed = (RowPair(java(version), tmp_path, name) for name in ("j", turn))
    for pair in (alone, mixed):
        pair.create(script, "j")
        pair.act(("write", ROWS), "j")
        twice(pair)
    for number, step in enumerate(STEPS):
        alone.act(step, "j")
        mixed.act(step, turn[number % len(turn)])
        wanted = sorted(alone.java_rows())
        assert sorted(alone.our_rows()) == wanted, step
        assert sorted(mixed.our_rows()) == sorted(mixed.java_rows()) == wanted, step
