"""Small buckets are flushed together: the files and manifest entries are those of one bucket after the other."""

from __future__ import annotations

import random
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pytest
from unit.formats.samples import every_type, fields_of, make_batch
from unit.write.support import CountingIds, FixedClock, data_files, root_of

from paimon_py.env import Env, SerialPool, ThreadPool
from paimon_py.errors import SchemaError, StorageError
from paimon_py.lsm.writer import LSMWriter
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field
from paimon_py.table import Table
from paimon_py.write.append import AppendWriter

SOME = ("BIGINT", "STRING", "DOUBLE", "DECIMAL(20, 3)", "TIMESTAMP(9)", "ARRAY<INT>")
TOP = 1000


class Case(NamedTuple):
    """A table, and what is written to it."""

    schema: TableSchema
    batches: list[pa.RecordBatch]


def case_of(key_type="STRING", *, values=None, options=None, seed=7, rows=40, parts=3, keyed=True):
    """Rows of several buckets, of which some repeat their key, if the table has one."""
    source = random.Random(seed)
    values = fields_of(*SOME) if values is None else values
    key = Field(TOP + 1, "k", parse_type(f"{key_type} NOT NULL"))
    fields = (Field(TOP, "p", parse_type("INT NOT NULL")), key, *values)
    schema = TableSchema(
        id=0, fields=fields, highest_field_id=TOP + 1, primary_keys=("p", "k") if keyed else (), partition_keys=("p",),
        options={"bucket": "2", "bucket-key": "k", "write-only": "true", **(options or {})}, time_millis=0,
    )  # fmt: skip
    batches = []
    for number in range(2):
        keys = make_batch([key], "avro", seed + number, rows).column(0)
        keys = keys.take(pa.array([source.randrange(rows) for _ in range(rows)]))
        columns = [
            pa.array([source.randrange(parts) for _ in range(rows)], pa.int32()),
            keys,
            *make_batch(values, "avro", seed + number, rows),
        ]
        batches.append(pa.RecordBatch.from_arrays(columns, [field.name for field in fields]))
    return Case(schema, batches)


def table_of(case, pool=None, store=None):
    made = root_of(case.schema)
    if store is not None:
        store.store, made.store = made.store, store
    env = Env(FixedClock(), CountingIds(), pool or SerialPool())
    return Table(TableRoot(made.store, made.path, env), case.schema, "t")


class Seen(NamedTuple):
    """What a writer handed over, the bytes of its files, and how many buckets were flushed together each time."""

    changes: list[object]
    files: dict[str, bytes]
    groups: list[int]


def written(case, pool=None, *, together=True):
    table = table_of(case, pool)
    kind = LSMWriter if case.schema.primary_keys else AppendWriter
    found, groups, flush = [], [], kind.flush_together
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "flush_together", lambda writers: (groups.append(len(writers)), flush(writers)))
        if not together:
            patch.setattr(kind, "is_small", property(lambda _: False))
        with table.writer() as writer:
            for batch in case.batches:
                writer.write_arrow(batch)
                found.append(writer.changes())
    store = table._root.store
    return Seen(found, {path: store.get(path) for path in data_files(table._root)}, groups)


def check(case, *, flushed_together=True):
    """Both ways make the same files and entries."""
    found, expected = written(case), written(case, together=False)
    assert found.changes == expected.changes and found.files == expected.files
    assert len(found.files) > 3 and not expected.groups
    assert bool(found.groups) is flushed_together
    return found


def test_columns_of_every_type():
    check(case_of(values=every_type("parquet"), rows=8, parts=2))


@pytest.mark.parametrize("key_type", [
    "BIGINT", "STRING", "BOOLEAN", "DATE", "TIMESTAMP(6)", "TIMESTAMP(0)", "DECIMAL(20, 3)", "BYTES", "DOUBLE",
])  # fmt: skip
def test_keys_of_every_type(key_type):
    check(case_of(key_type))


TOGETHER = [
    {"metadata.stats-mode": "full"},
    {"metadata.stats-mode": "counts"},
    {"metadata.stats-mode": "none"},
    {"metadata.stats-mode": "truncate(2)", "fields.c1.stats-mode": "none", "fields.k.stats-mode": "none"},
    {"data-file.thin-mode": "true"},
    {"data-file.thin-mode": "true", "fields.k.stats-mode": "none"},
    {"merge-engine": "partial-update"},
    {"merge-engine": "first-row"},
    {"merge-engine": "aggregation", "fields.c2.aggregate-function": "max", "fields.c1.aggregate-function": "listagg"},
    {"sequence.field": "c0"},
    {"sequence.field": "c1", "sequence.field.sort-order": "descending"},
    {"file.compression": "none", "parquet.enable.dictionary": "false"},
    {"bucket": "-1", "dynamic-bucket.target-row-num": "4"},
]
ALONE = [
    {"target-file-row-num": "2"},
    {"target-file-size": "1 kb"},
    {"parquet.block.size": "1000"},
    {"file-index.bloom-filter.columns": "k"},
    {"changelog-producer": "input"},
    {"file.format": "orc"},
    {"file.format": "avro"},
]


@pytest.mark.parametrize("options", TOGETHER, ids=str)
def test_options_of_tables_that_flush_together(options):
    check(case_of(options=options))


@pytest.mark.parametrize("options", ALONE, ids=str)
def test_options_of_tables_that_flush_each_bucket_alone(options):
    values = fields_of("BIGINT", "STRING", "DOUBLE")
    check(case_of(options=options, values=values, rows=90), flushed_together=False)


def test_values_too_long_for_a_footer():
    case = case_of(values=fields_of("STRING", "STRING"), rows=6)
    texts = ["x" * 600 + "é", "x" * 600 + "e", None, "y" * 5000, "y" * 5000, "y" * 4999 + "\0"]
    columns = [pa.array([0] * 3 + [1] * 3, pa.int32()), case.batches[0]["k"], pa.array(texts), pa.array(texts[::-1])]
    check(Case(case.schema, [pa.RecordBatch.from_arrays(columns, ["p", "k", "c0", "c1"])] * 2))


KINDS = [
    {},
    {"ignore-delete": "true"},
    {"merge-engine": "first-row", "ignore-delete": "true"},
    {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    {"merge-engine": "aggregation", "fields.c1.aggregate-function": "sum"},
    {"sequence.field": "c0"},
]


@pytest.mark.parametrize("options", KINDS, ids=str)
@pytest.mark.parametrize("every", [1, 2, 7, 40])
def test_rows_of_all_kinds(options, every):
    """Kinds in some buckets only, and buckets of deletes alone."""
    case = case_of(options=options, values=fields_of("BIGINT", "DOUBLE"))
    kinds = pa.array(["-D" if row % every == 0 else ("+I", "+U")[row % 2] for row in range(40)])
    check(Case(case.schema, [case.batches[0], case.batches[1].append_column("_row_kind", kinds)]))


@pytest.mark.parametrize("keyed", [True, False])
def test_several_batches_of_a_bucket_of_which_some_have_kinds(keyed):
    case = case_of(keyed=keyed)
    kinds = pa.array(["-D" if row % 7 == 0 and keyed else "+I" for row in range(40)])

    def written_at_once(*, together):
        table = table_of(case)
        with pytest.MonkeyPatch.context() as patch, table.writer() as writer:
            if not together:
                patch.setattr(LSMWriter, "is_small", property(lambda _: False))
                patch.setattr(AppendWriter, "is_small", property(lambda _: False))
            writer.write_arrow(case.batches[0])
            writer.write_arrow(case.batches[1].append_column("_row_kind", kinds) if keyed else case.batches[1])
            changes = writer.changes()
        return changes, {path: table._root.store.get(path) for path in data_files(table._root)}

    assert written_at_once(together=True) == written_at_once(together=False)


@pytest.mark.parametrize("options", [
    {"bucket": "-1", "bucket-key": None},
    {},
    {"metadata.stats-mode": "full"},
    {"metadata.stats-mode": "none", "fields.c1.stats-mode": "truncate(2)"},
    {"row-tracking.enabled": "true", "bucket": "-1", "bucket-key": None},
    {"write-only": "false"},
], ids=str)  # fmt: skip
def test_tables_without_a_key(options):
    case = case_of(values=every_type("parquet"), keyed=False, rows=12, parts=2)
    given = {name: text for name, text in {**case.schema.options, **options}.items() if text is not None}
    check(Case(msgspec.structs.replace(case.schema, options=given), case.batches))


@pytest.mark.parametrize("options", [
    {"target-file-row-num": "2"},
    {"file-index.bloom-filter.columns": "k"},
    {"file.format": "avro"},
], ids=str)  # fmt: skip
def test_options_of_tables_without_a_key_that_flush_each_bucket_alone(options):
    case = case_of(options=options, values=fields_of("BIGINT", "BYTES"), rows=90, keyed=False)
    check(case, flushed_together=False)


def test_a_file_that_was_begun_is_finished_alone():
    """A bucket whose first row group is full writes on to its file; what else there is becomes files together."""
    case = case_of(values=fields_of("BIGINT"), options={"bucket": "1"}, keyed=False, rows=140_000)
    parts = pa.array([0] * 139_990 + list(range(1, 11)), pa.int32())
    case = Case(case.schema, [case.batches[0].set_column(0, "p", parts)])
    found, expected = written(case), written(case, together=False)
    assert found.groups == [10]
    assert sorted(found.files.values()) == sorted(expected.files.values())


def test_a_large_bucket_is_flushed_alone_among_small_ones():
    case = case_of(values=fields_of("BIGINT"), options={"bucket": "1"}, rows=50_000)
    parts = pa.array([0] * 49_990 + list(range(1, 11)), pa.int32())
    batch = case.batches[0].set_column(0, "p", parts)
    found = written(Case(case.schema, [batch]))
    assert found.groups == [10]
    assert sorted(found.files.values()) == sorted(written(Case(case.schema, [batch]), together=False).files.values())


def test_many_buckets_are_flushed_in_groups_by_several_threads():
    case = case_of(values=fields_of("BIGINT"), rows=200, parts=100)
    expected = written(case, together=False)
    found = written(case, ThreadPool(4))
    assert found.files == expected.files and found.changes == expected.changes
    assert max(found.groups) == 64 and len(found.groups) > 2


class FailsToWrite:
    """A store that takes so many data files and no more."""

    def __init__(self, most):
        self.store = None
        self.left = most

    def open_write(self, path, *, within=None):
        if "/bucket-" in path:
            self.left -= 1
            if self.left < 0:
                raise StorageError("no more files", path=path, operation="open_write")
        return self.store.open_write(path, within=within)

    def __getattr__(self, name):
        return getattr(self.store, name)


def test_an_error_in_the_middle_leaves_no_file():
    case = case_of()
    table = table_of(case, store=FailsToWrite(3))
    with pytest.raises(StorageError, match="no more files"), table.writer() as writer:
        writer.write_arrow(case.batches[0])
        writer.changes()
    assert data_files(table._root) == []


def test_invalid_utf_8_is_refused_as_in_a_large_bucket():
    case = case_of(values=fields_of("STRING"), rows=6)
    damaged = pa.array([b"\xff"] * 6).cast(pa.binary()).view(pa.string())
    batch = case.batches[0].set_column(2, "c0", damaged)
    for together in (True, False):
        with pytest.raises(SchemaError, match="not UTF-8"):
            written(Case(case.schema, [batch]), together=together)
