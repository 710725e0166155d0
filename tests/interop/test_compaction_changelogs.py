"""Changelogs of compactions, with Java and by us: the same files compacted, and the same writers' lives, tell the same."""

from __future__ import annotations

import random

import pytest
from pair import Kind, Pair, differences, forgive, sorted_facts
from twins import Twins, kind_with
from values import canonical_rows

pytestmark = pytest.mark.java

WAITING = Kind(
    [["k", "INT NOT NULL"], ["v", "STRING"], ["n", "BIGINT"], ["m", "INT"], ["d", "DOUBLE"]], ["k"],
    options={"bucket": "2", "write-only": "true"},
)  # fmt: skip
FULL = kind_with(WAITING, **{"changelog-producer": "full-compaction"})
LOOKUP = kind_with(WAITING, **{"changelog-producer": "lookup"})
VECTORS = kind_with(LOOKUP, **{"deletion-vectors.enabled": "true"})
PARTIAL = {"merge-engine": "partial-update"}
REMOVING = {**PARTIAL, "partial-update.remove-record-on-delete": "true"}
GROUPS = {**PARTIAL, "fields.n.sequence-group": "v,m"}
SUMS = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "fields.m.aggregate-function": "max"}
RETRACTS = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
ENDS = {**RETRACTS, "aggregation.remove-record-on-delete": "true"}
GROUP_ENDS = {**GROUPS, "partial-update.remove-record-on-sequence-group": "n"}
IGNORES = {"ignore-delete": "true"}
FIRST = {"merge-engine": "first-row"}
ORDERED = {"sequence.field": "n"}
ONCE = {"changelog-producer.row-deduplicate": "true"}
BUT_FOR = {**ONCE, "changelog-producer.row-deduplicate-ignore-fields": "n,m"}
SMALL = {"target-file-size": "4 kb", "num-sorted-run.compaction-trigger": "3"}
PLACED = {"changelog-file.format": "orc", "changelog-file.compression": "none", "changelog-file.prefix": "c-", "changelog-file.stats-mode": "full"}


def rows(rng: random.Random, count: int, kinds: str) -> list[dict]:
    return [
        {"k": k, "v": rng.choice([None, "a", f"{rng.random()}" * 3]), "n": rng.choice([None, rng.randrange(9)]),
         "m": rng.choice([None, rng.randrange(3)]), "d": rng.choice([None, 0.0, -0.0, 1.5, "NaN"]), "_kind": rng.choice(kinds.split())}
        for k in rng.sample(range(300), count)
    ]  # fmt: skip


ADDS, ALL = "+I +I +U", "+I +I +U -D -U"
ENGINES = {"deduplicate": ({}, ALL), "ordered": (ORDERED, ALL), "partial": (PARTIAL, ADDS), "removing": (REMOVING, ALL), "groups": (GROUPS, ALL), "sums": (SUMS, ADDS)}
CASES = {
    **{f"full {name}": (kind_with(FULL, **options), kinds) for name, (options, kinds) in ENGINES.items()},
    **{f"lookup {name}": (kind_with(LOOKUP, **options), kinds) for name, (options, kinds) in ENGINES.items()},
    **{f"vectors {name}": (kind_with(VECTORS, **options), kinds) for name, (options, kinds) in ENGINES.items()},
    "lookup first row": (kind_with(LOOKUP, **FIRST), ADDS),
    "full retracts": (kind_with(FULL, **RETRACTS), ALL),
    "lookup retracts": (kind_with(LOOKUP, **RETRACTS), ALL),
    "full ends": (kind_with(FULL, **ENDS), ALL),
    "vectors ends": (kind_with(VECTORS, **ENDS), ALL),
    "full group ends": (kind_with(FULL, **GROUP_ENDS), ALL),
    "vectors group ends": (kind_with(VECTORS, **GROUP_ENDS), ALL),
    "full ignores": (kind_with(FULL, **IGNORES), ALL),
    "vectors ignores": (kind_with(VECTORS, **IGNORES), ALL),
    "lookup ignores": (kind_with(LOOKUP, **PARTIAL, **IGNORES), ALL),
    "first row ignores": (kind_with(LOOKUP, **FIRST, **IGNORES), ALL),
    "full once": (kind_with(FULL, **ONCE), ALL),
    "lookup once": (kind_with(LOOKUP, **ONCE), ALL),
    "lookup sums once": (kind_with(LOOKUP, **SUMS, **ONCE), ADDS),
    "vectors but for": (kind_with(VECTORS, **BUT_FOR), ALL),
    "full small": (kind_with(FULL, **SMALL), ALL),
    "lookup small": (kind_with(LOOKUP, **SMALL), ALL),
    "vectors small": (kind_with(VECTORS, **SMALL), ALL),
    "lookup gentle": (kind_with(LOOKUP, **{"lookup-compact": "gentle"}), ALL),
    "full placed": (kind_with(FULL, **PLACED), ALL),
    "lookup per level": (kind_with(LOOKUP, **{"file.format.per.level": "0:avro,5:orc"}), ALL),
    "vectors avro": (kind_with(VECTORS, **{"file.format": "avro"}), ALL),
    "full forced lookup": (kind_with(FULL, **SUMS, **{"force-lookup": "true"}), ADDS),
    "lookup thin": (kind_with(LOOKUP, **{"data-file.thin-mode": "true"}), ALL),
}


def changes(pair: Pair, first: int, last: int) -> list[list]:
    """What Java's stream tells of some snapshots, by key, the changes of a key in their order."""
    columns = [*pair.columns(), ["_kind", "STRING"]]
    plans = pair.step("streamRead", **{"from": first}, plans=last - first + 2)
    told = [row for plan in plans if "rows" in plan for row in plan["rows"]]
    return sorted(canonical_rows(columns, told), key=lambda row: row[0])


def changelog_files(pair: Pair, first: int, last: int) -> list[dict]:
    found = pair.steps([{"op": "files", "snapshot": number, "mode": "changelog"} for number in range(first, last + 1)])
    return sorted_facts([file for files in found for file in files])


def latest(pair: Pair) -> int:
    return pair.table().snapshot().id


def same_changelogs(theirs: Pair, ours: Pair, since: int) -> list[list]:
    """Java reads the same changes of what it compacted and of what we compacted; the files are described alike."""
    want = changes(theirs, since + 1, latest(theirs))
    assert changes(ours, since + 1, latest(ours)) == want
    files, others = changelog_files(ours, since + 1, latest(ours)), changelog_files(theirs, since + 1, latest(theirs))
    options = theirs.table().options
    forgive(files, others, theirs.columns(), options.get("changelog-file.format", options.get("file.format", "parquet")))
    assert not (unlike := differences(files, others)), unlike
    return want


def life(twins: Twins, kinds: str, steps: int) -> set[str]:
    """Random writes and compactions; the kinds of changes that were told."""
    rng, told = twins.rng, set()
    for step in range(steps):
        for _ in range(rng.randrange(1, 4)):
            twins.write(rows(rng, rng.choice([3, 30, 120]), kinds), rng.choice("oj"))
        since = latest(twins.theirs)
        twins.compact(full=rng.random() < 0.5 or step == 0)
        told |= {row[-1] for row in same_changelogs(twins.theirs, twins.ours, since)}
    return told


QUICK = ("full sums", "lookup removing", "vectors deduplicate", "lookup first row")


def check(name: str, seed: object, java, tmp_path, steps: int) -> None:
    kind, kinds = CASES[name]
    told = life(Twins(java, tmp_path, kind, random.Random(f"{name} {seed}")), kinds, steps)
    assert told


@pytest.mark.parametrize("name", QUICK)
def test_compactions_tell_what_java_tells(name, java, tmp_path):
    check(name, 0, java("2.0.0"), tmp_path, 3)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4), ids="seed{}".format)
@pytest.mark.parametrize("name", CASES)
def test_all_compactions_tell_what_java_tells(name, seed, java, tmp_path):
    check(name, seed, java("2.0.0"), tmp_path, 6)
