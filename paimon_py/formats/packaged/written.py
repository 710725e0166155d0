"""A data file that the package of its format writes: on local disk first, from where it is copied to its store.

Source: docs/decisions/0035-packaged-formats.md; Java's modules `paimon-vortex`, `paimon-lance` and `paimon-mosaic`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import BinaryIO, Protocol

import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.row_size import row_bytes
from paimon_py.env import SpillFile
from paimon_py.errors import PaimonError, SchemaError, UnsupportedError
from paimon_py.formats.base import ColumnBounds, Encoder, WriteSettings, decoding
from paimon_py.formats.bounds import running_bounds
from paimon_py.formats.packaged.local import SPILL, full_disk
from paimon_py.formats.packaged.opened import is_panic
from paimon_py.formats.reshape import as_leaf, reshape
from paimon_py.spec.file_rules import packaged_problem
from paimon_py.spec.types import ArrayType, Atomic, DataType, Field, RowType, VectorType

LeafType = Callable[[Atomic], pa.DataType]
"""The Arrow type of the values of a type in a file."""

_COPY_BYTES = 1 << 20


class WrittenFile(Protocol):
    """A file on local disk that the package of its format writes."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        ...

    def close(self) -> None:
        """Finish the file."""
        ...

    def abort(self) -> None:
        """Delete what was stored beside the file; may be called after `close`."""
        ...


Begin = Callable[[str, pa.Schema], WrittenFile]
"""Begins a file at a path of local disk."""


def packaged_encoder(
    name: str, fields: Sequence[Field], settings: WriteSettings, begin: Begin, leaf_type: LeafType = to_arrow_type
) -> Encoder:
    """See `FileFormat.encoder`. Raises: UnsupportedError for a type that the format does not have."""
    for field in fields:
        problem = packaged_problem(name, field.type)
        if problem is not None:
            raise UnsupportedError(f"column {field.name}: {problem}", feature=problem)
    schema = pa.schema([pa.field(f.name, _layout(f.type, leaf_type), f.type.nullable) for f in fields])
    without = settings.without_stats
    return partial(PackagedFileWriter, name=name, fields=fields, without=without, begin=begin, schema=schema)


class PackagedFileWriter:
    """See `FileWriter`. Its sizes are those of the rows in memory, by which pypaimon begins files, too."""

    def __init__(
        self,
        sink: BinaryIO,
        *,
        name: str,
        fields: Sequence[Field],
        without: frozenset[str],
        begin: Begin,
        schema: pa.Schema,
    ) -> None:
        self._sink = sink
        self._fields = fields
        self._schema = schema
        self._bounds = [running_bounds(field, without) for field in fields]
        self._rows = self._bytes = 0
        self._copy: SpillFile = SPILL.create()
        self._packing = packing(name, self._copy.path)
        try:
            with self._packing:
                self._file = begin(self._copy.path, schema)
        except BaseException:
            self._copy.delete()
            raise

    @property
    def row_count(self) -> int:
        return self._rows

    @property
    def bytes_written(self) -> int:
        return self._bytes

    def write(self, batch: pa.RecordBatch) -> None:
        arrays = []
        for field, target, bounds in zip(self._fields, self._schema, self._bounds, strict=True):
            array = batch.column(field.name)
            if not field.type.nullable and array.null_count:
                raise SchemaError(f"column {field.name} is NOT NULL but holds null", fields=(field.name,))
            bounds.add(array)
            arrays.append(reshape(array, field.type, target.type, _leaf))
        with self._packing:
            self._file.write(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._rows += batch.num_rows
        self._bytes += row_bytes(batch)

    def close(self) -> list[ColumnBounds]:
        try:
            with self._packing:
                self._file.close()
                with self._copy.open_read() as source:
                    while data := source.read(_COPY_BYTES):
                        self._sink.write(data)
        finally:
            self.abort()
        return [bounds.result() for bounds in self._bounds]

    def abort(self) -> None:
        self._file.abort()
        self._copy.delete()


class packing(decoding):
    """Convert what a package raises for rows that it cannot write to SchemaError, panics of native code as well."""

    __slots__ = ("_name",)

    def __init__(self, name: str, path: str) -> None:
        """`path`: of the file on local disk."""
        super().__init__(path)
        self._name = name

    def _translate(self, error: BaseException) -> PaimonError | None:
        if isinstance(error, (PaimonError, MemoryError)):
            return None
        if isinstance(error, OSError) and error.errno is not None:
            return full_disk(self._path, error)
        if isinstance(error, Exception) or is_panic(error):
            text = str(error).partition("\n")[0] or type(error).__name__
            return SchemaError(f"rows cannot be written as {self._name}: {text}")
        return None


def _layout(kind: DataType, leaf_type: LeafType) -> pa.DataType:
    """The Arrow type of a column in a file: fields of rows may be NULL, since they are where the row is."""
    if isinstance(kind, Atomic):
        return leaf_type(kind)
    if isinstance(kind, ArrayType):
        return pa.list_(pa.field("element", _layout(kind.element, leaf_type)))
    if isinstance(kind, VectorType):
        return pa.list_(pa.field("element", _layout(kind.element, leaf_type)), kind.length)
    if isinstance(kind, RowType):
        return pa.struct([pa.field(field.name, _layout(field.type, leaf_type)) for field in kind.fields])
    return to_arrow_type(kind)


def _leaf(array: pa.Array, _kind: Atomic, target: pa.DataType) -> pa.Array:
    return as_leaf(array, target)
