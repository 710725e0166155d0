"""Validation of changes from another process, before anything is written.

An entry that misdescribes its file is not detected here: the file's real row count and bounds are known only to
its readers. Everything that the changes and the table's schemas reveal is checked; numbers that no field of the
format can hold are refused when bytes are decoded (`spec/bounds.py`).

Source: docs/decisions/0019-travelling-values.md; docs/format.md §5.3, §10.1, §12.1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec
import pyarrow as pa

from paimon_py.codec.binary_row import decode, encode
from paimon_py.codec.columns import binary_array
from paimon_py.codec.file_index.container import decode as decode_indexes
from paimon_py.commit.changes import BucketChanges, Changes, Edit
from paimon_py.errors import CorruptionError, PaimonError
from paimon_py.files.physical import bounded_fields, evolves_columns
from paimon_py.lazy import lazy_property
from paimon_py.lsm.order import key_ranks
from paimon_py.metadata.deletion_files import read_deletions
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.blobs import PACK_SUFFIX, fields_apart
from paimon_py.spec.bounds import SEQUENCE_MAX
from paimon_py.spec.bucket_mode import UNAWARE, BucketMode, bucket_mode
from paimon_py.spec.data_file import EMPTY_ROW, DataFile, FileKind, FileSource, Stats
from paimon_py.spec.engine_rules import needs_lookup
from paimon_py.spec.layout import POSTPONE_BUCKET, check_file_name
from paimon_py.spec.manifest import DELETION_VECTORS, HASH, IndexEntry
from paimon_py.spec.options import Options
from paimon_py.spec.packed import PackedList
from paimon_py.spec.schema import ROW_ID, TableSchema
from paimon_py.spec.types import Atomic, DataType, Field
from paimon_py.spec.vector_files import vectors_apart
from paimon_py.storage.store import FileMissingError

SchemaOf = Callable[[int], TableSchema]

_ROWS_MAX = 2**40
_FIRST_MILLIS, _LAST_MILLIS = -62_135_596_800_000, 253_402_300_799_999
_ARITY_BYTES = 4
_HASH_BYTES = 4


def validate_changes(files: OpenTable, changes: Changes) -> None:
    """Refuse changes with values that no snapshot of the table may contain.

    Cost: a few µs per file; a list of schemas if files use others than the table's own, and one small read per new
        deletion vector.
    Raises:
        CorruptionError: they have such values; nothing was written.
    """
    buckets = changes.buckets
    known_ids = functools.cache(lambda: frozenset(files.root.schemas.ids()))
    try:
        for part in buckets.parts() if isinstance(buckets, PackedList) else [buckets]:
            _check(files, msgspec.structs.replace(changes, buckets=part), known_ids)
    except FileMissingError:
        raise
    except PaimonError as error:
        raise CorruptionError(
            f"nothing was committed: {error}. No snapshot of {files.root.path} may contain this: the changes belong to"
            " another table, or their producer is faulty; write the rows again",
            path=files.root.path,
            table=files.root.path,
        ) from error


def _check(files: OpenTable, changes: Changes, known_ids: Callable[[], frozenset[int]]) -> None:
    schema = files.schema
    columns = _Columns.of(schema)
    levels = _Levels(files, known_ids)
    _check_partitions(schema, changes)
    made: list[DataFile] = []
    for bucket in changes.buckets:
        _check_place(schema, bucket)
        _check_changelog(schema, bucket)
        _check_packs(bucket)
        for edit in (bucket.written, bucket.compacted):
            new = _check_edit(levels, edit, columns)
            _check_numbers(schema, bucket, edit, new)
            made += new
        _check_index(files, bucket)
    schema_of = _known_schemas(files, {file.schema_id for file in made}, known_ids)
    _check_counts(schema, schema_of, changes)
    _check_keys(schema_of, made, changes)
    _check_stats(schema_of, made)


def _require(holds: bool, otherwise: str, *words: object) -> None:
    """Refuse a condition that does not hold; the message is built only then."""
    if not holds:
        raise CorruptionError(otherwise.format(*words))


# -- buckets --------------------------------------------------------------------------------------------------------


def _check_partitions(schema: TableSchema, changes: Changes) -> None:
    """Check that partitions are rows of the partition keys, and that new rows are where writers put them."""
    types = [field.type for field in schema.partition_fields]
    written = sorted({bucket.partition for bucket in changes.buckets if bucket.written.added})
    others = sorted({bucket.partition for bucket in changes.buckets} - set(written))
    _rows(others, types, "partitions", again=False)
    _rows(written, types, "partitions")


def _check_place(schema: TableSchema, bucket: BucketChanges) -> None:
    mode, number, total = bucket_mode(schema), bucket.bucket, bucket.total_buckets
    if mode is BucketMode.NONE:
        fits = (number, total) == (0, UNAWARE)
    elif mode in (BucketMode.DYNAMIC, BucketMode.CROSS_PARTITION):
        fits = total == UNAWARE and number >= 0
    else:
        fits = 0 <= number < total
        fits = fits or (mode is BucketMode.POSTPONED and number == total == POSTPONE_BUCKET)
    _require(fits, "the changes name bucket {} of {}", number, total)


def _check_changelog(schema: TableSchema, bucket: BucketChanges) -> None:
    """Check that changelog files are new, and belong to rows with a key that have their bucket."""
    for edit in (bucket.written, bucket.compacted):
        if not edit.changelog:
            continue
        others = {file.name for file in (*edit.added, *edit.deleted)}
        again = next((file.name for file in edit.changelog if file.name in others), None)
        _require(again is None, "file {} is a changelog and contains rows of the table", again)
        fits = bool(schema.primary_keys) and bucket.bucket != POSTPONE_BUCKET
        _require(fits, "bucket {} has a changelog", bucket.bucket)


def _check_counts(schema: TableSchema, schema_of: SchemaOf, changes: Changes) -> None:
    """Check that new rows use the table's current number of fixed buckets, or the one when they were written."""
    if bucket_mode(schema) is not BucketMode.FIXED:
        return
    for bucket in changes.buckets:
        schemas = (schema, *map(schema_of, {file.schema_id for file in bucket.written.added}))
        counts = {Options(one.options).get_int("bucket") for one in schemas}
        fits = not bucket.written.added or bucket.total_buckets in counts
        _require(fits, "new rows are in {} buckets, the table has {}", bucket.total_buckets, max(counts))


class _Columns(NamedTuple):
    """The files that the columns of a table allow: column files, parts of new rows, separately stored columns."""

    evolves: bool
    parts: frozenset[tuple[str, ...]]
    apart: frozenset[tuple[str, ...]]

    @classmethod
    def of(cls, schema: TableSchema) -> _Columns:
        """The columns of a schema."""
        evolves = evolves_columns(schema)
        apart: set[tuple[str, ...]] = {(field.name,) for field in fields_apart(schema)} if evolves else set()
        if vectors := tuple(field.name for field in vectors_apart(schema)):
            apart.add(vectors)
        rest = tuple(name for name in schema.names if not any(name in names for names in apart))
        return cls(evolves, frozenset([rest, *apart]) if apart else frozenset(), frozenset(apart))


def _check_edit(levels: _Levels, edit: Edit, columns: _Columns) -> list[DataFile]:
    """The new files of an edit, each value of which is possible by itself; moved files must be unchanged."""
    gone = {file.name: file for file in edit.deleted}
    _require(len(gone) == len(edit.deleted), "the changes delete a file twice")
    highest = max((file.level for file in edit.deleted), default=0)
    made = []
    for file in (*edit.added, *edit.changelog):
        fits = file.level <= highest or levels.may_have(file.level)
        _require(fits, "file {} is of level {}", file.name, file.level)
        before = gone.get(file.name)
        if before is None:
            _check_file(file, ranged=columns.evolves and file.source is FileSource.COMPACT, parts=columns.parts)
            made.append(file)
        elif file != _file_after_move(before, file):
            raise CorruptionError(f"file {file.name} is not described as before")
        _check_beside(file)
    _check_apart(columns.apart, made)
    return made


def _check_apart(parts: frozenset[tuple[str, ...]], made: Sequence[DataFile]) -> None:
    """Check that files of BLOBs and vectors follow the file of their rows, and contain the same number of rows."""
    rows: dict[tuple[str, ...], int] | None = None
    for file in made:
        if not file.is_apart and parts and file.source is FileSource.APPEND:
            _require(not rows or not any(rows.values()), "files of columns before {} contain too few rows", file.name)
            rows = dict.fromkeys(parts, file.row_count)
        elif file.is_apart:
            columns = file.write_columns or ()
            left = (rows or {}).get(columns, 0) - file.row_count
            _require(rows is not None and left >= 0, "file {} does not follow the file of its rows", file.name)
            assert rows is not None
            rows[columns] = left
    _require(not rows or not any(rows.values()), "the last files of separate columns contain too few rows")


def _file_after_move(before: DataFile, after: DataFile) -> DataFile:
    """The description of a file after it moves to another level or gets other indexes."""
    return msgspec.structs.replace(
        before, level=after.level, extra_files=after.extra_files, embedded_index=after.embedded_index
    )


class _Levels:
    """The levels that files of a table may have: those of its options, and of earlier ones, whose files remain."""

    def __init__(self, files: OpenTable, known_ids: Callable[[], frozenset[int]]) -> None:
        self._top = _top_level(files.schema)
        self._schemas = files.root.schemas
        self._known_ids = known_ids

    def may_have(self, level: int) -> bool:
        """Whether a file may have a level. Cost: none up to the top level of today; otherwise a get per schema."""
        return level <= self._top or level <= self._top_ever

    @lazy_property
    def _top_ever(self) -> int:
        return max(_top_level(self._schemas.get(number)) for number in self._known_ids())


def _top_level(schema: TableSchema) -> int:
    options = Options(schema.options)
    if not schema.primary_keys and not options.get_bool("clustering.incremental"):
        return 0
    return (options.find_int("num-levels") or options.get_int("num-sorted-run.compaction-trigger") + 1) - 1


# -- files ----------------------------------------------------------------------------------------------------------


def _check_file(file: DataFile, *, ranged: bool, parts: frozenset[tuple[str, ...]]) -> None:
    """`ranged`: rows have the ids of the rows that were joined. `parts`: columns that files may contain alone."""
    name, rows = check_file_name(file.name), file.row_count
    dead, time, where = file.delete_row_count, file.creation_time_millis, file.external_path
    _require(file.size_bytes > 0, "file {} has no bytes", name)
    _require(0 < rows <= _ROWS_MAX, "file {} has {} rows", name, rows)
    _require(dead is None or 0 <= dead <= rows, "of the {} rows of file {} {} are deletes", rows, name, dead)
    _require(time is None or _FIRST_MILLIS <= time <= _LAST_MILLIS, "file {} was made at {}", name, time)
    is_part = file.write_columns is not None and ROW_ID not in file.write_columns
    fits = (file.first_row_id is not None) is ranged and (not is_part or file.write_columns in parts)
    _require(file.is_apart <= is_part and not (file.is_apart and ranged), "file {} contains no separate columns", name)
    _require(fits, "file {} contains a part of its rows' columns", name)
    _require(where is None or where.rpartition("/")[2] == name, "file {} is at {}", name, where)


def _check_packs(bucket: BucketChanges) -> None:
    for name in bucket.packs:
        _require(check_file_name(name).endswith(PACK_SUFFIX), "file {} is not a pack", name)


def _check_beside(file: DataFile) -> None:
    """Check the extra files of a data file, and the index in its entry."""
    for name in file.extra_files:
        _require(check_file_name(name).startswith(file.name), "file {} is not an extra file of {}", name, file.name)
    if file.embedded_index is not None:
        decode_indexes(file.embedded_index, f"the index of {file.name}")


def _check_numbers(schema: TableSchema, bucket: BucketChanges, edit: Edit, made: Sequence[DataFile]) -> None:
    """Check row counts and sequence numbers of the new files of an edit; a compaction may not increase either."""
    keyed, waits = bool(schema.primary_keys), bucket.bucket == POSTPONE_BUCKET
    for file in made:
        low, high, rows = file.min_sequence, file.max_sequence, file.row_count
        fits = low == high == -1 if waits else 0 <= low <= high < SEQUENCE_MAX
        _require(fits, "file {} has sequence numbers from {} to {}", file.name, low, high)
        if edit is bucket.written and not waits:
            span = high - low + 1
            fits = rows <= span if keyed else rows == span
            _require(fits, "the {} rows of file {} have {} sequence numbers", rows, file.name, span)
    if edit is not bucket.compacted or not edit.added:
        return
    before, after = (sum(file.row_count for file in files) for files in (edit.deleted, edit.added))
    _require(after <= before, "a compaction makes {} rows of {}", after, before)
    if keyed and not needs_lookup(Options(schema.options)):
        low, high = min(file.min_sequence for file in edit.deleted), max(file.max_sequence for file in edit.deleted)
        for file in edit.added:
            fits = low <= file.min_sequence <= file.max_sequence <= high
            _require(
                fits, "a compaction of sequence numbers from {} to {} makes others in file {}", low, high, file.name
            )


# -- rows in metadata -----------------------------------------------------------------------------------------------


def _known_schemas(files: OpenTable, wanted: set[int], known_ids: Callable[[], frozenset[int]]) -> SchemaOf:
    schemas, own = files.root.schemas, files.schema
    unknown = wanted - {own.id}
    if unknown:
        unknown -= known_ids()
    _require(not unknown, "files use schema {}, which does not exist", min(unknown, default=0))
    return lambda number: own if number == own.id else schemas.get(number)


def _check_keys(schema_of: SchemaOf, made: Iterable[DataFile], changes: Changes) -> None:
    """Check the key range of every new file: rows as writers make them, the smaller first, empty in append tables.

    Files of rows in the postpone bucket are not sorted: they contain the keys of their first and last row.
    """
    waiting = {
        file.name for bucket in changes.buckets if bucket.bucket == POSTPONE_BUCKET for file in bucket.written.added
    }  # fmt: skip
    for number, files in _by_schema(made).items():
        fields = schema_of(number).key_fields if schema_of(number).primary_keys else ()
        types = [field.type for field in fields]
        if not types:
            fits = all(file.min_key == EMPTY_ROW == file.max_key for file in files)
            _require(fits, "files of a table without primary key have keys")
            continue
        files = [file for file in files if file.name not in waiting or file.min_key != EMPTY_ROW]
        lows, highs = [file.min_key for file in files], [file.max_key for file in files]
        columns = _rows([*lows, *highs], types, "keys")
        _require(not any(column.null_count for column in columns), "a key is NULL")
        for file, low, high in zip(files, *(ranks.tolist() for ranks in key_ranks(lows, highs, types)), strict=True):
            fits = low <= high or file.name in waiting
            _require(fits, "the smallest key of file {} is larger than the largest", file.name)


def _check_stats(schema_of: SchemaOf, made: Iterable[DataFile]) -> None:
    """Check that statistics have a slot for each of their columns, and readable bounds."""
    for number, files in _by_schema(made).items():
        schema = schema_of(number)
        named: dict[tuple[str, ...] | None, list[DataFile]] = {}
        for file in files:
            named.setdefault(file.bounded_columns, []).append(file)
        _check_bounds([file.key_stats for file in files], schema.key_fields, files)
        for names, same in named.items():
            _check_bounds([file.value_stats for file in same], bounded_fields(schema, names), same)


def _check_bounds(stats: Sequence[Stats], fields: Sequence[Field], files: Sequence[DataFile]) -> None:
    known: list[bytes] = []
    whole, nothing = len(fields).to_bytes(_ARITY_BYTES, "big"), bytes(_ARITY_BYTES)
    for one, file in zip(stats, files, strict=True):
        low, high, counts = one.min_values, one.max_values, one.null_counts
        arity = low[:_ARITY_BYTES]
        fits = high.startswith(arity) and arity in (whole, nothing)
        fits = fits and (counts is None or len(counts) == int.from_bytes(arity, "big"))
        _require(fits, "the statistics of file {} are not of {} columns", file.name, len(fields))
        known_counts = [count for count in counts or () if count is not None]
        fits = not known_counts or (min(known_counts) >= 0 and max(known_counts) <= file.row_count)
        _require(fits, "the statistics of file {} count more NULLs than rows", file.name)
        if arity == whole:
            known += (low, high)
    types = [field.type for field in fields]
    decode(known, types, [at for at, kind in enumerate(types) if isinstance(kind, Atomic)])


def _by_schema(files: Iterable[DataFile]) -> dict[int, list[DataFile]]:
    found: dict[int, list[DataFile]] = {}
    for file in files:
        found.setdefault(file.schema_id, []).append(file)
    return found


def _rows(rows: Sequence[bytes], types: Sequence[DataType], what: str, *, again: bool = True) -> list[pa.Array]:
    """The columns of rows; with `again` the rows must be the canonical bytes of their values."""
    columns = decode(rows, types)
    try:
        for column in columns:
            column.validate(full=True)
    except pa.ArrowInvalid as error:
        raise CorruptionError(f"{what} cannot be read: {error}") from error
    if again and rows:
        same = encode(columns, types, count=len(rows)).equals(binary_array(rows))
        _require(same, "{} are not the canonical bytes of their values", what)
    return columns


# -- index files ----------------------------------------------------------------------------------------------------


def _check_index(files: OpenTable, bucket: BucketChanges) -> None:
    """Check the new index files of a bucket; those of deletion vectors are read."""
    for edit in (bucket.written, bucket.compacted):
        before = {entry.name: entry for entry in edit.deleted_index}
        for entry in edit.added_index:
            was = before.get(entry.name, entry)
            fits = entry == msgspec.structs.replace(was, kind=entry.kind)
            _require(fits, "index file {} is not described as before", entry.name)
        new = [entry for entry in edit.made_index if entry.name not in before]
        for entry in new:
            _check_index_entry(bucket, entry)
        vectors = [entry for entry in new if entry.index_type == DELETION_VECTORS]
        for places in files.deletion_places(vectors).values():
            try:
                read_deletions(files.root.files, places)
            except FileMissingError:  # a file of changes that were committed before may have been deleted
                continue


def _check_index_entry(bucket: BucketChanges, entry: IndexEntry) -> None:
    name, size, count = check_file_name(entry.name), entry.size_bytes, entry.row_count
    _require((entry.partition, entry.bucket) == bucket.place, "index file {} belongs to another bucket", name)
    fits = entry.kind is FileKind.ADD and entry.external_path is None and entry.global_index is None
    if entry.index_type == HASH:
        fits = fits and size == _HASH_BYTES * count and entry.deletion_vectors is None
    else:
        parts = entry.deletion_vectors
        fits = fits and entry.index_type == DELETION_VECTORS and parts is not None and len(parts) == count
        fits = fits and all(part.offset >= 1 and 0 < part.length <= size - part.offset for part in parts or ())
    _require(fits, "index file {} cannot match its description", name)
