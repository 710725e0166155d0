"""The layout of data files: the columns, format, limits and statistics that a table's options set.

Source: format.md §8, §9, §12; Java `KeyValueFileWriterFactory`, `VectorStoreUtils`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import TypeVar

import msgspec
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.errors import UnsupportedError
from paimon_py.files.physical import KIND_FIELD, ROW_ID_FIELD, SEQUENCE_FIELD, evolves_columns, key_copy
from paimon_py.files.stats import SYSTEM_MODE, StatsMode, changelog_modes, value_modes
from paimon_py.formats.base import UNWRITABLE_TIMES, Encoder, WriteSettings
from paimon_py.formats.registry import format_of
from paimon_py.lazy import lazy_property
from paimon_py.spec.blobs import fields_apart, packed_fields
from paimon_py.spec.data_file import FileSource
from paimon_py.spec.file_indexes import IndexColumn, index_columns
from paimon_py.spec.options import Options
from paimon_py.spec.schema import SEQUENCE_NUMBER, VALUE_KIND, TableSchema
from paimon_py.spec.types import Field
from paimon_py.spec.vector_files import VECTOR_FORMAT, vectors_apart

T = TypeVar("T")

_APPEND_TARGET_BYTES = 256 << 20
_VECTOR_TARGETS = 10
"""The size of files with vectors, as a multiple of that of other files."""

_KEYED_TARGET_BYTES = 128 << 20
_ANY_ROWS = (1 << 63) - 1
_BY_LEVEL = "file.format.per.level"
_FORMAT = "file.format"
_FORMATS = (_FORMAT, "changelog-file.format", VECTOR_FORMAT)
_COMPRESSION_BY_LEVEL = "file.compression.per.level"
_COMPRESSIONS = ("file.compression", "changelog-file.compression")


class FileLayout(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The common properties of all files of one writer.

    Attributes:
        fields: the table's columns.
        key_fields: columns of the trimmed primary key; none for append tables.
        repeats_keys: whether files store `_KEY_*` columns (not in thin mode).
        target_size_bytes, target_rows: limits at which the next file begins.
        modes: the statistics for each of `fields`; `key_mode`: for the key.
        indexes: file indexes to build; stored in the manifest entry up to `index_limit_bytes`, else in a file.
        is_changelog: whether files contain changes: they have other names, and keys may repeat.
        is_part: whether files contain only some columns of their rows, and other files the rest.
        apart: columns that are written to separate `.blob` files, with the target size `apart_target_bytes`.
        packed: columns that contain references to packs, which an extra file lists.
        vectors: the layout of the separate files with vectors.
        is_vectors: whether files contain only vectors, of the rows of another file.
    """

    fields: tuple[Field, ...]
    key_fields: tuple[Field, ...]
    repeats_keys: bool
    schema_id: int
    level: int
    source: FileSource
    format_name: str
    settings: WriteSettings
    target_size_bytes: int
    target_rows: int
    modes: tuple[StatsMode, ...]
    key_mode: StatsMode = SYSTEM_MODE
    indexes: tuple[IndexColumn, ...] = ()
    index_limit_bytes: int = 500
    is_changelog: bool = False
    is_part: bool = False
    apart: tuple[Field, ...] = ()
    apart_target_bytes: int = 0
    packed: tuple[str, ...] = ()
    vectors: FileLayout | None = None
    is_vectors: bool = False

    @property
    def holds_row_ids(self) -> bool:
        """Whether files store the row ids, because the rows come from other files."""
        return ROW_ID_FIELD in self.fields

    @lazy_property
    def file_fields(self) -> tuple[Field, ...]:
        """The columns in the file, in order."""
        if not self.key_fields:
            return self.fields
        keys = tuple(key_copy(field) for field in self.key_fields) if self.repeats_keys else ()
        return (*keys, SEQUENCE_FIELD, KIND_FIELD, *self.fields)

    @lazy_property
    def encoder(self) -> Encoder:
        """The function that begins files; its first use raises the format's errors about columns and settings."""
        return format_of(self.format_name).encoder(self.file_fields, self.settings)

    @lazy_property
    def file_schema(self) -> pa.Schema:
        """The Arrow schema of the file."""
        return to_arrow_schema(self.file_fields)

    def physical(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of the file, from rows as `RollingWriter.write` takes them."""
        names = [SEQUENCE_NUMBER, VALUE_KIND] if self.key_fields else []
        names += [field.name for field in self.fields]
        if self.key_fields and self.repeats_keys:
            names = [field.name for field in self.key_fields] + names
        return pa.RecordBatch.from_arrays([batch.column(name) for name in names], schema=self.file_schema)


def file_layout(
    schema: TableSchema,
    *,
    level: int = 0,
    source: FileSource = FileSource.APPEND,
    format_name: str | None = None,
    stats_mode: str | None = None,
) -> FileLayout:
    """The layout configured by a table's options, for files at one level.

    Args:
        format_name, stats_mode: override the options `file.format` and `metadata.stats-mode`.

    Raises:
        OptionError: an option has an invalid value.
        UnsupportedError: a format that is not supported.
    """
    options, whole = Options(schema.options), schema
    apart = fields_apart(schema) if evolves_columns(schema) else ()
    vectors = vectors_apart(schema)
    schema = _without(schema, (*apart, *vectors))
    key_fields = schema.key_fields if schema.primary_keys else ()
    thin = options.get_bool("data-file.thin-mode")
    modes = value_modes(schema.options, schema.fields, level, stats_mode)
    format_name = options.get_map(_BY_LEVEL).get(
        str(level), format_name or options.get_str(_FORMAT)
    )
    default_target = _KEYED_TARGET_BYTES if key_fields else _APPEND_TARGET_BYTES
    target_bytes = options.find_size("target-file-size") or default_target
    layout = FileLayout(
        fields=schema.fields,
        key_fields=key_fields,
        repeats_keys=not thin,
        schema_id=schema.id,
        level=level,
        source=source,
        format_name=format_of(format_name).name,
        settings=_write_settings(options, schema.options, level),
        target_size_bytes=target_bytes,
        target_rows=max(options.get_int("target-file-row-num"), 1),
        modes=modes,
        indexes=index_columns(options),
        index_limit_bytes=options.get_memory("file-index.in-manifest-threshold"),
        is_part=bool(apart or vectors),
        apart=apart,
        apart_target_bytes=options.find_size("blob.target-file-size") or target_bytes,
        packed=tuple(field.name for field in packed_fields(schema)),
        vectors=vector_layout(whole) if vectors else None,
    )
    return _with_modes(layout, schema, modes)


def blob_target_bytes(schema: TableSchema) -> int:
    """The size at which the next pack of BLOBs begins."""
    options = Options(schema.options)
    return options.find_size("blob.target-file-size") or options.find_size("target-file-size") or _KEYED_TARGET_BYTES


def _write_settings(options: Options, raw: Mapping[str, str], level: int) -> WriteSettings:
    """The settings of a format for files at one level. `raw`: the table's options; a format reads its own ones."""
    compressions = options.get_map(_COMPRESSION_BY_LEVEL)
    return WriteSettings(
        compression=compressions.get(str(level), options.get_str("file.compression")),
        zstd_level=options.get_int("file.compression.zstd-level"),
        block_size_bytes=options.find_size("file.block-size"),
        options=raw,
    )


def vector_layout(schema: TableSchema, *, columns: Container[str] | None = None) -> FileLayout:
    """The layout of files with the vectors of a table that stores them separately.

    Args:
        columns: write only these columns, without a size limit; None: all.

    Raises: as `file_layout`.
    Source: Java `VectorStoreUtils`; such files have no statistics and no file indexes.
    """
    options = Options(schema.options)
    fields = tuple(field for field in vectors_apart(schema) if columns is None or field.name in columns)
    bare = {name: text for name, text in schema.options.items() if name not in (VECTOR_FORMAT, _BY_LEVEL)}
    narrow = msgspec.structs.replace(schema, fields=fields, options=bare)
    layout = file_layout(narrow, format_name=options.find_str(VECTOR_FORMAT), stats_mode="none")
    target = options.find_size("vector.target-file-size") or _VECTOR_TARGETS * layout.target_size_bytes
    return msgspec.structs.replace(
        layout, target_size_bytes=target if columns is None else _ANY_ROWS, target_rows=_ANY_ROWS, indexes=(),
        is_part=True, is_vectors=True,
    )  # fmt: skip


def whole_layout(
    schema: TableSchema, *, source: FileSource, columns: Container[str] | None = None, inline: Container[str] = ()
) -> FileLayout:
    """The layout of files that contain all of some rows, without a size limit, if columns may be stored in several
    files; BLOBs, and vectors in separate files, are not moved.

    Args:
        columns: write only these columns; None: all.
        inline: write these vectors, which other files have among their columns.

    Raises: as `file_layout`.
    """
    moved = tuple(field for field in vectors_apart(schema) if field.name not in inline)
    fields = tuple(field for field in schema.fields if columns is None or field.name in columns)
    fields = tuple(field for field in fields if field not in moved)
    options = {name: text for name, text in schema.options.items() if name != VECTOR_FORMAT}
    layout = file_layout(msgspec.structs.replace(schema, fields=fields, options=options), source=source)
    names = {field.name for field in fields}
    return msgspec.structs.replace(
        layout,
        is_part=columns is not None or layout.is_part or bool(moved),
        apart=(),
        target_size_bytes=_ANY_ROWS,
        target_rows=_ANY_ROWS,
        indexes=tuple(index for index in layout.indexes if index.column in names),
    )


def changelog_layout(schema: TableSchema, *, level: int = 0) -> FileLayout:
    """The layout of changelog files: that of data files at the level, except for `changelog-file.*` options.

    `level`: 0 for a flush, the output level for a compaction. Their source is always APPEND; they have no file indexes,
    and are limited by size only, not by rows.

    Raises: as `file_layout`.
    Source: Java `KeyValueFileWriterFactory.createRollingChangelogFileWriter`.
    """
    layout, options = file_layout(schema, level=level), Options(schema.options)
    if options.is_set("changelog-file.format"):
        format_name = format_of(options.get_str("changelog-file.format")).name
        layout = msgspec.structs.replace(layout, format_name=format_name)
    if options.is_set("changelog-file.compression"):
        settings = msgspec.structs.replace(layout.settings, compression=options.get_str("changelog-file.compression"))
        layout = msgspec.structs.replace(layout, settings=settings)
    if options.is_set("changelog-file.stats-mode"):
        layout = _with_modes(layout, schema, changelog_modes(schema.options, schema.fields))
    return msgspec.structs.replace(layout, target_rows=_ANY_ROWS, indexes=(), is_changelog=True, packed=())


def write_again(schema: TableSchema, write: Callable[[TableSchema], T]) -> T:
    """The result of `write`, which rewrites rows of the table and leaves no file behind if it fails.

    If a time of these rows does not fit into an ORC file, `write` is called again with Parquet in place of ORC.
    """
    try:
        return write(schema)
    except UnsupportedError as error:
        if error.feature not in UNWRITABLE_TIMES:
            raise
        return write(_parquet_for_orc(schema))


def _parquet_for_orc(schema: TableSchema) -> TableSchema:
    """The schema with Parquet wherever its options set the format ORC, and with gzip for zlib, its name in Parquet."""
    options = dict(schema.options)
    for names, word, other in ((_FORMATS, "orc", "parquet"), (_COMPRESSIONS, "zlib", "gzip")):
        for name in names:
            if options.get(name, "").lower() == word:
                options[name] = other
    for name, word, other in ((_BY_LEVEL, "orc", "parquet"), (_COMPRESSION_BY_LEVEL, "zlib", "gzip")):
        levels = Options(options).get_map(name)
        if levels:
            options[name] = ",".join(f"{at}:{other if text.lower() == word else text}" for at, text in levels.items())
    return msgspec.structs.replace(schema, options=options)


def _without(schema: TableSchema, fields: Sequence[Field]) -> TableSchema:
    return msgspec.structs.replace(schema, fields=tuple(field for field in schema.fields if field not in fields))


def _with_modes(layout: FileLayout, schema: TableSchema, modes: tuple[StatsMode, ...]) -> FileLayout:
    """The layout with these statistics; the format computes none if none are requested."""
    if not layout.repeats_keys:
        modes = _thin_modes(schema, layout.key_fields, modes)
    unwanted = {field.name for field, mode in zip(schema.fields, modes, strict=True) if mode.kind == "none"}
    without = frozenset({*unwanted, SEQUENCE_NUMBER, VALUE_KIND} if layout.key_fields else unwanted)
    settings = msgspec.structs.replace(layout.settings, without_stats=without)
    return msgspec.structs.replace(layout, modes=modes, settings=settings)


def _thin_modes(schema: TableSchema, keys: Sequence[Field], modes: Sequence[StatsMode]) -> tuple[StatsMode, ...]:
    """The modes if files do not repeat their keys: keys use the format's statistics, unless an option names them."""
    names = {field.name for field in keys if f"fields.{field.name}.stats-mode" not in schema.options}
    named = zip(schema.fields, modes, strict=True)
    return tuple(SYSTEM_MODE if field.name in names else mode for field, mode in named)
