"""Producer `input`: beside every flush all rows as they came in, and neither without the other."""

import msgspec
import pyarrow as pa
import pytest
from unit.write.support import data_files, root_of, schema_of

from paimon_py.commit.reassign_sequences import renumber
from paimon_py.errors import StorageError
from paimon_py.files.physical import KIND_FIELD, SEQUENCE_FIELD
from paimon_py.metadata.open_table import OpenTable
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.write.session import Writer
from paimon_py.write.settings import WriterSettings

COLUMNS = {"k": "INT NOT NULL", "v": "INT", "s": "STRING"}
ROWS = pa.table({
    "k": pa.array([2, 1, 2, 1, 3], pa.int32()), "v": pa.array([5, 1, 4, None, 7], pa.int32()), "s": list("abcde"),
    "_row_kind": ["+I", "+I", "+U", "-D", "+I"],
})  # fmt: skip
INPUT = [(1, 1, 0, 1, "b"), (1, 3, 3, None, "d"), (2, 0, 0, 5, "a"), (2, 2, 2, 4, "c"), (3, 4, 0, 7, "e")]
"""What comes in as a changelog has it: key, sequence number, kind, columns."""

MANY = pa.concat_tables([pa.table({"k": pa.array(range(1000), pa.int32()), "s": ["x" * 40] * 1000})] * 60)
"""Sixty versions of a thousand keys, in sixty batches."""

ENGINES = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "aggregation": {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum",
                    "fields.s.aggregate-function": "last_value"},
}  # fmt: skip


class Failing(MemoryStore):
    """Fails from one write on."""

    fail_at = calls = 0

    def open_write(self, path, *, within=None):
        self.calls += 1
        if self.calls == self.fail_at:
            raise StorageError("the store is full", path=path, operation="open_write")
        return super().open_write(path, within=within)


def keyed(**options):
    options = {"changelog-producer": "input", "write-only": "true", **options}
    return schema_of(COLUMNS, primary_key=["k"], options=options)


def told(root, schema, bucket):
    """The rows of a bucket's new changelog files."""
    files = OpenTable(root, schema).bucket(*bucket.place)
    fields = (schema.fields[0], SEQUENCE_FIELD, KIND_FIELD, *schema.fields[1:])
    batches = [batch for file in bucket.written.changelog for batch in files.stored_rows(file, fields)]
    return [tuple(row.values()) for row in pa.Table.from_batches(batches).to_pylist()]


def stored(root, schema, bucket):
    """The rows of a bucket's new files of level 0."""
    files = OpenTable(root, schema).bucket(*bucket.place)
    fields = (SEQUENCE_FIELD, KIND_FIELD, *schema.fields)
    return [
        row for file in bucket.written.added for batch in files.stored_rows(file, fields) for row in batch.to_pylist()
    ]


def written(schema, rows=ROWS, store=None, settings=None):
    root = root_of(schema, store)
    with Writer(OpenTable(root, schema), settings) as writer:
        writer.write_arrow(rows)
    (bucket,) = writer.changes().buckets
    return root, bucket


@pytest.mark.parametrize("name", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("engine", ENGINES)
def test_the_changelog_contains_every_row_and_level_0_the_merged_rows(engine, name):
    schema = keyed(**ENGINES[engine], **{"file.format": name})
    root, bucket = written(schema)
    assert told(root, schema, bucket) == INPUT
    (file,) = bucket.written.changelog
    assert (file.level, file.row_count, file.delete_row_count) == (0, 5, 1)
    assert (file.min_sequence, file.max_sequence) == (0, 4)
    without = msgspec.structs.replace(schema, options={**schema.options, "changelog-producer": "none"})
    plain_root, plain = written(without)
    assert stored(root, schema, bucket) == stored(plain_root, without, plain)
    assert len(data_files(root)) == 2


def test_versions_of_a_key_are_ordered_by_the_sequence_field():
    schema = keyed(**{"sequence.field": "v"})
    root, bucket = written(schema)
    assert [row[:2] for row in told(root, schema, bucket)] == [(1, 3), (1, 1), (2, 2), (2, 0), (3, 4)]


def test_rows_that_are_dropped_before_they_are_written_are_in_no_changelog():
    schema = keyed(**{"ignore-delete": "true"})
    root, bucket = written(schema)
    assert [row[0] for row in told(root, schema, bucket)] == [1, 2, 2, 3]


def test_every_flush_writes_its_changelog():
    schema = keyed(**{"write-buffer-size": "1 mb", "write-buffer-spillable": "false"})
    root, bucket = written(schema, MANY)
    assert len(bucket.written.changelog) == len(bucket.written.added) > 1
    numbers = [row[1] for row in told(root, schema, bucket)]
    assert sorted(numbers) == list(range(60_000))
    for file, log in zip(bucket.written.added, bucket.written.changelog):
        assert (file.max_sequence, file.min_key, file.max_key) == (log.max_sequence, log.min_key, log.max_key)


def test_spilled_rows_give_one_changelog():
    schema = keyed(**{"write-buffer-size": "1 mb"})
    root, bucket = written(schema, MANY)
    assert [file.row_count for file in bucket.written.added] == [1000]
    log = told(root, schema, bucket)
    assert [row[:2] for row in log] == [(k, k + 1000 * at) for k in range(1000) for at in range(60)]


def test_a_key_with_more_versions_than_a_window_is_logged_in_order_and_stored_once():
    schema = keyed(**{"write-buffer-size": "1 mb"})
    hot = pa.concat_tables([pa.table({"k": pa.array([7] * 20_000 + [9], pa.int32()), "s": ["x"] * 20_001})] * 9)
    root, bucket = written(schema, hot)
    log = told(root, schema, bucket)
    assert [row[0] for row in log] == [7] * 180_000 + [9] * 9
    assert [row[1] for row in log if row[0] == 7] == [n for n in range(9 * 20_001) if n % 20_001 != 20_000]
    assert [(row["k"], row["_SEQUENCE_NUMBER"]) for row in stored(root, schema, bucket)] == [(7, 180_007), (9, 180_008)]


def test_overwrites_write_no_changelog():
    schema = keyed()
    _, bucket = written(schema, settings=WriterSettings.of(schema).without_changelog)
    assert bucket.written.changelog == ()


@pytest.mark.parametrize("fail_at", [1, 2])
def test_a_flush_that_fails_leaves_neither_of_its_files(fail_at):
    store = Failing()
    root = root_of(keyed(), store)
    writer = Writer(OpenTable(root, keyed()))
    writer.write_arrow(ROWS)
    store.fail_at = store.calls + fail_at
    with pytest.raises(StorageError):
        writer.changes()
    assert data_files(root) == []


def test_discarded_files_are_deleted_with_their_changelog():
    schema = keyed()
    root = root_of(schema)
    writer = Writer(OpenTable(root, schema))
    writer.write_arrow(ROWS)
    writer.discard(writer.changes())
    assert data_files(root) == []
    writer.write_arrow(ROWS)
    writer.close()
    writer.abort()
    assert data_files(root) == []


def test_renumbering_gives_a_row_the_same_number_in_both():
    schema = keyed(**{"changelog-file.format": "avro"})
    root, bucket = written(schema)
    moved = msgspec.structs.replace(bucket, written=renumber(OpenTable(root, schema), bucket, 100))
    assert told(root, schema, moved) == [(row[0], row[1] + 100, *row[2:]) for row in INPUT]
    assert [row["_SEQUENCE_NUMBER"] for row in stored(root, schema, moved)] == [103, 102, 104]
    (log,), (before,) = moved.written.changelog, bucket.written.changelog
    assert log.name.startswith(before.name.removesuffix(".avro") + "-r")
    assert (log.min_sequence, log.max_sequence) == (100, 104)
    assert len(data_files(root)) == 4


def test_a_renumbering_that_fails_leaves_nothing_new():
    store = Failing()
    schema = keyed()
    root, bucket = written(schema, store=store)
    before = data_files(root)
    store.fail_at = store.calls + 2
    with pytest.raises(StorageError):
        renumber(OpenTable(root, schema), bucket, 5)
    assert data_files(root) == before
