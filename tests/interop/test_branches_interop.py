"""Branches by us and by Java in turn: the same branches, snapshots, rows and files, whoever makes, fills and moves them."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from pair import Kind, Pair
from values import canonical_rows, difference, ours

pytestmark = pytest.mark.java

COLUMNS = [["p", "INT NOT NULL"], ["k", "INT NOT NULL"], ["v", "STRING"]]
KINDS = {
    "keyed": Kind(COLUMNS, primary_key=["p", "k"], partition_by=["p"], options={"bucket": "1"}),
    "append": Kind(COLUMNS, partition_by=["p"], options={"bucket": "-1"}),
}


def agree(pair: Pair, branch: str) -> None:
    """Both read the same rows of the branch, and see the same snapshots."""
    columns = pair.columns()
    theirs = canonical_rows(columns, pair.step("read", useBranch=branch))
    rows = ours(columns, pair.table().branch(branch).scan().to_arrow())
    assert difference(columns, theirs, rows) is None, branch


def rows_of(rng: random.Random) -> list[dict]:
    return [{"p": rng.randrange(2), "k": rng.randrange(9), "v": f"v{rng.randrange(99)}"} for _ in range(4)]


def write(pair: Pair, branch: str, by: str, rows: list[dict]) -> None:
    if by == "j":
        pair.step("write", rows=rows, useBranch=branch)
        return
    given = {name: [row[name] for row in rows] for name in ("p", "k", "v")}
    table = pair.table().branch(branch)
    schema = table.scan().schema
    table.write_arrow(pa.table(given, schema=schema))


def compact(pair: Pair, branch: str, by: str) -> None:
    if by == "j":
        pair.step("compact", full=True, useBranch=branch)
    else:
        pair.table().branch(branch).compact(full=True)


def make(pair: Pair, name: str, tag: str | None, by: str) -> None:
    if by == "j":
        pair.step("branch", action="create", name=name, **({} if tag is None else {"tag": tag}))
    else:
        pair.table().create_branch(name, from_=tag)


def live(pair: Pair, kind: str, seed: int) -> None:
    """A table with two branches, lived by both in turns."""
    rng = random.Random(seed)

    def turn() -> str:
        return rng.choice("oj")

    pair.create(KINDS[kind], turn())
    for _ in range(rng.randrange(1, 4)):
        write(pair, "main", turn(), rows_of(rng))
    pair.step("tag", name="t1")
    make(pair, "b", "t1", turn())
    make(pair, "e", None, turn())
    for _ in range(rng.randrange(3, 7)):
        branch = rng.choice(["main", "b", "b", "e"])
        write(pair, branch, turn(), rows_of(rng))
        if rng.random() < 0.3:
            compact(pair, branch, turn())
        agree(pair, branch)
    if rng.random() < 0.7:
        if turn() == "j":
            pair.step("branch", action="fastForward", name="b")
        else:
            pair.table().fast_forward("b", discard=True)
        agree(pair, "main")
        agree(pair, "b")
        write(pair, "main", turn(), rows_of(rng))
    for branch in ("main", "b", "e"):
        agree(pair, branch)
    assert pair.table().branches() == ["b", "e"]
    if turn() == "j":
        pair.step("branch", action="delete", name="e")
    else:
        pair.table().delete_branch("e")
    assert pair.table().branches() == ["b"]
    agree(pair, "main")


@pytest.mark.parametrize("kind", KINDS)
def test_branches_are_shared_with_java(java, kind, tmp_path):
    live(Pair(java("2.0.0"), tmp_path), kind, 1)


def files_moved(pair: Pair) -> set[str]:
    """All metadata files below the table, but hints."""
    paths = (path for path in pair.path.rglob("*") if path.is_file() and not path.name.endswith(".crc"))
    return {
        str(path.relative_to(pair.path)) for path in paths
        if path.parent.name in ("snapshot", "schema", "tag") and path.name not in ("EARLIEST", "LATEST")
    }


def test_a_fast_forward_leaves_what_java_leaves(java, tmp_path):
    left = []
    for by in "oj":
        pair = Pair(java("2.0.0"), tmp_path, f"t{by}")
        pair.create(KINDS["append"], "j")
        rng = random.Random(5)
        for _ in range(2):
            write(pair, "main", "j", rows_of(rng))
        pair.step("tag", name="t1")
        write(pair, "main", "j", rows_of(rng))
        pair.step("tag", name="t2")
        make(pair, "b", "t1", by)
        write(pair, "b", "j", rows_of(rng))
        write(pair, "b", "j", rows_of(rng))
        if by == "j":
            pair.step("branch", action="fastForward", name="b")
        else:
            pair.table().fast_forward("b", discard=True)
        left.append((files_moved(pair), pair.agree()))
    assert left[0] == left[1]


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2, 22))
@pytest.mark.parametrize("kind", KINDS)
def test_random_lives_of_branches_are_shared_with_java(java, kind, seed, tmp_path):
    live(Pair(java("2.0.0"), tmp_path), kind, seed)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(30, 36))
@pytest.mark.parametrize("version", ["1.4.2", "0.9.0"])
@pytest.mark.parametrize("kind", KINDS)
def test_branches_are_shared_with_older_javas(java, kind, version, seed, tmp_path):
    live(Pair(java(version), tmp_path), kind, seed)
