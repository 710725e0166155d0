"""Folding against the plain definition of the format."""

import random

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.codec.manifest import manifest_entries
from unit.codec.manifest.manifest_entries import added, entry, row

from paimon_py.codec.manifest.entries import read_manifests, write_manifest
from paimon_py.errors import CorruptionError
from paimon_py.metadata.fold import check_unique, fold, identifiers, live
from paimon_py.spec.data_file import FileKind, ManifestEntry, identifier


def columns_of(entries):
    return read_manifests([("m", write_manifest(entries))]) if entries else read_manifests([])


def changed(one: ManifestEntry, *, kind=FileKind.ADD, **file) -> ManifestEntry:
    return msgspec.structs.replace(one, kind=kind, file=msgspec.structs.replace(one.file, **file))


def test_without_deletes_everything_is_alive_and_nothing_is_copied():
    columns = columns_of([entry(number, kind=FileKind.ADD) for number in range(60)])
    assert live(columns) is columns


def test_upgrade_to_another_level_keeps_the_file():
    one = added(1)
    entries = [one, changed(one, kind=FileKind.DELETE), changed(one, level=5)]
    assert live(columns_of(entries)).entries() == [entries[2]]


@pytest.mark.parametrize(
    "file",
    [
        {"extra_files": ("a.index",)},
        {"embedded_index": b"x"},
        {"embedded_index": b""},
        {"external_path": "s3://b/f"},
        {"level": 1},
    ],
)
def test_every_part_of_the_identifier_counts(file):
    one = added(1)
    entries = [one, changed(one, kind=FileKind.DELETE, **file)]
    assert live(columns_of(entries)).entries() == [one]
    assert fold(columns_of(entries)).pending.tolist() == [False, True]


def test_same_name_in_another_partition_or_bucket_lives():
    one = added(1)
    others = [added(1, partition=row(5)), added(1, bucket=3)]
    entries = [one, *others, changed(one, kind=FileKind.DELETE)]
    assert live(columns_of(entries)).entries() == others


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_random_lives_fold_as_the_definition_says(seed):
    draw = random.Random(seed)
    alive: list[ManifestEntry] = []
    entries: list[ManifestEntry] = []
    for number in range(draw.randrange(1, 120)):
        if alive and draw.random() < 0.5:
            gone = alive.pop(draw.randrange(len(alive)))
            entries.append(changed(gone, kind=FileKind.DELETE))
            if draw.random() < 0.4 and gone.file.level < 9:
                up = changed(gone, level=gone.file.level + 1)
                alive.append(up)
                entries.append(up)
        else:
            one = entry(draw.choice([number, number + 10_000]), kind=FileKind.ADD)
            alive.append(one)
            entries.append(one)
    start = draw.randrange(len(entries))
    for part in (entries, entries[start:]):
        expected = manifest_entries.fold(part)
        folded = fold(columns_of(part))
        columns = columns_of(part)
        assert columns.take(folded.alive).entries() == [one for one in expected if one.kind is FileKind.ADD]
        pending = [one for one in expected if one.kind is FileKind.DELETE]
        assert columns.take(folded.pending).entries() == pending
        codes = identifiers(columns)
        keys = [identifier(one) for one in part]
        assert len(np.unique(codes)) == len(set(keys))


def test_delete_that_is_listed_twice_is_pending_once():
    gone = changed(added(1), kind=FileKind.DELETE)
    assert fold(columns_of([gone, gone])).pending.tolist() == [True, False]


def test_file_added_twice_is_corruption_that_names_it():
    one = added(1)
    check_unique(columns_of([one, added(2), added(1, bucket=9)]))
    with pytest.raises(CorruptionError, match=one.file.name):
        check_unique(columns_of([one, added(2), one]))
