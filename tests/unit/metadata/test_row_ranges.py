"""Files by the rows whose columns they hold."""

from __future__ import annotations

import numpy as np
import pytest

from paimon_py import CorruptionError
from paimon_py.codec.manifest.entries import read_manifests, write_manifest
from paimon_py.metadata.row_ranges import distinct_ids, holders, newest, row_ranges
from paimon_py.spec.data_file import DataFile, FileKind, ManifestEntry
from paimon_py.spec.new_schema import Schema, TableSpec, new_table_schema

SCHEMA = new_table_schema(Schema({"a": "INT", "b": "INT", "c": "INT"}), TableSpec(), time_millis=0)
PARTITIONS = [bytes((0, 0, 0, 1)) + bytes(8) + bytes([n]) + bytes(7) for n in range(2)]


def columns(*files):
    """Entries of (partition, name, first id, rows, number, columns)."""
    entries = [
        ManifestEntry(
            kind=FileKind.ADD, partition=PARTITIONS[partition], bucket=0, total_buckets=-1,
            file=DataFile(name=name, size_bytes=9, row_count=rows, min_sequence=number, max_sequence=number, schema_id=0, level=0, first_row_id=first, write_columns=written),
        )
        for partition, name, first, rows, number, written in files
    ]  # fmt: skip
    return read_manifests([("m", write_manifest(entries))])


def test_files_of_the_same_rows_are_together_oldest_first():
    entries = columns(
        (1, "x", 10, 5, 3, None), (0, "new", 0, 4, 9, ("b",)), (0, "other", 4, 2, 2, None), (0, "old", 0, 4, 1, None),
        (1, "y", 10, 5, 1, ("a",)),
    )  # fmt: skip
    ranges = row_ranges(entries)
    names = entries.names().to_pylist()
    assert [[names[at] for at in files] for files in ranges.files()] == [["y", "x"], ["old", "new"], ["other"]]
    assert ranges.of_entries(np.array([False, True, False])).tolist() == [False, True, False, True, False]
    assert len(row_ranges(entries.take(np.zeros(0, np.int64)))) == 0


def test_a_column_counts_in_its_newest_file():
    entries = columns(
        (0, "base", 0, 4, 1, None), (0, "b2", 0, 4, 2, ("b",)), (0, "b2 too", 0, 4, 2, ("b", "c")), (0, "late", 4, 4, 3, ("a",)),
    )  # fmt: skip
    ranges = row_ranges(entries)
    held = holders(entries, [0, 1, 2], lambda _: SCHEMA)
    found = {n: [part.tolist() for part in newest(entries, ranges, mask)] for n, mask in held.items()}
    # of files of the same age the first among the entries, as in Java; nothing is known of what ties
    assert found == {0: [[0, 3], [False, False]], 1: [[1, -1], [True, False]], 2: [[2, -1], [False, False]]}


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ((0, "g", 2, 4, 2, None), "equal row id ranges: f has rows 0 to 3, g has rows 2 to 5"),
        ((0, "g", 0, 3, 2, ("a",)), "equal row id ranges: g has rows 0 to 2, f has rows 0 to 3"),
        ((0, "g", None, 3, 2, None), "g of a table with data-evolution.enabled has no first row id"),
    ],
)
def test_ranges_that_cross_are_refused(second, message):
    with pytest.raises(CorruptionError, match=message):
        row_ranges(columns((0, "f", 0, 4, 1, None), second))
    row_ranges(columns((0, "f", 0, 4, 1, None), (1, "g", 2, 4, 2, None)))


def test_row_ids_of_files_within_others_count_once():
    files = ((0, "whole", 0, 10, 1, None), (0, "f.blob", 0, 5, 1, ("b",)), (0, "g.blob", 5, 5, 1, ("b",)), (0, "late", 12, 3, 2, ("a",)))
    for order in (files, files[::-1]):
        assert distinct_ids(columns(*order)) == 13
    assert distinct_ids(columns(*files[1:3])) == 10 and distinct_ids(columns(*files[3:])) == 3
