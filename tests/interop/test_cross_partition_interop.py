"""Keys that move between partitions: the same rows lie in the same places whoever writes, and may take turns."""

from __future__ import annotations

import random

import pytest
from pair import Kind, Pair, differences, play, same_histories, sorted_facts
from values import difference

pytestmark = pytest.mark.java

COLUMNS = [["k", "INT NOT NULL"], ["s", "STRING NOT NULL"], ["p", "STRING"], ["q", "INT"], ["v", "STRING"], ["c", "INT"]]
ENGINES = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.c.aggregate-function": "sum"},
    "first-row": {"merge-engine": "first-row"},
    "vectors": {"deletion-vectors.enabled": "true"},
}
COMPACTED_AT_ONCE = ("first-row", "vectors")
"""Each commit compacts, and what of depends on the sizes of files, which are not the same for both."""


def few(cases, ci):
    """All cases, of which bounded runs take one."""
    marks = [() if case == ci else pytest.mark.full for case in cases]
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=mark) for case, mark in zip(cases, marks)]


def some_rows(draw, mark, *, keys=30, count=20, kinds=("+I",)):
    return [
        {"k": draw.randrange(keys), "s": draw.choice("xy"), "p": draw.choice(["a", "b", None]), "q": draw.randrange(2),
         "v": f"{mark}-{at}", "c": at, "_kind": draw.choice(kinds)}
        for at in range(count)
    ]  # fmt: skip


def same(pairs: dict[str, Pair], *, key: int, files: bool) -> None:
    rows = {turn: pair.agree() for turn, pair in pairs.items()}
    first = next(iter(rows.values()))
    assert len({tuple(row[:key]) for row in first}) == len(first), "a key lies twice"
    for turn, found in rows.items():
        assert difference(COLUMNS, first, found) is None, turn
    if files:
        same_histories(pairs)
        facts = {turn: sorted_facts(pair.step("files")) for turn, pair in pairs.items()}
        for turn, found in facts.items():
            assert not (unlike := differences(found, next(iter(facts.values())))), f"{turn}: {unlike}"


@pytest.mark.parametrize(("engine", "key"), few([(engine, key) for key in (1, 2) for engine in ENGINES], ("deduplicate", 2)))
def test_rows_go_where_java_sends_them(java, tmp_path, engine, key):
    draw = random.Random(f"{engine} {key}")
    names = ["k", "s"][:key]
    kind = Kind(COLUMNS, names, ["p", "q"], {"bucket": "-1", **ENGINES[engine]})
    kinds = ("+I", "+U", "-D", "-U") if engine in ("deduplicate", "vectors") else ("+I", "+U")
    script = [("write", some_rows(draw, step, kinds=kinds)) for step in range(6)]
    script.insert(4, ("compact", True))
    script.append(("rounds", [some_rows(draw, step, kinds=kinds) for step in range(7, 10)]))
    same(play(java("2.0.0"), tmp_path, kind, script), key=key, files=engine not in COMPACTED_AT_ONCE)


@pytest.mark.parametrize("seed", few(range(8), 1))
def test_new_keys_get_the_buckets_that_java_gives_them(java, tmp_path, seed):
    """Where no key comes twice in one batch: else which bucket a key left counts at the end of the batch for us."""
    draw = random.Random(seed)
    kind = Kind(COLUMNS, ["k"], ["p"], {"bucket": "-1", "dynamic-bucket.target-row-num": str(draw.randrange(2, 5)), "write-only": "true"})
    script = []
    for step in range(6):
        rows = {row["k"]: row for row in some_rows(draw, step)}
        script.append(("write", list(rows.values())))
    same(play(java("2.0.0"), tmp_path, kind, script), key=1, files=True)


@pytest.mark.parametrize("version", few(["1.4.2", "0.9.0"], "0.9.0"))
def test_older_releases_go_on_with_our_moved_keys(java, tmp_path, version):
    draw = random.Random(version)
    kind = Kind(COLUMNS, ["k", "s"], ["p"], {"bucket": "-1"})
    script = [("write", some_rows(draw, step, kinds=("+I", "-D"))) for step in range(5)]
    same(play(java(version), tmp_path, kind, script), key=2, files=False)


@pytest.mark.full
def test_a_key_may_hold_a_partition_key(java, tmp_path):
    draw = random.Random(5)
    kind = Kind(COLUMNS, ["k", "s"], ["s", "p"], {"bucket": "-1"})
    script = [("write", some_rows(draw, step, kinds=("+I", "-D"))) for step in range(5)]
    same(play(java("2.0.0"), tmp_path, kind, script), key=2, files=True)
