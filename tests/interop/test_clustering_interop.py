"""Clustered tables between Java and us: it reads and continues what we sort, and clusters its buckets as we do."""

from __future__ import annotations

import random

import pytest
from pair import Kind, Pair, differences, forgive, sorted_facts
from test_compaction_interop import life
from twins import Twins
from values import difference

pytestmark = pytest.mark.java

COLUMNS = [["a", "INT"], ["b", "DOUBLE"], ["s", "STRING"], ["d", "DATE"]]
OPTIONS = {"target-file-size": "3 kb", "write-only": "true"}
INCREMENTAL = {"clustering.incremental": "true", "clustering.columns": "a,s", "num-sorted-run.compaction-trigger": "3"}


def some_rows(rng: random.Random) -> list[dict]:
    return [
        {"a": rng.choice([None, rng.randrange(-50, 50)]), "b": rng.choice([None, rng.gauss(0, 9)]),
         "s": rng.choice([None, "", f"{rng.random()}"]), "d": f"2024-01-{rng.randrange(1, 28):02}"}
        for _ in range(rng.randrange(1, 60))
    ]  # fmt: skip


@pytest.mark.parametrize("version", ["2.0.0", "1.4.2", "0.9.0"])
@pytest.mark.parametrize("vectors", [False, True], ids=["plain", "vectors"])
def test_java_reads_and_continues_what_we_sort(version, vectors, java, tmp_path):
    if vectors and version == "0.9.0":
        pytest.skip("no deletion vectors without a key")
    rng = random.Random(f"{version} {vectors}")
    options = {"target-file-size": "3 kb", **({"deletion-vectors.enabled": "true"} if vectors else {})}
    pair = Pair(java(version), tmp_path / "w")
    pair.create(Kind(COLUMNS, partition_by=["d"] if rng.random() < 0.5 else [], options=options), "j")
    for strategy, columns in [("order", ["s"]), ("zorder", ["a", "b"]), ("hilbert", ["a", "s", "b"])]:
        for by in "ojo":
            pair.act(("write", some_rows(rng)), by)
        if vectors:
            pair.table().delete("a = 7 OR a < -40")
        before = pair.agree()
        assert pair.table().compact(full=True, order_by=columns, strategy=strategy).snapshot_id is not None
        assert difference(pair.columns(), before, pair.agree()) is None
        pair.act(("compact", False), "j")
        pair.agree()


@pytest.mark.parametrize("version", ["2.0.0"])
def test_java_and_we_cluster_buckets_on_the_same_levels(version, java, tmp_path):
    bucketed = {**OPTIONS, **INCREMENTAL, "write-only": "false", "bucket": "2", "bucket-key": "d", "bucket-append-ordered": "false"}
    twins = SortedTwins(java(version), tmp_path, Kind(COLUMNS, options=bucketed), random.Random(version))
    seen = life(twins, some_rows, 4)
    assert len(seen) > 1, seen


class SortedTwins(Twins):
    """Twins whose files may differ in their sequence numbers: which of the runs comes first is chance in Java.

    When asked for less than everything, Java picks a second time in a bucket if its first compaction happens to be done
    when it commits (AppendOnlyWriter.prepareCommit): every bucket must be as we leave it after one compaction or two.
    """

    def check(self, alike: bool) -> None:
        super().check(alike=False)
        once = self.facts(self.ours)
        self.ours.table().compact()
        super().check(alike=False)
        twice = self.facts(self.ours)
        for bucket, theirs in self.facts(self.theirs).items():
            unlike = [self.unlike(bucket, ours.get(bucket), theirs) for ours in (once, twice)]
            assert not all(unlike), unlike

    def facts(self, pair: Pair) -> dict[int, list[dict]]:
        found: dict[int, list[dict]] = {}
        for file in sorted_facts(pair.step("files")):
            found.setdefault(file["bucket"], []).append(file)
        return found

    def unlike(self, bucket: int, ours: list[dict], theirs: list[dict]) -> list[str]:
        forgive(ours, theirs, self.theirs.columns(), "parquet")
        return [text for text in differences(ours, theirs, f"bucket {bucket}") if "SequenceNumber" not in text]


@pytest.mark.parametrize("version", ["2.0.0", "1.4.2"])
def test_java_reads_the_levels_of_our_incremental_clustering(version, java, tmp_path):
    rng = random.Random(version)
    pair = Pair(java(version), tmp_path / "w")
    pair.create(Kind(COLUMNS, options={**OPTIONS, **INCREMENTAL}), "o")
    seen = set()
    for step in range(8):
        pair.act(("write", some_rows(rng)), rng.choice("oj"))
        before = pair.agree()
        pair.table().compact(full=step == 6)
        assert difference(pair.columns(), before, pair.agree()) is None
        seen |= {entry["level"] for entry in pair.step("files")}
    assert len(seen) > 1, seen
