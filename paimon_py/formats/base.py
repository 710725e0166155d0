"""The interface of file formats, and its parameters and results.

A format converts Arrow record batches to one data file and back. It gets an open binary file, never a path to open or a
store; `path` is only for error messages.
"""

from __future__ import annotations

import contextlib
import errno
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, BinaryIO, Protocol, runtime_checkable

import msgspec
import pyarrow as pa
from pyroaring import BitMap

from paimon_py.arguments import UNFORESEEN
from paimon_py.env import SpillPlace
from paimon_py.errors import (
    CorruptionError,
    OptionError,
    PaimonError,
    ResourceError,
    SchemaError,
    StorageError,
    UnsupportedError,
)
from paimon_py.expr.predicate import Predicate
from paimon_py.formats.part_bounds import WholeBounds
from paimon_py.formats.parts import Parts
from paimon_py.spec.types import DataType, Field

ROW_GROUP_ROWS = 131_072
"""Rows of one Parquet row group: small groups make range reads cheap, and cost little even with sparse dictionaries."""

_NO_MACHINE_HAS = 1 << 40
"""Bytes: a larger allocation request means that a damaged length was read."""

_ASKED = re.compile(r"size (\d+) failed")
_NO_THREADS = ("start new thread", "Resource temporarily unavailable")

DEFAULT_BLOCK_BYTES = 128 << 20
LAST_SECOND_FEATURE = "ORC timestamps in the last second before 1970 with digits below the millisecond"
YEARS_FEATURE = "ORC timestamps outside the years -292,000,000 … 292,000,000"
UNWRITABLE_TIMES = frozenset((LAST_SECOND_FEATURE, YEARS_FEATURE))
"""The features of errors for times that no ORC file holds."""


SLICES_BYTES = 2 << 20
"""About the maximum size of the rows that are encoded as one file for each of their slices."""


CastArray = Callable[[pa.Array, DataType, DataType], pa.Array]
"""Casts values of one type to another."""


class WriteSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for writing a data file.

    Attributes:
        compression: codec name as in the option `file.compression`.
        zstd_level: level for codec zstd, if the format's writer supports it.
        block_size_bytes: maximum size of a row group or stripe; None for the format's default.
        without_stats: columns for which no bounds are needed.
        options: the table's options; those that begin with the format's name configure it.
    """

    compression: str = "zstd"
    zstd_level: int = 1
    block_size_bytes: int | None = None
    without_stats: frozenset[str] = frozenset()
    options: Mapping[str, str] = {}


GREGORIAN_DAYS = -141_349
"""1583-01-01: for earlier dates, writers use different calendars."""


BUFFER_BYTES = 65_536


class Alike:
    """The findings of a format in a file that may recur in the next file that is read with the same columns.

    Attributes:
        known: the format's own value, with all that it has to compare before it is used again.
    """

    __slots__ = ("known",)

    def __init__(self) -> None:
        self.known: object = None


class ReadSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for reading a data file.

    Attributes:
        buffer_size_bytes: bytes fetched at once per column; 0 fetches whole column chunks (fewer requests to a remote
            store, more memory).
        row_count: the expected number of rows; None if unknown. Formats that do not store a row count are checked
            against it before anything is decompressed.
        by_page: also skip pages of row groups, if the format supports it; this costs a small read per page and pays off
            for few rows. If the first row group needs all pages for a predicate, the rest of the file is read without
            page checks.
        decimals: whether the file may have DECIMAL columns, whose footers are checked for ORC before pyarrow reads
            them.
        whole: bounds of the whole file from its manifest entry, one slot per column; they confirm those in its footer.
        is_planned: the bounds of the whole file were already used in planning: its only row group or stripe is read.
        schema_names: the names of all columns in the file's schema.
        stored: every column of the file in its order, for formats that do not store the names.
        line_delimiter: what ends a line, in formats of lines.
        cast: casts values by Paimon's cast rules; for parts of variants.
        may_lack: columns that may be missing in the file because they are NULL in every row, as other writers omit
            them.
        alike: what other files with the same columns had in common; None: nothing is known of them.
        spill: space for a copy of a file, for packages that only read local files.
    """

    buffer_size_bytes: int = BUFFER_BYTES
    by_page: bool = False
    decimals: bool = True
    row_count: int | None = None
    whole: WholeBounds | None = None
    is_planned: bool = False
    schema_names: tuple[str, ...] = ()
    may_lack: frozenset[str] = frozenset()
    stored: tuple[Field, ...] = ()
    line_delimiter: str = "\n"
    cast: CastArray | None = None
    alike: Alike | None = None
    spill: SpillPlace | None = None


class ColumnBounds(msgspec.Struct, frozen=True):
    """The bounds of one column of one file.

    `ends`: the least and the greatest value, two of the column's Arrow type, None for unknown; neither is ever too
    narrow. `null_count` None means unknown.
    """

    ends: pa.Array | None = None
    null_count: int | None = None

    @property
    def min(self) -> pa.Scalar | None:
        """The least value."""
        return None if self.ends is None else self.ends[0]

    @property
    def max(self) -> pa.Scalar | None:
        """The greatest value."""
        return None if self.ends is None else self.ends[1]


class OpenFile(Protocol):
    """A data file open for reading."""

    @property
    def row_count(self) -> int | None:
        """The number of rows; None if the file has to be read to know it."""
        ...

    def positioned_batches(
        self,
        columns: Sequence[str],
        *,
        batch_rows: int,
        predicate: Predicate | None = None,
        rows: BitMap | None = None,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The columns `columns`, with rows in file order; each batch with the position of its first row.

        Shapes: out — batches of at most `batch_rows` rows, columns in the requested order, with the Arrow types of
          the file's fields.
          `predicate` may skip row groups without a match; returned rows are not filtered.
          `rows`: requested positions; row groups without any may be skipped, with `by_page` other rows too.
        Raises: CorruptionError for a damaged file; UnsupportedError for data that the decoder cannot represent.
        """
        ...

    def parts(self, predicate: Predicate | None = None, rows: BitMap | None = None) -> Parts:
        """The row groups or stripes that `positioned_batches` reads and skips for these arguments.

        Cost: nothing is decoded; for ORC, the end of the file is read again.
        """
        ...

    def close(self) -> None:
        """Close the source."""
        ...


class FileWriter(Protocol):
    """A data file being written. After an error only `abort` may be called."""

    @property
    def bytes_written(self) -> int:
        """The estimated size of the file if it were closed now."""
        ...

    @property
    def row_count(self) -> int:
        """Rows written so far."""
        ...

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; columns are found by name."""
        ...

    def close(self) -> list[ColumnBounds]:
        """Finish the file and return the bounds of its fields, in order. The caller closes the sink."""
        ...

    def abort(self) -> None:
        """Abandon the file; nothing more is written to the sink."""
        ...


Encoder = Callable[[BinaryIO], FileWriter]
"""Begins a file in a sink."""


@runtime_checkable
class SlicesEncoder(Protocol):
    """An encoder that also makes whole files of many slices of a batch, each as if its rows were written alone.

    The bounds of these files are left to the caller.
    """

    @property
    def encodes_slices(self) -> bool:
        """Whether it does with its settings."""
        ...

    @property
    def ordered_columns(self) -> frozenset[str]:
        """The columns whose bounds are those of their values; of the others only nulls are counted.

        Columns of nested types and VARIANT have neither.
        """
        ...

    def slices(self, batch: pa.RecordBatch, cuts: Sequence[int]) -> Iterator[bytes]:
        """The files of the slices between each two `cuts`, in order; columns are found by name.

        Raises: SchemaError if rows cannot be written.
        """
        ...


class JoinedFile(msgspec.Struct, frozen=True):
    """A file made of several.

    Attributes:
        data: its bytes.
        places: which of the given files it is made of, in order; `row_counts`: the rows of each of these.
    """

    data: bytes
    places: list[int]
    row_counts: list[int]


class FileFormat(Protocol):
    """A file format for rows."""

    @property
    def name(self) -> str:
        """The format's id, which is also the file extension."""
        ...

    def open(
        self,
        source: BinaryIO,
        path: str,
        fields: Sequence[Field],
        size_bytes: int,
        settings: ReadSettings = ...,
    ) -> OpenFile:
        """Open a file whose columns are `fields` (those of the schema it was written with).

        Raises: CorruptionError for a damaged file, such as one that lacks a column.
        """
        ...

    def create(self, sink: BinaryIO, fields: Sequence[Field], settings: WriteSettings) -> FileWriter:
        """Begin a file with the columns `fields`; to begin many such files, use an `encoder`.

        Raises: as `encoder`.
        """
        ...

    def encoder(self, fields: Sequence[Field], settings: WriteSettings) -> Encoder:
        """A function that begins files with the columns `fields`; their common properties are determined once.

        Raises:
            UnsupportedError: a type that the format cannot represent.
            OptionError: an unknown codec or an invalid format option.
        """
        ...


class ReadOnlyFormat:
    """A file format whose files are read, but not written."""

    name: str

    def create(self, sink: BinaryIO, fields: Sequence[Field], settings: WriteSettings) -> FileWriter:
        """See `FileFormat.create`. Raises: UnsupportedError"""
        return self.encoder(fields, settings)(sink)

    def encoder(self, fields: Sequence[Field], settings: WriteSettings) -> Encoder:  # noqa: ARG002
        """See `FileFormat.encoder`. Raises: UnsupportedError"""
        raise UnsupportedError(f"files of the format {self.name} cannot be written", feature=f"file.format={self.name}")


@runtime_checkable
class SupportsJoin(FileFormat, Protocol):
    """A format whose small files can be made one, which is decoded faster than each of them."""

    def join(self, files: Sequence[bytes], columns: Sequence[str], most_bytes: int) -> JoinedFile | None:
        """One file with the rows of those that are like the first one, in order; None if there are fewer than two.

        Damaged files are left out, and may be found to be damaged when the rows are decoded.

        Args:
            columns: the top-level columns that will be read.
            most_bytes: files are left out if all would have more bytes, once decompressed.
        """
        ...


def number_option(options: Mapping[str, str], name: str, default: int) -> int:
    """An integer format option, parsed as in Hadoop configurations."""
    text = options.get(name)
    if text is None:
        return default
    try:
        value = int(text.strip())
    except ValueError:
        value = 0
    if value <= 0:
        raise OptionError(f"option {name} must be a positive whole number, not {text!r}", option=name, value=text)
    return value


def flag_option(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    """A boolean format option."""
    text = options.get(name)
    if text is None:
        return default
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise OptionError(f"option {name} must be true or false, not {text!r}", option=name, value=text)
    return word == "true"


class decoding:
    """Convert decoder errors on damaged bytes to CorruptionError, and missing codecs to UnsupportedError.

    Exhausted memory or threads become a ResourceError. Store errors pass unchanged, since Arrow re-raises what the
    source raised. It is a class since entering a generator takes ten times as long, and each small file enters often.
    """

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and (translated := self._translate(error)) is not None:
            raise translated from error

    def _translate(self, error: BaseException) -> PaimonError | None:
        """The error to raise in place of a decoder's; None to let that one pass."""
        return _decoding_error(self._path, error)


def _decoding_error(path: str, error: BaseException) -> PaimonError | None:
    """The error to raise in place of a decoder's; None to let that one pass."""
    match error:
        case PaimonError():
            return None
        case MemoryError():
            return _memory_error(path, error)
        case pa.ArrowNotImplementedError():
            return UnsupportedError(f"{path} cannot be decoded: {error}", feature=str(error), path=path)
        case RecursionError():
            return CorruptionError(f"{path} is damaged: it is nested too deeply", path=path)
        case RuntimeError():
            lacks_threads = any(words in str(error) for words in _NO_THREADS)
            return _memory_error(path, error) if lacks_threads else None
        case OSError(errno=errno.ENOMEM):
            return _memory_error(path, error)
        case OSError() if error.errno is not None:
            return StorageError(f"reading {path} failed: {error}", path=path, operation="read")
        case OSError():
            return CorruptionError(f"{path} is damaged: {error}", path=path)
        case _ if isinstance(error, (pa.ArrowException, *UNFORESEEN)):
            return CorruptionError(f"{path} is damaged: {error or type(error).__name__}", path=path)
        case _:
            return None


def _memory_error(path: str, error: BaseException) -> PaimonError:
    what = str(error) or type(error).__name__
    asked = _ASKED.search(what)
    if asked and int(asked[1]) >= _NO_MACHINE_HAS:
        return CorruptionError(f"{path} is damaged: it asks for {asked[1]} bytes of memory", path=path)
    return ResourceError(f"reading {path} needs more memory or threads than this process gets: {what}", path=path)


@contextlib.contextmanager
def encoding(format_name: str) -> Iterator[None]:
    """Convert errors of rows that a format cannot write to SchemaError or UnsupportedError.

    Errors of the sink, which are already ours, pass unchanged.
    """
    try:
        yield
    except PaimonError:
        raise
    except pa.ArrowNotImplementedError as error:
        feature = f"{format_name}: {error}"
        raise UnsupportedError(f"rows cannot be written as {feature}", feature=feature) from error
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise SchemaError(f"rows cannot be written as {format_name}: {error}") from error


def next_or_none(iterator: Iterator[Any], path: str) -> Any:
    """The next item, None at the end; decoder errors are converted."""
    with decoding(path):
        return next(iterator, None)


def row_batches(batch: pa.RecordBatch, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Zero-copy pieces of at most `batch_rows` rows."""
    for start in range(0, batch.num_rows, batch_rows):
        yield batch.slice(start, batch_rows)


def empty_rows(row_count: int) -> pa.RecordBatch:
    """A batch with rows but no columns."""
    return pa.RecordBatch.from_arrays([pa.nulls(row_count)], ["rows"]).select([])
