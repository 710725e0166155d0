"""Shares of a plan: about 65,536 entries each, all of a bucket in one share unless files are independent."""

from __future__ import annotations

import random
from collections import defaultdict
from types import SimpleNamespace

import msgspec
import pytest
from unit.codec.manifest.manifest_entries import added, row

from paimon_py.codec.manifest.entries import read_manifests, write_manifest
from paimon_py.metadata.manifests import PART_ENTRIES
from paimon_py.scan.part_files import FILES_MAX
from paimon_py.scan.plan_shares import PlanShares, divide_plan
from paimon_py.spec.data_file import FileKind, Stats
from paimon_py.spec.manifest import ManifestFile

SCHEMAS = {
    "append": SimpleNamespace(primary_keys=(), options={}),
    "keyed": SimpleNamespace(primary_keys=("k",), options={}),
}


def entries_of(count, partitions, buckets):
    """Entries of files in these partitions and buckets, in turn; every third one deletes."""
    kinds = [FileKind.DELETE if number % 3 == 2 else FileKind.ADD for number in range(count)]
    found = [
        added(number, kind=kind, partition=row(number % partitions), bucket=number // partitions % buckets)
        for number, kind in enumerate(kinds)
    ]
    return read_manifests([("m", write_manifest(found))])


def planner_of(schema, entries=None, reads=None):
    def read_entries(files, *, holds):
        if reads is not None:
            reads.append([file.name for file in files])
        return entries

    return SimpleNamespace(schema=schema, root=SimpleNamespace(manifests=SimpleNamespace(read_entries=read_entries)))


def manifest(number, adds, deletes, partition=b"", bucket=0):
    return ManifestFile(
        name=f"m-{number}", size_bytes=1, added_files=adds, deleted_files=deletes, schema_id=0,
        partition_stats=Stats(partition, partition, ()), min_bucket=bucket, max_bucket=bucket,
    )  # fmt: skip


def divided(schema, sizes, buckets=1, reads=None):
    groups = [[manifest(number, adds, deletes)] for number, (adds, deletes) in enumerate(sizes)]
    return divide_plan(planner_of(schema, entries_of(4 * buckets, 1, buckets), reads), groups)


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("deleted", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("count", "shares"), [
    (0, 1), (1, 1), (PART_ENTRIES - 1, 1), (PART_ENTRIES, 1), (PART_ENTRIES + 1, 2), (2 * PART_ENTRIES, 2), (2 * PART_ENTRIES + 1, 3),
    (10_000_000, 153), (FILES_MAX * PART_ENTRIES, FILES_MAX), (FILES_MAX * PART_ENTRIES + 1, FILES_MAX), (10**12, FILES_MAX),
])  # fmt: skip
def test_a_share_has_at_most_so_many_entries_while_files_suffice(kind, deleted, count, shares):
    one = count // 3
    sizes = [(each - round(each * deleted), round(each * deleted)) for each in (one, count - one)]
    assert divided(SCHEMAS[kind], sizes).count == shares


@pytest.mark.parametrize("buckets", [1, 2, 3, 10, 152, 153, 154, 1000])
def test_buckets_are_cut_until_there_are_as_many_pieces_as_shares(buckets):
    reads = []
    shares = divided(SCHEMAS["append"], [(9_000_000, 0), (20, 0), (0, 999_980)], buckets, reads)
    assert shares.count == 153 and reads == [["m-0"]]  # the largest manifest shows how many buckets there are
    assert (shares.pieces - 1) * buckets < shares.count <= shares.pieces * buckets
    assert divided(SCHEMAS["keyed"], [(10_000_000, 0)], buckets, reads := []) == PlanShares(153) and not reads


def test_first_buckets_of_manifests_are_counted_too():
    groups = [[manifest(number, 1_000_000, 0, row(number % 5), number % 2) for number in range(10)]]
    assert divide_plan(planner_of(SCHEMAS["append"], entries_of(8, 1, 4)), groups) == PlanShares(153, 16)
    assert divide_plan(planner_of(SCHEMAS["append"], entries_of(60, 5, 4)), groups) == PlanShares(153, 8)


@pytest.mark.parametrize(("count", "pieces"), [(1, 1), (7, 1), (7, 2), (153, 16), (256, 3)])
def test_entries_of_a_file_and_of_what_is_read_with_it_have_one_share(count, pieces):
    rng = random.Random(count)
    shares = PlanShares(count, pieces)
    entries = entries_of(3_000, 3, 4)
    numbers = shares.numbers_of(entries)
    found = defaultdict(set)
    for entry, number in zip(entries.entries(), numbers.tolist(), strict=True):
        assert 0 <= number < count
        found[entry.partition, entry.bucket].add(number)
    assert all(len(each) == min(pieces, count) for each in found.values())
    again = [msgspec.structs.replace(entry, kind=FileKind.DELETE, total_buckets=9) for entry in entries.entries()]
    order = rng.sample(range(len(again)), len(again))
    shuffled = shares.numbers_of(read_manifests([("m", write_manifest([again[at] for at in order]))]))
    assert shuffled.tolist() == numbers[order].tolist()


@pytest.mark.parametrize(("partitions", "buckets"), [(1, 2_000), (2_000, 1), (40, 50)])
def test_buckets_are_spread_over_all_shares(partitions, buckets):
    numbers = PlanShares(64).numbers_of(entries_of(2_000, partitions, buckets)).tolist()
    sizes = [numbers.count(share) for share in range(64)]
    assert min(sizes) > 8 and max(sizes) < 80  # 31 on average
