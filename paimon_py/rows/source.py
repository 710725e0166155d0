"""The source of a merge: read once, kept in memory or on local disk in blocks, and read as often as needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from itertools import chain

import numpy as np
import pyarrow as pa

from paimon_py.codec.binary_row import hash_rows
from paimon_py.codec.columns import Mask, from_numpy, one_nan
from paimon_py.codec.row_size import row_bytes
from paimon_py.env import SpillFile, SpillPlace
from paimon_py.errors import SchemaError, UsageError
from paimon_py.expr.bind import near_names
from paimon_py.logs import SPILLS, fields
from paimon_py.lsm.spill_errors import spilling
from paimon_py.spec.schema import ROW_KIND_COLUMN
from paimon_py.spec.types import DataType, Field
from paimon_py.write.convert import plan, takeable
from paimon_py.write.misfits import place_of
from paimon_py.write.steps import Refusal, Step
from paimon_py.write.streams import open_stream, pieces

_OPEN_MAX = 64
"""The maximum number of blocks that are written in parallel; each has an open file."""


class Source:
    """Rows to merge into a table.

    Attributes:
        schema: the schema of the rows.
        blocks: the number of blocks; rows with equal keys are in the same block.
    """

    def __init__(
        self, data: object, keys: Sequence[tuple[str, Field]], place: SpillPlace, limit_bytes: int,
        fields: Sequence[Field] = (),
    ) -> None:
        """Read the schema; rows are not read before `load`.

        Args:
            keys: the join columns of the source and of the table.
            limit_bytes: the maximum memory.
            fields: columns of the table, which determine the types of Python values.

        Raises:
            UsageError: `data` is not Arrow data.
            SchemaError: a key column is missing or cannot be converted to the type in the table, or columns have the
                same name.
        """
        self._reader = open_stream(data, fields)
        given: pa.Schema = self._reader.schema
        plain = [takeable(field.type) for field in given]
        self._steps = [step for _, step in plain]
        self.schema: pa.Schema = pa.schema([(field.name, kind) for field, (kind, _) in zip(given, plain, strict=True)])
        self._place = place
        self._limit = limit_bytes
        self._types: list[DataType] = [field.type for _, field in keys]
        self._memory: list[pa.RecordBatch] = []
        self._files: list[SpillFile] = []
        self.blocks = 0
        names = self.schema.names
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise SchemaError(
                f"the source has {', '.join(map(repr, twice))} more than once; keep one", fields=tuple(twice)
            )
        self._keys = [(name, _step(self.schema, name, field)) for name, field in keys]
        if ROW_KIND_COLUMN in names:
            raise UsageError(f"the source of a merge has no row kinds; leave {ROW_KIND_COLUMN} out")

    def load(self) -> None:
        """Read all rows.

        Raises: StorageError if the local disk is full.
        """
        size = 0
        batches = (self._plain(piece) for batch in self._reader for piece in pieces(batch))
        for batch in batches:
            self._memory.append(batch)
            size += row_bytes(batch)
            if size > self._limit:
                self._spill(batches)
                return
        self.blocks = 1

    def block(self, number: int) -> pa.RecordBatch:
        """The rows of one block."""
        if not self._files:
            return _join(self._memory, self.schema)
        file = self._files[number]
        with _explain(file.path), file.open_read() as stream:
            return _join(list(pa.ipc.open_stream(stream)), self.schema)

    def keys(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """The key columns of rows of the source, in the table's types, with the same bits for every NaN.

        Raises: SchemaError for a value that does not fit the column of the table.
        """
        return [one_nan(step(rows.column(name))) for name, step in self._keys]

    def in_block(self, number: int, keys: Sequence[pa.Array]) -> Mask | None:
        """A mask of the keys that belong to a block; None: all of them."""
        return self._numbers(keys) == number if self.blocks > 1 else None

    def close(self) -> None:
        """Delete the spilled data."""
        files, self._files, self._memory = self._files, [], []
        for file in files:
            with suppress(OSError):
                file.delete()

    def _plain(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [step(column) for step, column in zip(self._steps, batch.columns, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _numbers(self, keys: Sequence[pa.Array]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return hash_rows([one_nan(key) for key in keys], self._types).astype(np.int64) % self.blocks

    def _spill(self, rest: Iterator[pa.RecordBatch]) -> None:
        """Partition all rows by their keys; the number of blocks depends on their size."""
        with _explain("a temporary directory"):
            whole = self._place.create()
        try:
            size = 0
            with ExitStack() as stack:
                with _explain(whole.path):
                    writer = stack.enter_context(
                        pa.ipc.new_stream(stack.enter_context(whole.open_write()), self.schema)
                    )
                memory, self._memory = self._memory, []
                for batch in chain(memory, rest):
                    with _explain(whole.path):
                        writer.write_batch(batch)
                    size += row_bytes(batch)
                with _explain(whole.path):
                    stack.close()
            self.blocks = 2 * (size // self._limit + 1)
            said = fields(None, size_bytes=size, blocks=self.blocks)
            SPILLS.info("the source of a merge went to disk, %d bytes in %d blocks", size, self.blocks, extra=said)
            for start in range(0, self.blocks, _OPEN_MAX):
                self._part(whole, range(start, min(start + _OPEN_MAX, self.blocks)))
        finally:
            with suppress(OSError):
                whole.delete()

    def _part(self, whole: SpillFile, numbers: range) -> None:
        with _explain(whole.path), ExitStack() as stack:
            writers = []
            for _ in numbers:
                self._files.append(self._place.create())
                sink = stack.enter_context(self._files[-1].open_write())
                writers.append(stack.enter_context(pa.ipc.new_stream(sink, self.schema)))
            for batch in pa.ipc.open_stream(stack.enter_context(whole.open_read())):
                places = self._numbers(self.keys(batch))
                for number, writer in zip(numbers, writers, strict=True):
                    own = places == number
                    if own.any():
                        writer.write_batch(batch.filter(from_numpy(own, pa.bool_())))


def _step(schema: pa.Schema, name: str, field: Field) -> Step:
    if schema.get_field_index(name) < 0:
        near = near_names(name, schema.names)
        hint = f"is it {' or '.join(map(repr, near))}? Rename it; " if near else ""
        raise SchemaError(
            f"the source has no column {name!r} to find rows by; {hint}its columns: {', '.join(schema.names)}",
            fields=(name,),
        )
    step = plan(schema.field(name).type, field.type, place_of(name))
    if isinstance(step, Refusal):
        raise SchemaError(str(step), fields=(name,))
    return step


def _join(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    found = pa.Table.from_batches(batches, schema).combine_chunks().to_batches()
    if not found:
        return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
    assert len(found) == 1
    return found[0]


def _explain(path: str) -> AbstractContextManager[None]:
    return spilling("the source of a merge", path, OSError, pa.ArrowException)
