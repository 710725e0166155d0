"""Incremental reads of random tables: the same rows and kinds as Java gives, in every mode, whoever wrote the table."""

from __future__ import annotations

import random

import pytest
from pair import Kind, Pair

from paimon_py import PaimonError
from paimon_py.spec.snapshot import CommitKind

pytestmark = pytest.mark.java

COLUMNS = [["p", "INT NOT NULL"], ["k", "INT NOT NULL"], ["v", "STRING"], ["n", "INT"]]
NAMES = [name for name, _ in COLUMNS]
ENGINES = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "aggregation": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    "first-row": {"merge-engine": "first-row"},
    "vectors": {"deletion-vectors.enabled": "true"},
    "write-only": {"write-only": "true"},
    "append": {},
}
PRODUCERS = {
    "deduplicate": ("none", "input", "lookup", "full-compaction"),
    "partial-update": ("none", "lookup", "full-compaction"),
    "aggregation": ("none", "lookup", "full-compaction"),
    "first-row": ("none", "lookup"),
    "vectors": ("none", "lookup"),
    "write-only": ("none", "input"),
    "append": ("none",),
}
CELLS = [(engine, producer) for engine, producers in PRODUCERS.items() for producer in producers]
FORMATS = ("parquet", "orc", "avro")
BOUNDED = (("deduplicate", "lookup"), ("aggregation", "full-compaction"), ("vectors", "none"))
SEEDS = range(6)


def cases():
    for engine, producer in CELLS:
        for seed in SEEDS:
            few = seed == 0 and (engine, producer) in BOUNDED
            for by in "jo" if producer == "none" else "j":
                yield pytest.param(engine, producer, seed, by, marks=[] if few else [pytest.mark.full])


def kind_of(engine: str, producer: str, draw: random.Random) -> Kind:
    options = {
        "bucket": draw.choice(["1", "2"]), "file.format": draw.choice(FORMATS), "num-sorted-run.compaction-trigger": "3",
        "tag.creation-period": "daily", **ENGINES[engine],
    }  # fmt: skip
    if engine == "append":
        return Kind(COLUMNS, [], ["p"], {**options, "bucket": "-1"})
    if producer != "none":
        options["changelog-producer"] = producer
    if producer == "full-compaction":
        options["full-compaction.delta-commits"] = "2"
    return Kind(COLUMNS, ["p", "k"], ["p"], options)


def rows(draw: random.Random, kinds: tuple[str, ...]) -> list[dict]:
    keys = {(draw.randrange(2), draw.randrange(12)) for _ in range(draw.randrange(1, 9))}
    return [
        {"p": p, "k": k, "v": draw.choice(["a", "b", None]), "n": draw.randrange(5), "_kind": draw.choice(kinds)}
        for p, k in sorted(keys)
    ]


def fill(pair: Pair, draw: random.Random, engine: str, by: str) -> None:
    kinds = ("+I", "+U", "-D") if engine in ("deduplicate", "vectors", "write-only") else ("+I",)
    if engine == "partial-update":
        kinds = ("+I", "+I", "-D")
    for step in range(7):
        choice = draw.random()
        if choice < 0.12:
            pair.act(("overwrite", {"p": 0}, [{**row, "p": 0} for row in rows(draw, ("+I",)) if row["p"]]), by)
        elif choice < 0.3 and engine != "append":
            pair.act(("compact", True), by)
        pair.act(("write", rows(draw, kinds)), by)
        if step in (1, 5):
            pair.step("tag", name=f"2024-01-0{step + 1}")


def reads(draw: random.Random, last: int, times: list[int]) -> list[tuple[str, dict]]:
    """Tables and options of incremental reads."""
    spans = [sorted((draw.randrange(last + 1), draw.randrange(1, last + 1))) for _ in range(4)] + [(0, last), (1, last)]
    found = []
    for a, b in spans:
        for mode in (None, "delta", "changelog", "diff"):
            options = {"incremental-between": f"{a},{b}"} | ({"incremental-between-scan-mode": mode} if mode else {})
            found.append(("", options))
            if mode != "diff":
                found += [("$audit_log", options), ("$binlog", options)]
    tags = "2024-01-02,2024-01-06"
    middle = (times[0] + times[-1]) // 2
    for mode in ("auto", "delta", "diff"):
        found.append(("", {"incremental-between": tags, "incremental-between-scan-mode": mode}))
        span = f"{middle},{times[-1] + 1}"
        found.append(("", {"incremental-between-timestamp": span, "incremental-between-scan-mode": mode}))
        if mode != "diff":  # Java 2.0.0 forgets the rows of the first snapshot there; later ones do not
            found.append(("", {"incremental-between-timestamp": f"1,{middle}", "incremental-between-scan-mode": mode}))
    found += [
        ("", {"incremental-between": tags, "incremental-between-tag-to-snapshot": "true"}),
        ("", {"incremental-to-auto-tag": "2024-01-06"}),
        ("", {"incremental-to-auto-tag": "2024-01-02"}),
        ("", {"incremental-to-auto-tag": "2024-03-02"}),
        ("", {"scan.mode": "latest-delta"}),
        ("", {"scan.mode": "compacted-full"}),
        ("", {"scan.mode": "latest"}),
        ("$ro", {}), ("$audit_log", {}), ("$binlog", {}), ("$audit_log", {"scan.snapshot-id": "2"}),
        ("", {"scan.mode": "from-creation-timestamp", "scan.creation-time-millis": str(times[len(times) // 2])}),
        ("", {"scan.file-creation-time-millis": str(times[len(times) // 2])}),
    ]  # fmt: skip
    return found


def canonical(found: list[dict], names: list[str]) -> list[str]:
    return sorted(str([row.get("_kind", "+I")] + [row.get(name) for name in names]) for row in found)


def compare(pair: Pair, table: str, options: dict, theirs: dict, *, strict: bool) -> str | None:
    """One line if we read anything else than Java."""
    catalog_table = pair.table() if not table else pair.table().system(table[1:])
    try:
        ours = catalog_table.scan(options=options).to_arrow()
    except PaimonError as error:
        return None if not theirs["ok"] else f"{table} {options}: we refuse: {error}"
    if not theirs["ok"]:
        return f"{table} {options}: Java refuses: {theirs['error'][:200]}" if strict else None
    names = [name for name in ours.column_names if name != "_row_kind"]
    mine = [{**row, "_kind": row.pop("_row_kind", "+I")} for row in ours.to_pylist()]
    rows_of_java = theirs["result"]
    if "_row_kind" not in ours.column_names:
        rows_of_java = [{**row, "_kind": "+I"} for row in rows_of_java]
    want, got = canonical(rows_of_java, names), canonical(mine, names)
    return None if want == got else f"{table} {options}: Java {want}, we {got}"


@pytest.mark.parametrize(("engine", "producer", "seed", "by"), list(cases()))
def test_incremental_reads_are_those_of_java(java, tmp_path, engine, producer, seed, by):
    draw = random.Random(f"{engine} {producer} {seed}")
    pair = Pair(java("2.0.0"), tmp_path)
    kind = kind_of(engine, producer, draw)
    pair.create(kind, by)
    fill(pair, draw, engine, by)
    snapshots = pair.table().snapshots()
    asked = reads(draw, snapshots[-1].id, [snapshot.time_millis for snapshot in snapshots])
    steps = [{"op": "read", "table": pair.name + table, "options": options} for table, options in asked]
    answers = pair.steps(steps, check=False)
    found = [compare(pair, table, options, answer, strict=False) for (table, options), answer in zip(asked, answers, strict=True)]
    assert [line for line in found if line] == []
    assert sum(answer["ok"] for answer in answers) > len(answers) // 2
    assert any(snapshot.commit_kind == CommitKind.APPEND for snapshot in snapshots)
