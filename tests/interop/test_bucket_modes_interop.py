"""Dynamic and postponed buckets, rescaling: the same rows lie in the same buckets whoever writes, and may take turns."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest
from pair import Kind, Pair, differences, play, same_histories, same_metadata, sorted_facts
from unit.distributed.two_steps import TwoSteps
from values import arrow_rows, difference

pytestmark = pytest.mark.java

COLUMNS = [["p", "INT NOT NULL"], ["k", "INT NOT NULL"], ["v", "STRING"], ["c", "INT"]]
ENGINES = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.c.aggregate-function": "sum"},
    "first-row": {"merge-engine": "first-row"},
    "vectors": {"deletion-vectors.enabled": "true"},
}
COMPACTED_AT_ONCE = ("first-row", "vectors")
"""Each commit compacts, and what of depends on the sizes of files, which are not the same for both."""


def few(names, *ci):
    """All names, of which bounded runs take some."""
    return [name if name in ci else pytest.param(name, marks=pytest.mark.full) for name in names]


def some_rows(draw, mark, *, keys=40, count=12, kinds=("+I",)):
    return [
        {"p": draw.randrange(2), "k": draw.randrange(keys), "v": f"{mark}-{at}", "c": at, "_kind": draw.choice(kinds)}
        for at in range(count)
    ]


def hashes(pair: Pair) -> list:
    entries = pair.step("manifests")["index"] or []
    return sorted((str(e["partition"]), e["bucket"], sorted(e["hashes"])) for e in entries if e["indexType"] == "HASH")


def same_rows(pairs: dict[str, Pair]) -> None:
    rows = {turn: pair.agree() for turn, pair in pairs.items()}
    first = next(iter(rows.values()))
    for turn, found in rows.items():
        assert difference(COLUMNS, first, found) is None, turn


def same_files(pairs: dict[str, Pair]) -> None:
    facts = {turn: sorted_facts(pair.step("files")) for turn, pair in pairs.items()}
    first = next(iter(facts.values()))
    for turn, found in facts.items():
        assert not (unlike := differences(found, first)), f"{turn}: {unlike}"


@pytest.mark.parametrize("engine", few(ENGINES, "deduplicate"))
@pytest.mark.parametrize("partitioned", [False, True], ids=["whole", "parts"])
def test_keys_get_the_dynamic_buckets_that_java_gives_them(java, tmp_path, engine, partitioned):
    draw = random.Random(f"{engine} {partitioned}")
    options = {"dynamic-bucket.target-row-num": str(draw.randrange(3, 9)), **ENGINES[engine]}
    kind = Kind(COLUMNS, ["p", "k"], ["p"] if partitioned else [], options)
    kinds = ("+I", "+U", "-D") if engine in ("deduplicate", "vectors") else ("+I",)
    script = [("write", some_rows(draw, step, kinds=kinds)) for step in range(6)]
    script.insert(4, ("compact", True))
    pairs = play(java("2.0.0"), tmp_path, kind, script)
    same_rows(pairs)
    if engine not in COMPACTED_AT_ONCE:
        same_histories(pairs)
        same_files(pairs)
    found = {turn: hashes(pair) for turn, pair in pairs.items()}
    assert len(found["j"]) > 2
    assert all(one == found["j"] for one in found.values())


@pytest.mark.parametrize("options", [{"deletion-vectors.enabled": "true"}, {"changelog-producer": "lookup"}], ids=str)
def test_java_reads_and_goes_on_with_what_processes_assigned_and_others_wrote(java, tmp_path, options):
    draw = random.Random(str(options))
    pair = Pair(java("2.0.0"), tmp_path)
    pair.create(Kind(COLUMNS, ["p", "k"], ["p"], {"dynamic-bucket.target-row-num": "4", **options}), "o")
    known = {}
    for step, count in enumerate((2, 3, 0, 5, 0, 2)):
        rows = list({(row["p"], row["k"]): row for row in some_rows(draw, step)}.values())
        if count:
            data = pa.table(arrow_rows(pair.table().schema, COLUMNS, rows, kinds=False))
            engine = TwoSteps(pair.table(), data, count, seed=step)
            assert engine.commit(engine.results()).dropped_compaction is None
        else:
            pair.act(("write", rows), "j")
        known |= {(row["p"], row["k"]): row["v"] for row in rows}
        assert {(p, k): v for p, k, v, _ in pair.agree()} == known
    found = hashes(pair)
    assert len(found) > 3 and sum(len(own) for *_, own in found) == len(known)


@pytest.mark.parametrize("version", ["1.4.2", "0.9.0"])
def test_older_releases_go_on_with_our_dynamic_buckets(java, tmp_path, version):
    draw = random.Random(version)
    kind = Kind(COLUMNS, ["p", "k"], ["p"], {"dynamic-bucket.target-row-num": "4"})
    script = [("write", some_rows(draw, step)) for step in range(5)]
    pairs = play(java(version), tmp_path, kind, script)
    same_histories(pairs)
    found = {turn: hashes(pair) for turn, pair in pairs.items()}
    assert all(one == found["j"] for one in found.values())


def test_an_overwrite_begins_dynamic_buckets_anew_and_java_goes_on(java, tmp_path):
    draw = random.Random(4)
    kind = Kind(COLUMNS, ["p", "k"], ["p"], {"dynamic-bucket.target-row-num": "3"})
    script = [("write", some_rows(draw, 0)), ("write", some_rows(draw, 1)),
              ("overwrite", {"p": "1"}, [{"p": 1, "k": k, "v": "new", "c": k} for k in range(30, 40)]),
              ("write", some_rows(draw, 2)), ("write", some_rows(draw, 3))]  # fmt: skip
    pair = play(java("2.0.0"), tmp_path, kind, script, turns=("ojojo",))["ojojo"]
    rows = pair.agree()
    assert len(rows) == len({(row[0], row[1]) for row in rows})


@pytest.mark.parametrize("version", few(["2.0.0", "1.4.2", "0.9.0"], "2.0.0"))
def test_java_goes_on_with_an_index_that_we_made_again(java, tmp_path, version):
    draw = random.Random(version)
    pair = Pair(java(version), tmp_path)
    pair.create(Kind(COLUMNS, ["p", "k"], ["p"], {"dynamic-bucket.target-row-num": "4"}), "j")
    for step in range(3):
        pair.act(("write", some_rows(draw, step)), "j")
    want = hashes(pair)
    latest = pair.path / "snapshot" / "snapshot-3"
    stored = json.loads(latest.read_text())
    assert stored.pop("indexManifest")
    latest.write_text(json.dumps(stored))
    assert not hashes(pair)
    pair.act(("write", [{"p": row[0], "k": row[1], "v": "again", "c": 0} for row in pair.agree()]), "o")
    assert hashes(pair) == want
    pair.act(("write", some_rows(draw, 9, count=30)), "j")
    pair.act(("compact", True), "j")
    rows = pair.agree()
    assert len(rows) == len({(row[0], row[1]) for row in rows}) > 20


@pytest.mark.parametrize("engine", few(["deduplicate", "partial-update", "aggregation"], "aggregation"))
@pytest.mark.parametrize("buckets", [1, 3])
def test_waiting_rows_go_to_the_same_buckets(java, tmp_path, engine, buckets):
    draw = random.Random(f"{engine} {buckets}")
    kind = Kind(COLUMNS, ["p", "k"], ["p"], {"bucket": "-2", "postpone.default-bucket-num": str(buckets), **ENGINES[engine]})
    kinds = ("+I", "+U", "-D") if engine == "deduplicate" else ("+I",)

    script = [("write", some_rows(draw, 0, kinds=kinds)), ("write", some_rows(draw, 1, kinds=kinds)), ("compact", False),
              ("write", some_rows(draw, 2, kinds=kinds)), ("compact", False), ("write", some_rows(draw, 3, kinds=kinds)),
              ("compact", True)]  # fmt: skip
    for length in (1, 3, len(script)):
        pairs = play(java("2.0.0"), tmp_path / str(length), kind, script[:length])
        same_rows(pairs)
        if length <= 3:
            same_files(pairs)


@pytest.mark.parametrize("engine", few([*ENGINES, "append"], "deduplicate"))
def test_rescaled_tables_have_the_same_files(java, tmp_path, engine):
    draw = random.Random(engine)
    keyed = engine != "append"
    options = {"bucket": "2", **(ENGINES[engine] if keyed else {"bucket-key": "k"})}
    kind = Kind(COLUMNS, ["p", "k"] if keyed else [], ["p"], options)
    script = [("write", some_rows(draw, 0)), ("write", some_rows(draw, 1)), ("rescale", 3), ("write", some_rows(draw, 2)),
              ("rescale", 1), ("write", some_rows(draw, 3)), ("rescale", 5), ("compact", True)]  # fmt: skip
    if not keyed:
        script.pop()
    for length in (3, len(script)):
        pairs = play(java("2.0.0"), tmp_path / str(length), kind, script[:length])
        same_rows(pairs)
        if keyed and engine not in COMPACTED_AT_ONCE:
            same_metadata({turn: pairs[turn] for turn in ("o", "j")})


@pytest.mark.parametrize("options", [{}, {"bucket-append-ordered": "false"},
                                     {"bucket-append-ordered": "false", "write-only": "true"}], ids=str)  # fmt: skip
def test_buckets_of_append_tables_keep_or_drop_their_order_as_in_java(java, tmp_path, options):
    draw = random.Random(str(options))
    kind = Kind(COLUMNS, [], [], {"bucket": "2", "bucket-key": "k", "compaction.min.file-num": "3", **options})
    script = [("write", some_rows(draw, step)) for step in range(6)] + [("compact", True)]
    pairs = play(java("2.0.0"), tmp_path, kind, script)
    same_rows(pairs)
    same_files(pairs)
