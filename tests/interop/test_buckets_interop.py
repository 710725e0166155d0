"""Rows land in the same bucket whoever writes them: every bucket function, every type of key, several columns."""

from __future__ import annotations

import random

import pytest
from lives import KEY_TYPES, value
from pair import Kind, Pair, play
from values import canonical_rows, difference

pytestmark = pytest.mark.java

HIVE = ["BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE", "STRING", "BYTES", "DECIMAL(10, 2)"]
COMPOSITES = [["INT", "STRING"], ["STRING", "DECIMAL(24, 4)", "TIMESTAMP(6)"], ["BYTES", "BIGINT", "STRING", "DATE"]]
CASES = [
    *(("default", [kind]) for kind in KEY_TYPES),
    *(("default", [kind]) for kind in ("DECIMAL(38, 38)", "TIMESTAMP(9)", "TIMESTAMP(6) WITH LOCAL TIME ZONE")),
    *(("default", kinds) for kinds in COMPOSITES),
    *(("mod", [kind]) for kind in ("INT", "BIGINT")),
    *(("hive", [kind]) for kind in HIVE),
    ("hive", ["INT", "STRING"]),
    ("hive", ["DECIMAL(10, 2)", "BYTES", "BIGINT"]),
]


def keyed_rows(kinds: list[str], count: int) -> list[dict]:
    """Rows with different keys."""
    rng = random.Random(str(kinds))
    rows = {}
    for number in range(count):
        key = {f"k{i}": value(rng, kind) for i, kind in enumerate(kinds)}
        rows.setdefault(str(canonical_rows([[f"k{i}", kind] for i, kind in enumerate(kinds)], [key])), {**key, "v": number})
    return list(rows.values())


def buckets_by_value(pair: Pair, rows: list[dict]) -> dict[int, int]:
    """{v: bucket} as our files say."""
    table = pair.table()
    return {
        v: split.bucket
        for split in table.scan().splits()
        for v in table.scan(columns=["v"]).read(split).read_all()["v"].to_pylist()
    }


@pytest.mark.parametrize(("function", "kinds"), CASES, ids=lambda part: part if isinstance(part, str) else "+".join(part))
def test_both_sides_put_a_key_into_the_same_bucket(function, kinds, java, tmp_path):
    keys = [f"k{i}" for i in range(len(kinds))]
    columns = [*([name, f"{kind} NOT NULL"] for name, kind in zip(keys, kinds)), ["v", "INT"]]
    rows = keyed_rows(kinds, 30)
    options = {"bucket": "7", "bucket-function.type": function, "write-only": "true"}
    pairs = play(java("2.0.0"), tmp_path, Kind(columns, keys, options=options), [], turns=("o", "j"))

    pairs["o"].our_write(rows)
    for pair in (pairs["j"], pairs["o"]):
        theirs = pair.step("write", rows=rows)
        assert buckets_by_value(pair, rows) == {row["v"]: bucket for row, bucket in zip(rows, theirs)}
        assert difference(columns, canonical_rows(columns, rows), pair.agree()) is None
    pairs["j"].our_write(rows)
    pairs["j"].step("compact", options={"write-only": "false"})

    want = canonical_rows(columns, rows)
    for pair in pairs.values():
        assert difference(columns, want, pair.agree()) is None
        for row in rows[:3]:
            tree = ["and", *(["=", name, row[name]] for name in keys)] if len(keys) > 1 else ["=", keys[0], row[keys[0]]]
            pair.check_filters([tree], want)


@pytest.mark.parametrize("kinds", [["INT"], ["STRING", "DECIMAL(24, 4)"]], ids="+".join)
@pytest.mark.parametrize("version", ["1.4.2", "0.9.0"])
def test_older_javas_put_a_key_into_the_same_bucket(version, kinds, java, tmp_path):
    keys = [f"k{i}" for i in range(len(kinds))]
    columns = [*([name, f"{kind} NOT NULL"] for name, kind in zip(keys, kinds)), ["v", "INT"]]
    rows = keyed_rows(kinds, 30)
    pair = play(java(version), tmp_path, Kind(columns, keys, options={"bucket": "5", "write-only": "true"}), [], ("o",))["o"]
    pair.our_write(rows)
    theirs = pair.step("write", rows=rows)
    assert buckets_by_value(pair, rows) == {row["v"]: bucket for row, bucket in zip(rows, theirs)}
    assert difference(columns, canonical_rows(columns, rows), pair.agree()) is None


def test_an_append_table_is_bucketed_by_its_bucket_key(java, tmp_path):
    columns = [["a", "STRING"], ["b", "DECIMAL(24, 4)"], ["v", "INT"]]
    rows = [{**row, "a": row["k0"], "b": row["k1"]} for row in keyed_rows(["STRING", "DECIMAL(24, 4)"], 20)]
    rows += [{"a": None, "b": None, "v": 100}, {"a": "x", "v": 101}, {"b": "1.0000", "v": 102}]
    kind = Kind(columns, options={"bucket": "5", "bucket-key": "b,a"})
    pairs = play(java("2.0.0"), tmp_path, kind, [], turns=("o", "j"))
    pairs["o"].our_write(rows)
    for pair in (pairs["j"], pairs["o"]):
        theirs = pair.step("write", rows=rows)
        assert buckets_by_value(pair, rows) == {row["v"]: bucket for row, bucket in zip(rows, theirs)}
        pair.agree()
