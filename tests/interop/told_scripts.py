"""Scripts of other suites on tables that tell what changes: every producer with any engine, bucket mode, type and format.

Java streams what it told itself and what we told, step by step, and the changelog files are described alike.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import random
from collections import Counter

import engine_scripts
import table_scripts
import wide_scripts
from engine_play import Disagreement, Played, settled
from engine_scripts import Script
from pair import Pair, differences, forgive, sorted_facts
from values import canonical_rows, difference, ours

SUITES = {"engine": engine_scripts.script, "table": table_scripts.drawn, "wide": wide_scripts.wide}
ON_ROWS = ("delete", "update", "upsert", "merge", "shared", "look", "ask", "resize", "sort", "index")
"""Steps that Java's core does not know, or that two players do in other ways."""

PRODUCERS = ("input", "lookup", "lookup", "full-compaction")
KIND = ["_kind", "STRING"]


def drawn(suite: str, seed: int) -> Script | None:
    """The script of a seed with a producer; None where there is no key."""
    script = SUITES[suite](seed)
    if not script.primary_key or script.java_only:
        return None
    rng = random.Random(f"told {suite} {seed}")
    options = dict(script.options)
    able = [one for one in PRODUCERS if is_allowed(one, options)]
    producer = options["changelog-producer"] = rng.choice(able)
    maps = any(str(kind).find("MAP") >= 0 for _, kind in script.columns)
    if producer != "input" and rng.random() < 0.3 and not maps:  # two maps with a null value are never equal in Java
        options["changelog-producer.row-deduplicate"] = "true"
        if rng.random() < 0.5:
            values = [name for name, _ in script.columns if name not in script.primary_key]
            options["changelog-producer.row-deduplicate-ignore-fields"] = ",".join(rng.sample(values, min(2, len(values))))
    if rng.random() < 0.3:
        options["changelog-file.format"] = rng.choice(("parquet", "orc") if options.get("file.format") != "avro" else ("avro", "parquet", "orc"))
        options["changelog-file.prefix"] = "told-"
        options["changelog-file.stats-mode"] = rng.choice(("full", "none", "counts", "truncate(4)"))
    if any(step[0] == "rounds" for step in script.steps):
        options.pop("lookup-compact", None)  # Java's writers try idle buckets, too, for as long as they keep them
    if producer == "full-compaction":
        options["write-only"] = "true"  # Java's core compacts where a script says so, its engines every time
    steps = [one for step in script.steps if step[0] not in ON_ROWS for one in told_first(step, producer)]
    if "deletion-vectors.enabled" in options:
        steps = [one for step in steps for one in apart(step)]
    about = f"{script.about} {producer}"
    return dataclasses.replace(script, options=options, steps=steps, about=about)


def told_first(step: tuple, producer: str) -> list[tuple]:
    """The step, as both can tell it alike.

    Java never tells rows that were rescaled before a compaction told of them; we refuse that. A delete that is
    overwritten to the highest level counts there as a row that was told, in Java: it tells -U and +U of a key that was
    not there, and we +I.
    """
    if step[0] == "rescale" and producer != "input":
        return [("compact", True), step]
    if step[0] == "overwrite" and producer == "full-compaction":
        return [(*step[:2], [row for row in step[2] if not {row.get("_kind"), row.get("op")} & {"-U", "-D"}])]
    return [step]


def apart(step: tuple) -> list[tuple]:
    """A writer for each round: one of Java that goes on looks keys up in copies of files, and finds rows that died since."""
    return [("write", rows) for rows in step[1]] if step[0] == "rounds" else [step]


def is_allowed(producer: str, options: dict[str, str]) -> bool:
    """Whether Java takes such a table."""
    if options.get("merge-engine") == "first-row":
        return producer == "lookup"
    return not (options.get("deletion-vectors.enabled") and producer == "full-compaction")


def check(script: Script, tables: dict[str, Played]) -> dict[str, int]:
    """Every table tells what Java's tells, in each step. Returns: how many changes of each kind.

    Raises: Disagreement.
    """
    want = tables["j"]
    if want.failed and "File deletion conflicts" in want.ends[-1] and script.options.get("bucket") == "-2":
        return {}  # Java at odds with itself about waiting rows
    for turn, played in tables.items():
        if played.failed != want.failed:
            raise Disagreement(f"{turn} ended at step {played.failed} with {played.ends[-1:]}, Java at {want.failed} with {want.ends[-1:]}")
    if not [end for end in want.ends if isinstance(end, int) and end]:
        return {}
    told = {turn: told_by_step(played, script) for turn, played in tables.items()}
    for turn, steps in told.items():
        columns, theirs = told["j"]
        for number, (mine, java) in enumerate(zip(steps[1], theirs, strict=True)):
            unlike = difference(columns, java, mine)
            if unlike is not None:
                raise Disagreement(f"step {number} ({script.steps[number - 1][0] if number else 'create'}) of {turn} tells: {unlike}")
    for turn, played in tables.items():
        facts(script, turn, played.pair, want.pair)
    return Counter(row[-1] for rows in told["j"][1] for row in rows)


def told_by_step(played: Played, script: Script) -> tuple:
    """What Java's stream tells of each step, and that we read the same."""
    pair = played.pair
    columns = [*pair.columns(), KIND]
    latest = pair.table().snapshot().id
    table = pair.table()
    plans = pair.step("streamRead", **{"from": 1}, plans=latest + 2)
    by_snapshot = {plan["next"] - 1: canonical_rows(columns, plan["rows"]) for plan in plans if plan.get("rows")}
    for number in range(1, latest + 1):
        found = table.changes(number - 1, number, mode="changelog").to_arrow().rename_columns([c[0] for c in columns])
        mine = ours(columns, found)
        unlike = difference(columns, settled(columns, by_snapshot.get(number, []), script.unordered), settled(columns, mine, script.unordered))
        if unlike is not None:
            raise Disagreement(f"{pair.name}: we read the changes of snapshot {number} unlike Java: {unlike}")
    steps, before = [], 0
    for end in played.ends:
        after = end if isinstance(end, int) else before
        rows = [row for number, rows in by_snapshot.items() if before < number <= after for row in rows]
        steps.append(settled(columns, rows, script.unordered))
        before = after
    return columns, steps


def facts(script: Script, turn: str, pair: Pair, java: Pair) -> None:
    """The changelog files of both, as Java decodes them."""
    if script.sizes_matter:
        return
    latest = java.table().snapshot().id
    options = java.table().options
    fmt = options.get("changelog-file.format", options.get("file.format", "parquet"))
    for number in range(1, latest + 1):
        mine, theirs = (sorted_facts(one.step("files", snapshot=number, mode="changelog")) for one in (pair, java))
        theirs = copy.deepcopy(theirs)
        if len(mine) != len(theirs):
            raise Disagreement(f"{turn}: snapshot {number} has {len(mine)} changelog files, Java's {len(theirs)}")
        forgive(mine, theirs, java.columns(), fmt)
        if unlike := differences(mine, theirs):
            raise Disagreement(f"{turn}: changelog files of snapshot {number}: {unlike}")
        counts = [json.dumps(one.step("snapshot", snapshot=number).get("changelogRecordCount")) for one in (pair, java)]
        if counts[0] != counts[1]:
            raise Disagreement(f"{turn}: snapshot {number} counts {counts[0]} changes, Java {counts[1]}")
