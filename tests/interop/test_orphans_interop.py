"""Orphans removed by us and by Java, each from a copy of one table: the same files are left."""

from __future__ import annotations

import os
import random
from datetime import datetime, timedelta

import pytest
import table_scripts
from engine_play import play
from pair import Pair
from test_expiry_interop import ALL_AGES, SCRIPTS, below, copies, tagged

pytestmark = pytest.mark.java

OLD, YOUNG = 1_000_000_000, 1_500_000_000
LIMIT = "2015-01-01 00:00:00"
QUICK = ("fixed vectors: merge", "dynamic: delete", "files in parts: index")
SEEDS = {"2.0.0": range(60), "1.4.2": range(60, 75), "0.9.0": range(75, 90)}
NAMES = ("data-{}-0.parquet", "manifest-{}-0", "index-{}-0", "readme-{}", ".{}.tmp", "x-changelog-{}", "_SUCCESS{}")
BLOB = "{}.managed.blob"
"""What may be planted; only 2.0 knows packs of blobs; a snapshot directory keeps all that begins like a snapshot."""


def age(pair: Pair, rng: random.Random, young: float) -> None:
    """Make all files old, but for some."""
    for name in sorted(str(path) for path in pair.path.rglob("*") if path.is_file()):
        seconds = YOUNG if rng.random() < young else OLD
        os.utime(name, (seconds, seconds))


def plant(played: Pair, rng: random.Random) -> None:
    """Put files into some directories; names differ, since Java tells files by their names."""
    directories = sorted(str(path) for path in played.path.rglob("*") if path.is_dir())
    directories += [str(played.path / name) for name in ("", "index", "statistics", "changelog", "bucket-77", "x")]
    keys = played.table()._schema.partition_keys
    directories += [str(played.path / f"{keys[0]}=9" / "bucket-0")] if len(keys) == 1 else []
    for number, directory in enumerate(rng.choices(directories, k=12)):
        os.makedirs(directory, exist_ok=True)
        name = rng.choice((*NAMES, BLOB) if played.java.version == "2.0.0" else NAMES).format(f"p{number}")
        with open(os.path.join(directory, name), "w") as file:
            file.write("orphan")


def live(played: Pair, rng: random.Random) -> None:
    """Tags, expiry, a rollback and lost snapshot files leave orphans, and things that keep files."""
    table = played.table()
    ids = [snapshot.id for snapshot in table.snapshots()]
    for number in rng.sample(ids, min(len(ids), rng.randrange(3))):
        table.create_tag(f"t{number}", snapshot_id=number)
    if rng.random() < 0.4:
        table.create_branch("b", from_=rng.choice([tag.name for tag in table.tags()] or [None]))
    if rng.random() < 0.5:
        table.rollback_to(rng.choice(ids[len(ids) // 2 :]))
    left = [snapshot.id for snapshot in table.snapshots()]
    if rng.random() < 0.6:
        for number in left[: rng.randrange(len(left))]:
            os.unlink(played.path / "snapshot" / f"snapshot-{number}")
    elif rng.random() < 0.5:
        table.expire_snapshots(retain_min=1, retain_max=2, older_than=ALL_AGES)
    for tag in table.tags():
        if rng.random() < 0.3:
            os.unlink(played.path / "tag" / f"tag-{tag.name}")


def clean_both(played: Pair, rng: random.Random, directory) -> int:
    live(played, rng)
    plant(played, rng)
    age(played, rng, rng.choice([0.0, 0.3]))
    ours, theirs = copies(played, directory)
    found = ours.table().remove_orphans(older_than=datetime(2015, 1, 1))
    before = below(ours)
    assert before == below(theirs)
    done = ours.table().remove_orphans(older_than=datetime(2015, 1, 1), dry_run=False)
    assert (done.files, done.size_bytes, done.left_files) == (found.files, found.size_bytes, 0)
    theirs.step("orphan", olderThan=LIMIT, dryRun=False)
    assert below(ours) == below(theirs), sorted(below(ours) ^ below(theirs))
    assert len(before) - len(below(ours)) == done.files
    assert ours.agree() == theirs.agree()
    for tag in ours.table().tags():
        assert tagged(ours, tag.name) == tagged(theirs, tag.name)
    assert theirs.table().remove_orphans(older_than=datetime(2015, 1, 1)).files == 0
    told = ours.step("orphan", olderThan=LIMIT, dryRun=True)
    assert [path for path in told if not path.endswith(".managed.blob")] == [], "Java tells of packs that it keeps"
    ours.table().remove_orphans(older_than=timedelta(days=1), dry_run=False)
    assert ours.agree() == theirs.agree()
    return done.files


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.full) for name in SCRIPTS]
)
def test_the_same_is_left_of_every_mode(name, java, tmp_path):
    played = play(java("2.0.0"), tmp_path / "made", SCRIPTS[name], ("oj",))["oj"]
    clean_both(played.pair, random.Random(name), tmp_path)


@pytest.mark.parametrize(
    ("version", "seed"),
    [
        pytest.param(version, seed, marks=() if seed in (3, 61, 76) else pytest.mark.full)
        for version, seeds in SEEDS.items()
        for seed in seeds
    ],
)
def test_the_same_is_left_of_random_tables(version, seed, java, tmp_path):
    played = play(java("2.0.0"), tmp_path / "made", table_scripts.drawn(seed), ("o",))["o"]
    clean_both(Pair(java(version), played.pair.warehouse, "o"), random.Random(seed), tmp_path)
