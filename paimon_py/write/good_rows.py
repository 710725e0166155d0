"""Finds rows of CSV files that do not fit a table, reports them with their lines, and skips them.

A value fits if Arrow's CSV reader accepts it for the type of its column, and the writer for the column, as in a load
that stops at the first bad one.
Arrow reads files that are not UTF-8 as Latin-1, in which each byte is a character; values that are bytes of valid UTF-8
become their text again, and a row with any other value in a column of strings does not fit.

Source: none; RFC 4180 for quotes.
"""

from __future__ import annotations

import codecs
import io
from collections import deque
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from paimon_py.codec.columns import Mask, from_numpy
from paimon_py.errors import SchemaError
from paimon_py.spec.bad_row import BadRow
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.type_text import sql_type, with_nullability
from paimon_py.write.convert import plan
from paimon_py.write.json_texts import from_json_texts
from paimon_py.write.misfits import place_of
from paimon_py.write.steps import Refusal, Step, as_is

OnBadRow = Callable[[BadRow], object]


_CHUNK_BYTES = 1 << 20
_BYTES = "latin-1"
"""The encoding in which each byte is a character."""


class _Problem(NamedTuple):
    row: int
    column: str
    value: str | None
    text: str


class GoodRows:
    """The rows of one CSV file that fit, in the table's types; the others are reported at the end of the file."""

    def __init__(
        self, reopen: Callable[[], BinaryIO], path: str, schema: pa.Schema, table: TableSchema, nulls: list[str],
        delimiter: str, on_bad_row: OnBadRow,
    ) -> None:  # fmt: skip
        """`reopen`: returns the decompressed bytes from the beginning; `schema`: the types of the table's columns.

        Raises: ArrowInvalid if the names of the columns are not UTF-8.
        """
        self._reopen = reopen
        self._path = path
        self._nulls = nulls
        self._report = on_bad_row
        self._fields = {field.name: field for field in table.fields}
        self._types = {field.name: sql_type(with_nullability(field.type, True)) for field in table.fields}
        self._required = {field.name for field in table.fields if not field.type.nullable and field.default is None}
        self._misshapen: deque[str] = deque()
        self._problems: list[_Problem] = []
        self._delimiter = delimiter
        self._is_utf8 = _is_utf8(reopen())
        names = self._names()
        types = [schema.field(name).type if name in schema.names else pa.string() for name in names]
        self.schema = pa.schema(list(zip(names, types, strict=True)))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows that fit.

        Cost: each file is read once and parsed three times, once value by value if some do not fit; bad rows are held
            in memory.
        """
        self._misshapen.clear()
        done = 0
        for batch in self._texts({name: pa.string() for name in self.schema.names}):
            yield self._fitting(batch, done)
            done += batch.num_rows
        for found in self._bad_rows():
            self._report(found)

    def first_bad(self) -> BadRow | None:
        """The first row that does not fit, None if all do. Cost: parses the file up to there, and reads it twice."""
        self._misshapen.clear()
        done = 0
        for batch in self._texts({name: pa.string() for name in self.schema.names}):
            self._fitting(batch, done)
            done += batch.num_rows
            if self._misshapen or self._problems:
                break
        return next(self._bad_rows(), None)

    def _names(self) -> list[str]:
        names = self._texts({}).schema.names
        try:
            return names if self._is_utf8 else [name.encode(_BYTES).decode() for name in names]
        except UnicodeDecodeError as error:
            raise pa.ArrowInvalid(f"the names of its columns are not UTF8: {error}") from error

    def _texts(self, types: dict[str, pa.DataType]) -> pa.csv.CSVStreamingReader:
        def misshapen(row: pa.csv.InvalidRow) -> str:
            self._misshapen.append(row.text if self._is_utf8 else _show_bytes(row.text.encode(_BYTES)))
            return "skip"

        source, nulls = self._reopen(), self._nulls
        if not self._is_utf8:
            types, nulls = {_as_bytes(name): kind for name, kind in types.items()}, [_as_bytes(text) for text in nulls]
            if source.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
                source = self._reopen()
        return pa.csv.open_csv(
            source,
            read_options=pa.csv.ReadOptions(encoding="utf8" if self._is_utf8 else _BYTES),
            parse_options=pa.csv.ParseOptions(
                delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=misshapen
            ),
            convert_options=_convert_options(types, nulls),
        )

    def _fitting(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        columns: list[pa.Array] = []
        fits: Mask = np.ones(batch.num_rows, np.bool_)
        for field, given in zip(self.schema, batch.columns, strict=True):
            broken: dict[int, str] = {}
            wrong: list[int] = []
            if self._is_utf8:
                texts, (values, wrong) = given, _parse(given, field.type, self._check_of(field))
            elif pa.types.is_binary(field.type):
                texts, (values, wrong) = given, _parse(_encode(given), field.type, self._check_of(field))
            else:
                texts, broken = _decode(given)
                values, wrong = _parse(texts, field.type, self._check_of(field))
            problems = {row: f"{texts[row].as_py()!r} is not of type {self._types[field.name]}" for row in wrong}
            problems |= {row: f"'{text}' is not UTF-8" for row, text in broken.items()}
            if field.name in self._required and values.null_count:
                nulls = (row for row in range(len(values)) if not values[row].is_valid)
                problems |= {row: "NULL in a column that is NOT NULL" for row in nulls if row not in problems}
            for row, text in problems.items():
                if fits[row]:
                    value = broken[row] if row in broken else texts[row].as_py()
                    self._problems.append(_Problem(first + row, field.name, value, text))
                fits[row] = False
            columns.append(values)
        whole = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        return whole if fits.all() else whole.filter(from_numpy(fits, pa.bool_()))

    def _check_of(self, field: pa.Field) -> Step:
        """The step of a writer that refuses values that a column cannot hold, such as long strings."""
        if field.name not in self._fields:
            return as_is
        step = plan(field.type, self._fields[field.name].type, place_of(field.name))
        return as_is if isinstance(step, Refusal) else step

    def _bad_rows(self) -> Iterator[BadRow]:
        """The bad rows that were found, in file order."""
        problems = deque(sorted(self._problems))
        if not (problems or self._misshapen):
            return
        row = -1
        for line, record in _records(self._reopen()):
            if self._misshapen and record == self._misshapen[0]:
                self._misshapen.popleft()
                text = "a different number of values than the file has columns"
                yield BadRow(file=self._path, line=line, column=None, value=None, problem=text, record=record)
            elif record:
                if problems and problems[0].row == row:
                    _, column, value, text = problems.popleft()
                    yield BadRow(file=self._path, line=line, column=column, value=value, problem=text, record=record)
                row += 1


def _is_utf8(source: BinaryIO) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while chunk := source.read(_CHUNK_BYTES):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _show_bytes(data: bytes) -> str:
    """Bytes as text, those that are not UTF-8 as `\\xe4`."""
    return data.decode("utf-8", "backslashreplace")


def _as_bytes(text: str) -> str:
    """Text as it is read as Latin-1."""
    return text.encode().decode(_BYTES)


def _encode(texts: pa.Array) -> pa.Array:
    """Texts read as Latin-1 as their bytes."""
    return pa.array([None if text is None else text.encode(_BYTES) for text in texts.to_pylist()], pa.binary())


def _decode(texts: pa.Array) -> tuple[pa.Array, dict[int, str]]:
    """Texts read as Latin-1 as those that they are in UTF-8, NULL where they are none, and what these rows contain."""
    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return texts, {}
    found, broken = texts.to_pylist(), {}
    for row, text in enumerate(found):
        if text is not None and not text.isascii():
            data = text.encode(_BYTES)
            try:
                found[row] = data.decode()
            except UnicodeDecodeError:
                found[row], broken[row] = None, _show_bytes(data)
    return pa.array(found, pa.string()), broken


def _convert_options(types: dict[str, pa.DataType], nulls: list[str]) -> pa.csv.ConvertOptions:
    return pa.csv.ConvertOptions(
        column_types=types, null_values=["", *nulls], strings_can_be_null=True, quoted_strings_can_be_null=False
    )


def _parse(texts: pa.Array, kind: pa.DataType, check: Step) -> tuple[pa.Array, list[int]]:
    """The values of strings, NULL for those that are invalid for the type or the column, and the rows of these."""
    if not len(texts):
        return texts.cast(kind), []
    try:
        values = texts.cast(kind) if pa.types.is_string(kind) or texts.type == kind else _column(texts, kind)
        check(values)
        return values, []
    except (pa.ArrowInvalid, SchemaError):
        if len(texts) == 1:
            return pa.nulls(1, kind), [0]
    half = len(texts) // 2
    (low, below), (high, above) = _parse(texts.slice(0, half), kind, check), _parse(texts.slice(half), kind, check)
    return pa.concat_arrays([low, high]), [*below, *(half + row for row in above)]


def _column(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Strings as Arrow's CSV reader parses them for a type, of nested types as JSON. Raises: ArrowInvalid"""
    if pa.types.is_nested(kind):
        return from_json_texts(texts, kind)
    lines = ("" if text is None else '"' + text.replace('"', '""') + '"' for text in texts.to_pylist())
    found = pa.csv.read_csv(
        io.BytesIO("".join(f"{line}\n" for line in lines).encode()),
        read_options=pa.csv.ReadOptions(column_names=["value"], use_threads=False),
        parse_options=pa.csv.ParseOptions(ignore_empty_lines=False, newlines_in_values=True),
        convert_options=_convert_options({"value": kind}, []),
    )
    return found.column(0).combine_chunks()


def _records(source: BinaryIO) -> Iterator[tuple[int, str]]:
    """The unparsed rows of a CSV file, each with the line number at which it begins."""
    began, held = 1, ""
    for line, data in enumerate(_lines(source), 1):
        text = _show_bytes(data).removesuffix("\r")
        began, held = (began, f"{held}\n{text}") if held else (line, text)
        if held.count('"') % 2 == 0:
            yield began, held.removeprefix("\ufeff")
            held = ""
    if held:
        yield began, held


def _lines(source: BinaryIO) -> Iterator[bytes]:
    rest = b""
    while chunk := source.read(_CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        yield rest
