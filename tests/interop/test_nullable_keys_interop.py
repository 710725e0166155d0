"""Tables with NULL in their keys (`primary-key.nullable` of 2.1): Java 2.0 knows no such option, and reads and writes them as we do."""

from __future__ import annotations

import random

import pytest
from pair import Kind, Pair

pytestmark = pytest.mark.java

COLUMNS = [["k", "STRING"], ["j", "INT"], ["p", "INT"], ["v", "STRING"]]
KINDS = {
    "two buckets": ({"bucket": "2"}, ["k", "j"], []),
    "bucket key": ({"bucket": "3", "bucket-key": "j"}, ["k", "j"], []),
    "dynamic": ({"bucket": "-1", "dynamic-bucket.target-row-num": "3"}, ["k"], []),
    "parts": ({"bucket": "2"}, ["p", "k"], ["p"]),
    "moving keys": ({"bucket": "-1"}, ["k"], ["p"]),
    "partial-update": ({"bucket": "1", "merge-engine": "partial-update"}, ["k", "j"], []),
    "vectors": ({"bucket": "1", "deletion-vectors.enabled": "true"}, ["k", "j"], []),
    "first-row": ({"bucket": "1", "merge-engine": "first-row"}, ["j"], []),
    "orc": ({"bucket": "1", "file.format": "orc"}, ["k", "j"], []),
    "avro, thin": ({"bucket": "1", "file.format": "avro", "data-file.thin-mode": "true"}, ["k", "j"], []),
    "lookup": ({"bucket": "1", "changelog-producer": "lookup"}, ["k"], []),
    "mod": ({"bucket": "3", "bucket-function.type": "mod", "bucket-key": "j"}, ["j"], []),
}
QUICK = ("two buckets", "parts")
FILTERS = {
    "k is null": (["isNull", "k"], lambda row: row["k"] is None),
    "k = 'a'": (["=", "k", "a"], lambda row: row["k"] == "a"),
    "j > 0": ([">", "j", 0], lambda row: row["j"] is not None and row["j"] > 0),
}


def shown(rows):
    return sorted((tuple(row[name] for name, _ in COLUMNS) for row in rows), key=repr)


def play(java, tmp_path, name: str, seed: int) -> None:
    options, keys, parts = KINDS[name]
    rng, pair, model = random.Random(f"{name} {seed}"), Pair(java("2.0.0"), tmp_path), {}
    options = {**options, "primary-key.nullable": "true", "num-sorted-run.compaction-trigger": "3"}
    pair.create(Kind(COLUMNS, primary_key=keys, partition_by=parts, options=options), "o")
    for _ in range(8):
        who, verb = rng.choice("oj"), rng.choice(("write", "write", "write", "delete", "compact"))
        if verb == "delete" and name in ("partial-update", "first-row", "dynamic", "moving keys"):
            verb = "write"
        rows = [
            {"k": rng.choice([None, "a", "b"]), "j": rng.choice([None, 0, -1, 7]), "p": rng.choice([None, 1]), "v": rng.choice([None, "x", "y"])}
            for _ in range(rng.randrange(1, 6))
        ]
        by_key = {tuple(row[key] for key in keys): row for row in rows}
        if verb == "compact" and who == "o":
            pair.table().compact(full=rng.random() < 0.5)
        elif verb == "compact":
            pair.step("compact", full=True)
        elif verb == "delete":
            pair.step("write", rows=[{**row, "_kind": "-D"} for row in by_key.values()])
            for key in by_key:
                model.pop(key, None)
        else:
            if who == "o":
                pair.table().write_arrow(list(by_key.values()))
            else:
                pair.step("write", rows=list(by_key.values()))
            for key, row in by_key.items():
                if name == "first-row":
                    model.setdefault(key, row)
                elif name == "partial-update":
                    model[key] = model.get(key, row) | {column: value for column, value in row.items() if value is not None}
                else:
                    model[key] = row
        if name in ("vectors", "first-row", "lookup"):
            pair.table().compact(full=True)
        table = pair.table()
        assert shown(table.to_arrow().to_pylist()) == shown(pair.step("read")) == shown(model.values())
        for where, (tree, holds) in FILTERS.items():
            found = table.scan(where=where).to_arrow().to_pylist()
            theirs = pair.step("read", filter=tree, executeFilter=True)
            assert shown(found) == shown(theirs) == shown(row for row in model.values() if holds(row)), where
        asked = [dict(zip(keys, key, strict=True)) for key in model]
        assert shown(table.lookup(asked).to_pylist() if asked else ()) == shown(model.values())


@pytest.mark.parametrize("name", QUICK)
def test_both_see_the_same_rows_of_null(java, tmp_path, name):
    play(java, tmp_path, name, 0)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("name", KINDS)
def test_both_see_the_same_rows_of_null_in_many_lives(java, tmp_path, name, seed):
    play(java, tmp_path, name, seed)
