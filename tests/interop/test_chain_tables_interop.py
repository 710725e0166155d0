"""Chain tables that Java wrote: we read the same rows as Java, whatever the branches hold."""

from __future__ import annotations

import itertools
import random

import golden
import pytest
from filters import predicate
from pair import Kind, Pair
from values import canonical_rows, difference, ours

pytestmark = pytest.mark.java

DAYS = [f"202501{day:02d}" for day in range(28, 32)] + [f"202502{day:02d}" for day in range(1, 5)]
DAILY = {"partition.timestamp-pattern": "$dt", "partition.timestamp-formatter": "yyyyMMdd"}
HOURLY = {
    "partition.timestamp-pattern": "$dt $h:00:00", "partition.timestamp-formatter": "yyyyMMdd HH:mm:ss",
    "chain-table.chain-partition-keys": "dt,h",
}  # fmt: skip
ENGINES = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "deletion vectors": {"deletion-vectors.enabled": "true"},
}


def kind_of(rng: random.Random) -> tuple[Kind, list[dict]]:
    """A chain table, and its partitions in order."""
    options = {"bucket": str(rng.choice([1, 2])), "bucket-key": "k", "chain-table.enabled": "true", "sequence.field": "seq"}
    options |= ENGINES[rng.choice([*ENGINES])]
    value = [["k", "INT NOT NULL"], ["seq", "INT"], ["v", "STRING"], ["w", "INT"]]
    if rng.random() < 0.5:
        columns = [*value, ["dt", "STRING NOT NULL"]]
        return Kind(columns, ["dt", "k"], ["dt"], options | DAILY), [{"dt": day} for day in DAYS]
    places = [{"g": g, "dt": dt, "h": h} for g in (1, 2) for dt in DAYS[3:5] for h in ("00", "09", "23")]
    columns = [*value, ["g", "INT NOT NULL"], ["dt", "STRING NOT NULL"], ["h", "STRING NOT NULL"]]
    return Kind(columns, ["g", "dt", "h", "k"], ["g", "dt", "h"], options | HOURLY), places


def chain(pair: Pair, kind: Kind) -> None:
    """Let Java make the table and its branches."""
    pair.create(kind, "j")
    names = [["set", "scan.fallback-snapshot-branch", "snapshot"], ["set", "scan.fallback-delta-branch", "delta"]]
    pair.steps(
        [{"op": "branch", "action": "create", "name": name} for name in ("snapshot", "delta")]
        + [{"op": "alter", "changes": names}]
        + [{"op": "alter", "table": f"{pair.name}$branch_{name}", "changes": names} for name in ("snapshot", "delta")]
    )


def write(pair: Pair, branch: str, rows: list[dict], **more) -> dict:
    table = pair.name if branch == "main" else f"{pair.name}$branch_{branch}"
    return {"op": "write", "table": table, "rows": rows, **more}


def live(pair: Pair, rng: random.Random, steps: int) -> list[dict]:
    """Random rows in random branches.

    Sequence numbers never repeat, since the order of equal ones is not defined. With deletion vectors they ascend: Java
    loses a row that a compaction moved to a lower level, because it takes the dead version, which is as new, for a delete.
    """
    kind, places = kind_of(rng)
    chain(pair, kind)
    numbers = rng.sample(range(10_000), 2_000)
    numbers = iter(sorted(numbers) if "deletion-vectors.enabled" in kind.options else numbers)
    made = []
    for _ in range(steps):
        branch = rng.choices(["main", "snapshot", "delta"], [1, 3, 5])[0]
        kinds = ["-D"] if rng.random() < 0.15 else ["+I"] * 4 + ["-D"]
        rows = [
            {**place, "k": rng.randrange(8), "seq": next(numbers), "v": rng.choice([None, "a", "b"]),
             "w": rng.choice([None, 1, 2]), "_kind": rng.choice(kinds)}
            for place in rng.sample(places, rng.choice([1, 1, 2])) for _ in range(rng.randrange(1, 6))
        ]  # fmt: skip
        made.append(write(pair, branch, rows, **({"compact": "full"} if rng.random() < 0.4 else {})))
    pair.steps(made)
    return places


_KEYS_ALONE = 4
"""So many filters are of keys or partitions alone. By others Java leaves out files of one branch before the merge."""


def filters_of(rng: random.Random, places: list[dict]) -> list:
    place = rng.choice(places)
    where = ["and", *(["=", name, value] for name, value in place.items())]
    return [
        where, [">", "dt", place["dt"]], ["=", "k", 3], ["and", where, ["<=", "k", 4]],
        ["=", "v", "a"],
        ["or", ["=", "k", 1], where], ["isNull", "w"], ["and", ["=", "dt", place["dt"]], [">", "w", 1], ["in", "k", [1, 5]]],
    ]  # fmt: skip


def agree(pair: Pair, rng: random.Random, places: list[dict]) -> None:
    rows = pair.agree()
    columns = pair.columns()
    types = {name: golden.parse_type(kind) for name, kind in columns}
    table = pair.table()
    assert table.scan().count() == len(rows)
    trees = filters_of(rng, places)
    theirs = pair.steps([{"op": "read", "filter": tree, "executeFilter": True} for tree in trees[:_KEYS_ALONE]])
    for tree, found in itertools.zip_longest(trees, theirs):
        want = [row for row in rows if golden.matches(dict(zip(types, row)), tree, types)]
        scan = table.scan(where=predicate(tree, types))
        assert difference(columns, want, ours(columns, scan.to_arrow())) is None, f"we filter wrongly by {tree}"
        assert scan.count() == len(want)
        if found is not None:
            assert difference(columns, want, canonical_rows(columns, found)) is None, f"Java filters otherwise by {tree}"
    some = [["dt", "STRING NOT NULL"], ["w", "INT"]]
    at = [[name for name, _ in columns].index(name) for name, _ in some]
    assert difference(some, [[row[n] for n in at] for row in rows], ours(some, table.scan(columns=["dt", "w"]).to_arrow())) is None
    assert table.scan(columns=["dt"], limit=2).to_arrow().num_rows == min(2, len(rows))
    ordered = table.scan(order_by=[("dt", "descending"), "k"], limit=5).to_arrow()
    assert ordered["dt"].to_pylist() == sorted((row[at[0]] for row in rows), reverse=True)[:5]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.full)])
def test_chains_read_as_in_java(java, tmp_path, seed):
    rng = random.Random(seed)
    pair = Pair(java("2.0.0"), tmp_path)
    places = live(pair, rng, 6)
    agree(pair, rng, places)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_chains_read_as_in_java(java, tmp_path, seed):
    rng = random.Random(seed)
    pair = Pair(java("2.0.0"), tmp_path)
    places = live(pair, rng, 14)
    agree(pair, rng, places)
