"""The writer a user holds: files appear only when handed over, and vanish when it fails."""

import msgspec
import pyarrow as pa
import pytest
from unit.write.support import data_files, root_of, rows_of, schema_of

from paimon_py.commit.changes import Changes
from paimon_py.commit.reassign_sequences import renumber
from paimon_py.errors import SchemaError, StorageError, UsageError
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.bucket_mode import counts_anew
from paimon_py.spec.data_file import EMPTY_ROW
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.store_spill import StoreSpill
from paimon_py.write.existing import LiveFileSummary
from paimon_py.write.session import Writer


def keyed(**options):
    return schema_of({"k": "INT NOT NULL", "v": "STRING"}, primary_key=["k"], options=options)


def append(**options):
    return schema_of({"n": "BIGINT", "p": "STRING"}, partition_by=["p"], options=options)


def ints(*values):
    return pa.array(values, pa.int32())


def test_a_bucket_gets_one_sorted_file():
    schema = keyed()
    root = root_of(schema)
    with Writer(OpenTable(root, schema)) as writer:
        writer.write_arrow(pa.table({"k": ints(3, 1), "v": ["a", "b"]}))
        writer.write_arrow(pa.table({"v": ["c"], "k": ints(3), "_row_kind": ["-D"]}))
    changes = writer.changes()
    (bucket,) = changes.buckets
    assert (bucket.partition, bucket.bucket, bucket.total_buckets) == (EMPTY_ROW, 0, 1)
    (file,) = bucket.written.added
    assert (file.level, file.row_count, file.delete_row_count, file.min_sequence, file.max_sequence) == (0, 2, 1, 1, 2)
    assert rows_of(root, schema, bucket) == [[
        {"_SEQUENCE_NUMBER": 1, "_VALUE_KIND": 0, "k": 1, "v": "b"},
        {"_SEQUENCE_NUMBER": 2, "_VALUE_KIND": 3, "k": 3, "v": "c"},
    ]]  # fmt: skip
    assert changes.base.id == 0


def test_append_files_keep_the_order_of_rows_and_count_from_zero():
    schema = append()
    root = root_of(schema)
    with Writer(OpenTable(root, schema)) as writer:
        writer.write_arrow(pa.table({"n": [5, 3, 9], "p": ["a", "b", "a"]}))
        writer.write_arrow(pa.table({"n": [1], "p": ["a"]}))
    buckets = {data.partition: data for data in writer.changes().buckets}
    assert len(buckets) == 2
    found = {}
    for data in buckets.values():
        directory = "p=a" if len(data.written.added) and data.written.added[0].row_count == 3 else "p=b"
        found[directory] = [row["n"] for row in rows_of(root, schema, data, directory)[0]]
        assert (data.written.added[0].min_sequence, data.total_buckets) == (0, -1)
    assert found == {"p=a": [5, 9, 1], "p=b": [3]}


def test_changes_contain_what_was_written_since_the_last_call():
    schema = keyed()
    root = root_of(schema)
    with Writer(OpenTable(root, schema)) as writer:
        writer.write_arrow(pa.table({"k": ints(1), "v": ["a"]}))
        first = writer.changes()
        writer.write_arrow(pa.table({"k": ints(1), "v": ["b"]}))
        second = writer.changes()
    assert writer.changes().is_empty
    assert (first.row_count, second.row_count) == (1, 1)
    assert rows_of(root, schema, second.buckets[0])[0][0]["_SEQUENCE_NUMBER"] == 1
    assert Changes.concat([first, second]).file_count == len(data_files(root)) == 2


def test_a_writer_without_rows_has_empty_changes():
    schema = keyed()
    root = root_of(schema)
    with Writer(OpenTable(root, schema)) as writer:
        writer.write_arrow(pa.table({"k": ints(), "v": pa.array([], pa.string())}))
    assert writer.changes().is_empty
    assert data_files(root) == []


def test_an_exception_deletes_files_that_were_not_handed_over():
    schema = append()
    root = root_of(schema)
    with pytest.raises(RuntimeError), Writer(OpenTable(root, schema)) as writer:
        writer.write_arrow(pa.table({"n": [1], "p": ["a"]}))
        kept = writer.changes()
        writer.write_arrow(pa.table({"n": list(range(200_000)), "p": ["b"] * 200_000}))
        assert len(data_files(root)) >= 1
        raise RuntimeError
    assert [path.rsplit("/", 1)[1] for path in data_files(root)] == [kept.buckets[0].written.added[0].name]
    with pytest.raises(UsageError, match="aborted"):
        writer.changes()


def test_bad_values_give_the_writer_up_and_leave_no_file():
    schema = append()
    root = root_of(schema)
    batches = [pa.record_batch([list(range(200_000)), ["a"] * 200_000], ["n", "p"])]
    schema_with_not_null = msgspec.structs.replace(
        schema,
        fields=(
            msgspec.structs.replace(
                schema.fields[0], type=msgspec.structs.replace(schema.fields[0].type, nullable=False)
            ),
            schema.fields[1],
        ),
    )
    batches.append(pa.record_batch([pa.array([1, None]), ["a", "b"]], ["n", "p"]))
    writer = Writer(OpenTable(root, schema_with_not_null))
    with pytest.raises(SchemaError, match="NOT NULL"):
        writer.write_arrow(pa.RecordBatchReader.from_batches(batches[0].schema, batches))
    assert data_files(root) == []
    with pytest.raises(UsageError, match="failed"):
        writer.write_arrow(pa.table({"n": [1], "p": ["a"]}))


def test_columns_that_do_not_fit_leave_the_writer_usable():
    schema = append()
    root = root_of(schema)
    with Writer(OpenTable(root, schema)) as writer:
        writer.write_arrow(pa.table({"n": [1], "p": ["a"]}))
        with pytest.raises(SchemaError):
            writer.write_arrow(pa.table({"n": ["x"], "p": ["a"]}))
    assert writer.changes().row_count == 1


def test_closing_twice_is_fine_and_writing_after_it_is_not():
    schema = append()
    writer = Writer(OpenTable(root_of(schema), schema))
    writer.write_arrow(pa.table({"n": [1], "p": ["a"]}))
    writer.close()
    writer.close()
    with pytest.raises(UsageError, match="closed"):
        writer.write_arrow(pa.table({"n": [1], "p": ["a"]}))
    assert writer.changes().row_count == 1


def test_discard_deletes_handed_over_files():
    schema = append()
    root = root_of(schema)
    with Writer(OpenTable(root, schema)) as writer:
        writer.write_arrow(pa.table({"n": [1, 2], "p": ["a/b", "c"]}))
    changes = writer.changes()
    assert len(data_files(root)) == 2
    writer.discard(changes)
    assert data_files(root) == []


def test_rows_outside_a_static_overwrite_are_refused():
    schema = append()
    root = root_of(schema)
    with pytest.raises(UsageError, match="outside"), Writer(OpenTable(root, schema), ignore_existing=True) as writer:
        writer.restrict({"p": "a"})
        writer.write_arrow(pa.table({"n": [1], "p": ["a"]}))
        writer.write_arrow(pa.table({"n": [1], "p": ["b"]}))
    assert data_files(root) == []
    with Writer(OpenTable(root, schema), ignore_existing=True) as writer:
        writer.restrict({})
        writer.write_arrow(pa.table({"n": [1], "p": ["b"]}))
        writer.restrict({"p": None})
        writer.write_arrow(pa.table({"n": [1], "p": pa.nulls(1, pa.string())}))
        writer.abort()
    with pytest.raises(UsageError, match="not a partition key"):
        Writer(OpenTable(root, schema)).restrict({"x": 1})
    with pytest.raises(UsageError, match="does not fit"):
        Writer(OpenTable(root, schema)).restrict({"p": 1.5})


def test_a_buffer_that_is_full_and_may_not_spill_is_flushed_as_another_run():
    schema = keyed(**{"write-buffer-size": "1 mb", "write-buffer-spillable": "false"})
    root = root_of(schema)
    with Writer(OpenTable(root, schema)) as writer:
        for start in range(0, 5):
            keys = pa.array(range(start, 500_000 + start, 5), pa.int32())
            writer.write_arrow(pa.table({"k": keys, "v": ["x" * 20] * 100_000}))
    (bucket,) = writer.changes().buckets
    assert len(bucket.written.added) >= 3
    assert {file.level for file in bucket.written.added} == {0}
    ranges = sorted((file.min_sequence, file.max_sequence) for file in bucket.written.added)
    assert all(before[1] < after[0] for before, after in zip(ranges, ranges[1:], strict=False))
    assert sum(file.row_count for file in bucket.written.added) == 500_000


def test_a_full_buffer_spills_and_writes_one_run_of_several_files():
    schema = keyed(**{"write-buffer-size": "1 mb", "target-file-size": "1 mb", "local-sort.max-num-file-handles": "3"})
    root = root_of(schema)
    place = root.env.spill = StoreSpill(MemoryStore())
    seen = set()
    with Writer(OpenTable(root, schema)) as writer:
        for start in range(0, 5):
            keys = pa.array(range(start, 500_000 + start, 5), pa.int32())
            writer.write_arrow(pa.table({"k": keys, "v": [f"{key * 7919 % 500_009:020}" for key in keys.to_pylist()]}))
            seen.update(place.paths())
            assert writer._buckets.buffered_bytes <= 1 << 20
    assert len(seen) >= 5
    (bucket,) = writer.changes().buckets
    assert place.paths() == []
    assert len(bucket.written.added) > 1
    keys = [row["k"] for rows in rows_of(root, schema, bucket) for row in rows]
    assert keys == list(range(500_000))
    assert {file.level for file in bucket.written.added} == {0}


def test_the_largest_bucket_gives_way_first():
    schema = schema_of(
        {"k": "INT NOT NULL", "p": "INT NOT NULL", "v": "STRING"}, primary_key=["p", "k"], partition_by=["p"],
        options={"write-buffer-size": "1 mb"},
    )  # fmt: skip
    root = root_of(schema)
    with Writer(OpenTable(root, schema)) as writer:
        for part, count in ((1, 9_000), (2, 500), (3, 8_000)):
            keys = pa.array(range(count), pa.int32())
            writer.write_arrow(
                pa.table({"k": keys, "p": pa.repeat(pa.scalar(part, pa.int32()), count), "v": ["x" * 60] * count})
            )
        assert [one.has_spilled for one in writer._buckets._writers.values()] == [True, False, False]
    assert [bucket.written.added[0].row_count for bucket in writer.changes().buckets] == [9_000, 500, 8_000]


def test_rows_go_to_level_0_when_the_disk_may_not_take_more():
    options = {"write-buffer-size": "1 mb", "write-buffer-spill.max-disk-size": "1 mb", "spill-compression": "none"}
    schema = keyed(**options)
    root = root_of(schema)
    place = root.env.spill = StoreSpill(MemoryStore())
    most = 0
    with Writer(OpenTable(root, schema)) as writer:
        for start in range(0, 8):
            keys = pa.array(range(start, 160_000 + start, 8), pa.int32())
            writer.write_arrow(pa.table({"k": keys, "v": ["x" * 50] * 20_000}))
            most = max(most, sum(len(place.store.get(path)) for path in place.paths()))
    (bucket,) = writer.changes().buckets
    assert 1 < len(bucket.written.added) < 8
    assert 1 << 20 <= most < 3 << 20
    assert sum(file.row_count for file in bucket.written.added) == 160_000


def test_memory_of_all_buckets_together_is_bounded():
    schema = schema_of(
        {"k": "INT NOT NULL", "v": "STRING"}, primary_key=["k"], options={"bucket": "16", "write-buffer-size": "1 mb"}
    )
    root = root_of(schema)
    with Writer(OpenTable(root, schema)) as writer:
        for start in range(0, 100_000, 10_000):
            keys = pa.array(range(start, start + 10_000), pa.int32())
            writer.write_arrow(pa.table({"k": keys, "v": ["x" * 50] * 10_000}))
            assert writer._buckets.buffered_bytes <= 1 << 20
            assert writer._buckets.buffered_bytes == sum(one.buffered_bytes for one in writer._buckets._writers.values())
        writer.abort()


def test_a_flush_rolls_into_files_that_do_not_overlap():
    schema = keyed(**{"target-file-size": "100 kb"})
    root = root_of(schema)
    with Writer(OpenTable(root, schema)) as writer:
        keys = pa.array([(i * 7919) % 300_007 for i in range(300_000)], pa.int32())
        writer.write_arrow(pa.table({"k": keys, "v": [str(i * 31 % 1_000_003) for i in range(300_000)]}))
    (bucket,) = writer.changes().buckets
    assert len(bucket.written.added) > 1
    spans = [[row["k"] for row in rows] for rows in rows_of(root, schema, bucket)]
    assert all(before[-1] < after[0] for before, after in zip(spans, spans[1:], strict=False))


def test_many_partitions_keep_few_files_open():
    schema = append()
    store = OpenCounter()
    root = root_of(schema, store)
    rows = 131_072
    with Writer(OpenTable(root, schema)) as writer:
        for part in range(70):
            writer.write_arrow(
                pa.table({"n": pa.repeat(part, rows).cast(pa.int64()), "p": pa.repeat(f"p{part}", rows)})
            )
    assert writer.changes().row_count == 70 * rows
    assert store.most <= 65
    assert store.open == 0


class OpenCounter(MemoryStore):
    """Counts files that are open for writing."""

    def __init__(self):
        super().__init__()
        self.open = self.most = 0

    def open_write(self, path, *, within=None):
        sink = super().open_write(path, within=within)
        self.open += 1
        self.most = max(self.most, self.open)
        close = sink.close

        def closing():
            if not sink.closed:
                self.open -= 1
            close()

        sink.close = closing
        return sink


class Failing(MemoryStore):
    """Refuses the n-th file opened for writing, and deletes nothing after it."""

    def __init__(self, fail_at, deletes=True):
        super().__init__()
        self.calls = 0
        self.fail_at = fail_at
        self.deletes = deletes

    def open_write(self, path, *, within=None):
        self.calls += 1
        if self.calls == self.fail_at:
            raise StorageError("no", path=path, operation="open_write")
        return super().open_write(path, within=within)

    def delete(self, path):
        if not self.deletes:
            raise StorageError("no", path=path, operation="delete")
        super().delete(path)


@pytest.mark.parametrize("fail_at", [1, 2, 3])
def test_a_failing_store_leaves_no_files(fail_at):
    schema = append()
    root = root_of(schema, Failing(fail_at))
    writer = Writer(OpenTable(root, schema))
    writer.write_arrow(pa.table({"n": [1, 2, 3], "p": ["a", "b", "c"]}))
    with pytest.raises(StorageError):
        writer.changes()
    assert data_files(root) == []
    with pytest.raises(UsageError, match="failed"):
        writer.changes()


def test_the_first_error_is_seen_even_if_cleaning_up_fails_too():
    schema = append()
    root = root_of(schema, Failing(2, deletes=False))
    with pytest.raises(StorageError, match="no") as caught, Writer(OpenTable(root, schema)) as writer:
        writer.write_arrow(pa.table({"n": [1, 2], "p": ["a", "b"]}))
    assert caught.value.operation == "open_write"


def test_another_number_of_buckets_is_refused_even_for_new_ones():
    schema = keyed(bucket="4")
    writer = Writer(OpenTable(root_of(schema), schema))
    writer._existing = LiveFileSummary({(EMPTY_ROW, 0): 7}, {EMPTY_ROW: 2})
    with pytest.raises(UsageError, match=r"has 2 buckets, but the option 'bucket' says 4"):
        writer.write_arrow(pa.table({"k": ints(*range(50)), "v": ["a"] * 50}))


def test_numbers_go_on_after_those_of_live_files():
    schema = keyed()
    root = root_of(schema)
    writer = Writer(OpenTable(root, schema))
    writer._existing = LiveFileSummary({(EMPTY_ROW, 0): 41}, {EMPTY_ROW: 1})
    writer.write_arrow(pa.table({"k": ints(1), "v": ["a"]}))
    (bucket,) = writer.changes().buckets
    assert bucket.written.added[0].min_sequence == 42
    writer.write_arrow(pa.table({"k": ints(1), "v": ["a"]}))
    assert writer.changes().buckets[0].written.added[0].min_sequence == 43


def test_renumbering_shifts_every_row_in_new_files_and_keeps_the_old_ones():
    schema = keyed(**{"target-file-size": "100 kb", "write-only": "true"})
    root = root_of(schema)
    with Writer(OpenTable(root, schema)) as writer:
        kinds = ["+I", "-D"] * 100_000
        writer.write_arrow(
            pa.table(
                {
                    "k": pa.array(range(200_000), pa.int32()),
                    "v": [str(i * 31 % 1_000_003) for i in range(200_000)],
                    "_row_kind": kinds,
                }
            )
        )
    (before,) = writer.changes().buckets
    rows = [row for file in rows_of(root, schema, before) for row in file]
    after = msgspec.structs.replace(before, written=renumber(OpenTable(root, schema), before, 1000))
    assert len(after.written.added) == len(before.written.added) > 1
    shifted = [row for file in rows_of(root, schema, after) for row in file]
    assert shifted == [{**row, "_SEQUENCE_NUMBER": row["_SEQUENCE_NUMBER"] + 1000} for row in rows]
    assert [f.min_sequence for f in after.written.added] == [f.min_sequence + 1000 for f in before.written.added]
    keep = ("row_count", "delete_row_count", "min_key", "max_key", "key_stats", "value_stats", "level", "schema_id")
    assert all(
        getattr(new, name) == getattr(old, name)
        for new, old in zip(after.written.added, before.written.added, strict=True)
        for name in keep
    )
    both = sorted(file.name for file in before.written.added + after.written.added)
    assert sorted(path.rsplit("/", 1)[1] for path in data_files(root)) == both


def test_renumbering_append_files_touches_metadata_only():
    schema = append()
    root = root_of(schema)
    with Writer(OpenTable(root, schema)) as writer:
        writer.write_arrow(pa.table({"n": [1, 2], "p": ["a", "a"]}))
    (bucket,) = writer.changes().buckets
    shifted = renumber(OpenTable(root, schema), bucket, 5).added[0]
    assert (shifted.name, shifted.min_sequence, shifted.max_sequence) == (bucket.written.added[0].name, 5, 6)


def test_a_renumbering_that_fails_keeps_the_old_files():
    schema = keyed()
    store = Failing(0)
    root = root_of(schema, store)
    with Writer(OpenTable(root, schema)) as writer:
        writer.write_arrow(pa.table({"k": ints(1), "v": ["a"]}))
        (bucket,) = writer.changes().buckets
    store.fail_at = store.calls + 1
    with pytest.raises(StorageError):
        renumber(OpenTable(root, schema), bucket, 5)
    assert [path.rsplit("/", 1)[1] for path in data_files(root)] == [bucket.written.added[0].name]


@pytest.mark.parametrize(
    ("write_only", "compacts", "anew"),
    [("true", None, True), ("false", None, False), ("false", False, True), ("true", True, False)],
)
def test_a_writer_that_does_not_compact_counts_anew_whatever_the_table_says(write_only, compacts, anew):
    options = {"bucket-key": "n", "bucket-append-ordered": "false", "write-only": write_only}
    assert counts_anew(append(bucket="1", **options), compacts=compacts) is anew


def test_writers_of_unordered_uncompacted_buckets_count_from_zero():
    for ordered, first in (("true", 2), ("false", 0)):
        schema = append(bucket="1", **{"bucket-key": "n", "bucket-append-ordered": ordered, "write-only": "true"})
        root = root_of(schema)
        data = pa.table({"n": [1, 2], "p": ["a", "a"]})
        with Writer(OpenTable(root, schema)) as writer:
            writer.write_arrow(data)
            changes = writer.changes()
            (known,) = changes.buckets
            writer._existing = LiveFileSummary({(known.partition, 0): 1}, {known.partition: 1})
            writer._buckets._next_sequences.clear()
            writer.write_arrow(data)
            (bucket,) = writer.changes().buckets
        assert bucket.written.added[0].min_sequence == first
