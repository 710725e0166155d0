"""Rows whose columns lie in several files, side by side."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa

from paimon_py.files.column_files import ColumnFiles, side_by_side
from paimon_py.files.physical import ROW_ID_FIELD, SEQUENCE_FIELD
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.new_schema import Schema, TableSpec, new_table_schema

SCHEMA = new_table_schema(Schema({"a": "INT", "b": "INT", "c": "INT", "d": "INT"}), TableSpec(), time_millis=0)
A, B, C, D = SCHEMA.fields


def file(name, number, written=None, rows=10):
    return DataFile(name=name, size_bytes=1, row_count=rows, min_sequence=number, max_sequence=number, schema_id=0, level=0, first_row_id=100, write_columns=written)


BASE, NEW, LATE = file("base", 1, ("a", "b")), file("new", 2, ("b", "c")), file("late", 4, ("c",))


def files_of(*files):
    return ColumnFiles(files, lambda _: SCHEMA)


def test_each_column_comes_from_its_newest_file_and_no_other_is_opened():
    group = files_of(BASE, NEW, LATE)
    names = lambda *fields: [(one.name, [field.name for field in own]) for one, own in group.choose(fields)]  # noqa: E731
    assert names(A, B, C) == [("base", ["a"]), ("new", ["b"]), ("late", ["c"])]
    assert names(C) == [("late", ["c"])]
    assert names(D) == [("base", ["d"])]  # no file has it: NULL
    assert names(C, D) == [("late", ["c", "d"])]
    assert names(ROW_ID_FIELD) == []


def test_the_number_of_rows_depends_on_the_columns():
    group = files_of(BASE, NEW, LATE)
    assert [group.sequence_number(fields) for fields in ([A], [A, B], [B], [C], [D], [])] == [1, 2, 2, 4, 4, 4]


def test_ids_and_numbers_stand_beside_the_columns():
    group = files_of(BASE, NEW)

    def read(one, own, offset):
        yield 0, pa.RecordBatch.from_arrays([pa.array(range(4), pa.int32())] * len(own), names=[field.name for field in own])

    ((position, batch),) = group.rows((C, ROW_ID_FIELD, A, SEQUENCE_FIELD), read, None)
    assert (position, batch.schema.names) == (0, ["c", "_ROW_ID", "a", "_SEQUENCE_NUMBER"])
    assert batch["_ROW_ID"].to_pylist() == [100, 101, 102, 103] and set(batch["_SEQUENCE_NUMBER"].to_pylist()) == {2}
    ((_, alone),) = group.rows((ROW_ID_FIELD,), read, None)
    assert alone["_ROW_ID"].to_pylist() == list(range(100, 110))


def test_streams_are_cut_to_the_same_positions():
    rng = random.Random(5)
    for _ in range(200):
        streams, kept = [], []
        for _ in range(rng.randrange(1, 4)):
            cuts = sorted({0, 50, *(rng.randrange(50) for _ in range(rng.randrange(6)))})
            parts = [part for part in zip(cuts, cuts[1:]) if rng.random() < 0.8]
            kept.append({at for low, high in parts for at in range(low, high)})
            streams.append(iter([(low, pa.RecordBatch.from_arrays([pa.array(np.arange(low, high))], names=["x"])) for low, high in parts]))
        found = []
        for position, batches in side_by_side(streams):
            assert len({batch.num_rows for batch in batches}) == 1
            assert all(batch["x"].to_pylist() == list(range(position, position + batch.num_rows)) for batch in batches)
            found += range(position, position + batches[0].num_rows)
        assert found == sorted(set.intersection(*kept))
