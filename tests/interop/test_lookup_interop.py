"""Rows looked up by key: Java's lookup and ours give the same of tables that both have written and compacted."""

from __future__ import annotations

import random

import pytest
from pair import Kind, Pair
from values import canonical_rows, difference, ours

pytestmark = pytest.mark.java

COLUMNS = [["p", "INT NOT NULL"], ["k", "STRING NOT NULL"], ["v", "STRING"], ["n", "BIGINT"]]
KINDS = {
    "deduplicate": {"bucket": "2"},
    "sequence": {"bucket": "1", "sequence.field": "n"},
    "partial-update": {"bucket": "1", "merge-engine": "partial-update"},
    "aggregation": {"bucket": "2", "merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    "first-row": {"bucket": "1", "merge-engine": "first-row"},
    "vectors": {"bucket": "1", "deletion-vectors.enabled": "true"},
}


@pytest.mark.parametrize("name", KINDS)
def test_java_and_we_find_the_same_rows_by_key(name, java, tmp_path):
    draw = random.Random(f"lookup {name}")
    pair = Pair(java("2.0.0"), tmp_path)
    pair.create(Kind(COLUMNS, ["p", "k"], ["p"], {"file.format": draw.choice(["parquet", "orc"]), **KINDS[name]}), "o")
    everything = [{"p": p, "k": k} for p in range(2) for k in "abcdefghij"]
    for step in range(4):
        rows = [{**key, "v": draw.choice("xyz"), "n": 10 * step} for key in draw.sample(everything, 12)]
        pair.act(("write", rows), draw.choice("oj"))
    pair.act(("compact", True), "o")
    columns = pair.columns()
    keys = [*draw.sample(everything, 14), {"p": 0, "k": "none"}]
    theirs = canonical_rows(columns, [row for row in pair.step("lookup", keys=keys) if row is not None])
    assert difference(columns, theirs, ours(columns, pair.table().lookup(keys))) is None
