"""Metadata tables of the files of one state: data files, their key ranges, buckets, partitions.

Source: Java `FilesTable`, `FileKeyRangesTable`, `BucketsTable`, `PartitionsTable`, release 2.0.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.binary_row import decode_at
from paimon_py.codec.columns import Ints, Mask, from_numpy, text_array
from paimon_py.codec.manifest.columns import ABSENT, EntryColumns, file_source
from paimon_py.errors import SchemaError, UnsupportedError
from paimon_py.expr.prune import Bounds
from paimon_py.files.casts.cast import cast
from paimon_py.files.physical import bounded_fields
from paimon_py.files.stats_evolution import bounded_columns
from paimon_py.lazy import lazy_property
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.partition_files import counted_files
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.manifest import DELETION_VECTORS, ManifestFile
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Field
from paimon_py.system.metadata_table_def import (
    CHUNK_ROWS,
    Columns,
    MetadataTableDef,
    RowRequest,
    TableState,
    exactly,
    fields_of,
)
from paimon_py.system.texts import key_texts, named_texts, partition_names, partition_row_texts, value_texts

_COMPRESSED = r"\.(?:gz|bz2|deflate|snappy|lz4|zst)$"
_MILLIS = pa.timestamp("ms")


class FilePart:
    """A part of the live files of a state, as columns of system tables."""

    def __init__(self, state: TableState, entries: EntryColumns) -> None:
        self.state = state
        self.entries = entries

    def partition(self) -> pa.Array:
        """`{2024-01-01, x}`."""
        codes, values = self.entries.distinct("partition")
        return partition_row_texts(values, self.state.schema).take(from_numpy(codes, pa.int64()))

    @lazy_property
    def directories(self) -> pa.Array:
        """The directory of the bucket of each file."""
        table = OpenTable(self.state.root, self.state.schema)
        codes: Ints = np.zeros(len(self.entries), np.int64)
        found: list[str] = []
        for (partition, bucket), rows in self.entries.by_bucket().items():
            codes[rows] = len(found)
            found.append(table.bucket(partition, bucket).directory)
        return text_array(found).take(from_numpy(codes, pa.int64()))

    def path(self) -> pa.Array:
        """The path of each file."""
        inside = pc.binary_join_element_wise(self.directories, self.entries.names(), "/")
        return pc.coalesce(self.entries.array("external_path", pa.string()), inside)

    def format(self) -> pa.Array:
        """The extensions of the names, without those of a compression."""
        names = pc.replace_substring_regex(self.entries.names(), _COMPRESSED, "")
        return pc.replace_substring_regex(names, r"^.*\.", "")

    def number(self, name: str) -> pa.Array:
        """A number of the entries; null if a file has none."""
        numbers: Ints = getattr(self.entries, name)
        return from_numpy(numbers, pa.int64(), numbers != ABSENT)

    def source(self) -> list[str | None]:
        """The origin of each file: APPEND or COMPACT."""
        known = {int(number): file_source(int(number)) for number in np.unique(self.entries.source)}
        names = {number: None if each is None else each.name for number, each in known.items()}
        return [names[number] for number in self.entries.source.tolist()]

    def write_columns(self) -> list[tuple[str, ...] | None]:
        """The columns that were written; null for all."""
        codes, lists = self.entries.lists("write_columns")
        return [lists[code] for code in codes.tolist()]

    def key(self, which: str) -> pa.Array:
        """`[1, a]` of `min_key` or `max_key`; null for files without keys."""
        return self._by(self.entries.schema_id, lambda entries, schema_id: self._keys(entries, schema_id, which))

    def stats(self, which: str) -> pa.Array:
        """`{a=1, b=null}` of `value_min`, `value_max` or `value_null_counts`, in terms of the state's schema."""
        covered_codes, covered = bounded_columns(self.entries)
        written_codes, written = self.entries.lists("write_columns")
        codes = (self.entries.schema_id * len(covered) + covered_codes) * len(written) + written_codes

        def stats_of(entries: EntryColumns, code: int) -> pa.Array:
            rest, written_code = divmod(code, len(written))
            schema_id, covered_code = divmod(rest, len(covered))
            return self._stats(entries, schema_id, covered[covered_code], written[written_code], which)

        return self._by(codes, stats_of)

    def _by(self, codes: Ints, make: Callable[[EntryColumns, int], pa.Array]) -> pa.Array:
        """Strings for all files, computed once for all files with the same code."""
        parts, places = [pa.nulls(0, pa.string())], [np.zeros(0, np.int64)]
        for code in np.unique(codes).tolist():
            rows = np.flatnonzero(codes == code)
            parts.append(make(self.entries.take(rows), code))
            places.append(rows)
        order = np.argsort(np.concatenate(places), kind="stable")
        return pa.concat_arrays(parts).take(from_numpy(order, pa.int64()))

    def _keys(self, entries: EntryColumns, schema_id: int, which: str) -> pa.Array:
        schema = self._schema(schema_id)
        fields = [schema.field(name) for name in schema.trimmed_primary_keys]
        if not fields:
            return pa.nulls(len(entries), pa.string())
        return key_texts(decode_at(*entries.rows(which), [field.type for field in fields]), fields)

    def _stats(
        self,
        entries: EntryColumns,
        schema_id: int,
        covered: Sequence[str] | None,
        written: Sequence[str] | None,
        which: str,
    ) -> pa.Array:
        schema, count = self._schema(schema_id), len(entries)
        fields = bounded_fields(schema, covered)
        slots = {field.id: slot for slot, field in enumerate(fields)}
        present = {field.id for field in schema.fields if written is None or field.name in written}
        wanted = [slots[field.id] for field in self.state.schema.fields if field.id in slots]
        counts = which == "value_null_counts"
        values = {} if counts else self._decode(entries, fields, wanted, which)
        texts = {}
        for field in self.state.schema.fields:
            slot = slots.get(field.id)
            if counts and slot is not None:
                texts[field.name] = _number_texts(entries.null_counts(which, slot))
            elif counts and field.id not in present:
                texts[field.name] = _number_texts(from_numpy(entries.row_count, pa.int64()))
            elif slot is None or slot not in values:
                texts[field.name] = _number_texts(pa.nulls(count, pa.int64()))
            else:
                texts[field.name] = _bound_texts(values[slot], fields[slot], field)
        return named_texts(texts, count)

    def _decode(
        self, entries: EntryColumns, fields: Sequence[Field], wanted: Sequence[int], which: str
    ) -> dict[int, pa.Array]:
        """The bounds by position among the fields, without those that Arrow cannot hold, such as a year 0 in ns."""
        types = [field.type for field in fields]
        found = {}
        for slot in wanted:
            with contextlib.suppress(UnsupportedError):
                (found[slot],) = decode_at(*entries.rows(which), types, [slot])
        return found

    def _schema(self, schema_id: int) -> TableSchema:
        return self.state.root.schemas.get(schema_id)


_KEY_RANGES: Columns[FilePart] = {
    "partition STRING": FilePart.partition,
    "bucket INT NOT NULL": lambda part: part.number("bucket"),
    "file_path STRING NOT NULL": FilePart.path,
    "file_format STRING NOT NULL": FilePart.format,
    "schema_id BIGINT NOT NULL": lambda part: part.number("schema_id"),
    "level INT NOT NULL": lambda part: part.number("level"),
    "record_count BIGINT NOT NULL": lambda part: part.number("row_count"),
    "file_size_in_bytes BIGINT NOT NULL": lambda part: part.number("size_bytes"),
    "min_key STRING": lambda part: part.key("min_key"),
    "max_key STRING": lambda part: part.key("max_key"),
    "first_row_id BIGINT": lambda part: part.number("first_row_id"),
}
_FILES: Columns[FilePart] = {
    **{text: get for text, get in _KEY_RANGES.items() if text != "first_row_id BIGINT"},
    "null_value_counts STRING NOT NULL": lambda part: part.stats("value_null_counts"),
    "min_value_stats STRING NOT NULL": lambda part: part.stats("value_min"),
    "max_value_stats STRING NOT NULL": lambda part: part.stats("value_max"),
    "min_sequence_number BIGINT": lambda part: part.number("min_sequence"),
    "max_sequence_number BIGINT": lambda part: part.number("max_sequence"),
    "creation_time TIMESTAMP(3)": lambda part: part.number("creation_time_millis").view(_MILLIS),
    "deleteRowCount BIGINT": lambda part: part.number("delete_row_count"),
    "file_source STRING": FilePart.source,
    "first_row_id BIGINT": lambda part: part.number("first_row_id"),
    "write_cols ARRAY<STRING>": FilePart.write_columns,
}


def _files(request: RowRequest, state: TableState) -> Iterator[pa.RecordBatch]:
    """The live files that may match."""
    for part in file_parts(request, state):
        yield request.batch(len(part.entries), part, _FILES)


def _file_key_ranges(request: RowRequest, state: TableState) -> Iterator[pa.RecordBatch]:
    """The live files that may match, without statistics."""
    for part in file_parts(request, state):
        yield request.batch(len(part.entries), part, _KEY_RANGES)


def file_parts(request: RowRequest, state: TableState) -> Iterator[FilePart]:
    """The live files of a state that may match by partition, bucket, level and schema.

    Cost: the manifests that may contain such files.
    """
    if state.snapshot is None:
        return
    entries = state.root.manifests.live_entries(state.snapshot, _wanted_entries(request, state))
    if bucket_mode(state.schema) is BucketMode.POSTPONED:
        entries = entries.take(entries.bucket >= 0)
    for at in range(0, len(entries), CHUNK_ROWS):
        yield FilePart(state, entries.take(slice(at, at + CHUNK_ROWS)))


def _wanted_entries(request: RowRequest, state: TableState) -> EntryFilter | None:
    if request.predicate is None:
        return None

    def of_manifests(files: Sequence[ManifestFile]) -> Mask:
        return request.may_match(len(files), _manifest_bounds(files, state.schema))

    def of_partitions(partitions: pa.Array) -> Mask:
        texts = partition_row_texts(partitions, state.schema)
        return request.may_match(len(texts), {"partition": exactly(texts)})

    def of_entries(entries: EntryColumns) -> Mask:
        part = FilePart(state, entries)
        known = {"partition": part.partition(), "schema_id": part.number("schema_id")}
        known |= {name: part.number(name).cast(pa.int32()) for name in ("bucket", "level")}
        return request.may_match(len(entries), {name: exactly(values) for name, values in known.items()})

    return EntryFilter(manifests=of_manifests, partitions=of_partitions, keep=of_entries)


def _manifest_bounds(files: Sequence[ManifestFile], schema: TableSchema) -> dict[str, Bounds]:
    """The bounds of buckets and levels in manifests, and of the partition if all their files are in one."""
    low = pa.array([file.partition_stats.min_values for file in files], pa.binary())
    high = pa.array([file.partition_stats.max_values for file in files], pa.binary())
    one = pc.if_else(pc.equal(low, high), low, pa.scalar(None, pa.binary()))
    text = partition_row_texts(one, schema)
    if len(schema.partition_keys) > 0:
        nullable = [any(file.partition_stats.null_counts or ()) for file in files]
        text = pc.if_else(pa.array(nullable, pa.bool_()), pa.scalar(None, pa.string()), text)
    return {
        "partition": Bounds(min=text, max=text),
        "bucket": Bounds(
            min=pa.array([file.min_bucket for file in files], pa.int32()),
            max=pa.array([file.max_bucket for file in files], pa.int32()),
        ),
        "level": Bounds(
            min=pa.array([file.min_level for file in files], pa.int32()),
            max=pa.array([file.max_level for file in files], pa.int32()),
        ),
    }


# -- buckets and partitions --------------------------------------------------------------------------------------------

_BUCKETS: Columns[tuple[TableState, pa.Table]] = {
    "partition STRING": lambda one: one[1]["text"],
    "bucket INT NOT NULL": lambda one: one[1]["bucket"],
    "record_count BIGINT NOT NULL": lambda one: one[1]["record_count"],
    "file_size_in_bytes BIGINT NOT NULL": lambda one: one[1]["file_size_in_bytes"],
    "file_count BIGINT NOT NULL": lambda one: one[1]["file_count"],
    "last_update_time TIMESTAMP(3)": lambda one: _times(one[1]),
}
_PARTITIONS: Columns[tuple[TableState, pa.Table]] = {
    "partition STRING": lambda one: one[1]["text"],
    "record_count BIGINT NOT NULL": lambda one: one[1]["record_count"],
    "file_size_in_bytes BIGINT NOT NULL": lambda one: one[1]["file_size_in_bytes"],
    "file_count BIGINT NOT NULL": lambda one: one[1]["file_count"],
    "last_update_time TIMESTAMP(3)": lambda one: _times(one[1]),
    "created_at TIMESTAMP(3)": lambda one: pa.nulls(one[1].num_rows, _MILLIS),
    "created_by STRING": lambda one: pa.nulls(one[1].num_rows, pa.string()),
    "updated_by STRING": lambda one: pa.nulls(one[1].num_rows, pa.string()),
    "options STRING": lambda one: pa.nulls(one[1].num_rows, pa.string()),
    "total_buckets INT NOT NULL": lambda one: one[1]["total_buckets"],
    "done BOOLEAN NOT NULL": lambda one: [False] * one[1].num_rows,
    "deleted_record_count BIGINT": lambda one: _deleted_rows(one[0], one[1]["partition"]),
}


def _buckets(request: RowRequest, state: TableState) -> Iterator[pa.RecordBatch]:
    """The non-empty buckets, by partition and number."""
    if state.snapshot is not None:
        found = counted_files(state.root, state.snapshot, _wanted_entries(request, state), by=("partition", "bucket"))
        texts = partition_row_texts(found["partition"].combine_chunks(), state.schema)
        yield from _count(request, state, found, texts, _BUCKETS, "bucket")


def _partitions(request: RowRequest, state: TableState) -> Iterator[pa.RecordBatch]:
    """The non-empty partitions, by their texts."""
    if state.snapshot is not None:
        found = counted_files(state.root, state.snapshot, None, by=("partition",), waiting=False)
        texts = partition_names(found["partition"].combine_chunks(), state.schema, directory=False)
        yield from _count(request, state, found, texts, _PARTITIONS)


def _count(
    request: RowRequest, state: TableState, found: pa.Table, texts: pa.Array,
    columns: Columns[tuple[TableState, pa.Table]], *keys: str,
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    found = found.append_column("text", texts)
    found = found.sort_by([("text", "ascending"), *((key, "ascending") for key in keys)])
    for at in range(0, found.num_rows, CHUNK_ROWS):
        part = found.slice(at, CHUNK_ROWS)
        yield request.batch(part.num_rows, (state, part), columns)


def _times(found: pa.Table) -> pa.Array:
    made = found["creation_time_millis"].combine_chunks()
    return pc.if_else(pc.equal(made, ABSENT), pa.scalar(None, pa.int64()), made).view(_MILLIS)


def _deleted_rows(state: TableState, partitions: pa.ChunkedArray) -> list[int | None]:
    """The number of rows in deletion vectors; null if one has no count. Cost: the index manifest"""
    counts: dict[bytes, int | None] = {}
    name = state.snapshot.index_manifest if state.snapshot is not None else None
    if name is not None and Options(state.schema.options).get_bool("deletion-vectors.enabled"):
        for entry in state.root.manifests.read_index(name):
            if entry.index_type == DELETION_VECTORS and entry.deletion_vectors:
                numbers = [each.cardinality for each in entry.deletion_vectors]
                before = counts.get(entry.partition, 0)
                known = before is not None and None not in numbers
                counts[entry.partition] = sum((number or 0 for number in numbers), before or 0) if known else None
    return [counts.get(partition, 0) for partition in partitions.to_pylist()]


def _number_texts(numbers: pa.Array) -> pa.Array:
    return pc.fill_null(numbers.cast(pa.string()), "null")


def _bound_texts(values: pa.Array, stored: Field, field: Field) -> pa.Array:
    """Bounds in the column's current type; `null` if it cannot hold them."""
    try:
        return value_texts(cast(values, stored.type, field.type), field.type)
    except SchemaError:
        return _number_texts(pa.nulls(len(values), pa.int64()))


FILE_TABLES = (
    MetadataTableDef(name="files", fields=fields_of(_FILES), keys=("file_path",), make=_files, has_states=True),
    MetadataTableDef(
        name="file_key_ranges", fields=fields_of(_KEY_RANGES), keys=("file_path",), make=_file_key_ranges,
        has_states=True,
    ),
    MetadataTableDef(
        name="buckets", fields=fields_of(_BUCKETS), keys=("partition", "bucket"), make=_buckets, has_states=True
    ),
    MetadataTableDef(
        name="partitions", fields=fields_of(_PARTITIONS), keys=("partition",), make=_partitions, has_states=True
    ),
)  # fmt: skip
