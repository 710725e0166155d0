"""The same table compacted by Java and by us: twins that start from the same files."""

from __future__ import annotations

import random

import pytest
from pair import Kind, Pair
from twins import Twins, kind_with
from values import difference

pytestmark = pytest.mark.java

KEYED = Kind([["k", "INT NOT NULL"], ["v", "STRING"], ["n", "BIGINT"]], ["k"], options={"bucket": "2", "write-only": "true"})
PARTED = Kind(
    [["p", "INT NOT NULL"], ["k", "STRING NOT NULL"], ["d", "DECIMAL(12, 2)"], ["t", "TIMESTAMP(6)"]],
    ["p", "k"], ["p"], {"bucket": "1", "write-only": "true"},
)  # fmt: skip


def life(twins: Twins, make_rows, steps: int, full_share: float = 0.3, alike: bool = True) -> set[int]:
    """Random writes and compactions; the levels on which files were seen."""
    rng = twins.rng
    seen = set()
    for _ in range(steps):
        for _ in range(rng.randrange(1, 5)):
            twins.write(make_rows(rng), rng.choice("oj"))
        twins.compact(full=rng.random() < full_share, alike=alike)
        seen |= {entry["level"] for entry in twins.theirs.step("files")}
    return seen


def keyed_rows(rng: random.Random) -> list[dict]:
    keys = rng.sample(range(300), rng.choice([2, 20, 100]))
    rows = [{"k": k, "v": f"{rng.random()}" * rng.randrange(1, 9), "n": rng.choice([None, rng.randrange(-(2**60), 2**60)])} for k in keys]
    return [{**row, "_kind": rng.choice(["+I", "+I", "+U", "-D", "-U"])} for row in rows]


def appended_rows(rng: random.Random) -> list[dict]:
    return [{"k": rng.randrange(9), "v": "x" * rng.randrange(200)} for _ in range(rng.choice([1, 5, 60]))]


def parted_rows(rng: random.Random) -> list[dict]:
    return [
        {"p": rng.randrange(3), "k": f"key-{rng.randrange(60)}", "d": f"{rng.randrange(10**6)}.25",
         "t": f"2024-01-{rng.randrange(1, 28):02}T00:00:00.{rng.randrange(10**6):06}", "_kind": rng.choice(["+I", "+U", "-D"])}
        for _ in range(rng.randrange(1, 40))
    ]  # fmt: skip


SCRIPTS = {
    "keyed": (KEYED, keyed_rows),
    "parted": (PARTED, parted_rows),
    "eager": (kind_with(KEYED, **{"num-sorted-run.compaction-trigger": "2", "num-levels": "4"}), keyed_rows),
    "small files": (kind_with(KEYED, **{"target-file-size": "4 kb", "num-sorted-run.compaction-trigger": "3"}), keyed_rows),
    "orc": (kind_with(PARTED, **{"file.format": "orc"}), parted_rows),
    "avro": (kind_with(PARTED, **{"file.format": "avro"}), parted_rows),
    "per level": (
        kind_with(KEYED, **{"file.format.per.level": "0:avro,5:orc", "file.compression.per.level": "0:snappy,5:zstd"}),
        keyed_rows,
    ),
    "thin": (kind_with(KEYED, **{"data-file.thin-mode": "true"}), keyed_rows),
    "ignore deletes": (kind_with(KEYED, **{"ignore-delete": "true"}), keyed_rows),
    "up level 0": (kind_with(KEYED, **{"compaction.force-up-level-0": "true"}), keyed_rows),
    "sequence field": (kind_with(KEYED, **{"sequence.field": "n"}), keyed_rows),
    "rewrite all": (kind_with(KEYED, **{"compaction.force-rewrite-all-files": "true"}), keyed_rows),
}


@pytest.mark.parametrize("name", ["keyed", "parted", "eager", "small files"])
def test_java_and_we_compact_alike(name, java, tmp_path):
    kind, rows = SCRIPTS[name]
    seen = life(Twins(java("2.0.0"), tmp_path, kind, random.Random(name)), rows, 4)
    assert len(seen) > 1


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SCRIPTS)
def test_java_and_we_compact_alike_in_a_long_life(name, seed, java, tmp_path):
    kind, rows = SCRIPTS[name]
    life(Twins(java("2.0.0"), tmp_path, kind, random.Random(f"{name} {seed}")), rows, 12)


@pytest.mark.parametrize("version", ["1.4.2", "0.9.0"])
def test_older_javas_compact_our_tables_and_we_theirs(version, java, tmp_path):
    twins = Twins(java(version), tmp_path, KEYED, random.Random(version))
    seen = life(twins, keyed_rows, 3, full_share=0.5, alike=False)
    assert 5 in seen


APPEND = Kind([["k", "INT"], ["v", "STRING"]], options={"write-only": "true", "target-file-size": "8 kb"})
BUCKETED = Kind(APPEND.columns, options={**APPEND.options, "bucket": "2", "bucket-key": "k"})


@pytest.mark.parametrize("kind", [APPEND, BUCKETED], ids=["unaware", "buckets"])
def test_java_and_we_join_small_files_without_losing_rows(kind, java, tmp_path):
    twins = Twins(java("2.0.0"), tmp_path, kind, random.Random(5))
    life(twins, appended_rows, 5, alike=False)


@pytest.mark.parametrize("kind", [APPEND, BUCKETED], ids=["unaware", "buckets"])
def test_small_files_of_one_write_are_joined_as_by_java(kind, java, tmp_path):
    twins = Twins(java("2.0.0"), tmp_path, kind, random.Random(7))
    for _ in range(6):
        twins.write([{"k": k, "v": "x"} for k in range(9)], "o")
    twins.compact(full=kind is BUCKETED)
    assert {entry["fileSource"] for entry in twins.ours.step("files")} == {"COMPACT"}


@pytest.mark.parametrize("full", [False, True], ids=["minor", "full"])
@pytest.mark.parametrize("kind", [APPEND, BUCKETED], ids=["unaware", "buckets"])
def test_dead_rows_of_append_tables_end_in_compactions(kind, full, java, tmp_path):
    pair = Pair(java("2.0.0"), tmp_path)
    pair.create(kind_with(kind, **{"deletion-vectors.enabled": "true", "target-file-size": "1 mb"}), "j")
    for number in range(4):
        pair.step("write", rows=[{"k": 1, "v": f"{number}-{k}"} for k in range(9)])
    names = [entry["fileName"] for entry in pair.step("files")]
    pair.step("deleteRows", positions={names[0]: [1, 2, 3, 4]})
    pair.step("deleteRows", positions={names[2]: [8]})
    rows = pair.our_rows()
    tasks = pair.table().compaction_tasks(full=full)
    result = pair.table().compact(full=full)
    assert difference(pair.columns(), rows, pair.agree()) is None
    if full or kind is APPEND:
        assert result.file_count == len(tasks) > 0
        assert pair.step("manifests")["index"] is None
        assert sum(entry["rowCount"] for entry in pair.step("files")) == len(rows) == 31
    else:
        assert tasks == []
