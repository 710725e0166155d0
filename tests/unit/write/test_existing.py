"""What a writer learns from live files."""

import pyarrow as pa
from unit.write.support import schema_of

from paimon_py.codec.binary_row import encode
from paimon_py.codec.manifest.columns import EntryColumns
from paimon_py.codec.manifest.entries import read_manifests, write_manifest
from paimon_py.spec.data_file import DataFile, FileKind, ManifestEntry
from paimon_py.write.existing import NOTHING, summarise

SCHEMA = schema_of({"p": "STRING"}, partition_by=["p"])
A, B = encode([pa.array(["a", "b"])], [SCHEMA.fields[0].type]).to_pylist()


def entry(partition, bucket, top, total=4):
    file = DataFile(
        name=f"f{bucket}-{top}", size_bytes=1, row_count=1, min_sequence=0, max_sequence=top, schema_id=0, level=0
    )
    return ManifestEntry(kind=FileKind.ADD, partition=partition, bucket=bucket, total_buckets=total, file=file)


def columns(*entries):
    return read_manifests([("m", write_manifest(list(entries)))])


def test_the_largest_number_of_each_bucket_counts():
    known = summarise(columns(entry(A, 0, 5), entry(B, 0, 9), entry(A, 1, 2), entry(A, 0, 3)))
    assert known.next_sequence(A, 0) == 6
    assert known.next_sequence(A, 1) == 3
    assert known.next_sequence(B, 0) == 10
    assert known.next_sequence(B, 1) == 0


def test_bucket_counts_are_tracked_by_partition():
    known = summarise(columns(entry(A, 0, 5, total=4), entry(B, 0, 9, total=2), entry(A, 1, 1, total=4)))
    assert known.total_buckets == {A: 4, B: 2}


def test_files_without_fixed_buckets_say_nothing_of_counts():
    assert summarise(columns(entry(A, 0, 5, total=-1))).total_buckets == {}


def test_an_empty_table_knows_nothing():
    assert summarise(EntryColumns.empty()) is NOTHING
    assert NOTHING.next_sequence(A, 0) == 0
