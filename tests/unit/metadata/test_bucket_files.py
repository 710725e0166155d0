from __future__ import annotations

import msgspec
import pyarrow as pa
import pytest
from unit.write.support import TABLE, root_of, schema_of

from paimon_py.codec.binary_row import encode
from paimon_py.errors import CorruptionError, SchemaError, StorageError
from paimon_py.expr.bind import bind
from paimon_py.expr.column import col
from paimon_py.files.layout import file_layout
from paimon_py.metadata.new_files import NewFiles
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.data_file import EMPTY_ROW, FileKind
from paimon_py.spec.manifest import DELETION_VECTORS, HASH, DeletionVectorRange, IndexEntry
from paimon_py.spec.type_text import parse_type
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.fault_store import FaultStore

DAY = encode([pa.array(["a/b"])], [parse_type("STRING")])[0].as_py()


def plain(**options):
    return schema_of({"k": "BIGINT", "v": "STRING"}, options={name.replace("_", "-"): v for name, v in options.items()})


def partitioned(**options):
    return schema_of({"day": "STRING", "k": "BIGINT"}, partition_by=["day"], options=options)


def bucket_of(schema, partition=EMPTY_ROW, number=0, store=None):
    return OpenTable(root_of(schema, store), schema).bucket(partition, number)


def write(bucket, keys, **layout):
    schema = bucket.table.schema
    writer = NewFiles(bucket).begin(msgspec.structs.replace(file_layout(schema), **layout), first_sequence=7)
    columns = {"day": ["a/b"] * len(keys), "k": keys, "v": [str(key) for key in keys]}
    arrays = [pa.array(columns[name]) for name in schema.names]
    writer.write(pa.RecordBatch.from_arrays(arrays, names=list(schema.names)))
    return writer.close()


def index_entry(name="index-1", partition=EMPTY_ROW, bucket=0, vectors=(), **more):
    ranges = tuple(DeletionVectorRange(data_file=each, offset=1, length=9, cardinality=2) for each in vectors)
    return IndexEntry(
        kind=FileKind.ADD, partition=partition, bucket=bucket, name=name, size_bytes=1,
        row_count=len(ranges), **({"index_type": DELETION_VECTORS, "deletion_vectors": ranges} | more),
    )  # fmt: skip


def test_files_are_in_the_directory_of_their_bucket():
    bucket = bucket_of(partitioned(), DAY, 3)
    (file,) = write(bucket, [1])
    assert bucket.directory == f"{TABLE}/day=a%2Fb/bucket-3"
    assert bucket.path(file) == f"{bucket.directory}/{file.name}"
    assert bucket.stat(file).size_bytes == file.size_bytes
    assert bucket.path(msgspec.structs.replace(file, external_path="s3://b/x.parquet")) == "s3://b/x.parquet"


def test_names_of_files_do_not_leave_the_directory():
    bucket = bucket_of(plain())
    (file,) = write(bucket, [1])
    for name in ("../x", "", "a/b", ".."):
        with pytest.raises(CorruptionError):
            bucket.path(msgspec.structs.replace(file, name=name))
    with pytest.raises(CorruptionError):
        bucket.delete([msgspec.structs.replace(file, extra_files=("../x",))])
    with pytest.raises(CorruptionError):
        bucket.table.index_path(index_entry("a/b"))
    with pytest.raises(CorruptionError):
        bucket_of(plain(**{"data-file.path-directory": "../up"}))


def test_rows_are_read_with_positions_and_the_requested_columns():
    bucket = bucket_of(plain())
    (file,) = write(bucket, [5, 6, 7])
    (_, v) = bucket.table.schema.fields
    pieces = list(bucket.reader(file, [v]).positions(batch_rows=2))
    assert [(at, batch.to_pydict()) for at, batch in pieces] == [(0, {"v": ["5", "6"]}), (2, {"v": ["7"]})]
    assert [batch.to_pydict() for batch in bucket.stored_rows(file, [v])] == [{"v": ["5", "6", "7"]}]


def test_a_file_is_read_by_the_schema_that_it_was_written_with():
    old = plain()
    bucket = bucket_of(old)
    (file,) = write(bucket, [5])
    k, v = old.fields
    new = msgspec.structs.replace(old, id=1, fields=(msgspec.structs.replace(k, name="key"), v))
    later = OpenTable(bucket.table.root, new).bucket(EMPTY_ROW, 0)
    assert later.schema_of(file).names == ("k", "v")
    ((_, batch),) = later.reader(file, new.fields).positions()
    assert batch.to_pydict() == {"key": [5], "v": ["5"]}


def test_a_file_of_a_later_schema_with_other_types_is_refused_but_its_keys_can_be_read():
    old = plain()
    bucket = bucket_of(old)
    k, v = old.fields
    new = msgspec.structs.replace(old, id=1, fields=(k, msgspec.structs.replace(v, type=parse_type("BIGINT"))))
    root = root_of(new, bucket.table.root.store)
    (file,) = write_columns(OpenTable(root, new).bucket(EMPTY_ROW, 0), {"k": [5], "v": [6]})
    with pytest.raises(SchemaError):
        bucket.reader(file, old.fields)
    assert [batch.to_pydict() for batch in bucket.stored_rows(file, [k])] == [{"k": [5]}]


def write_columns(bucket, columns):
    writer = NewFiles(bucket).begin(file_layout(bucket.table.schema))
    writer.write(pa.RecordBatch.from_pydict(columns))
    return writer.close()


def test_file_indexes_return_the_rows_that_may_match():
    schema = plain(**{"file-index.bitmap.columns": "k"})
    bucket = bucket_of(schema)
    (file,) = write(bucket, [5, 6, 5])
    assert list(bucket.matching(file, bind(col("k") == 5, schema.fields))) == [0, 2]
    assert list(bucket.matching(file, bind(col("k") == 8, schema.fields))) == []


def test_reads_use_the_given_store():
    class Counted(MemoryStore):
        opened = 0

        def open_read(self, path):
            self.opened += 1
            return super().open_read(path)

    bucket = bucket_of(plain())
    (file,) = write(bucket, [5])
    counted = Counted()
    counted.put(bucket.path(file), bucket.table.root.store.get(bucket.path(file)))
    watched = OpenTable(bucket.table.root, bucket.table.schema, counted).bucket(EMPTY_ROW, 0)
    assert [batch.num_rows for batch in watched.stored_rows(file, bucket.table.schema.fields)] == [1]
    assert counted.opened == 1


def test_deleting_a_file_also_deletes_its_extra_files_and_continues_after_failures():
    schema = plain(**{"file-index.bloom-filter.columns": "k", "file-index.in-manifest-threshold": "1 b"})
    store = MemoryStore()
    bucket = bucket_of(schema, store=store)
    files = [*write(bucket, [1]), *write(bucket, [2])]
    assert all(file.extra_files for file in files)
    faulty = FaultStore(store, fail_at=2)  # after the schema is put
    OpenTable(root_of(schema, faulty), schema).bucket(EMPTY_ROW, 0).delete(files)
    assert [status.path for status in store.list(bucket.directory)] == [bucket.path(files[0])]


def test_new_files_have_unique_names_and_consecutive_numbers():
    bucket = bucket_of(plain())
    new = NewFiles(bucket)
    names = []
    for key in (1, 2):
        writer = new.begin(file_layout(bucket.table.schema))
        writer.write(pa.RecordBatch.from_pydict({"k": [key], "v": ["x"]}))
        names += [file.name for file in writer.close()]
    assert names == ["data-u0-0.parquet", "data-u0-1.parquet"]
    assert [file.name for file in write(bucket, [3])] == ["data-u1-0.parquet"]


def test_append_files_begin_with_the_given_sequence_number():
    (file,) = write(bucket_of(plain()), [1, 2])
    assert (file.min_sequence, file.max_sequence) == (7, 8)


def test_new_files_go_to_external_paths_in_turns():
    schema = partitioned(
        **{"data-file.external-paths": "file:///x,file:///y", "data-file.external-paths.strategy": "round-robin"}
    )
    bucket = bucket_of(schema, DAY)
    files = write(bucket, [1, 2, 3, 4], target_rows=1)
    assert {bucket.path(file).rpartition("/")[0] for file in files} == {
        "file:/x/day=a%2Fb/bucket-0",
        "file:/y/day=a%2Fb/bucket-0",
    }
    assert [bucket.path(file) for file in files[:2]] != [bucket.path(file) for file in files[2:]]
    assert all(bucket.path(file) == file.external_path for file in files)


@pytest.mark.parametrize(
    ("options", "path"),
    [({}, f"{TABLE}/index/index-1"), ({"index-file-in-data-file-dir": "true"}, f"{TABLE}/day=a%2Fb/bucket-2/index-1")],
)
def test_the_options_determine_the_directory_of_index_files(options, path):
    schema = partitioned(**options)
    files = OpenTable(root_of(schema), schema)
    entry = index_entry(partition=DAY, bucket=2)
    assert files.index_path(entry) == path
    assert files.index_path(msgspec.structs.replace(entry, external_path="s3://b/i")) == "s3://b/i"


def test_index_files_are_deleted_if_the_store_allows():
    schema, store = plain(), MemoryStore()
    entries = [index_entry("index-1"), index_entry("index-2")]
    for entry in entries:
        store.put(f"{TABLE}/index/{entry.name}", b"x")
    faulty = FaultStore(store, fail_at=2)  # after the schema is put
    OpenTable(root_of(schema, faulty), schema).delete_index(entries)
    assert [status.path for status in store.list(f"{TABLE}/index")] == [f"{TABLE}/index/index-1"]


def test_deletion_vectors_are_found_by_bucket_and_data_file():
    schema = plain()
    files = OpenTable(root_of(schema), schema)
    entries = [
        index_entry("index-1", vectors=["a", "b"]),
        index_entry("index-2", bucket=1, vectors=["a"]),
        index_entry("index-3", index_type=HASH, vectors=["c"]),
        index_entry("index-4", deletion_vectors=None),
    ]
    found = files.deletion_places(entries)
    assert {key: sorted(places) for key, places in found.items()} == {(EMPTY_ROW, 0): ["a", "b"], (EMPTY_ROW, 1): ["a"]}
    assert found[EMPTY_ROW, 1]["a"].path == f"{TABLE}/index/index-2"
    with pytest.raises(CorruptionError, match="two deletion vectors"):
        files.deletion_places([*entries, index_entry("index-5", vectors=["b"])])


def test_messages_name_a_partition_by_its_directory():
    schema = partitioned()
    assert OpenTable(root_of(schema), schema).label(DAY) == "day=a%2Fb"
    assert OpenTable(root_of(plain()), plain()).label(EMPTY_ROW) == "the table"


def test_every_store_failure_other_than_in_deletions_is_raised():
    schema = plain()
    faulty = FaultStore(MemoryStore())
    bucket = OpenTable(root_of(schema, faulty), schema).bucket(EMPTY_ROW, 0)
    (file,) = write(bucket, [1])
    faulty.fail_at = faulty.count + 1
    with pytest.raises(StorageError):
        bucket.stat(file)
