"""Reads files of rows at any URL as record batches: CSV, Parquet and JSON, batch by batch.

Columns keep their names from the file: the writer of the batches refuses names that the table does not have.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Any, BinaryIO, NamedTuple, cast

import msgspec
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.codec.variant.form import is_variant
from paimon_py.errors import SchemaError, StorageError, UnsupportedError, UsageError
from paimon_py.progress import Progress
from paimon_py.spec.schema import ROW_KIND_COLUMN, TableSchema
from paimon_py.storage.open import open_store
from paimon_py.storage.store import Store
from paimon_py.write.good_rows import GoodRows, OnBadRow
from paimon_py.write.json_texts import from_json_texts, from_parsed, holds_map, parsed_type, with_entries

_SUFFIXES = {"csv": "csv", "tsv": "csv", "parquet": "parquet", "json": "json", "jsonl": "json", "ndjson": "json"}
_FORMATS = ("csv", "parquet", "json")
_DELIMITERS = (";", "\t", "|", ",")
_MAGIC = frozenset("*?[")
_GZIP = ".gz"
INTO_FILES = "rows into files"
"""The progress unit after all files were read."""


class LoadFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The settings with which files are read.

    Attributes:
        format: the file format; None: by file name.
        delimiter: the separator of CSV values; None: a comma, in `.tsv` a tab.
        nulls: strings in CSV files that mean NULL, besides empty values.
        on_bad_row: called with each row of CSV files that does not fit, which is skipped; None: such a file fails.
    """

    format: str | None = None
    delimiter: str | None = None
    nulls: tuple[str, ...] = ()
    on_bad_row: OnBadRow | None = None

    @classmethod
    def of(cls, form: object, delimiter: object, nulls: object, on_bad_row: object = None) -> LoadFormat:
        """Raises: UsageError for an unknown format, a delimiter of several characters, nulls that are not strings, …"""
        if form is not None and form not in _FORMATS:
            raise UsageError(f"format is one of {', '.join(map(repr, _FORMATS))}, not {form!r}")
        if delimiter is not None and not (isinstance(delimiter, str) and len(delimiter) == 1):
            raise UsageError(f"delimiter is one character, not {delimiter!r}")
        found = (nulls,) if isinstance(nulls, str) else nulls
        if not isinstance(found, Sequence) or not all(isinstance(text, str) for text in found):
            raise UsageError(f'nulls are strings that mean NULL, such as ["NA"], not {nulls!r}')
        if on_bad_row is not None and not callable(on_bad_row):
            raise UsageError(f"on_bad_row is a function that takes a BadRow, not {on_bad_row!r}")
        return cls(format=form, delimiter=delimiter, nulls=tuple(found), on_bad_row=on_bad_row)

    def format_of(self, path: str) -> str:
        """The format of a file.

        Raises: UsageError if its name does not determine it.
        """
        found = self.format or _SUFFIXES.get(_suffix(path))
        if found is None:
            raise UsageError(
                f"the name {path!r} does not say what the file is: give format= (--kind), 'csv', 'parquet' or 'json'"
            )
        if found != "csv" and self.on_bad_row is not None:
            raise UsageError(f"{path} is {found}: only rows of CSV files can be left out where they do not fit")
        return found


class LoadedFile(NamedTuple):
    """A file to be read: its path in its store, and its size."""

    path: str
    store: Store
    size_bytes: int

    @contextmanager
    def batches(
        self, how: LoadFormat, schema: TableSchema, load_progress: LoadProgress
    ) -> Iterator[pa.RecordBatchReader]:
        """The rows of the file. CSV and JSON values are parsed as the types of the table's columns.

        Raises:
            UsageError: the file does not have its format.
            SchemaError: it does not fit the table; raised again with its path, also for errors of the block.
        """
        form = how.format_of(self.path)
        with self.store.open_read(self.path) as source:
            with _reading(self.path):
                columns, found = _READERS[form](_Source(source, self.path), schema, how)
                names = columns.names  # fails for names that are not UTF-8
            reader = pa.RecordBatchReader.from_batches(columns, load_progress.batches(found, source, self))
            try:
                yield reader
            except SchemaError as error:
                hint = _delimiter_hint(names) if form == "csv" else ""
                raise SchemaError(f"{self.path}: {error}{hint}", fields=error.fields) from error


class LoadProgress:
    """The progress of a load: bytes while files are read, then rows on their way into the table's files.

    Attributes:
        rows: the number of rows read.
    """

    def __init__(self, progress: Progress | None, files: Sequence[LoadedFile]) -> None:
        self._progress = progress
        self._size = sum(file.size_bytes for file in files)
        self._before = self.rows = 0
        self._is_read = False

    def batches(
        self, batches: Iterable[pa.RecordBatch], source: BinaryIO, file: LoadedFile
    ) -> Iterator[pa.RecordBatch]:
        """The batches of a file; reports progress.

        Raises: UsageError for a file that cannot be read in its format.
        """
        rest = iter(batches)
        while True:
            with _reading(file.path):
                batch = next(rest, None)
            if batch is None:
                self._before += file.size_bytes
                return
            self.rows += batch.num_rows
            if self._progress is not None:
                done = min(self._before + source.tell(), self._size)
                self._progress(done, self._size, file.path.rpartition("/")[2])
            yield batch

    def end_reading(self) -> None:
        """Switch the progress to rows."""
        self._is_read = True
        if self._progress is not None:
            self._progress(0, self.rows, INTO_FILES)

    def on_write(self, done: int, total: int, what: str) -> None:
        """Report the writer's progress after everything was read."""
        if self._is_read and self._progress is not None:
            self._progress(done, total or self.rows, what)


def find_files(files: object, options: Mapping[str, str]) -> tuple[LoadedFile, ...]:
    """The files for paths and patterns, each once: in the given order, those of a pattern or directory by path.

    A directory stands for all files in and below it, without names in the path that begin with `.` or `_`.

    Args:
        files: a path, URL or pattern (`*`, `?`, `[a-z]`, `**` for any depth), or several.
        options: credentials and other options of the files' store.

    Raises:
        UsageError: no path, or nothing that matches a pattern.
        StorageError: a file does not exist.
    """
    given: Any = [files] if isinstance(files, (str, PurePath)) else files
    if isinstance(given, (bytes, Mapping)) or not isinstance(given, Iterable):
        raise UsageError(f"load_files takes a path, a pattern such as 'in/*.csv', or a list of them, not {files!r}")
    found: dict[str, LoadedFile] = {}
    for each in given:
        if not isinstance(each, (str, PurePath)):
            raise UsageError(f"load_files takes paths as strings, not {each!r}")
        for file in _find_files(str(each), options):
            found.setdefault(file.path, file)
    if not found:
        raise UsageError("load_files needs at least one file")
    return tuple(found.values())


def _find_files(text: str, options: Mapping[str, str]) -> Sequence[LoadedFile]:
    store, place = open_store(text, options)
    status = store.stat(place)
    if status is not None and not status.is_directory:
        return [LoadedFile(place, store, status.size_bytes or 0)]
    parts = place.split("/")
    fixed = next((at for at, part in enumerate(parts) if _MAGIC & {*part}), len(parts))
    if fixed < len(parts):
        matching = _matching(store, "/".join(parts[:fixed]), parts[fixed:])
    else:
        matching = _matching(store, place, ["**", "*"])
    files = sorted(matching, key=lambda file: file.path)
    if not files and fixed == len(parts) and status is None:
        raise StorageError(f"the file {text} does not exist", path=text, operation="open_read")
    if not files:
        raise UsageError(f"no file matches {text}" if fixed < len(parts) else f"{text} contains no files")
    return files


def _matching(store: Store, directory: str, parts: Sequence[str]) -> Iterator[LoadedFile]:
    """Files below a directory that match patterns, one for each name in their paths."""
    part, rest = parts[0], parts[1:]
    if part == "**" and rest:
        yield from _matching(store, directory, rest)
    for child in store.list(directory):
        is_hidden = child.name.startswith((".", "_")) and not part.startswith(child.name[0])
        if is_hidden or not fnmatchcase(child.name, part):
            continue
        if child.is_directory and (rest or part == "**"):
            yield from _matching(store, child.path, parts if part == "**" else rest)
        elif not child.is_directory and not rest:
            yield LoadedFile(child.path, store, child.size_bytes or 0)


Batches = tuple[pa.Schema, Iterable[pa.RecordBatch]]


class _Source(NamedTuple):
    """The bytes of a file, decompressed if its name ends in `.gz`."""

    raw: BinaryIO
    path: str

    def open(self) -> BinaryIO:
        """The bytes from the beginning."""
        self.raw.seek(0)
        return cast(BinaryIO, gzip.GzipFile(fileobj=self.raw)) if self.path.lower().endswith(_GZIP) else self.raw


def _csv(source: _Source, schema: TableSchema, how: LoadFormat) -> Batches:
    """Unquoted empty values are NULL; `""` is an empty string; nested values are JSON."""
    types = _types(schema)
    texts = pa.schema([each.with_type(pa.string()) if pa.types.is_nested(each.type) else each for each in types])
    delimiter = how.delimiter or ("\t" if _suffix(source.path) == "tsv" else ",")

    def rows(on_bad_row: OnBadRow) -> GoodRows:
        return GoodRows(source.open, source.path, types, schema, list(how.nulls), delimiter, on_bad_row)

    if how.on_bad_row is not None:
        good = rows(how.on_bad_row)
        return good.schema, good.batches()
    try:
        found = pa.csv.open_csv(
            source.open(),
            parse_options=pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                column_types=texts, null_values=["", *how.nulls], strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )  # fmt: skip
    except pa.ArrowInvalid as error:
        raise _at_line(error, rows(lambda _: None)) from error

    known = pa.schema([
        each.with_type(types.field(each.name).type) if each.name in types.names else each for each in found.schema
    ])

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from found if known == found.schema else (_with_types(each, known, from_json_texts) for each in found)
        except pa.ArrowInvalid as error:
            raise _at_line(error, rows(lambda _: None)) from error

    return known, batches()


def _at_line(error: pa.ArrowInvalid, rows: GoodRows) -> pa.ArrowInvalid:
    """The error of a CSV file with the line and column of the first row that does not fit, if there is one."""
    bad = rows.first_bad()
    if bad is None:
        return error
    column = "" if bad.column is None else f", column {bad.column!r}"
    return pa.ArrowInvalid(f"line {bad.line}{column}: {bad.problem}; on_bad_row= (--keep-good) loads the other rows")


def _json(source: _Source, schema: TableSchema, how: LoadFormat) -> Batches:  # noqa: ARG001
    """One object per line; the first rows determine the columns. Dates and times may be ISO strings.

    Raises:
        ArrowInvalid: a field first occurs in a later row.
        UnsupportedError: pyarrow is too old.
    """
    if not hasattr(pa.json, "open_json"):
        message = f"JSON files need pyarrow 20 or later, which reads them in batches; {pa.__version__} is installed"
        raise UnsupportedError(message, feature="JSON files")
    types = _types(schema)
    maps, variants = {field.name: field.type for field in types if holds_map(field.type)}, _variants(schema)

    def lines() -> BinaryIO:
        return with_entries(source.open(), maps, variants) if maps or variants else source.open()

    names = pa.json.open_json(lines()).schema
    known = pa.schema([
        types.field(field.name).with_nullable(True) if field.name in types.names else field for field in names
    ])
    read = pa.schema([_json_field(field, names.field(field.name).type) for field in known])
    options = pa.json.ParseOptions(explicit_schema=read, unexpected_field_behavior="error")
    found = pa.json.open_json(lines(), parse_options=options)
    if found.schema.names != known.names or read == known:
        return found.schema, found
    return known, (_with_types(batch, known, from_parsed) for batch in found)


def _with_types(
    batch: pa.RecordBatch, schema: pa.Schema, convert: Callable[[pa.Array, pa.DataType], pa.Array]
) -> pa.RecordBatch:
    """Rows with the columns that are not of their type yet converted."""
    pairs = zip(batch.columns, schema, strict=True)
    columns = [each if each.type == field.type else convert(each, field.type) for each, field in pairs]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _json_field(field: pa.Field, given: pa.DataType) -> pa.Field:
    """The type with which a field is parsed: Arrow's JSON reader knows no maps, and no dates in strings."""
    return field.with_type(parsed_type(field.type, given))


def _parquet(source: _Source, schema: TableSchema, how: LoadFormat) -> Batches:  # noqa: ARG001
    found = pa.parquet.ParquetFile(source.open())
    return found.schema_arrow, found.iter_batches()


_READERS = {"csv": _csv, "json": _json, "parquet": _parquet}


def _types(schema: TableSchema) -> pa.Schema:
    """The types as which columns are parsed; variants are JSON texts, which the writer parses."""
    variants, found = _variants(schema), to_arrow_schema(schema.fields)
    return pa.schema([pa.field(each.name, pa.string()) if each.name in variants else each for each in found])


def _variants(schema: TableSchema) -> set[str]:
    return {field.name for field in to_arrow_schema(schema.fields) if is_variant(field)}


def _suffix(path: str) -> str:
    return path.rpartition("/")[2].lower().removesuffix(_GZIP).rpartition(".")[2]


def _delimiter_hint(names: Sequence[str]) -> str:
    """A hint for a CSV file that seems to have one column."""
    name = names[0] if len(names) == 1 else ""
    likely = next((each for each in _DELIMITERS if each in name and name != ROW_KIND_COLUMN), None)
    return f"\n  The file seems to have {likely!r} between its values: give delimiter={likely!r}" if likely else ""


@contextmanager
def _reading(path: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, gzip.BadGzipFile, EOFError, zlib.error, UnicodeDecodeError) as error:
        is_text = any(name in str(error).upper() for name in ("UTF8", "UTF-8"))
        way = "; iconv -f WINDOWS-1252 -t UTF-8 converts such a file" if is_text else ""
        if "changed from object to array" in str(error):
            way = "; JSON is one object on each line here, and jq -c '.[]' makes lines of an array"
        raise UsageError(f"{path} cannot be read: {error}{way}") from error
