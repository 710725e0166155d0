"""Streams of random tables have the steps that Java's have, whoever wrote the table; each sees the other's consumers."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest
from pair import Kind, Pair
from test_changes_interop import CELLS, fill, kind_of

from paimon_py import Consumer

pytestmark = pytest.mark.java

SEEDS = range(4)
BOUNDED = (("deduplicate", "input", "o"), ("aggregation", "lookup", "j"), ("append", "none", "o"))
KEYED = Kind([["k", "INT NOT NULL"], ["v", "STRING"]], ["k"], options={"bucket": "1", "write-only": "true"})


def cases():
    for engine, producer in CELLS:
        for seed in SEEDS:
            for by in "jo":
                marks = [] if seed == 0 and (engine, producer, by) in BOUNDED else [pytest.mark.full]
                yield pytest.param(engine, producer, seed, by, "2.0.0", marks=marks)
        for version in ("1.4.2", "0.9.0"):
            yield pytest.param(engine, producer, 0, "j", version, marks=[pytest.mark.full])


def by_key(rows: list[dict], *, whole: bool) -> dict:
    """What becomes of each key, in order. Kinds of a whole snapshot depend in Java on how far files are compacted."""
    found = defaultdict(list)
    for row in rows:
        found[row["p"], row["k"]].append(("+I" if whole else row["_kind"], row["v"], row["n"]))
    return dict(found)


def java_steps(pair: Pair, start: int | None, options: dict) -> list[tuple]:
    fields = {} if start is None else {"from": start}
    plans = pair.step("streamRead", plans=pair.table().snapshot().id + 2, options=options, **fields)
    wholes = [start is None and number == 0 for number in range(len(plans))]
    return [(plan["next"], by_key(plan["rows"], whole=whole)) for plan, whole in zip(plans, wholes) if plan["rows"]]


def our_steps(pair: Pair, start: int | None, options: dict) -> list[tuple]:
    stream = pair.table().stream(from_="full" if start is None else start, options=options)
    found = []
    for step in iter(stream.poll, None):
        rows = [{**row, "_kind": row.pop("_row_kind")} for row in step.to_arrow().to_pylist()]
        if rows:
            found.append((step.next_snapshot_id, by_key(rows, whole=step.is_full)))
    return found


@pytest.mark.parametrize(("engine", "producer", "seed", "by", "version"), list(cases()))
def test_streams_have_the_steps_of_java(java, tmp_path, engine, producer, seed, by, version):
    draw = random.Random(f"stream {engine} {producer} {seed}")
    pair = Pair(java(version), tmp_path)
    pair.create(kind_of(engine, producer, draw), by)
    fill(pair, draw, engine, by)
    last = pair.table().snapshot().id
    said = [{"streaming-read-append-overwrite": text} for text in ("false", "true")] if engine == "append" else [{}]
    for start in (None, 1, draw.randrange(1, last + 1), last + 1):
        for options in said:
            theirs, ours = java_steps(pair, start, options), our_steps(pair, start, options)
            if engine == "append":
                theirs, ours = ([(n, {k: sorted(map(str, v)) for k, v in rows.items()}) for n, rows in each] for each in (theirs, ours))
            assert ours == theirs, f"from {start} {options}"
    assert our_steps(pair, 1, said[0])


HIDING = [
    {"deletion-vectors.enabled": "true"},
    {"deletion-vectors.enabled": "true", "changelog-producer": "input"},
    {"deletion-vectors.enabled": "true", "changelog-producer": "lookup"},
    {"deletion-vectors.enabled": "true", "merge-engine": "aggregation", "fields.v.aggregate-function": "max"},
    {"merge-engine": "first-row"},
    {"merge-engine": "first-row", "changelog-producer": "lookup"},
]


@pytest.mark.parametrize("options", [*HIDING[:1], *(pytest.param(one, marks=pytest.mark.full) for one in HIDING[1:])], ids=str)
def test_the_first_step_has_the_rows_that_scans_hide_as_in_java(java, tmp_path, options):
    pair = Pair(java("2.0.0"), tmp_path)
    pair.create(Kind(KEYED.columns, ["k"], options={**KEYED.options, **options}), "j")
    pair.step("write", rows=[{"k": 1, "v": "a"}, {"k": 2, "v": "a"}])
    pair.step("compact", options={"write-only": "false"})
    for text in "bc":
        pair.step("write", rows=[{"k": 2, "v": text}, {"k": 3, "v": text}, {"k": ord(text), "v": text}])
    (theirs,) = pair.step("streamRead", plans=1)
    step = pair.table().stream().poll()
    assert [(row["k"], row["v"]) for row in step.to_arrow().to_pylist()] == [(row["k"], row["v"]) for row in theirs["rows"]]


@pytest.mark.parametrize("version", ["2.0.0", *(pytest.param(v, marks=pytest.mark.full) for v in ("1.4.2", "0.9.0"))])
def test_each_sees_the_consumers_of_the_other(java, tmp_path, version):
    pair = Pair(java(version), tmp_path)
    pair.create(KEYED, "o")
    for number in range(1, 6):
        pair.act(("write", [{"k": number, "v": "v"}]), "oj"[number % 2])
    pair.step("consumer", name="theirs", next=3)
    assert pair.table().consumers() == [Consumer("theirs", 3)]
    ours = pair.table().stream(consumer_id="theirs")
    third = ours.poll()
    assert third.snapshot_id == 3
    third.acknowledge()
    pair.table().stream(from_=4, consumer_id="mine").poll()
    shown = pair.java.run(str(pair.warehouse), [{"op": "read", "table": f"{pair.name}$consumers"}])[0]["result"]
    assert {row["consumer_id"]: row["next_snapshot_id"] for row in shown} == {"theirs": 4, "mine": 4}
    plans = pair.step("streamRead", plans=4, options={"consumer-id": "mine"})
    assert [row["k"] for plan in plans for row in plan["rows"]] == [4, 5]
    pair.step("expire", min=1, max=1, retainMillis=0)
    assert [snapshot.id for snapshot in pair.table().snapshots()] == [4, 5], "our consumers keep what they have not read"
    pair.table().delete_consumer("theirs")
    pair.table().reset_consumer("mine", 5)
    assert (pair.path / "consumer" / "consumer-mine").read_text() == '{\n  "nextSnapshot" : 5\n}'
