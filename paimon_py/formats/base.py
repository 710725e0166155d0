"""What a file format promises, and the values that go in and out of it.

A format turns Arrow record batches into one data file and back. It is handed an open binary file, never a path to
open or a store; `path` serves error messages only.
"""

from __future__ import annotations

import contextlib
import errno
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Protocol

import msgspec
import pyarrow as pa
from pyroaring import BitMap

from paimon_py.arguments import UNFORESEEN
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
"""Rows of one Parquet row group: small groups make ranges cheap to read, and cost little beside sparse dictionaries."""

_NO_MACHINE_HAS = 1 << 40
"""Bytes: who asks for more at once read a damaged length."""

_ASKED = re.compile(r"size (\d+) failed")
_NO_THREADS = ("start new thread", "Resource temporarily unavailable")

DEFAULT_BLOCK_BYTES = 128 << 20


CastArray = Callable[[pa.Array, DataType, DataType], pa.Array]
"""Values of one type as another."""


class WriteSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How to write one data file.

    Attributes:
        compression: codec name as in the option `file.compression`.
        zstd_level: level for codec zstd, where the format's writer can set it.
        block_size_bytes: upper bound of a row group or stripe; None for the format's default.
        without_stats: columns for which no bounds are wanted.
        options: the table's options; those that begin with the format's name tune it.
    """

    compression: str = "zstd"
    zstd_level: int = 1
    block_size_bytes: int | None = None
    without_stats: frozenset[str] = frozenset()
    options: Mapping[str, str] = {}


GREGORIAN_DAYS = -141_349
"""1583-01-01: before it writers count days by different calendars."""


BUFFER_BYTES = 65_536


class ReadSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How to read one data file.

    Attributes:
        buffer_size_bytes: bytes fetched at once per column; 0 fetches whole column chunks (fewer requests to a
            remote store, more memory).
        row_count: rows that the file must have; None where nobody knows. Formats that do not say themselves how many
            rows they have are held to this before anything is unpacked.
        by_page: leave pages of row groups out, too, where the format can, which costs a small read a page and pays
            for few rows. A file whose first row group needs all pages for a predicate is read without more questions.
        decimals: whether the file may have DECIMAL columns, whose footers ORC checks before pyarrow sees them.
        whole: bounds of the whole file from elsewhere, one slot for each column; they confirm those of its footer.
        is_planned: bounds of the whole file were asked before it was opened: its only row group or stripe is read.
        schema_names: the names of all columns by the schema of the file.
        cast: makes values of one type of another, by the rules of Paimon's casts; for parts of variants.
        may_lack: columns that are NULL in every row, as other writers leave them, where the file does not hold them.
    """

    buffer_size_bytes: int = BUFFER_BYTES
    by_page: bool = False
    decimals: bool = True
    row_count: int | None = None
    whole: WholeBounds | None = None
    is_planned: bool = False
    schema_names: tuple[str, ...] = ()
    may_lack: frozenset[str] = frozenset()
    cast: CastArray | None = None


class ColumnBounds(msgspec.Struct, frozen=True):
    """What is known of one column of one file.

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
        """Rows in the file; None if only reading it would tell."""
        ...

    def positioned_batches(
        self,
        columns: Sequence[str],
        *,
        batch_rows: int,
        predicate: Predicate | None = None,
        rows: BitMap | None = None,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The columns called `columns`, in file order of rows, each batch with the position of its first row.

        Shapes: out — batches of at most `batch_rows` rows, columns in the order asked for, with the Arrow types of
            the file's fields.
            `predicate` may leave out row groups without a match; the rows that come are not filtered.
            `rows`: positions that are wanted; row groups without one may be left out, with `by_page` rows of others,
            too.
        Raises: CorruptionError for a damaged file; UnsupportedError for what the decoder cannot represent.
        """
        ...

    def parts(self, predicate: Predicate | None = None, rows: BitMap | None = None) -> Parts:
        """The row groups or stripes that `positioned_batches` takes and leaves for these arguments.

        Cost: nothing is decoded; ORC reads the end of the file once more.
        """
        ...

    def close(self) -> None:
        """Close the source."""
        ...


class FileWriter(Protocol):
    """A data file being written. After an error only `abort` may be called."""

    @property
    def bytes_written(self) -> int:
        """Estimate of the size the file would have if it ended now."""
        ...

    @property
    def row_count(self) -> int:
        """Rows written so far."""
        ...

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; columns are found by name."""
        ...

    def close(self) -> list[ColumnBounds]:
        """Finish the file and return the bounds of its fields, in order. The sink stays open for its owner to close."""
        ...

    def abort(self) -> None:
        """Give up; nothing more reaches the sink."""
        ...


Encoder = Callable[[BinaryIO], FileWriter]
"""Begins a file in a sink."""


class FileFormat(Protocol):
    """A way to lay rows out in a file."""

    @property
    def name(self) -> str:
        """The format's id, which is also the extension of its files."""
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
        """Begin a file with the columns `fields`. Who begins many alike asks for an `encoder`.

        Raises: as `encoder`.
        """
        ...

    def encoder(self, fields: Sequence[Field], settings: WriteSettings) -> Encoder:
        """What begins files with the columns `fields`: that which all of them have in common is worked out once.

        Raises:
            UnsupportedError: a type the format cannot hold.
            OptionError: an unknown codec or a bad format option.
        """
        ...


def number_option(options: Mapping[str, str], name: str, default: int) -> int:
    """A whole-number format option, as Hadoop-style configuration reads it."""
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
    """A true/false format option."""
    text = options.get(name)
    if text is None:
        return default
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise OptionError(f"option {name} must be true or false, not {text!r}", option=name, value=text)
    return word == "true"


@contextlib.contextmanager
def decoding(path: str) -> Iterator[None]:
    """Turn what a decoder raises on bad bytes into CorruptionError, and missing codecs into UnsupportedError.

    Memory or threads that run out are a ResourceError. Errors of the store pass unchanged: Arrow hands on what the
    source raised.
    """
    try:
        yield
    except PaimonError:
        raise
    except MemoryError as error:
        raise _memory_error(path, error) from error
    except pa.ArrowNotImplementedError as error:
        raise UnsupportedError(f"{path} cannot be decoded: {error}", feature=str(error), path=path) from error
    except RecursionError as error:
        raise CorruptionError(f"{path} is damaged: it is nested too deeply", path=path) from error
    except RuntimeError as error:
        if any(words in str(error) for words in _NO_THREADS):
            raise _memory_error(path, error) from error
        raise
    except OSError as error:
        if error.errno == errno.ENOMEM:
            raise _memory_error(path, error) from error
        if error.errno is not None:
            raise StorageError(f"reading {path} failed: {error}", path=path, operation="read") from error
        raise CorruptionError(f"{path} is damaged: {error}", path=path) from error
    except (pa.ArrowException, *UNFORESEEN) as error:
        raise CorruptionError(f"{path} is damaged: {error or type(error).__name__}", path=path) from error


def _memory_error(path: str, error: BaseException) -> PaimonError:
    what = str(error) or type(error).__name__
    asked = _ASKED.search(what)
    if asked and int(asked[1]) >= _NO_MACHINE_HAS:
        return CorruptionError(f"{path} is damaged: it asks for {asked[1]} bytes of memory", path=path)
    return ResourceError(f"reading {path} needs more memory or threads than this process gets: {what}", path=path)


@contextlib.contextmanager
def encoding(format_name: str) -> Iterator[None]:
    """The door of rows into a file: what a format cannot write is a SchemaError or an UnsupportedError.

    Errors of the sink, ours already, pass unchanged.
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
    """The next item, None at the end, decoder errors translated."""
    with decoding(path):
        return next(iterator, None)


def row_batches(batch: pa.RecordBatch, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Zero-copy pieces of at most `batch_rows` rows."""
    for start in range(0, batch.num_rows, batch_rows):
        yield batch.slice(start, batch_rows)


def empty_rows(row_count: int) -> pa.RecordBatch:
    """A batch that has rows but no columns."""
    return pa.RecordBatch.from_arrays([pa.nulls(row_count)], ["rows"]).select([])
