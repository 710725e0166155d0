"""Upserts whose data lack columns, in tables that Java writes and compacts: Java reads the columns that were kept."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from pair import Kind, Pair

pytestmark = pytest.mark.java

COLUMNS = [["p", "INT NOT NULL"], ["k", "INT NOT NULL"], ["v", "STRING"], ["n", "BIGINT"], ["d", "DOUBLE"]]
TYPES = {"p": pa.int32(), "k": pa.int32(), "v": pa.string(), "n": pa.int64(), "d": pa.float64()}
KINDS = {
    "deduplicate": {"bucket": "2"},
    "sequence": {"bucket": "1", "sequence.field": "n"},
    "vectors": {"bucket": "1", "deletion-vectors.enabled": "true"},
    "dynamic": {"bucket": "-1", "dynamic-bucket.target-row-num": "4"},
    "groups": {"bucket": "1", "merge-engine": "partial-update", "fields.n.sequence-group": "v"},
}


@pytest.mark.parametrize("name", KINDS)
def test_java_reads_the_columns_that_an_upsert_keeps(name, java, tmp_path):
    draw = random.Random(f"upserts that keep {name}")
    pair = Pair(java("2.0.0"), tmp_path)
    pair.create(Kind(COLUMNS, ["p", "k"], ["p"], KINDS[name]), "o")
    everything = [(p, k) for p in range(2) for k in range(8)]
    wanted = {}
    for number in range(1, 5):
        rows = [
            {"p": p, "k": k, "v": f"v{number}", "n": 10 * number, "d": number + 0.5}
            for p, k in draw.sample(everything, 6)
        ]
        pair.act(("write", rows), "j")
        wanted.update({(row["p"], row["k"]): row for row in rows})
        if draw.random() < 0.5:
            pair.act(("compact", True), "j")
        given = draw.choice([["v"], ["d"], ["v", "d"], ["v", "n"]])
        fresh = {"v": f"w{number}", "n": 10 * number + 5, "d": -float(number)}
        keys = draw.sample(everything, 5) if "n" in given or name != "groups" else draw.sample(list(wanted), 3)
        new = [{"p": p, "k": k, **{column: fresh[column] for column in given}} for p, k in keys]
        pair.table().upsert(pa.Table.from_pylist(new, pa.schema([(column, TYPES[column]) for column in new[0]])))
        for row in new:
            old = wanted.get((row["p"], row["k"]), {"v": None, "n": None, "d": None})
            wanted[row["p"], row["k"]] = {**old, **row}
    pair.act(("compact", True), draw.choice("oj"))
    found = {(row["p"], row["k"]): row for row in pair.table().to_arrow().to_pylist()}
    assert found == wanted
    assert len(pair.agree()) == len(wanted)
