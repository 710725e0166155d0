"""Lists Parquet, ORC and Avro files in a directory, with their numbers of rows and columns.

Directories may be named `key=value`, as Hive names partitions. Values are unquoted, `__HIVE_DEFAULT_PARTITION__` is
NULL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import SEEK_END
from typing import Any, BinaryIO
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from paimon_py.codec.arrow_types import from_arrow_type
from paimon_py.env import Env
from paimon_py.errors import CorruptionError, SchemaError, UnsupportedError, UsageError
from paimon_py.formats.base import ReadSettings, decoding
from paimon_py.formats.registry import format_of
from paimon_py.imports.result import UnfitFile
from paimon_py.spec.type_text import with_nullability
from paimon_py.spec.types import MAX_LENGTH, Atomic, DataType, Field, Root
from paimon_py.spec.validation import require_distinct_names
from paimon_py.storage.open import open_store
from paimon_py.storage.store import Store
from paimon_py.write.loaded_files import LoadedFile, find_files

FORMATS = ("parquet", "orc", "avro")
_NULL_NAMES = frozenset({"__HIVE_DEFAULT_PARTITION__", "__DEFAULT_PARTITION__"})
_MAGIC = frozenset("*?[")
_BATCH_ROWS = 65_536
_MAGIC_BYTES = 4
_WIDER = {
    pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(), pa.time64("us"): pa.time32("ms"), pa.time64("ns"): pa.time32("ms"),
}  # fmt: skip
"""Types that Paimon lacks, and those to which copies convert them, if nothing is lost."""
_AVRO = {
    "boolean": Root.BOOLEAN, "int": Root.INT, "long": Root.BIGINT, "float": Root.FLOAT, "double": Root.DOUBLE,
    "string": Root.VARCHAR, "bytes": Root.VARBINARY,
}  # fmt: skip


Partition = tuple[tuple[str, str | None], ...]
"""Partition keys and their values as strings, None for NULL."""


class SourceFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that may be imported.

    Attributes:
        path, store: its location.
        url: its location as in the metadata of a table.
        format: its file format.
        size_bytes, row_count: its size and number of rows.
        fields: its columns, with Paimon types.
        partition: partition keys and values from the names of its directories, None for NULL.
        only_copied: why it cannot be referenced; None if it can.
        converted: columns with types that Paimon lacks.
        strict: columns stored in a form that requires NOT NULL in the table.
        untyped: columns that contain only NULL and have no type, which `fields` lacks.
        int96: columns that contain times stored as INT96.
    """

    path: str
    store: Store
    url: str
    format: str
    size_bytes: int
    row_count: int
    fields: tuple[Field, ...]
    partition: Partition
    only_copied: str | None = None
    converted: tuple[str, ...] = ()
    strict: tuple[str, ...] = ()
    untyped: tuple[str, ...] = ()
    int96: tuple[str, ...] = ()

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of the file, with the given columns.

        Raises: CorruptionError for a damaged file; SchemaError for a time that is not whole milliseconds.
        """
        wider = [name for name in names if name in self.converted]
        plain = [name for name in names if name not in self.converted]
        if not wider:
            yield from self._plain_batches(plain)
        elif not plain:
            yield from self._converted_batches(wider)
        else:
            for left, right in _side_by_side(self._plain_batches(plain), self._converted_batches(wider)):
                both = pa.schema([*left.schema, *right.schema])
                yield pa.RecordBatch.from_arrays([*left.columns, *right.columns], schema=both).select(list(names))

    def _plain_batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        fields = [field for field in self.fields if field.name in names]
        settings = ReadSettings(row_count=self.row_count, schema_names=tuple(field.name for field in self.fields))
        source = self.store.open_read(self.path)
        try:
            opened = format_of(self.format).open(source, self.path, fields, self.size_bytes, settings)
        except BaseException:
            source.close()
            raise
        try:
            for _, batch in opened.positioned_batches([field.name for field in fields], batch_rows=_BATCH_ROWS):
                yield batch
        finally:
            opened.close()

    def _converted_batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Columns with types that Paimon lacks, converted."""
        with self.store.open_read(self.path) as source, decoding(self.path):
            found = pq.ParquetFile(source)
            for batch in found.iter_batches(_BATCH_ROWS, columns=list(names)):
                columns = [_converted_column(*pair) for pair in zip(batch.schema, batch.columns, strict=True)]
                yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _side_by_side(
    one: Iterator[pa.RecordBatch], other: Iterator[pa.RecordBatch]
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Batches of the same rows, cut to one length."""
    left, right = next(one, None), next(other, None)
    while left is not None and right is not None:
        count = min(left.num_rows, right.num_rows)
        if count:
            yield left.slice(0, count), right.slice(0, count)
        left, right = left.slice(count) or next(one, None), right.slice(count) or next(other, None)


def _converted_column(field: pa.Field, column: pa.Array) -> pa.Array:
    kind = wider_type(field.type)
    try:
        return column if kind == field.type else column.cast(kind)
    except pa.ArrowInvalid as error:
        message = f"column {field.name!r} is {field.type} in the file and {kind} in the table: {error}"
        raise SchemaError(message, fields=(field.name,)) from error


def url_of(path: str) -> str:
    """A path of a store in the form used in metadata: a URL, with `file:` before the path of a local file."""
    return path if "://" in path else f"file:{path}"


def path_of(url: str) -> str:
    """A path of a store, from a URL in metadata, where `%` is a percent sign; the opposite of `url_of`."""
    return url.removeprefix("file:")


def find_sources(
    source: str, form: str | None, options: Mapping[str, str], env: Env
) -> tuple[list[SourceFile], list[UnfitFile]]:
    """The files in a directory, with the contents of their footers; and the files that cannot be read.

    Cost: one list per directory, and the footer of each file, several at a time; Avro files are read completely.
    """
    root = place_of(source, options)[1]
    files = find_files(source, options)
    found: list[SourceFile] = []
    wrong: list[UnfitFile] = []
    for each in env.io.map(lambda file: _inspect(file, form, root), files):
        (found if isinstance(each, SourceFile) else wrong).append(each)  # type: ignore[arg-type]
    return found, wrong


def _inspect(file: LoadedFile, form: str | None, root: str) -> SourceFile | UnfitFile:
    try:
        partition = parts_of(file.path, root)
    except SchemaError as error:
        return UnfitFile(file.path, str(error))
    return inspect_file(file, form, partition)


def place_of(source: str, options: Mapping[str, str]) -> tuple[Store, str]:
    """The store of a directory, and its path there.

    Raises: UsageError for a pattern.
    """
    if _MAGIC & {*source}:
        raise UsageError(f"import_files takes a directory or a file, not a pattern such as {source!r}")
    store, place = open_store(source, options)
    return store, place.rstrip("/")


def directory_of(source: str, options: Mapping[str, str]) -> str:
    """The path of a directory, or of the directory of a file. Cost: asks the store what the path is."""
    store, place = place_of(source, options)
    status = store.stat(place)
    return place if status is None or status.is_directory else place.rpartition("/")[0]


def parts_of(path: str, root: str) -> Partition:
    """The partition in the names of the directories between a root and a file. Raises: SchemaError"""
    return tuple(_part(text) for text in path.removeprefix(root).split("/")[1:-1] if "=" in text)


def inspect_file(file: LoadedFile, form: str | None, partition: Partition) -> SourceFile | UnfitFile:
    """Inspect a file. Cost: reads its footer; Avro files are read completely."""
    name = form or file.path.rpartition(".")[2].lower()
    if name not in FORMATS:
        return UnfitFile(file.path, "its name does not show its format: give format=, 'parquet', 'orc' or 'avro'")
    try:
        with file.store.open_read(file.path) as source, decoding(file.path):
            row_count, fields, only_copied = _READERS[name](source)
            converted = _others_of(source) if name == "parquet" else ()
            strict, untyped, int96 = _marks_of(source) if name == "parquet" else ((), (), ())
        require_distinct_names(fields)
        both = sorted({*converted} & {*int96})
        if both:
            raise SchemaError(f"column {both[0]!r} contains INT96 times beside a type that Paimon does not have")
    except (SchemaError, CorruptionError, UnsupportedError) as error:
        return UnfitFile(file.path, str(error))
    return SourceFile(
        path=file.path, store=file.store, url=url_of(file.path), format=name, size_bytes=file.size_bytes,
        row_count=row_count, fields=tuple(fields), partition=partition, only_copied=only_copied,
        converted=converted, strict=strict, untyped=untyped, int96=int96,
    )  # fmt: skip


def _part(text: str) -> tuple[str, str | None]:
    key, _, value = text.partition("=")
    try:
        return unquote(key, errors="strict"), None if value in _NULL_NAMES else unquote(value, errors="strict")
    except UnicodeDecodeError as error:
        raise SchemaError(f"{text!r} in the name of a directory is not UTF-8 in percent encoding") from error


Content = tuple[int, list[Field], str | None]
"""The number of rows, the columns, and why a file can only be copied."""


def _parquet(source: BinaryIO) -> Content:
    found = pq.ParquetFile(source)
    metadata = found.metadata
    _check_row_groups(metadata, source.seek(0, SEEK_END))
    only = None
    for at in range(len(found.schema)):
        column = found.schema.column(at)
        if column.physical_type == "INT64" and "nanoseconds" in str(column.logical_type).lower():
            only = f"column {column.path!r} contains nanoseconds as INT64, which Java does not read"
    typed = pa.schema([part for part in found.schema_arrow if not pa.types.is_null(part.type)])
    for at, part in enumerate(typed):
        if (wider := wider_type(part.type)) != part.type:
            typed = typed.set(at, part.with_type(wider))
            only = f"column {part.name!r} is {part.type}, a type that Paimon does not have"
    return metadata.num_rows, _fields(typed), only


def wider_type(kind: pa.DataType) -> pa.DataType:
    """A type in which types that Paimon lacks are the next wider ones."""
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(wider_type(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(wider_type(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(wider_type(kind.value_type)))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(wider_type(kind.value_type)), kind.list_size)
    if pa.types.is_map(kind):
        return pa.map_(wider_type(kind.key_type), kind.item_field.with_type(wider_type(kind.item_type)))
    return _WIDER.get(kind, kind)


def _others_of(source: BinaryIO) -> tuple[str, ...]:
    """The columns of a Parquet file with types that Paimon lacks."""
    source.seek(0)
    return tuple(part.name for part in pq.ParquetFile(source).schema_arrow if wider_type(part.type) != part.type)


def _check_row_groups(metadata: pq.FileMetaData, size_bytes: int) -> None:
    """Raises: CorruptionError if a footer describes other rows or bytes than a file of this size can contain."""
    footer = size_bytes - 2 * _MAGIC_BYTES - metadata.serialized_size
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    rows = sum(group.num_rows for group in groups)
    if rows != metadata.num_rows:
        raise CorruptionError(f"damaged: its row groups have {rows} rows, its footer says {metadata.num_rows}")
    flat = [metadata.schema.column(at).max_repetition_level == 0 for at in range(metadata.num_columns)]
    for number, group in enumerate(groups):
        if not group.num_rows:
            continue  # some writers leave its places out
        for at, is_flat in enumerate(flat):
            chunk = group.column(at)
            start = chunk.data_page_offset
            if chunk.has_dictionary_page and chunk.dictionary_page_offset:
                start = min(start, chunk.dictionary_page_offset)
            end = start + chunk.total_compressed_size
            place = f"damaged: column {chunk.path_in_schema!r} of row group {number} has"
            if start < _MAGIC_BYTES or end > footer:
                raise CorruptionError(f"{place} bytes {start} to {end}, and the footer begins at {footer}")
            if is_flat and chunk.num_values != group.num_rows:
                raise CorruptionError(f"{place} {chunk.num_values} values, and the row group {group.num_rows} rows")


def _marks_of(source: BinaryIO) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Columns that Paimon requires to be NOT NULL, columns without a type, and columns with INT96.

    The first have no definition levels, in files with column ids and without Arrow schema, as Iceberg's Java writes. In
    files of Paimon a nullable column stored in this form is damaged (`formats/parquet/format.py`).
    """
    source.seek(0)
    found = pq.ParquetFile(source)
    untyped = tuple(part.name for part in found.schema_arrow if pa.types.is_null(part.type))
    leaves = [found.schema.column(at) for at in range(len(found.schema))]
    paths = [f"{leaf.path}." for leaf in leaves if leaf.physical_type == "INT96"]
    int96 = tuple(part.name for part in found.schema_arrow if any(path.startswith(f"{part.name}.") for path in paths))
    if b"ARROW:schema" in (found.metadata.metadata or {}):
        return (), untyped, int96
    strict = tuple(part.name for part in found.schema_arrow if not part.nullable and _field_id(part) >= 0)
    return strict, untyped, int96


def _orc(source: BinaryIO) -> Content:
    import pyarrow.orc

    found = pyarrow.orc.ORCFile(source)
    parts = found.content_length, found.stripe_statistics_length, found.file_footer_length, found.file_postscript_length
    if sum(parts) + 1 > found.file_length:
        raise CorruptionError(f"damaged: its footer says {sum(parts) + 1} bytes, and it has {found.file_length}")
    fields = _fields(found.schema)
    local = [field.name for field in fields if isinstance(field.type, Atomic) and field.type.root is Root.TIMESTAMP_LTZ]
    only = f"column {local[0]!r} contains instants, which Paimon stores differently in ORC" if local else None
    return found.nrows, fields, only


def _avro(source: BinaryIO) -> Content:
    from paimon_py.codec.avro.container import fastavro

    blocks = fastavro().block_reader(source)
    schema: Any = blocks.writer_schema
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise SchemaError("it does not contain records")
    fields = [Field(id=at, name=part["name"], type=_avro_type(part)) for at, part in enumerate(schema["fields"])]
    late = [part["name"] for part in schema["fields"] if isinstance(part["type"], list) and part["type"][0] != "null"]
    only = f"column {late[0]!r} is a union that does not begin with null, which Java does not read" if late else None
    return sum(block.num_records for block in blocks), fields, only


def _avro_type(part: Mapping[str, Any]) -> DataType:
    kind: Any = part["type"]
    branches = [each for each in kind if each != "null"] if isinstance(kind, list) else [kind]
    inner = branches[0] if len(branches) == 1 else None
    plain = inner.get("type") if isinstance(inner, dict) else inner
    logical = inner.get("logicalType") if isinstance(inner, dict) else None
    if logical == "date" and plain == "int":
        return Atomic(Root.DATE)
    if logical in ("timestamp-millis", "timestamp-micros") and plain == "long":
        return Atomic(Root.TIMESTAMP_LTZ, precision=3 if logical == "timestamp-millis" else 6)
    if logical == "decimal" and plain == "bytes" and isinstance(inner, dict):
        return Atomic(Root.DECIMAL, precision=inner["precision"], scale=inner.get("scale", 0))
    if logical is not None or not isinstance(plain, str) or plain not in _AVRO:
        raise SchemaError(f"column {part['name']!r} is {kind!r}, which import_files does not support in Avro")
    root = _AVRO[plain]
    return Atomic(root, length=MAX_LENGTH) if root in (Root.VARCHAR, Root.VARBINARY) else Atomic(root)


_READERS = {"parquet": _parquet, "orc": _orc, "avro": _avro}


def _fields(schema: pa.Schema) -> list[Field]:
    """Raises: SchemaError for a type that Paimon lacks."""
    try:
        return [
            Field(id=_field_id(part), name=part.name, type=with_nullability(from_arrow_type(part.type), part.nullable))
            for part in schema
        ]
    except SchemaError as error:
        wrong = next(part for part in schema if not _is_known(part.type))
        raise SchemaError(f"column {wrong.name!r}: {error}", fields=(wrong.name,)) from error


def _field_id(part: pa.Field) -> int:
    """The Iceberg id of a column, -1 if the file has none."""
    return int((part.metadata or {}).get(b"PARQUET:field_id", b"-1"))


def _is_known(kind: pa.DataType) -> bool:
    try:
        from_arrow_type(kind)
    except SchemaError:
        return False
    return True


def check_format(form: object) -> str | None:
    """Raises: UsageError for anything but None or a format whose files can be imported."""
    if form is not None and form not in FORMATS:
        raise UsageError(f"format is one of {', '.join(map(repr, FORMATS))}, not {form!r}")
    return form
