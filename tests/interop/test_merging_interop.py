"""Merge engines of write-only tables: whoever wrote the versions of a key, Java and we merge them alike."""

from __future__ import annotations

import random

import pytest
from pair import TURNS, Kind, Pair, history, play, same_histories
from unit.spec import test_engine_rules as rules
from values import difference, ours

pytestmark = pytest.mark.java

COLUMNS = [
    ["a", "INT"],
    ["g", "INT"],
    ["k", "INT NOT NULL"],
    ["b", "STRING"],
    ["n", "BIGINT"],
    ["h1", "TIMESTAMP(3)"],
    ["c", {"type": "ARRAY", "element": "INT"}],
    ["h2", "STRING"],
    ["m", "INT"],
]
GROUPS = {"fields.g.sequence-group": "b,n", "fields.h1,h2.sequence-group": "c,m"}
SUMS = {"fields.n.aggregate-function": "sum", "fields.m.aggregate-function": "last_non_null_value"}
ADDS, ALL_KINDS = ("+I", "+I", "+U"), ("+I", "+I", "+I", "+U", "-U", "-D")

PARTIAL = {
    "plain": ({}, ADDS),
    "user-sequence": ({"sequence.field": "g"}, ADDS),
    "user-sequence-descending": ({"sequence.field": "h1,g", "sequence.field.sort-order": "descending"}, ADDS),
    "ignore-delete": ({"ignore-delete": "true"}, ALL_KINDS),
    "ignore-update-before": ({"ignore-update-before": "true"}, ("+I", "+U", "-U")),
    "remove-on-delete": ({"partial-update.remove-record-on-delete": "true"}, ALL_KINDS),
    "remove-on-delete-by-sequence": (
        {"partial-update.remove-record-on-delete": "true", "sequence.field": "a"},
        ALL_KINDS,
    ),
    "groups": (GROUPS, ADDS),
    "groups-retract": (GROUPS, ALL_KINDS),
    "groups-ignore-delete": ({**GROUPS, "ignore-delete": "true"}, ALL_KINDS),
    "groups-aggregate": ({**GROUPS, **SUMS}, ALL_KINDS),
    "groups-and-a-user-sequence": ({**GROUPS, **SUMS, "sequence.field": "a"}, ALL_KINDS),
    "groups-remove": ({**GROUPS, **SUMS, "partial-update.remove-record-on-sequence-group": "g"}, ALL_KINDS),
    "groups-remove-by-either": ({**GROUPS, "partial-update.remove-record-on-sequence-group": "h2,g"}, ALL_KINDS),
    "groups-remove-and-ignore": ({**GROUPS, **SUMS, "partial-update.remove-record-on-sequence-group": "h1"}, ALL_KINDS),
    "default-aggregate": (
        {"fields.default-aggregate-function": "last_non_null_value", "fields.g.sequence-group": "b,n,c"},
        ALL_KINDS,
    ),
    "snapshot-ordering": ({"sequence.snapshot-ordering": "true"}, ADDS),
}


def value(kind, rand):
    if rand.random() < 0.35:
        return None
    if isinstance(kind, dict):
        return [rand.choice([None, 1, 2]) for _ in range(rand.randrange(3))]
    if kind == "STRING":
        return rand.choice(["", "x", "yy", "a text that is longer than a word"])
    if kind.startswith("TIMESTAMP"):
        return f"2024-05-0{rand.randrange(1, 5)}T00:00:00"
    return rand.randrange(5)


def commits(seed, kinds, *, keys=5):
    """A few commits of random versions; the first ones are adds, so that not all is about rows that never were."""
    rand = random.Random(seed)
    made = []
    for _ in range(rand.randrange(2, 6)):
        rows = []
        for _ in range(rand.randrange(1, 14)):
            row = {name: value(kind, rand) for name, kind in COLUMNS} | {"k": rand.randrange(keys)}
            rows.append({**row, "_kind": rand.choice(kinds)})
        made.append(("write", rows))
    return made


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 16))])
@pytest.mark.parametrize("name", PARTIAL)
def test_partial_updates_are_merged_alike(name, seed, java, tmp_path):
    options, kinds = PARTIAL[name]
    given = {"bucket": "1", "write-only": "true", "merge-engine": "partial-update", **options}
    kind = Kind(COLUMNS, ["k"], [], given)
    script = commits(f"{name}-{seed}", kinds)
    pairs = play(java("2.0.0"), tmp_path, kind, script, TURNS if seed % 4 == 1 else ("oj", "jo"))
    same_histories(pairs)
    check_projections(next(iter(pairs.values())))


def check_projections(pair: Pair) -> None:
    """A read of some columns gives what is in them."""
    columns = pair.columns()
    rows = pair.our_rows(columns)
    for names in (["a"], ["b", "k"], ["m"], ["c", "n"]):
        at = [next(i for i, column in enumerate(columns) if column[0] == name) for name in names]
        picked = [columns[i] for i in at]
        want = [[row[i] for i in at] for row in rows]
        assert difference(picked, want, ours(picked, pair.table().scan(columns=names).to_arrow())) is None
    assert pair.table().scan().count() == len(rows)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 8))])
@pytest.mark.parametrize("ignore_delete", [False, True])
def test_first_rows_are_kept_alike(seed, ignore_delete, java, tmp_path):
    options = {"bucket": "1", "write-only": "true", "merge-engine": "first-row"}
    options |= {"ignore-delete": "true"} if ignore_delete else {}
    script = commits(f"first-{seed}", ALL_KINDS if ignore_delete else ADDS, keys=12)
    histories = []
    for turn in ("o", "j", "oj"):
        pair = Pair(java("2.0.0"), tmp_path, turn)
        pair.create(Kind(COLUMNS, ["k"], [], options), turn[0])
        for number, action in enumerate(script):
            pair.act(action, turn[number % len(turn)])
            if number % 2:
                pair.act(("compact", number % 3 == 0), "j")
        histories.append(list(history(pair).values()))
    assert histories[0] == histories[1] == histories[2]


LEVELS = {"num-sorted-run.compaction-trigger": "2", "num-levels": "5", "compaction.size-ratio": "0",
          "compaction.max-size-amplification-percent": "1000000"}  # fmt: skip


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 8))])
@pytest.mark.parametrize("name", ["plain", "groups-retract", "groups-aggregate", "groups-remove"])
def test_levels_that_a_lookup_compaction_left_are_read_alike(name, seed, java, tmp_path):
    options, kinds = PARTIAL[name]
    given = {"bucket": "1", "merge-engine": "partial-update", "force-lookup": "true", **LEVELS, **options}
    pair = Pair(java("2.0.0"), tmp_path)
    pair.create(Kind(COLUMNS, ["k"], [], given), "j")
    rand = random.Random(f"levels-{name}-{seed}")
    levels = set()
    for number in range(rand.randrange(6, 11)):
        (_, rows), *_ = commits(f"{name}-{seed}-{number}", kinds, keys=4 + 3 * number)
        pair.step("write", rows=rows, compact="normal")
        levels.add(frozenset(entry["level"] for entry in pair.step("files")))
    assert any(len(found) > 1 for found in levels)
    history(pair)


@pytest.mark.parametrize(
    ("kind", "times"),
    [
        ("INT", [1000, None, 2**31 - 1, 5]),
        ("BIGINT", [1000, 999_999_999_999, 1_000_000_000_000, 4_102_444_800_000, None]),
        ("TIMESTAMP(3)", ["1970-01-02T00:00:00", "2100-01-01T00:00:00.999", None]),
        ("TIMESTAMP_LTZ(6)", ["1970-01-02T00:00:00", "2100-01-01T00:00:00.999999", None]),
    ],
)
def test_rows_that_ended_by_age_leave_in_the_same_compactions(kind, times, java, tmp_path):
    columns = [["k", "INT NOT NULL"], ["t", "TIMESTAMP(6) WITH LOCAL TIME ZONE" if "LTZ" in kind else kind], ["v", "INT"]]
    options = {"bucket": "1", "record-level.expire-time": "1 d", "record-level.time-field": "t", "write-only": "true"}
    rand = random.Random(kind)
    script = []
    for number in range(4):
        script.append(("write", [{"k": k, "t": rand.choice(times), "v": number} for k in rand.sample(range(8), 4)]))
        if number in (1, 3):
            script.append(("compact", True))
    pairs = play(java("2.0.0"), tmp_path, Kind(columns, ["k"], [], options), script, ("o", "j"))
    same_histories(pairs)


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
def test_compactions_keep_the_snapshots_that_order_rows(engine, java, tmp_path):
    options = {"bucket": "1", "write-only": "true", "sequence.snapshot-ordering": "true", "merge-engine": engine}
    pair = Pair(java("2.0.0"), tmp_path)
    pair.create(Kind(COLUMNS, ["k"], [], options), "o")
    script = [*commits(f"{engine}-one", ADDS), *commits(f"{engine}-two", ADDS)]
    for number, action in enumerate(script):
        pair.act(action, "oj"[number % 2])
        if number == len(script) // 2:
            pair.act(("compact", True), "o")
    states = list(history(pair).values())
    compacted = next(at for at, snapshot in enumerate(pair.table().snapshots()) if snapshot.commit_kind == "COMPACT")
    assert states[compacted] == states[compacted - 1]
    assert pair.agree()


STRICTER = [
    {"fields.g.sequence-group": "a", "fields.g,h.sequence-group": "b"},
    {"record-level.expire-time": "1 d"},
]
"""Java takes these; what the first one means depends on the order of a hash map, the second one cannot be written."""


def test_java_refuses_the_options_of_merge_engines_that_we_refuse(java, tmp_path):
    columns = [[name, f"{kind} NOT NULL" if name == "k" else kind] for name, kind in rules.COLUMNS]
    cases = [(options, True) for options in rules.GOOD]
    cases += [(options, options in STRICTER) for options, _ in rules.BAD]
    steps = [
        {"op": "create", "table": f"db.t{number}", "columns": columns, "primaryKeys": ["k"],
         "tableOptions": {"bucket": "1", "merge-engine": "partial-update", **options}}
        for number, (options, _) in enumerate(cases)
    ]  # fmt: skip
    made = java("2.0.0").run(str(tmp_path), steps, check=False)
    wrong = [options for (options, taken), result in zip(cases, made, strict=True) if result["ok"] is not taken]
    assert wrong == []
