"""Producer `input` by us, by Java and by both in turn: the same changelog, file by file and row by row, whoever reads."""

from __future__ import annotations

import random

import pytest
from pair import Kind, Pair, differences, forgive, play, same_histories, sorted_facts
from values import arrow_rows, canonical_rows, ours

from paimon_py import col

pytestmark = pytest.mark.java

COLUMNS = [["p", "INT NOT NULL"], ["k", "INT NOT NULL"], ["v", "STRING"], ["n", "INT"], ["d", "DOUBLE"]]
INPUT = {"changelog-producer": "input"}
ADDS, ALL = ("+I", "+I", "+U"), ("+I", "+I", "-U", "+U", "-D")
PLACED = {
    "changelog-file.format": "orc",
    "changelog-file.compression": "none",
    "changelog-file.prefix": "c-",
    "changelog-file.stats-mode": "counts",
}
SUMS = {
    "merge-engine": "aggregation",
    "fields.n.aggregate-function": "sum",
    "fields.v.aggregate-function": "last_value",
}

CASES = {
    "deduplicate": (("k",), (), {"bucket": "2"}, ALL),
    "by a field": (("k",), (), {"bucket": "1", "sequence.field": "n"}, ALL),
    "falling": (("k",), (), {"bucket": "1", "sequence.field": "n", "sequence.field.sort-order": "descending"}, ALL),
    "orc": (("k",), (), {"bucket": "1", "file.format": "orc"}, ALL),
    "avro": (("k",), (), {"bucket": "1", "file.format": "avro"}, ALL),
    "placed": (("k",), (), {"bucket": "1", **PLACED}, ALL),
    "thin": (("k",), (), {"bucket": "1", "data-file.thin-mode": "true"}, ALL),
    "per level": (("k",), (), {"bucket": "1", "file.format.per.level": "0:avro"}, ALL),
    "parts": (("p", "k"), ("p",), {"bucket": "2"}, ALL),
    "partial-update": (("k",), (), {"bucket": "1", "merge-engine": "partial-update"}, ADDS),
    "groups": (("k",), (), {"bucket": "1", "merge-engine": "partial-update", "fields.n.sequence-group": "v"}, ADDS),
    "sums": (("p", "k"), (), {"bucket": "1", **SUMS}, ALL),
    "vectors": (("k",), (), {"bucket": "1", "deletion-vectors.enabled": "true"}, ALL),
    "ignored deletes": (("k",), (), {"bucket": "1", "ignore-delete": "true"}, ALL),
    "write-only": (("k",), (), {"bucket": "1", "write-only": "true"}, ALL),
    "dynamic": (("p", "k"), ("p",), {"dynamic-bucket.target-row-num": "7"}, ALL),
    "dynamic whole": (("k",), (), {"dynamic-bucket.target-row-num": "5"}, ALL),
    "postponed": (("p", "k"), ("p",), {"bucket": "-2", "postpone.default-bucket-num": "2"}, ALL),
    "moving": (("k",), ("p",), {}, ADDS),
}  # fmt: skip
BOUNDED = ("parts", "postponed")
DYNAMIC = ("dynamic", "dynamic whole", "moving")
OWN_SNAPSHOTS = ("vectors", "postponed")
"""What is compacted with others depends on the sizes of files, or is published at once by one side and not by the other."""


def few(names, *bounded):
    return [name if name in bounded else pytest.param(name, marks=pytest.mark.full) for name in names]


def some_rows(draw: random.Random, kinds: tuple[str, ...], count: int = 15) -> list[dict]:
    """Rows of few keys: most keys come more than once in one commit."""
    return [
        {"p": draw.randrange(2), "k": draw.randrange(12), "v": draw.choice([None, "a", f"{draw.random()}"]),
         "n": draw.choice([None, draw.randrange(9)]), "d": draw.choice([0.0, -0.0, 1.5, "NaN"]), "_kind": draw.choice(kinds)}
        for _ in range(count)
    ]  # fmt: skip


def script_of(name: str) -> list[tuple]:
    keys, parts, options, kinds = CASES[name]
    draw = random.Random(name)
    write = lambda: ("write", some_rows(draw, kinds))  # noqa: E731
    rounds = ("rounds", [some_rows(draw, kinds) for _ in range(3)])
    if options.get("bucket") == "-2":
        return [write(), write(), ("compact", False), rounds, write(), ("compact", True), write(), ("compact", True)]
    where = {"p": "1"} if parts else {}
    if name in DYNAMIC:
        return [write(), rounds, write(), ("compact", True), write(), write()]
    rest = [{**row, "p": 1} for row in some_rows(draw, ("+I",))]
    ends = ("drop", [{"p": "0"}]) if parts else ("truncate",)
    return [write(), rounds, write(), ("compact", True), write(), ("overwrite", where, rest), write(), ends, write()]


def told_by_java(pair: Pair, keys: tuple[str, ...]) -> list[tuple]:
    """What Java's stream tells: the next snapshot, and the rows by key, those of a key in their order."""
    columns = [*pair.columns(), ["_kind", "STRING"]]
    plans = pair.step("streamRead", **{"from": 1}, plans=len(pair.table().snapshots()) + 1)
    steps = [
        (plan["next"], by_key(canonical_rows(columns, plan["rows"]), columns, keys))
        for plan in plans
        if plan.get("rows")
    ]
    assert steps
    return steps


def told_by_us(pair: Pair, keys: tuple[str, ...]) -> list[tuple]:
    columns = [*pair.columns(), ["_kind", "STRING"]]
    table, steps = pair.table(), []
    for snapshot in table.snapshots():
        rows = table.changes(snapshot.id - 1, snapshot.id, mode="changelog").to_arrow()
        if rows.num_rows:
            rows = rows.rename_columns([*rows.schema.names[:-1], "_kind"])
            steps.append((snapshot.id + 1, by_key(ours(columns, rows), columns, keys)))
    return steps


def by_key(rows: list, columns: list, keys: tuple[str, ...]) -> list:
    places = [[column[0] for column in columns].index(key) for key in keys]
    return sorted(rows, key=lambda row: [row[at] for at in places])  # stable: versions of a key stay in their order


def changelog_files(pair: Pair) -> list[list[dict]]:
    """The changelog files of every snapshot, as Java decodes them, without what is drawn or measured."""
    steps = [{"op": "files", "snapshot": snapshot.id, "mode": "changelog"} for snapshot in pair.table().snapshots()]
    return [sorted_facts(files) for files in pair.steps(steps)]


def counts(pair: Pair) -> list[tuple]:
    steps = [{"op": "snapshot", "snapshot": snapshot.id} for snapshot in pair.table().snapshots()]
    return [
        (s["commitKind"], s.get("changelogRecordCount") or None, s["deltaRecordCount"], s["totalRecordCount"])
        for s in pair.steps(steps)
    ]


def same_changelogs(pairs: dict[str, Pair], keys: tuple[str, ...]) -> None:
    """Whoever wrote, whoever reads."""
    want = told_by_java(pairs["j"], keys)
    for turn, pair in pairs.items():
        assert told_by_java(pair, keys) == want, f"{turn}: Java is told something else"
        assert told_by_us(pair, keys) == want, f"{turn}: we are told something else"


def same_files(pairs: dict[str, Pair], fmt: str) -> None:
    """Changelog files are described alike, and counted alike in their snapshots."""
    files, numbers = changelog_files(pairs["j"]), counts(pairs["j"])
    for turn, pair in pairs.items():
        assert counts(pair) == numbers, turn
        for number, (mine, theirs) in enumerate(zip(changelog_files(pair), files, strict=True), 1):
            assert len(mine) == len(theirs), f"{turn}: snapshot {number} has another number of changelog files"
            theirs = [dict(facts, valueStats=dict(facts["valueStats"])) for facts in theirs]
            forgive(mine, theirs, pair.columns(), fmt)
            assert not (unlike := differences(mine, theirs)), f"{turn}: changelog files of snapshot {number}: {unlike}"


def numbered(steps: list[tuple]) -> list[tuple]:
    """The steps by their place instead of their snapshot."""
    return [(at, rows) for at, (_, rows) in enumerate(steps)]


@pytest.mark.parametrize("name", few(CASES, *BOUNDED))
def test_the_same_script_tells_the_same_whoever_writes(java, tmp_path, name):
    keys, parts, options, _ = CASES[name]
    kind = Kind(COLUMNS, list(keys), list(parts), {**INPUT, **options})
    pairs = play(java("2.0.0"), tmp_path, kind, script_of(name))
    if name in OWN_SNAPSHOTS:
        want = numbered(told_by_java(pairs["j"], keys))
        for turn, pair in pairs.items():
            assert numbered(told_by_java(pair, keys)) == numbered(told_by_us(pair, keys)) == want, turn
        return
    same_changelogs(pairs, keys)
    same_files(pairs, options.get("changelog-file.format", options.get("file.format", "parquet")))
    same_histories(pairs)


@pytest.mark.parametrize("version", few(["1.4.2", "0.9.0"]))
def test_older_releases_write_and_read_the_same(java, tmp_path, version):
    kind = Kind(COLUMNS, ["p", "k"], ["p"], {**INPUT, "bucket": "2"})
    pairs = play(java(version), tmp_path, kind, script_of("parts")[:5], turns=("j", "oj"))
    same_changelogs(pairs, ("p", "k"))
    same_files({"j": pairs["j"], "oj": pairs["oj"]}, "parquet")


def test_row_operations_tell_what_they_write(java, tmp_path):
    """Java's engines write deleted rows as −D, changed rows as +U and new rows as +I."""
    kind = Kind(COLUMNS, ["p", "k"], ["p"], {**INPUT, "bucket": "1"})
    one = {"p": 0, "k": 1, "v": "a", "n": 1, "d": 1.5}
    two, three = {**one, "k": 2, "n": 2}, {**one, "p": 1, "k": 3, "n": 3}
    script = [("write", [one, two, three]), ("write", [{**one, "_kind": "-D"}]), ("write", [{**two, "n": 12, "_kind": "+U"}]),
              ("write", [{**two, "v": "m", "n": 12, "_kind": "+U"}, {**one, "k": 9, "_kind": "+I"}]), ("write", [{**three, "v": "u"}])]  # fmt: skip
    pairs = play(java("2.0.0"), tmp_path, kind, script, turns=("j",))
    pair = pairs["o"] = Pair(java("2.0.0"), tmp_path, "o")
    pair.create(kind, "o")
    pair.act(script[0], "o")
    table = pair.table()
    table.delete((col("p") == 0) & (col("k") == 1))
    table.update(col("k") == 2, {"n": 12})
    source = arrow_rows(table.schema, pair.columns(), [{**two, "v": "m"}, {**one, "k": 9}])
    table.merge(source, on=["p", "k"], when_matched_update={"v": "source.v"}, when_not_matched_insert=True)
    table.upsert(arrow_rows(table.schema, pair.columns(), [{**three, "v": "u"}]))
    same_changelogs(pairs, ("p", "k"))
    same_files(pairs, "parquet")


def test_rows_that_lost_a_race_are_told_after_those_of_the_winner(java, tmp_path):
    """The later commit gets later numbers, in level 0 and in its changelog."""
    pair = Pair(java("2.0.0"), tmp_path)
    pair.create(Kind(COLUMNS, ["k"], [], {**INPUT, "bucket": "1", "write-only": "true"}), "o")
    table = pair.table()
    rows = [[{"p": 0, "k": 1, "v": f"{mark}{at}", "n": at, "d": 0.0} for at in range(3)] for mark in "ab"]
    with table.writer() as winner, table.writer() as loser:
        for writer, part in zip((winner, loser), rows):
            writer.write_arrow(arrow_rows(table.schema, pair.columns(), part))
        table.commit(winner.changes())
        table.commit(loser.changes())
    assert [[row[2] for row in step] for _, step in told_by_java(pair, ("k",))] == [
        ["a0", "a1", "a2"],
        ["b0", "b1", "b2"],
    ]
    numbers = [
        [(file["minSequenceNumber"], file["maxSequenceNumber"]) for file in files] for files in changelog_files(pair)
    ]
    assert numbers == [[(0, 2)], [(3, 5)]]
    assert {file["maxSequenceNumber"] for file in pair.step("files")} == {2, 5}
    assert [row[2] for row in pair.agree()] == ["b2"]
