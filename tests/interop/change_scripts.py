"""Scripts about changes: tables of every changelog producer, written by Java, by us and by both in turn, and streamed.

Java follows what we wrote and we follow what Java wrote, snapshot by snapshot, with the same rows, kinds and places to go on
from; changes between any two snapshots are the same for both; and whoever acts, a step tells the same changes.
"""

from __future__ import annotations

import random
from collections import Counter

from engine_play import Disagreement, Played
from engine_scripts import Script
from passing import passing
from table_scripts import DYNAMIC, PARTIAL, SUMS, VECTORS, Mode, keyed, story
from values import canonical_rows, difference, ours

from paimon_py import PaimonError

CHANGED = {"changelog-producer.row-deduplicate": "true"}
PRODUCERS: dict[str, dict[str, str]] = {
    "none": {},
    "input": {"changelog-producer": "input"},
    "lookup": {"changelog-producer": "lookup"},
    "lookup of changed rows": {"changelog-producer": "lookup", **CHANGED},
    "full compaction": {"changelog-producer": "full-compaction"},
    "full compactions of changed rows": {"changelog-producer": "full-compaction", "full-compaction.delta-commits": "2", **CHANGED},
}
ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {}, "sequence": {"sequence.field": "n"}, "partial-update": PARTIAL, "sums": SUMS,
    "first-row": {"merge-engine": "first-row"},
}  # fmt: skip
PLACES: dict[str, tuple[dict[str, str], bool]] = {
    "one bucket": ({"bucket": "1"}, False), "buckets": ({"bucket": "3"}, True), "dynamic": (DYNAMIC, True),
    "write-only": ({"bucket": "2", "write-only": "true"}, False),
}  # fmt: skip
VERBS = "write write write write rounds minor full overwrite"
ON_ROWS = "delete update upsert merge"
MODES = ("auto", "delta", "changelog", "diff")


def is_allowed(producer: str, engine: str, vectors: bool) -> bool:
    """Whether Java takes such a table."""
    if engine == "first-row":
        return producer in ("none", "lookup") and not vectors
    return not (vectors and producer.startswith("full"))


def drawn(seed: int) -> Script:
    """A random script."""
    rng = random.Random(f"change script {seed}")
    while True:
        producer, engine, place = rng.choice(list(PRODUCERS)), rng.choice(list(ENGINES)), rng.choice(list(PLACES))
        vectors = rng.random() < 0.25
        if is_allowed(producer, engine, vectors):
            break
    options, parts = PLACES[place]
    options = {**options, **ENGINES[engine], **PRODUCERS[producer], **(VECTORS if vectors else {})}
    table: Mode = keyed(options, (), parts=parts)
    verbs = VERBS.split()
    if engine in ("deduplicate", "sequence", "partial-update") and rng.random() < 0.3:
        verbs += ON_ROWS.split()
    steps = ["write", *rng.choices(verbs, k=rng.randrange(4, 10)), "full"]
    if rng.random() < 0.3:
        steps.insert(rng.randrange(1, len(steps)), "add")
    where = f"{place}, vectors" if vectors else place
    return story(f"{producer}, {engine}, {where}", f"drawn {seed}", " ".join(steps), table)


# -- what everyone must agree on ------------------------------------------------------------------------------------

KIND = ["_kind", "STRING"]
ADDS = ("+I", "+U")


def check(script: Script, tables: dict[str, Played], modes: tuple[str, ...] = MODES, *, rereads: bool = False) -> None:
    """Both follow each table alike, and all tables tell the same.

    `rereads`: Java reads the delta of the first snapshot of a stream again, since its first step has no rows of level 0.

    Raises: Disagreement.
    """
    told = {turn: follow(turn, played) for turn, played in tables.items() if played.failed != 0}
    for turn, played in tables.items():
        if turn in told:
            check_full(turn, played, rereads)
            check_between(script, turn, played, modes)
    if {step[0] for step in script.steps} & set(ON_ROWS.split()) or has_full_compactions_by_writers(script):
        return  # Java's core knows no operations on rows: what is written in their place may differ
    for turn, steps in told.items():
        for number, (mine, theirs) in enumerate(zip(by_step(tables[turn], steps), by_step(tables["j"], told["j"]), strict=True)):
            if mine != theirs:
                raise Disagreement(f"{turn}: step {number} tells {mine - theirs}, and not {theirs - mine}")


def follow(turn: str, played: Played) -> dict[int, list]:
    """The rows of each snapshot that a stream tells of, from the first; Java and we must see the same."""
    pair = played.pair
    table, columns = passing(pair.table()), [*pair.columns(), KIND]
    latest = table.snapshot()
    count = latest.id if latest else 0
    plans = pair.step("streamRead", **{"from": 1}, plans=count + 1)
    theirs = {plan["next"]: canonical_rows(columns, plan["rows"]) for plan in plans if plan["rows"]}
    mine = {}
    stream = table.stream(from_=1)
    while (step := stream.poll()) is not None:
        rows = our_changes(columns, step.to_arrow())
        if rows:
            mine[step.next_snapshot_id] = rows
    if list(mine) != list(theirs):
        raise Disagreement(f"{turn}: our stream goes on at {list(mine)}, Java's at {list(theirs)}")
    for number, rows in theirs.items():
        same(f"{turn}: the stream up to {number}", columns, rows, mine[number])
    return mine


def check_full(turn: str, played: Played, rereads: bool) -> None:
    """A stream that begins with the whole table."""
    pair = played.pair
    columns = [*pair.columns(), KIND]
    theirs = pair.step("streamRead", plans=1)[0]
    step = passing(pair.table()).stream(from_="full").poll()
    if step is None:
        raise Disagreement(f"{turn}: our stream has no first step, Java's goes on at {theirs['next']}")
    if step.next_snapshot_id != theirs["next"] + rereads:
        raise Disagreement(f"{turn}: our stream goes on at {step.next_snapshot_id}, Java's at {theirs['next']}")
    same(f"{turn}: the first step", columns, canonical_rows(columns, theirs["rows"]), our_changes(columns, step.to_arrow()))


def check_between(script: Script, turn: str, played: Played, modes: tuple[str, ...]) -> None:
    """Changes between two snapshots, in every mode."""
    pair, rng = played.pair, random.Random(f"{script.seed} {turn}")
    table, columns = passing(pair.table()), [*pair.columns(), KIND]
    latest = table.snapshot().id
    if "changelog-producer" not in script.options:
        modes = tuple(mode for mode in modes if mode != "changelog")
    asked = [(mode, *sorted((rng.randrange(1, latest + 1), rng.randrange(1, latest + 1)))) for mode in modes]
    reads = [
        {
            "op": "read", "table": f"{pair.name}$audit_log",
            "options": {"incremental-between": f"{one},{two}", "incremental-between-scan-mode": mode},
        }
        for mode, one, two in asked
    ]  # fmt: skip
    for (mode, one, two), read in zip(asked, pair.steps(reads, check=False), strict=True):
        if not read["ok"]:
            continue
        where = f"{turn}: {mode} of {one} to {two}"
        try:
            found = our_changes(columns, table.changes(one, two, mode=mode).to_arrow())
        except PaimonError as error:
            raise Disagreement(f"{where}: Java reads {len(read['result'])} rows, we {type(error).__name__}: {error}") from error
        theirs = canonical_rows(columns, [{**row, "_kind": row["rowkind"]} for row in read["result"]])
        if mode == "diff" and not has_java_right(script):
            continue
        if mode == "diff":
            check_gone(where, columns, script.primary_key, theirs, found)
            found, theirs = ([[*row[:-1], "+I"] for row in rows if row[-1] in ADDS] for rows in (found, theirs))
        same(where, columns, theirs, found)


def has_full_compactions_by_writers(script: Script) -> bool:
    """Whether our writers compact fully, as those of Java's engines do: its core leaves that to them."""
    return script.options.get("changelog-producer") == "full-compaction" and script.options.get("write-only") != "true"


def has_java_right(script: Script) -> bool:
    """Whether the differences that Java finds are those of the tables.

    It merges only the files that the states do not share: sums and partial rows come out too small, and rows that a
    deletion vector or the sequence of a shared file has ended come back.
    """
    return not {"merge-engine", "sequence.field", "deletion-vectors.enabled"} & script.options.keys()


def check_gone(where: str, columns: list, key: list[str], theirs: list[list], mine: list[list]) -> None:
    """Whether what goes in our difference goes in Java's: Java also tells of deletes of keys that nobody had."""
    at = [number for number, (name, _) in enumerate(columns) if name in key]
    gone, known = ({str([row[number] for number in at]) for row in rows if row[-1] not in ADDS} for rows in (mine, theirs))
    if not gone <= known:
        raise Disagreement(f"{where}: {gone - known} go, and not for Java")


def our_changes(columns: list, table) -> list[list]:
    return ours(columns, table.rename_columns(["_kind" if name == "_row_kind" else name for name in table.column_names]))


def same(where: str, columns: list, want: list, got: list) -> None:
    unlike = difference(columns, want, got)
    if unlike is not None:
        raise Disagreement(f"{where}: {unlike}")


def by_step(played: Played, steps: dict[int, list]) -> list[Counter]:
    """What each step of a script told."""
    found, before = [], 0
    for end in played.ends:
        after = end if isinstance(end, int) else before
        found.append(Counter(str(row) for number, rows in steps.items() if before < number - 1 <= after for row in rows))
        before = after
    return found
