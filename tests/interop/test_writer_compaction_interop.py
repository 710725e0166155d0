"""Plain commits to tables that are not write-only: our writers compact when Java's do, and to the same levels.

One script by us alone and by Java alone; after every commit both tables must have the same kinds of snapshots and, in
every bucket, files of the same levels with the same rows, keys and sequence numbers.
"""

from __future__ import annotations

import itertools
import random

import pytest
from pair import TURNS, Kind, Pair, play, same_histories
from values import difference

from paimon_py.compaction.levels import level_runs
from paimon_py.compaction.picker import Compact, PickerSettings, PickerState, pick
from paimon_py.spec.options import Options

COLUMNS = [["k", "INT NOT NULL"], ["v", "STRING"]]
KEYED = Kind(COLUMNS, ["k"], options={"bucket": "1"})


def keyed(**options):
    return Kind(COLUMNS, ["k"], options={"bucket": "1", **{k.replace("_", "-"): v for k, v in options.items()}})


def rows_of(keys, mark, kinds=("+I",), size=8):
    """Rows whose values hardly compress, so that files of both sides are about equally large."""
    noise = random.Random(f"{mark}")
    kind = itertools.cycle(kinds)
    return [{"k": k, "v": f"{noise.getrandbits(4 * size):0{size}x}", "_kind": next(kind)} for k in keys]


def small(count):
    return [("write", rows_of(range(at, at + 4), at)) for at in range(count)]


def uneven(seed, count):
    """Large commits now and then, small ones mostly, deletes among them."""
    draw = random.Random(seed)
    script = []
    for number in range(count):
        size = draw.choice([3, 5, 40, 400, 3000])
        start = draw.randrange(4000)
        kinds = draw.choice([("+I",), ("+I", "+U"), ("+I", "-D", "+U")])
        script.append(("write", rows_of(range(start, start + size), number, kinds, 24)))
    return script


def files(pair):
    """(kind of the snapshot, live files by bucket and level) of every snapshot, as Java decodes them."""
    found = []
    snapshots = [snapshot.id for snapshot in pair.table().snapshots()]
    results = pair.steps([{"op": op, "snapshot": n} for n in snapshots for op in ("snapshot", "files")])
    for snapshot, entries in zip(results[::2], results[1::2], strict=True):
        facts = sorted(
            (
                str(entry["partition"]), entry["bucket"], entry["level"], entry["minSequenceNumber"],
                entry["maxSequenceNumber"], entry["rowCount"], entry["deleteRowCount"], str(entry["minKey"]),
                str(entry["maxKey"]), str(entry["fileSource"]),
            )
            for entry in entries
        )  # fmt: skip
        found.append((snapshot["commitKind"], snapshot["totalRecordCount"], facts))
    return found


def picked(pair, snapshot_id):
    """What the picker says of a snapshot's files with the sizes that they have in this table."""
    table = pair.table()
    root, schema = table._root, table.schema
    entries = root.manifests.live_entries(root.snapshots.get(snapshot_id)).entries()
    found = [entry.file for entry in entries]
    rules = PickerSettings.of(Options(schema.options))
    choice, _ = pick(level_runs(found), rules, PickerState.of(found, rules), 0, 0)
    return (len(choice.files), choice.output_level) if isinstance(choice, Compact) else None


def part_for_their_sizes(pairs, described):
    """Where the tables take different ways first, each of them did what its own sizes ask for."""
    number = next(
        (at for at, (mine, theirs) in enumerate(zip(described["o"], described["j"]), 1) if mine != theirs), None
    )
    if number is None:
        return False
    chosen = {turn: picked(pair, number - 1) for turn, pair in pairs.items()}
    assert chosen["o"] != chosen["j"], f"snapshot {number}: the sizes do not explain it"
    for turn, choice in chosen.items():
        assert (choice is not None) == (described[turn][number - 1][0] == "COMPACT"), f"{turn}: snapshot {number}"
    return True


def check(java, tmp_path, kind, script, turns=("o", "j"), *, may_part=False):
    pairs = play(java, tmp_path, kind, script, turns)
    described = {turn: files(pair) for turn, pair in pairs.items()}
    if may_part and part_for_their_sizes(pairs, described):
        return described["j"]
    for turn, got in described.items():
        for number, (mine, theirs) in enumerate(zip(got, described["j"]), 1):
            assert mine == theirs, f"{turn}: snapshot {number}"
        assert len(got) == len(described["j"]), turn
    rows = {turn: pair.agree() for turn, pair in pairs.items()}
    assert all(difference(COLUMNS, rows["j"], found) is None for found in rows.values() if kind.columns == COLUMNS)
    return described["j"]


def kinds_of(described):
    return [kind for kind, *_ in described]


CASES = {
    "small commits": (KEYED, small(12)),
    "few runs": (keyed(**{"num-sorted-run.compaction-trigger": "2"}), small(7)),
    "few levels": (keyed(**{"num-sorted-run.compaction-trigger": "3", "num-levels": "3"}), uneven(1, 14)),
    "deletes and large commits": (KEYED, uneven(2, 16)),
    "one writer, many commits": (KEYED, [("rounds", [rows for _, rows in small(13)])]),
    "partitions": (
        Kind([["p", "INT NOT NULL"], *COLUMNS], ["p", "k"], ["p"], {"bucket": "2"}),
        [("write", [{"p": at % 2, "k": k, "v": f"{at}"} for k in range(6)]) for at in range(12)],
    ),
    "early full compactions": (keyed(**{"compaction.total-size-threshold": "1 mb"}), small(5)),
    "level 0 never stays": (keyed(**{"compaction.force-up-level-0": "true"}), small(6)),
    "files of a flush count one by one": (
        keyed(**{"target-file-size": "10 kb"}), [("write", rows_of(range(4000), 1, size=24)), *small(3)],
    ),
    "an overwrite, then commits": (KEYED, [*small(3), ("overwrite", {}, rows_of(range(9), "o")), *small(5)]),
    "buckets without key": (Kind(COLUMNS, options={"bucket": "1", "bucket-key": "k"}), small(11)),
    "buckets without key, one writer": (
        Kind(COLUMNS, options={"bucket": "1", "bucket-key": "k"}), [("rounds", [rows for _, rows in small(11)])],
    ),
    "no buckets": (Kind(COLUMNS, options={"bucket": "-1"}), small(7)),
    "first row": (
        keyed(**{"merge-engine": "first-row", "lookup-compact": "radical"}), [("write", rows_of(range(400), "b", size=24)), *small(5)],
    ),
    "deletion vectors": (keyed(**{"deletion-vectors.enabled": "true"}), small(6)),
    "deletion vectors, one writer": (
        keyed(**{"deletion-vectors.enabled": "true"}), [("rounds", [rows for _, rows in small(6)])],
    ),
    "deletion vectors, now and then": (
        keyed(**{"deletion-vectors.enabled": "true", "lookup-compact": "gentle", "lookup-compact.max-interval": "6"}),
        [("rounds", [rows for _, rows in small(14)])],
    ),
    "write-only": (keyed(**{"write-only": "true"}), small(7)),
}  # fmt: skip


QUICK = (
    "small commits", "one writer, many commits", "an overwrite, then commits", "buckets without key", "no buckets",
    "first row", "deletion vectors", "deletion vectors, one writer",
)  # fmt: skip


def test_our_commits_contain_what_java_waits_for_with_force_compact(java, tmp_path):
    """Java writes without waiting, so that only the option makes it wait."""
    script = [(verb, rows, {"wait": False}) for verb, rows in small(7)]
    for kind in ("small commits", "buckets without key"):
        made = CASES[kind][0]
        made = Kind(made.columns, made.primary_key, options={**made.options, "commit.force-compact": "true"})
        pairs = {turn: Pair(java("2.0.0"), tmp_path / kind, turn) for turn in "oj"}
        for turn, pair in pairs.items():
            pair.create(made, turn)
            for _, rows, extra in script:
                pair.act(("write", rows, *([extra] if turn == "j" else [])), turn)
        ours, theirs = (files(pair) for pair in pairs.values())
        assert ours == theirs and "COMPACT" in kinds_of(theirs)


@pytest.mark.java
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.full) for n in CASES])
def test_our_writers_compact_when_java_does(java, tmp_path, name):
    kind, script = CASES[name]
    described = check(java("2.0.0"), tmp_path, kind, script)
    assert ("COMPACT" in kinds_of(described)) == (name not in ("no buckets", "write-only"))


@pytest.mark.java
def test_writers_in_turn_take_up_each_others_levels(java, tmp_path):
    pairs = play(java("2.0.0"), tmp_path, KEYED, small(7), TURNS)
    same_histories(pairs)
    kinds = {turn: kinds_of(files(pair)) for turn, pair in pairs.items()}
    assert kinds["o"] == kinds["j"] == kinds["oj"] == kinds["jo"]


@pytest.mark.java
@pytest.mark.full
@pytest.mark.parametrize("seed", range(30))
def test_uneven_commits_make_the_same_levels(java, tmp_path, seed):
    draw = random.Random(seed)
    trigger = draw.choice([2, 3, 5])
    options = {"num-sorted-run.compaction-trigger": str(trigger)}
    if draw.random() < 0.3:
        options["compaction.size-ratio"] = str(draw.choice([0, 20, 100]))
    check(java("2.0.0"), tmp_path, keyed(**options), uneven(seed, 18), may_part=True)
