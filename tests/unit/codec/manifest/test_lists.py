"""Manifest lists and index manifests against fastavro and against themselves."""

import io
import json
import random

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.codec.manifest.manifest_entries import row, stats_by_fastavro

from paimon_py.codec.manifest import schemas as manifest_schemas
from paimon_py.codec.manifest.entries import container
from paimon_py.codec.manifest.lists import (
    read_index_manifest,
    read_manifest_list,
    write_index_manifest,
    write_manifest_list,
)
from paimon_py.errors import CorruptionError, UnsupportedError
from paimon_py.spec.data_file import EMPTY_ROW, FileKind, Stats
from paimon_py.spec.manifest import DeletionVectorRange, GlobalIndex, IndexEntry, ManifestFile

FILES = [
    ManifestFile(name="manifest-a-0", size_bytes=2000, added_files=1, deleted_files=0, schema_id=0),
    ManifestFile(
        name="manifest-ä-1",
        size_bytes=2**40,
        added_files=10**6,
        deleted_files=7,
        partition_stats=Stats(row(1), row(9), (0, None)),
        schema_id=3,
        min_bucket=-2,
        max_bucket=300,
        min_level=0,
        max_level=5,
        min_row_id=0,
        max_row_id=2**40,
    ),
    ManifestFile(
        name="m", size_bytes=0, added_files=0, deleted_files=0, schema_id=0, partition_stats=Stats(b"", b"", None)
    ),
]
PLAIN = {"kind": FileKind.ADD, "partition": EMPTY_ROW, "bucket": 0, "size_bytes": 31, "row_count": 1}
INDEXES = [
    IndexEntry(**PLAIN, index_type="HASH", name="index-a-0"),
    IndexEntry(
        **{**PLAIN, "row_count": 2, "size_bytes": 61},
        index_type="DELETION_VECTORS",
        name="index-a-1",
        deletion_vectors=(
            DeletionVectorRange(data_file="data-1.parquet", offset=1, length=22),
            DeletionVectorRange(data_file="data-2.parquet", offset=31, length=22, cardinality=3),
        ),
        external_path="s3://b/index-a-1",
    ),
    IndexEntry(
        **PLAIN,
        index_type="btree",
        name="index-a-2",
        global_index=GlobalIndex(
            row_range_start=0,
            row_range_end=99,
            field_id=2,
            extra_field_ids=(1, 3),
            index_meta=b"\x00",
            source_meta=None,
        ),
    ),
]


@pytest.mark.parametrize("compression", ["zstd", "null", "snappy", "deflate"])
@pytest.mark.parametrize("files", [[], FILES[:1], FILES], ids=len)
def test_written_list_reads_back(files, compression):
    assert read_manifest_list(write_manifest_list(files, compression)) == files


def test_written_list_reads_with_fastavro():
    records = list(fastavro.reader(io.BytesIO(write_manifest_list(FILES))))
    assert [record["_FILE_NAME"] for record in records] == [file.name for file in FILES]
    assert [stats_by_fastavro(record["_PARTITION_STATS"]) for record in records] == [f.partition_stats for f in FILES]
    assert [record["_MAX_ROW_ID"] for record in records] == [file.max_row_id for file in FILES]
    assert {record["_VERSION"] for record in records} == {2}


def test_list_of_java_09_has_no_ranges():
    schema = json.loads(manifest_schemas.MANIFEST_LIST)
    records = list(fastavro.reader(io.BytesIO(write_manifest_list(FILES[:1]))))
    del schema["fields"][7:]
    out = io.BytesIO()
    fastavro.writer(out, schema, records, codec="zstandard")
    assert read_manifest_list(out.getvalue()) == FILES[:1]


def test_written_index_manifest_reads_back():
    assert read_index_manifest(write_index_manifest(INDEXES)) == INDEXES
    assert read_index_manifest(write_index_manifest([])) == []


def test_written_index_manifest_reads_with_fastavro():
    records = list(fastavro.reader(io.BytesIO(write_index_manifest(INDEXES))))
    assert records[1]["_DELETIONS_VECTORS_RANGES"][1] == {
        "f0": "data-2.parquet",
        "f1": 31,
        "f2": 22,
        "_CARDINALITY": 3,
    }
    assert records[2]["_GLOBAL_INDEX"]["_EXTRA_FIELD_IDS"] == [1, 3]


def test_newer_version_is_refused_by_name():
    with pytest.raises(UnsupportedError, match="version 3"):
        read_manifest_list(container(manifest_schemas.MANIFEST_LIST, [b"\x06" + bytes(14)], "null"))


def test_record_that_ends_early_is_corruption_with_its_block():
    with pytest.raises(CorruptionError) as caught:
        read_manifest_list(container(manifest_schemas.MANIFEST_LIST, [b"\x04\x20ab"], "null"), "dir/list")
    assert caught.value.path == "dir/list"
    assert caught.value.offset is not None


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32), which=st.booleans(), compression=st.sampled_from(["zstd", "null"]))
def test_damaged_file_is_corruption_or_reads(seed, which, compression):
    draw = random.Random(seed)
    write, read, values = (
        (write_manifest_list, read_manifest_list, FILES)
        if which
        else (write_index_manifest, read_index_manifest, INDEXES)
    )
    data = bytearray(write(values, compression))
    at = draw.randrange(len(data))
    if draw.random() < 0.2:
        del data[at:]
    else:
        data[at] ^= 1 << draw.randrange(8)
    try:
        read(bytes(data), "f")
    except CorruptionError as error:
        assert error.path == "f"
    except UnsupportedError as error:
        assert "version" in error.feature


def test_lists_may_be_a_union_with_null():
    reader = fastavro.reader(io.BytesIO(write_manifest_list(FILES)))
    records = list(reader)
    out = io.BytesIO()
    fastavro.writer(out, ["null", json.loads(reader.metadata["avro.schema"])], records)
    assert read_manifest_list(out.getvalue(), "list") == FILES


def test_a_null_in_a_list_is_corruption():
    out = io.BytesIO()
    fastavro.writer(out, ["null", json.loads(manifest_schemas.MANIFEST_LIST)], [None])
    with pytest.raises(CorruptionError):
        read_manifest_list(out.getvalue(), "list")


def test_deletion_vectors_of_no_files_are_corruption():
    """One flipped bit in the name of the field, which stands in the header, let dead rows come back alive."""
    data = write_index_manifest(INDEXES, "null").replace(b"_DELETIONS_VECTORS_RANGES", b"_DELETIONS_VECTORS_PLACES")
    with pytest.raises(CorruptionError, match="without the names of their data files"):
        read_index_manifest(data)
