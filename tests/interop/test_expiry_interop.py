"""Expiry, tags and rollbacks by us and by Java, each of a copy of one table: the same snapshots, files and rows are left."""

from __future__ import annotations

import random
import shutil
from datetime import timedelta

import pytest
import table_scripts
from engine_play import play
from pair import HINTS, OUR_FILES, Kind, Pair

pytestmark = pytest.mark.java

QUICK = ("fixed vectors: merge", "dynamic: delete", "files, vectors: update", "fixed first-row: rounds", "files in parts: index")
SCRIPTS = {script.about: script for script in table_scripts.cells()}
VERSIONS = {"2.0.0": range(150), "1.4.2": range(150, 180), "0.9.0": range(180, 200)}
"""What paimon_py alone records, beside the tags."""
ALL_AGES = timedelta(milliseconds=-1)


def below(pair: Pair) -> set[str]:
    """All files, but for hints, which Java writes at other times, and records of our own."""
    paths = (path for path in pair.path.rglob("*") if path.is_file() and not path.name.endswith(".crc"))
    return {str(path.relative_to(pair.path)) for path in paths} - HINTS - OUR_FILES


def tagged(pair: Pair, name: str) -> list[str]:
    """The rows of a tag, whose schema may be an older one, as sorted texts."""
    return sorted(map(str, pair.table().scan(tag=name).to_arrow().to_pylist()))


def copies(played: Pair, directory) -> tuple[Pair, Pair]:
    """The table twice: for us and for Java."""
    for name in ("ours", "theirs"):
        shutil.copytree(played.warehouse, directory / name)
    return tuple(Pair(played.java, directory / name, played.path.name) for name in ("ours", "theirs"))


def expire_both(played: Pair, rng: random.Random, directory) -> None:
    """Tag some snapshots, then expire a copy by Java and one by us, in up to three rounds."""
    ids = [snapshot.id for snapshot in played.table().snapshots()]
    for number in rng.sample(ids, min(len(ids), rng.randrange(3))):
        played.table().create_tag(f"t{number}", snapshot_id=number)
    if rng.random() < 0.2:
        played.step("consumer", name="c", next=rng.choice(ids))
    ours, theirs = copies(played, directory)
    for _ in range(3):
        least, limit = rng.randrange(1, 6), rng.choice([1, 2, 50])
        most = rng.choice([least, least + 2, 2**31 - 1])
        result = ours.table().expire_snapshots(
            retain_min=least, retain_max=most, older_than=ALL_AGES, max_deletes=limit
        )
        assert theirs.step("expire", min=least, max=most, retainMillis=0, maxDeletes=limit) == len(result.snapshot_ids)
        assert below(ours) == below(theirs), result
        assert ours.agree() == theirs.agree()
        for tag in ours.table().tags():
            assert tagged(ours, tag.name) == tagged(theirs, tag.name)
    for tag in ours.table().tags():
        ours.table().delete_tag(tag.name)
        theirs.step("tag", name=tag.name, delete=True)
        assert below(ours) == below(theirs), tag
    left = [snapshot.id for snapshot in ours.table().snapshots()]
    target = rng.choice(left)
    assert ours.table().rollback_to(target).snapshot_ids == tuple(number for number in left if number > target)
    theirs.step("rollback", snapshot=target)
    if played.java.version != "0.9.0":  # deletes the files of what it rolled back, too
        assert below(ours) == below(theirs)
    assert ours.agree() == theirs.agree()
    last = ours.table().snapshot().id
    for pair in (ours, theirs):  # Java goes on beside our records, too
        pair.step("tag", name="java", snapshot=int(last))
        pair.step("expire", min=1, max=1, retainMillis=0, maxDeletes=50)
    if played.java.version != "0.9.0":
        assert below(ours) == below(theirs)
    assert tagged(ours, "java") == tagged(theirs, "java")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.full) for name in SCRIPTS]
)
def test_the_same_is_left_of_every_mode(name, java, tmp_path):
    played = play(java("2.0.0"), tmp_path / "made", SCRIPTS[name], ("oj",))["oj"]
    expire_both(played.pair, random.Random(name), tmp_path)


@pytest.mark.parametrize(
    ("version", "seed"),
    [
        pytest.param(version, seed, marks=() if seed in (3, 151, 181) else pytest.mark.full)
        for version, seeds in VERSIONS.items()
        for seed in seeds
    ],
)
def test_the_same_is_left_of_random_tables(version, seed, java, tmp_path):
    script = table_scripts.drawn(seed)
    played = play(java("2.0.0"), tmp_path / "made", script, ("o",))["o"]
    expire_both(Pair(java(version), played.pair.warehouse, "o"), random.Random(seed), tmp_path)


PRODUCERS = ("none", "input", "lookup", "full-compaction")


@pytest.mark.parametrize(("key", "producer"), [((), "none"), *((("k",), producer) for producer in PRODUCERS)])
def test_changelogs_outlive_snapshots_alike(key, producer, java, tmp_path):
    """Java writes; snapshots and then changelogs expire, in two rounds."""
    options = {"bucket": "1" if key else "-1", "changelog-producer": producer, "changelog.num-retained.min": "6",
               "snapshot.num-retained.min": "2"}  # fmt: skip
    made = Pair(java("2.0.0"), tmp_path / "made", "t")
    made.create(Kind([["k", "INT NOT NULL"], ["v", "STRING"]], list(key), options=options), "j")
    for number in range(8):
        rows = [{"k": key, "v": f"{number}"} for key in range(number, number + 3)]
        made.step("write", rows=rows, **({"compact": "full" if number % 2 else "normal"} if key else {}))
    made.table().create_tag("kept", snapshot_id=3)
    ours, theirs = copies(made, tmp_path)
    for least, changes in ((2, 6), (1, 4)):
        result = ours.table().expire_snapshots(retain_min=least, older_than=ALL_AGES)
        went = ours.table().expire_changelogs(retain_min=changes, older_than=ALL_AGES)
        most = 2**31 - 1
        changelog = {"min": changes, "max": most, "retainMillis": 0, "maxDeletes": 50}
        done = theirs.step("expire", min=least, max=most, retainMillis=0, maxDeletes=50, changelog=changelog)
        assert done == [len(result.snapshot_ids), len(went.snapshot_ids)], (result, went)
        assert below(ours) == below(theirs), (result, went)
        assert ours.agree() == theirs.agree()
    assert went.snapshot_ids and went.metadata_files
