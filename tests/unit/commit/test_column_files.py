"""Files with columns of rows that are there: what goes with the files and indexes of a table. Values alone."""

from __future__ import annotations

import random

import pytest

from paimon_py.commit.changes import BucketChanges, Edit
from paimon_py.commit.column_files import _spans, column_conflict
from paimon_py.commit.compaction_fit import fit_compactions
from paimon_py.commit.entry_lists import entries_of
from paimon_py.commit.snapshot_delta import write_part
from paimon_py.spec.data_file import DataFile, FileKind
from paimon_py.spec.manifest import GlobalIndex, IndexEntry
from paimon_py.spec.new_schema import Schema, TableSpec, new_table_schema

SCHEMA = new_table_schema(Schema({"a": "INT", "b": "INT"}), TableSpec(), time_millis=0)
PLACE = {"partition": bytes(12), "bucket": 0, "total_buckets": -1}


def file(name, first, rows, columns=None, number=1):
    return DataFile(name=name, size_bytes=9, row_count=rows, min_sequence=number, max_sequence=number, schema_id=0, level=0, first_row_id=first, write_columns=columns)


LIVE = (file("one", 0, 4), file("two", 4, 6), file("two b", 4, 6, ("b",), 2))


def entries(*files):
    return entries_of(BucketChanges(**PLACE), FileKind.ADD, files)


def conflict(*added, index=()):
    part = write_part([BucketChanges(**PLACE, written=Edit(added=added))])
    found = column_conflict(SCHEMA, part, entries(*LIVE), index)
    return None if found is None else found.reason


def test_a_file_must_have_the_range_of_a_live_one():
    assert conflict(file("x", 4, 6, ("a",))) is None
    assert conflict(file("x", None, 6)) is None
    for wrong in ((0, 10), (0, 3), (4, 5), (5, 5), (10, 2)):
        assert "no longer a range of the table" in conflict(file("x", *wrong, ("a",)))


def test_a_column_of_a_range_is_written_once():
    assert conflict(file("x", 0, 4, ("a",)), file("y", 0, 4, ("b",)), file("z", 4, 6, ("a",))) is None
    assert "column a" in conflict(file("x", 0, 4, ("a",)), file("y", 0, 4, ("b", "a")))


def test_a_column_with_an_index_over_row_ids_is_not_written():
    index = IndexEntry(
        kind=FileKind.ADD, partition=bytes(12), bucket=0, index_type="btree", name="i", size_bytes=1, row_count=4,
        global_index=GlobalIndex(row_range_start=0, row_range_end=3, field_id=1),
    )  # fmt: skip
    assert conflict(file("x", 0, 4, ("a",)), index=[index]) is None
    assert "column b has an index" in conflict(file("x", 0, 4, ("b",)), index=[index])


@pytest.mark.parametrize(
    ("after", "live", "reason"),
    [
        (file("new", 0, 10), LIVE, None),
        (file("new", 0, 10), (*LIVE, file("late", 10, 2)), None),
        (file("new", 0, 10), (*LIVE, file("late", 4, 6, ("a",), 3)), "others wrote columns of the rows 4 to 9"),
        (file("new", 0, 10), LIVE[:2], "was deleted"),
        (file("new", 0, 9), LIVE, "other rows than its files contain"),
        (file("new", 1, 10), LIVE, "other rows than its files contain"),
    ],
)
def test_a_compaction_fits_if_no_commit_added_columns_of_its_rows(after, live, reason):
    change = BucketChanges(**PLACE, compacted=Edit(deleted=LIVE, added=(after,)))
    fit = fit_compactions([change], entries(*live), {}, keyed=False)
    assert [reason in one.reason for one in fit.dropped.values()] == ([] if reason is None else [True])


@pytest.mark.parametrize("seed", range(20))
def test_ranges_of_rows_are_joined_whatever_overlaps_or_touches(seed):
    chance = random.Random(seed)
    ranges = [(chance.randrange(30), chance.randrange(1, 12)) for _ in range(chance.randrange(1, 7))]
    spans = [(first, after) for _, first, after in _spans(entries(*(file(f"f{at}", *one) for at, one in enumerate(ranges))))]
    assert {row for first, after in spans for row in range(first, after)} == {row for first, count in ranges for row in range(first, first + count)}
    assert all(after < first for (_, after), (first, _) in zip(spans, spans[1:], strict=False))
