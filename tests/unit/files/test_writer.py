import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from unit.files.build import DIRECTORY, batch, read, schema, write, writer

from paimon_py.codec.binary_row import decode
from paimon_py.errors import StorageError, UnsupportedError
from paimon_py.files.layout import file_layout
from paimon_py.spec.data_file import EMPTY_ROW, EMPTY_STATS, FileSource
from paimon_py.spec.schema import KEY_PREFIX
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.storage.store import FileTakenError

APPEND = schema((0, "a", "INT"), (1, "s", "STRING"))
KEYED = schema((0, "k", "INT NOT NULL"), (1, "j", "STRING NOT NULL"), (2, "v", "DOUBLE"), keys=["j", "k"])
FORMATS = ["parquet", "orc", "avro"]


def names(store):
    return [status.name for status in store.list(DIRECTORY)]


def keyed_rows():
    return batch(
        KEYED, _SEQUENCE_NUMBER=[7, 5, 9], _VALUE_KIND=[0, 3, 1], k=[1, 2, 1], j=["a", "a", "b"], v=[1.5, None, None]
    )


def key_rows(row):
    return [column.to_pylist()[0] for column in decode([row], [field.type for field in KEYED.key_fields])]


@pytest.mark.parametrize("name", FORMATS)
def test_an_append_file_describes_its_rows(name):
    store = MemoryStore()
    first, second = batch(APPEND, a=[3, 1], s=["x", None]), batch(APPEND, a=[2], s=["y"])
    (file,) = write(store, APPEND, first, second, first_sequence=100, **{"file.format": name})
    assert (file.name, file.row_count) == (f"data-u-u-0.{name}", 3)
    assert file.size_bytes == len(store.get(f"{DIRECTORY}/{file.name}"))
    assert (file.min_sequence, file.max_sequence, file.delete_row_count) == (100, 102, 0)
    assert (file.min_key, file.max_key, file.key_stats) == (EMPTY_ROW, EMPTY_ROW, EMPTY_STATS)
    assert (file.level, file.schema_id, file.source, file.value_stats_columns) == (0, 0, FileSource.APPEND, None)
    assert file.creation_time_millis == 1_700_000_000_123
    columns = decode([file.value_stats.min_values, file.value_stats.max_values], [f.type for f in APPEND.fields])
    assert [column.to_pylist() for column in columns] == [[1, 3], ["x", "y"]]
    assert file.value_stats.null_counts == (0, 1)
    assert [row["a"] for row in read(store, file, APPEND)] == [3, 1, 2]


@pytest.mark.parametrize("name", FORMATS)
def test_a_keyed_file_describes_keys_sequence_numbers_and_deletes(name):
    store = MemoryStore()
    (file,) = write(store, KEYED, keyed_rows(), level=3, **{"file.format": name})
    assert (key_rows(file.min_key), key_rows(file.max_key)) == (["a", 1], ["b", 1])
    assert (file.min_sequence, file.max_sequence, file.delete_row_count, file.level) == (5, 9, 2, 3)
    assert (key_rows(file.key_stats.min_values), key_rows(file.key_stats.max_values)) == (["a", 1], ["b", 2])
    assert file.key_stats.null_counts == (0, 0)
    assert read(store, file, KEYED) == keyed_rows().to_pylist()


def test_a_keyed_file_holds_keys_system_columns_and_then_all_columns():
    layout = file_layout(KEYED)
    listed = [(field.id, field.name) for field in layout.file_fields]
    assert listed == [
        (1_073_741_824, "_KEY_j"),
        (1_073_741_823, "_KEY_k"),
        (2_147_483_646, "_SEQUENCE_NUMBER"),
        (2_147_483_645, "_VALUE_KIND"),
        (0, "k"),
        (1, "j"),
        (2, "v"),
    ]


def test_thin_files_leave_the_keys_out_but_keep_their_statistics():
    store = MemoryStore()
    (file,) = write(store, KEYED, keyed_rows(), **{"data-file.thin-mode": "true"})
    data = pa.BufferReader(store.get(f"{DIRECTORY}/{file.name}"))
    assert not [name for name in pq.read_schema(data).names if name.startswith(KEY_PREFIX)]
    assert key_rows(file.key_stats.max_values) == ["b", 2]
    assert read(store, file, KEYED) == keyed_rows().to_pylist()


@pytest.mark.parametrize("name", FORMATS)
def test_files_roll_at_the_target_size_and_keep_the_order_of_rows(name):
    store = MemoryStore()
    count = 20_000
    rows = batch(APPEND, a=range(count), s=[f"{number * 7919 % count:09d}" for number in range(count)])
    files = write(store, APPEND, rows, **{"file.format": name, "target-file-size": "40 kb"})
    assert len(files) > 2
    assert [file.name for file in files] == [f"data-u-u-{number}.{name}" for number in range(len(files))]
    assert [row["a"] for file in files for row in read(store, file, APPEND)] == list(range(count))
    assert [file.min_sequence for file in files[1:]] == [file.max_sequence + 1 for file in files[:-1]]


def test_files_roll_at_the_target_number_of_rows():
    rows = batch(APPEND, a=range(25), s=["x"] * 25)
    files = write(MemoryStore(), APPEND, rows.slice(0, 7), rows.slice(7), **{"target-file-row-num": "10"})
    assert [file.row_count for file in files] == [10, 10, 5]


def test_a_small_batch_into_a_large_file_makes_one_piece():
    store = MemoryStore()
    rolling = writer(store, APPEND)
    rolling.write(batch(APPEND, a=[], s=[]))
    assert names(store) == [] and rolling.row_count == 0 and rolling.close() == ()


def test_format_and_compression_may_depend_on_the_level():
    options = {"file.format": "orc", "file.format.per.level": "0:parquet", "file.compression.per.level": "5:none"}
    table = schema((0, "k", "INT NOT NULL"), keys=["k"], options=options)
    assert (file_layout(table).format_name, file_layout(table).settings.compression) == ("parquet", "zstd")
    assert (file_layout(table, level=5).format_name, file_layout(table, level=5).settings.compression) == (
        "orc",
        "none",
    )


def test_target_sizes_differ_with_and_without_a_key():
    assert file_layout(APPEND).target_size_bytes == 256 << 20
    assert file_layout(KEYED).target_size_bytes == 128 << 20


def test_abort_deletes_every_file_that_was_begun():
    store = MemoryStore()
    rolling = writer(store, APPEND, **{"target-file-row-num": "2"})
    rolling.write(batch(APPEND, a=[1, 2], s=["x", "y"]))
    rolling.write(batch(APPEND, a=[3], s=["z"]))
    assert len(names(store)) >= 1
    rolling.abort()
    assert names(store) == []
    rolling.abort()


@pytest.mark.parametrize("suffix", ["", ".index"])
def test_abort_leaves_a_file_whose_name_another_took(suffix):
    store = MemoryStore()
    indexed = {"file-index.bloom-filter.columns": "s", "file-index.in-manifest-threshold": "1 b"}
    first = writer(store, APPEND, **indexed)
    first.write(batch(APPEND, a=[1], s=["x"]))
    first.close()
    taken = [name for name in names(store) if name.endswith(suffix or "parquet")]
    for name in set(names(store)) - set(taken):
        store.delete(f"{DIRECTORY}/{name}")
    second = writer(store, APPEND, **indexed)
    with pytest.raises(FileTakenError):
        second.write(batch(APPEND, a=[2], s=["y"]))
        second.close()
    second.abort()
    assert names(store) == taken and len(taken) == 1


class BrokenDisk(MemoryStore):
    """Files cannot be opened after the first, and the first cannot be deleted."""

    opened = 0

    def open_write(self, path, *, within=None):
        self.opened += 1
        if self.opened > 1:
            raise StorageError("disk full", path=path, operation="open_write")
        return super().open_write(path, within=within)

    def delete(self, path):
        if path.endswith("-0.parquet"):
            raise StorageError("no such luck", path=path, operation="delete")
        super().delete(path)


def test_abort_after_a_failed_write_tries_every_file_and_reports_the_first_failure():
    store = BrokenDisk()
    rolling = writer(store, APPEND, **{"target-file-row-num": "1"})
    with pytest.raises(StorageError, match="disk full"):
        rolling.write(batch(APPEND, a=[1, 2], s=["x", "y"]))
    with pytest.raises(StorageError, match="no such luck"):
        rolling.abort()


def test_a_format_that_is_not_handled_is_refused_before_a_file_is_made():
    with pytest.raises(UnsupportedError, match="csv"):
        file_layout(schema((0, "a", "INT"), options={"file.format": "csv"}))
