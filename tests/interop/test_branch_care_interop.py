"""Branches made, written, read, moved on to and deleted by us and by Java: both see the same, and the same files are left."""

from __future__ import annotations

import contextlib
import random
import shutil
from datetime import timedelta

import pytest
from pair import Kind, Pair

from paimon_py import NotFoundError, SetOption

pytestmark = pytest.mark.java

ALL_AGES = timedelta(milliseconds=-1)
MOST = 2**31 - 1
VERSIONS = ("2.0.0", "1.4.2", "0.9.0")
COLUMNS = [["k", "INT NOT NULL"], ["p", "STRING NOT NULL"], ["v", "INT"]]
KINDS = {
    "keyed": Kind(COLUMNS, ["p", "k"], ["p"], {"bucket": "1"}),
    "dynamic": Kind(COLUMNS, ["p", "k"], ["p"], {"bucket": "-1"}),
    "append": Kind(COLUMNS, [], ["p"], {"bucket": "-1"}),
}


class Branch(Pair):
    """A branch that we and a Java Paimon share."""

    def __init__(self, pair: Pair, branch: str) -> None:
        super().__init__(pair.java, pair.warehouse, pair.path.name)
        self.branch = branch

    def table(self):
        return super().table().branch(self.branch)

    def steps(self, steps, check=True):
        named = {} if self.branch == "main" else {"useBranch": self.branch}
        return super().steps([{**step, **named} for step in steps], check)


class Life:
    """A table whose branches both sides make and write in turn."""

    def __init__(self, pair: Pair, rng: random.Random) -> None:
        self.pair, self.rng, self.made = pair, rng, 0

    @property
    def names(self):
        return ["main", *self.pair.table().branches()]

    def rows(self):
        return [{"k": self.rng.randrange(8), "p": self.rng.choice("ab"), "v": self.rng.randrange(100)} for _ in range(3)]

    def step(self):
        branch = Branch(self.pair, self.rng.choice(self.names))
        what, ours = self.rng.choice(["write", "write", "write", "branch", "compact"]), self.rng.random() < 0.5
        table = branch.table()
        if what == "branch" and len(self.names) < 4 and table.snapshot() is not None:
            self.branch(branch, table, ours=ours)
        elif what == "compact" and table.schema.primary_keys:
            _ = table.compact(full=True) if ours else branch.step("compact")
        elif ours:
            branch.our_write(self.rows())
        else:
            branch.step("write", rows=self.rows())

    def branch(self, branch, table, *, ours):
        """Branches begin at a tag of main, which Java's expiry spares, or empty."""
        self.made += 1
        name, main = f"b{self.made}", self.pair.table()
        tag = f"t{self.made}" if self.rng.random() < 0.8 and main.snapshot() is not None else None
        if tag is not None:
            main.create_tag(tag)
        if ours:
            main.create_branch(name, from_=tag)
        else:
            self.pair.step("branch", action="create", name=name, **({} if tag is None else {"tag": tag}))

    def agree(self):
        for name in self.names:
            Branch(self.pair, name).agree()


def copies(pair: Pair, directory) -> tuple[Pair, Pair]:
    """The table twice: for us and for Java."""
    for name in ("ours", "theirs"):
        shutil.copytree(pair.warehouse, directory / name)
    return tuple(Pair(pair.java, directory / name, pair.path.name) for name in ("ours", "theirs"))


def below(pair: Pair) -> set[str]:
    """All files, but for hints, which Java writes at other times, and the records that we keep beside tags."""
    paths = (path for path in pair.path.rglob("*") if path.is_file() and path.suffix != ".crc")
    return {str(path.relative_to(pair.path)) for path in paths if path.name not in ("EARLIEST", "LATEST", "ANCESTOR")}


def named(pair: Pair) -> set[str]:
    """The names of all files that a snapshot or tag of any branch names."""
    found = set()
    for name in ("main", *pair.table().branches()):
        root = pair.table().branch(name)._root
        for snapshot in [*map(root.snapshots.get, root.snapshots.ids()), *(tag.snapshot for tag in root.tags.list())]:
            lists = [snapshot.base_manifest_list, snapshot.delta_manifest_list]
            found |= {*lists, *root.manifests.file_names(snapshot)}
            found |= {manifest.name for one in lists for manifest in root.manifests.read_list(one)}
    return found


def same(ours: Pair, theirs: Pair, spared: set[str]) -> None:
    """Java's expiry may delete what another branch names, and its fast-forward tags of states that stay: we keep
    both, and nothing else that Java deletes. Its fast-forward keeps snapshots of main below those of the branch, and
    their tags, also where the branch does not come from them.

    `spared`: what was kept so; an orphan once that branch is deleted.
    """
    mine, others = below(ours), below(theirs)
    strange = {path for path in others - mine if path.startswith(("snapshot/", "tag/"))}
    assert others - strange <= mine
    first = min((snapshot.id for snapshot in ours.table().snapshots()), default=0)
    assert all(int(path.rpartition("-")[2]) < first for path in strange if path.startswith("snapshot/"))
    tags = {path for path in mine - others if path.startswith("tag/")}
    assert {path.rpartition("tag-")[2] for path in tags} <= {tag.name for tag in ours.table().tags()}
    more = {path.rpartition("/")[2] for path in mine - others - tags}
    assert more - spared <= named(ours)
    spared |= more
    for name in ("main", *ours.table().branches()):
        assert Branch(ours, name).agree() == Branch(theirs, name).agree()


def end(pair: Pair, rng: random.Random, directory) -> None:
    """Expire a branch, move main on to one, and delete one: of a copy by Java, and of one by us."""
    ours, theirs = copies(pair, directory)
    spared: set[str] = set()
    for name in rng.sample(pair.table().branches(), len(pair.table().branches())):
        branch = Branch(ours, name)
        if branch.table().snapshot() is not None:
            gone = branch.table().expire_snapshots(retain_min=1, retain_max=1, older_than=ALL_AGES).snapshot_ids
            assert Branch(theirs, name).step("expire", min=1, max=1, retainMillis=0, maxDeletes=50) == len(gone)
            same(ours, theirs, spared)
            if rng.random() < 0.7:
                ours.table().fast_forward(name, discard=True)
                theirs.step("branch", action="fastForward", name=name)
                same(ours, theirs, spared)
        ours.table().delete_branch(name)
        theirs.step("branch", action="delete", name=name)
        same(ours, theirs, spared)
    # what one side moved on to, the other one writes to
    row = {"k": 100, "p": "a", "v": 1}
    ours.step("write", rows=[row])
    theirs.our_write([row])
    assert ours.agree() == theirs.agree()


@pytest.mark.parametrize(
    ("version", "seed"),
    [
        pytest.param(version, seed, marks=() if (seed, version) == (0, "2.0.0") else pytest.mark.full)
        for version in VERSIONS
        for seed in range(12)
    ],
)
def test_branches_of_both(version, seed, java, tmp_path):
    rng = random.Random(f"{version} {seed}")
    pair = Pair(java(version), tmp_path / "made")
    pair.create(KINDS[rng.choice(list(KINDS))], rng.choice("oj"))
    life = Life(pair, rng)
    pair.our_write(life.rows())
    life.branch(pair, pair.table(), ours=seed % 2 == 0)
    for _ in range(7):
        life.step()
    life.agree()
    end(pair, rng, tmp_path)


@pytest.mark.parametrize("version", ["2.0.0", pytest.param("1.4.2", marks=pytest.mark.full)])
def test_partitions_that_a_branch_lacks(version, java, tmp_path):
    """Scans of Java and ours find the same rows in two branches, at every state, also of the system tables."""
    for number, (kind, by) in enumerate([("keyed", "o"), ("append", "j"), ("dynamic", "o")]):
        rng = random.Random(number)
        pair = Pair(java(version), tmp_path / "made", f"t{number}")
        pair.create(KINDS[kind], by)
        pair.table().create_branch("b")
        branch = Branch(pair, "b")
        if by == "o":
            pair.table().alter(SetOption("scan.fallback-branch", "b"))
        else:
            pair.step("alter", changes=[["set", "scan.fallback-branch", "b"]])
        for _ in range(6):
            target = rng.choice([pair, branch])
            target.our_write([{"k": rng.randrange(9), "p": rng.choice("abcd"), "v": rng.randrange(99)} for _ in range(2)])
        pair.agree()
        branch.agree()
        pair.check_filters([["=", "p", "b"], [">", "k", 4], ["and", ["!=", "p", "a"], ["<", "v", 50]]], pair.agree())
        for snapshot in pair.table().snapshots():
            theirs = pair.java_rows(options={"scan.snapshot-id": str(snapshot.id)})
            assert sorted(map(str, theirs)) == sorted(map(str, pair.our_rows(snapshot_id=snapshot.id)))
        with contextlib.suppress(NotFoundError):  # the branch alone may have the partition
            pair.table().drop_partitions([{"p": "a"}])
        pair.agree()


def test_buckets_of_partitions_that_a_branch_lacks(java, tmp_path):
    """Java looks for partitions in the asked bucket alone, and takes other buckets of a partition from the other branch."""
    pair = Pair(java("2.0.0"), tmp_path)
    pair.create(Kind(COLUMNS, ["p", "k"], ["p"], {"bucket": "2"}), "j")
    pair.step("branch", action="create", name="b")
    pair.step("alter", changes=[["set", "scan.fallback-branch", "b"]])
    pair.our_write([{"k": 1, "p": "a"}])
    Branch(pair, "b").our_write([{"k": k, "p": p} for p in "ab" for k in range(10, 20)])
    whole, buckets = pair.agree(), [{"scan.bucket": str(bucket)} for bucket in (0, 1)]
    ours, theirs = ([row for one in buckets for row in read(options=one)] for read in (pair.our_rows, pair.java_rows))
    assert sorted(map(str, ours)) == sorted(map(str, whole))
    mixed = [row for row in theirs if row not in whole]
    assert mixed and all(row[1] == "a" for row in mixed)
