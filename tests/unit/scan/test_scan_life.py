"""A question to scans as a whole: after any life of a table, does every filter return what a dictionary would?"""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from unit.scan.build import rows, table

from paimon_py.expr.column import col

FIELDS = [("p", "INT"), ("a", "STRING NOT NULL"), ("b", "DOUBLE NOT NULL"), ("n", "INT"), ("s", "STRING")]
TEXTS = ["", "a", "a\0", "b" * 20, "b" * 19 + "c", "é", "\U0001f600"]


def some_rows(rng, count):
    return [
        (
            rng.choice([1, 2, 3]),
            rng.choice(TEXTS),
            rng.choice([-0.0, 0.0, 1.5, -2.0, float("nan"), float("inf")]),
            rng.choice([None, *range(5)]),
            rng.choice([None, *TEXTS]),
        )
        for _ in range(count)
    ]


def filters(rng):
    p, a, b, n = rng.choice([1, 2, 3]), rng.choice(TEXTS), rng.choice([0.0, 1.5, -2.0]), rng.randrange(5)
    return [
        (col("p") == p, lambda row: row[0] == p),
        (
            (col("p") == p) & (col("a") == a) & (col("b") == b),
            lambda row: (row[0], row[1]) == (p, a) and same(row[2], b),
        ),
        (col("a") > a, lambda row: row[1].encode() > a.encode()),
        (col("a").isin([a, "b" * 20]), lambda row: row[1] in (a, "b" * 20)),
        ((col("a") <= a) & (col("n") == n), lambda row: row[1].encode() <= a.encode() and row[3] == n),
        (col("n").is_null() | (col("p") < p), lambda row: row[3] is None or row[0] < p),
        (
            col("s").starts_with("b") & (col("n") != n),
            lambda row: str(row[4]).startswith("b") and row[3] not in (None, n),
        ),
    ]


def same(left, right):
    return repr(left) == repr(right)


@pytest.mark.parametrize("seed", range(4))
def test_filters_agree_with_a_dictionary_over_a_random_life(seed):
    rng = random.Random(seed)
    options = {
        "bucket": str(rng.choice([1, 3])),
        "source.split.open-file-cost": "1 b",
        "source.split.target-size": "4 kb",
    }
    made = table(FIELDS, primary_key=["p", "a", "b"], partition_by=["p"], options=options)
    held = {}
    for _ in range(6):
        changes = some_rows(rng, 25)
        kinds = [rng.choice(["+I", "+U", "-D"]) for _ in changes]
        columns = {name: [row[at] for row in changes] for at, name in enumerate(["p", "a", "b", "n", "s"])}
        types = [pa.int32(), pa.string(), pa.float64(), pa.int32(), pa.string()]
        arrays = {name: pa.array(cells, kind) for (name, cells), kind in zip(columns.items(), types, strict=True)}
        made.write_arrow(pa.table({**arrays, "_row_kind": kinds}))
        for row, kind in zip(changes, kinds, strict=True):
            held[repr(row[:3])] = None if kind == "-D" else row
    alive = [row for row in held.values() if row is not None]
    assert list(map(repr, rows(made.scan()))) == sorted(map(repr, alive))
    for where, matches in filters(rng):
        scan = made.scan(where=where)
        assert list(map(repr, rows(scan))) == sorted(repr(row) for row in alive if matches(row)), where
        assert scan.count() == sum(map(bool, map(matches, alive)))
