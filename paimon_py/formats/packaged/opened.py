"""A data file that a package of its format reads: ranges of rows and columns in, Arrow batches out.

Source: docs/decisions/0035-packaged-formats.md; Java's modules `paimon-vortex` and `paimon-lance`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa
from pyroaring import BitMap

from paimon_py.codec.arrow_types import to_arrow_field
from paimon_py.errors import CorruptionError, PaimonError, UnsupportedError
from paimon_py.expr.predicate import Predicate
from paimon_py.formats.base import ReadSettings, decoding, empty_rows, row_batches
from paimon_py.formats.parts import Parts
from paimon_py.formats.reshape import TIMESTAMPS, as_leaf, reshape
from paimon_py.formats.stored import check_absent, check_stored
from paimon_py.spec.types import Atomic, Field, Root

_PART_ROWS = 8192
"""The rows of the parts of a file that are skipped if no requested position is in them."""


class PackagedFile(Protocol):
    """A file opened by the package of its format."""

    @property
    def row_count(self) -> int:
        """The number of rows."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """The columns of the file."""
        ...

    def batches(self, columns: Sequence[str], start: int, count: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows from `start` on, in order, with at least one column."""
        ...

    def close(self) -> None:
        """Release the file."""
        ...


class PackagedOpenFile:
    """See `OpenFile`. Positions are skipped by parts of 8,192 rows; predicates are left to the caller."""

    def __init__(self, file: PackagedFile, path: str, fields: Sequence[Field], settings: ReadSettings) -> None:
        self._file = file
        self._path = path
        self._fields = {field.name: field for field in fields}
        self._settings = settings

    @property
    def row_count(self) -> int:
        return self._file.row_count

    def positioned_batches(
        self,
        columns: Sequence[str],
        *,
        batch_rows: int,
        predicate: Predicate | None = None,
        rows: BitMap | None = None,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        fields = [self._fields[name] for name in columns]
        stored = self._check(fields)
        schema = pa.schema([to_arrow_field(field) for field in fields])
        for position, parts in self.parts(predicate, rows).stretches():
            count = min(len(parts) * _PART_ROWS, self.row_count - position)
            end = position + count
            found = self._stretch(stored, position, count, batch_rows)
            with packaged(self._path):
                for batch in found:
                    made = self._result(batch, fields, schema) if fields else batch
                    yield position, made
                    position += batch.num_rows
            if position != end:
                raise CorruptionError(f"{self._path} ends at row {position} of {self.row_count}", path=self._path)

    def parts(self, predicate: Predicate | None = None, rows: BitMap | None = None) -> Parts:  # noqa: ARG002
        whole, rest = divmod(self.row_count, _PART_ROWS)
        return Parts.of([_PART_ROWS] * whole + [rest] * bool(rest), None, rows)

    def close(self) -> None:
        self._file.close()

    def _check(self, fields: Sequence[Field]) -> list[str]:
        """The names of the columns to read; the others are NULL in every row.

        Raises: CorruptionError for columns that other types than those of their fields are stored as.
        """
        with packaged(self._path), decoding(self._path):
            stored = self._file.schema
            for field in fields:
                if stored.names.count(field.name) != 1:
                    check_absent(self._path, field, stored.names, self._settings)
                else:
                    check_stored(stored.field(field.name).type, field.type, _stamps)
            return [field.name for field in fields if field.name in stored.names]

    def _stretch(self, columns: Sequence[str], start: int, count: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
        if not columns:
            return row_batches(empty_rows(count), batch_rows)
        batches = self._file.batches(columns, start, count, batch_rows)
        return (piece for batch in batches for piece in row_batches(batch, batch_rows))

    def _result(self, batch: pa.RecordBatch, fields: Sequence[Field], schema: pa.Schema) -> pa.RecordBatch:
        names = batch.schema.names
        with decoding(self._path):
            arrays = [
                reshape(batch.column(field.name), field.type, target.type, _leaf)
                if field.name in names
                else pa.nulls(batch.num_rows, target.type)
                for field, target in zip(fields, schema, strict=True)
            ]
            return pa.RecordBatch.from_arrays(arrays, schema=schema)


class packaged(decoding):
    """Convert what a package raises for damaged files to CorruptionError; panics of native code are among it."""

    __slots__ = ()

    def _translate(self, error: BaseException) -> PaimonError | None:
        if isinstance(error, (PaimonError, MemoryError)):
            return None
        if isinstance(error, Exception) or is_panic(error):
            text = str(error).partition("\n")[0] or type(error).__name__
            return CorruptionError(f"{self._path} is damaged: {text}", path=self._path)
        return None


def is_panic(error: BaseException) -> bool:
    """Whether native code gave up."""
    return type(error).__name__ == "PanicException"


def load_package(module: str, name: str, path: str = "") -> Any:
    """A module of the package of a format, an extra of the same name. `path`: of the file that needs it, if any.

    Raises: UnsupportedError if it is not installed; the message contains the command that installs it.
    """
    try:
        found = importlib.import_module(module)
        if getattr(found, "__file__", None) is None:  # any directory of that name is a module without a file
            raise ImportError(f"{module} is a directory, not a package")
        return found
    except ImportError as error:
        raise UnsupportedError(
            f"{path and f'{path}: '}the format {name} needs a package that is not installed:"
            f" pip install 'paimon-py[{name}]'",
            feature=f"file.format={name}", path=path or None,
        ) from error  # fmt: skip


def _stamps(kind: Atomic) -> list[pa.DataType]:
    zones = [None] if kind.root is Root.TIMESTAMP else [None, "UTC"]
    return [pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in zones]


def _leaf(array: pa.Array, kind: Atomic, target: pa.DataType) -> pa.Array:
    if kind.root in TIMESTAMPS and array.type.tz != target.tz:
        array = array.view(pa.timestamp(array.type.unit, target.tz))
    return as_leaf(array, target)
