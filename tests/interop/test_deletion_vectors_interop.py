"""Tables that compact by lookup, with Java and by us: deletion vectors, first-row, force-lookup."""

from __future__ import annotations

import random

import numpy as np
import pytest
from pair import Kind, Pair, history
from twins import Twins, dead, kind_with

from paimon_py.codec.deletion_vectors import DeletionVector, encode

pytestmark = pytest.mark.java

KEYED = Kind(
    [["k", "INT NOT NULL"], ["v", "STRING"], ["n", "BIGINT"], ["m", "INT"]], ["k"],
    options={"bucket": "2", "write-only": "true", "deletion-vectors.enabled": "true"},
)  # fmt: skip
PARTED = Kind(
    [["p", "INT NOT NULL"], ["k", "STRING NOT NULL"], ["n", "BIGINT"], ["t", "TIMESTAMP(6)"]], ["p", "k"], ["p"],
    {"bucket": "1", "write-only": "true", "deletion-vectors.enabled": "true"},
)  # fmt: skip


def keyed_rows(rng: random.Random, count: int | None = None) -> list[dict]:
    keys = rng.sample(range(1200), count or rng.choice([2, 5, 20, 60]))
    return [
        {"k": k, "v": rng.choice([None, f"{rng.random()}" * 3]), "n": rng.choice([None, rng.randrange(50)]),
         "m": rng.choice([None, rng.randrange(9)]), "_kind": rng.choice(["+I", "+I", "+U", "-D", "-U"])}
        for k in keys
    ]  # fmt: skip


def added_rows(rng: random.Random, count: int | None = None) -> list[dict]:
    return [{**row, "_kind": "+I"} for row in keyed_rows(rng, count)]


def parted_rows(rng: random.Random, count: int | None = None) -> list[dict]:
    return [
        {"p": rng.randrange(2), "k": f"key-{rng.randrange(600)}", "n": rng.randrange(99),
         "t": f"2024-01-{rng.randrange(1, 28):02}T00:00:00.{rng.randrange(10**6):06}", "_kind": rng.choice(["+I", "+U", "-D"])}
        for _ in range(count or rng.randrange(1, 40))
    ]  # fmt: skip


PARTIAL = {"merge-engine": "partial-update"}
GROUPS = {**PARTIAL, "fields.n.sequence-group": "v,m"}
NO_VECTORS = {"deletion-vectors.enabled": "false"}
SCRIPTS = {
    "32 bit": (KEYED, keyed_rows),
    "64 bit": (kind_with(KEYED, **{"deletion-vectors.bitmap64": "true"}), keyed_rows),
    "parted": (PARTED, parted_rows),
    "beside the data": (kind_with(PARTED, **{"index-file-in-data-file-dir": "true"}), parted_rows),
    "gentle": (kind_with(KEYED, **{"lookup-compact": "gentle"}), keyed_rows),
    "sequence field": (kind_with(KEYED, **{"sequence.field": "n"}), keyed_rows),
    "partial update": (kind_with(KEYED, **PARTIAL), added_rows),
    "partial update, deletes": (kind_with(KEYED, **PARTIAL, **{"partial-update.remove-record-on-delete": "true"}), keyed_rows),
    "sequence group": (kind_with(KEYED, **GROUPS), keyed_rows),
    "force lookup": (kind_with(KEYED, **PARTIAL, **NO_VECTORS, **{"force-lookup": "true"}), added_rows),
    "force lookup, deduplicate": (kind_with(KEYED, **NO_VECTORS, **{"force-lookup": "true"}), keyed_rows),
    "first row": (kind_with(KEYED, **NO_VECTORS, **{"merge-engine": "first-row"}), added_rows),
    "first row, gentle": (
        kind_with(KEYED, **NO_VECTORS, **{"merge-engine": "first-row", "lookup-compact": "gentle"}), added_rows,
    ),
    "aggregation": (
        kind_with(KEYED, **{"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "fields.m.aggregate-function": "max"}),
        added_rows,
    ),
    "small files": (kind_with(KEYED, **{"target-file-size": "4 kb", "num-sorted-run.compaction-trigger": "3"}), keyed_rows),
    "orc": (kind_with(PARTED, **{"file.format": "orc"}), parted_rows),
    "avro": (kind_with(PARTED, **{"file.format": "avro"}), parted_rows),
    "per level": (kind_with(KEYED, **{"file.format.per.level": "0:avro,5:orc"}), keyed_rows),
    "merge on read": (kind_with(KEYED, **{"deletion-vectors.merge-on-read": "true"}), keyed_rows),
}  # fmt: skip


def life(twins: Twins, make_rows, steps: int, full_share: float = 0.2) -> bool:
    """Random writes and compactions over a broad base; whether any row was dead at some time."""
    rng = twins.rng
    seen = False
    twins.theirs.act(("write", make_rows(rng, 900)), rng.choice("oj"))
    twins.compact(full=True)
    for _ in range(steps):
        for _ in range(rng.randrange(1, 4)):
            twins.theirs.act(("write", make_rows(rng)), rng.choice("oj"))
        if twins.kind.options.get("deletion-vectors.merge-on-read"):
            twins.theirs.agree()
        twins.compact(full=rng.random() < full_share)
        seen = seen or bool(dead(twins.theirs))
    return seen


@pytest.mark.parametrize("name", ["64 bit", "sequence group", "first row"])
def test_java_and_we_compact_by_lookup_alike(name, java, tmp_path):
    kind, rows = SCRIPTS[name]
    seen = life(Twins(java("2.0.0"), tmp_path, kind, random.Random(name)), rows, 3, full_share=0)
    assert seen == (kind.options["deletion-vectors.enabled"] == "true")


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SCRIPTS)
def test_java_and_we_compact_by_lookup_alike_in_a_long_life(name, seed, java, tmp_path):
    kind, rows = SCRIPTS[name]
    life(Twins(java("2.0.0"), tmp_path, kind, random.Random(f"{name} {seed}")), rows, 12)


@pytest.mark.full
@pytest.mark.parametrize("version", ["1.4.2", "0.9.0"])
def test_older_javas_read_and_go_on_with_our_deletion_vectors(version, java, tmp_path):
    rng = random.Random(version)
    pair = Pair(java(version), tmp_path)
    pair.create(KEYED, "o")
    for _ in range(8):
        pair.act(("write", keyed_rows(rng)), rng.choice("oj"))
        pair.act(("compact", rng.random() < 0.2), rng.choice("oj"))
        pair.agree()


def test_bitmaps_are_those_of_java(java, tmp_path):
    rng = np.random.default_rng(5)
    shapes = [
        [0], [7, 8, 9], range(5000), range(0, 9000, 2), [*range(70_000), 100_000, *range(200_000, 200_003)],
        sorted(rng.choice(200_000, 30_000, replace=False).tolist()), [65_535, 65_536, 131_071],
    ]  # fmt: skip
    steps = [{"op": "dv", "positions": list(shape), "bits": bits} for shape in shapes for bits in (32, 64)]
    outputs = java("2.0.0").run(str(tmp_path), steps)
    for step, output in zip(steps, outputs, strict=True):
        block, _ = encode(DeletionVector.of(np.array(step["positions"], np.int64)), bits=step["bits"])
        assert block[4:-4].hex() == output["result"]


APPEND = Kind(
    [["p", "INT"], ["a", "BIGINT"], ["s", "STRING"]], [], ["p"],
    {"deletion-vectors.enabled": "true", "write-only": "true"},
)  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, marks=pytest.mark.full, id="32 bit"),
        pytest.param({"deletion-vectors.bitmap64": "true", "deletion-vector.index-file.target-size": "40 b"}, id="64 bit"),
        pytest.param({"bucket": "2", "bucket-key": "a"}, marks=pytest.mark.full, id="buckets"),
    ],
)
def test_rows_that_java_deletes_from_append_tables_are_dead_for_us(options, java, tmp_path):
    rng = random.Random(str(options))
    pair = Pair(java("2.0.0"), tmp_path)
    pair.create(kind_with(APPEND, **options), "j")
    for _ in range(4):
        rows = [{"p": rng.randrange(2), "a": rng.randrange(1000), "s": f"s{rng.random()}"} for _ in range(rng.randrange(5, 60))]
        pair.step("write", rows=rows)
        files = pair.step("files")
        positions = {
            file["fileName"]: sorted(rng.sample(range(file["rowCount"]), rng.randrange(1, file["rowCount"] + 1)))
            for file in rng.sample(files, 1)
        }
        pair.step("deleteRows", positions=positions)
        assert pair.table().scan().count() == len(pair.agree())
    assert dead(pair)
    history(pair)
