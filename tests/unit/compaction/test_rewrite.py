"""Sections of runs become the rows of a compacted file: merged, in key order, deletes dropped only where told."""

import pyarrow as pa
import pytest

from paimon_py.compaction.rewrite import Merging, estimate_row_bytes, merged_rows
from paimon_py.lsm.engines.deduplicate import Deduplicate
from paimon_py.lsm.order import MergeOrder
from paimon_py.lsm.runs import SortedRun
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field

FIELDS = (Field(0, "k", parse_type("INT NOT NULL")), Field(1, "v", parse_type("STRING")))
SCHEMA = pa.schema([("_SEQUENCE_NUMBER", pa.int64()), ("_VALUE_KIND", pa.int8()), ("k", pa.int32()), ("v", pa.string())])


class Files:
    """Invented files: rows (sequence, kind, key, value) by name."""

    def __init__(self, **files):
        self.files = files
        self.opened = []

    def run(self, *names):
        return SortedRun(tuple(self.describe(name) for name in names))

    def describe(self, name):
        rows = self.files[name]
        numbers = [row[0] for row in rows]
        deletes = sum(row[1] in (1, 3) for row in rows)
        return DataFile(
            name=name, size_bytes=100, row_count=len(rows), min_sequence=min(numbers), max_sequence=max(numbers),
            schema_id=0, level=0, delete_row_count=deletes,
        )  # fmt: skip

    def read(self, file, fields, batch_rows):
        assert [field.name for field in fields] == SCHEMA.names
        self.opened.append(file.name)
        columns = zip(*self.files[file.name])
        batch = pa.RecordBatch.from_arrays([pa.array(c, f.type) for c, f in zip(columns, SCHEMA)], schema=SCHEMA)
        for start in range(0, batch.num_rows, batch_rows):
            yield batch.slice(start, batch_rows)


def rows_of(files, section, *, drop_deletes):
    merging = Merging(order=MergeOrder(keys=(FIELDS[0],)), engine=Deduplicate(), fields=FIELDS, read=files.read, drop_deletes=drop_deletes)
    batches = list(merged_rows(section, merging))
    assert all(batch.schema.names == SCHEMA.names for batch in batches)
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def test_a_single_run_passes_as_it_is():
    files = Files(a=[(1, 0, 1, "a"), (4, 3, 2, None)], b=[(3, 2, 5, "c")])
    run = files.run("a", "b")
    assert rows_of(files, [run], drop_deletes=False) == [(1, 0, 1, "a"), (4, 3, 2, None), (3, 2, 5, "c")]
    assert rows_of(files, [run], drop_deletes=True) == [(1, 0, 1, "a"), (3, 2, 5, "c")]
    assert files.opened == ["a", "b", "a", "b"]


@pytest.mark.parametrize("turned", [False, True])
def test_overlapping_runs_are_merged_oldest_first_whatever_their_order(turned):
    files = Files(old=[(1, 0, 1, "a"), (2, 0, 2, "b"), (3, 0, 4, "d")], new=[(5, 3, 2, "b"), (6, 2, 4, "D"), (4, 0, 9, "x")])
    section = [files.run("old"), files.run("new")]
    section = section[::-1] if turned else section
    assert rows_of(files, section, drop_deletes=True) == [(1, 0, 1, "a"), (6, 2, 4, "D"), (4, 0, 9, "x")]
    kept = rows_of(files, section, drop_deletes=False)
    assert kept == [(1, 0, 1, "a"), (5, 3, 2, "b"), (6, 2, 4, "D"), (4, 0, 9, "x")]


def test_rows_whose_sequence_numbers_cross_are_ordered_by_them():
    files = Files(one=[(1, 0, 1, "a"), (9, 0, 2, "new")], two=[(5, 0, 1, "new"), (6, 0, 2, "b")])
    assert rows_of(files, [files.run("one"), files.run("two")], drop_deletes=True) == [(5, 0, 1, "new"), (9, 0, 2, "new")]


def test_the_guess_at_the_memory_of_a_row_is_never_nothing():
    files = Files(a=[(1, 0, 1, "a")])
    assert estimate_row_bytes(files.run("a"), 4) >= 16
