"""Parcels: the rows of one task as Arrow bytes in one row of Spark, so that a shuffle moves bytes and reads no values.

A parcel is followed by empty rows. Spark passes rows to Python in batches of a fixed number of rows, by default ten
thousand, whatever their size: the empty rows keep the batches small in bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_py.distributed import row_bytes
from paimon_py.spark.convert import fit

Numbers = npt.NDArray[Any]

_WORK = b"work"
"""The prefix of a parcel without rows; one with rows begins with four bytes of ones, like Arrow's messages."""
_NUMBER = struct.Struct(">Q")
PARCEL_SQL = "task int, rows binary"
_PARCEL = pa.schema([pa.field("task", pa.int32()), pa.field("rows", pa.binary())])
_BYTES = 256 << 10
"""The approximate size of one parcel."""
_HELD_MIN, _HELD_MAX = 4 << 20, 64 << 20
"""Limits of the bytes buffered before parcels are created; between them, enough for one parcel per task."""
_HANDED_OVER = 64 << 20
"""The maximum number of bytes that Spark passes in one batch."""


class Parcels:
    """Runs on an executor: packs rows into parcels.

    Args:
        target: the types of the rows.
        number: returns the task of each row.
        places: the value of the column `task` for each task, by its number.
        at_once: the number of rows in a batch of Spark; less than 1 for all rows of a task.
    """

    def __init__(
        self, target: pa.Schema, number: Callable[[pa.RecordBatch], Numbers], places: Numbers, at_once: int
    ) -> None:
        self.target = target
        self.number = number
        self.places = places
        self.at_once = at_once

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        limit = min(max(_HELD_MIN, len(self.places) * _BYTES), _HELD_MAX)
        held: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            held += fit(batch, self.target, False)
            size += row_bytes(batch)
            if size >= limit:
                yield from self._make(held)
                held, size = [], 0
        if held:
            yield from self._make(held)

    def _make(self, held: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = np.concatenate([self.number(batch) for batch in held])
        rows = pa.Table.from_batches(held).combine_chunks()
        if len(self.places) > 1:
            rows = rows.take(pa.array(np.argsort(numbers, kind="stable")))
        step = _rows_per_parcel(rows)
        ends = np.cumsum(np.bincount(numbers, minlength=len(self.places))).tolist()
        for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            for at in range(start, end, step):
                for part in rows.slice(at, min(step, end - at)).to_batches():
                    yield self._parcel(number, part.serialize())

    def _parcel(self, number: int, data: pa.Buffer) -> pa.RecordBatch:
        return parcel(int(self.places[number]), data.to_pybytes(), self.at_once)


class Copies:
    """Runs on an executor: packs rows into parcels, one copy of each for every task.

    Args:
        target, places, at_once: as for `Parcels`.
    """

    def __init__(self, target: pa.Schema, places: Numbers, at_once: int) -> None:
        self.target = target
        self.places = places
        self.at_once = at_once

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for rows in fit(batch, self.target, False):
                step = _rows_per_parcel(rows)
                for start in range(0, rows.num_rows, step):
                    data = rows.slice(start, step).serialize().to_pybytes()
                    for place in self.places.tolist():
                        yield parcel(place, data, self.at_once)


def _rows_per_parcel(rows: pa.RecordBatch | pa.Table) -> int:
    count: int = rows.num_rows
    return max(1, _BYTES * count // max(1, row_bytes(rows)))


def parcel(place: int, data: bytes, at_once: int) -> pa.RecordBatch:
    """A parcel, with the empty rows behind it; `at_once`: the number of rows in a batch of Spark."""
    empty = max(0, at_once * len(data) // _HANDED_OVER)
    task = pa.array(np.full(1 + empty, place, np.int32))
    rows = pa.array([data, *[None] * empty], pa.binary())
    return pa.RecordBatch.from_arrays([task, rows], schema=_PARCEL)


def contents(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Buffer]]:
    """The bytes of parcels, each with the value of its column `task`."""
    for batch in batches:
        for task, data in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
            if data.is_valid:
                yield task, data.as_buffer()


def work_parcel(number: int, data: bytes) -> bytearray:
    """A parcel that contains no rows, but other work for a task."""
    return bytearray(_WORK + _NUMBER.pack(number) + data)


def open_parcels(
    batches: Iterable[pa.RecordBatch], target: pa.Schema, work: list[tuple[int, bytes]] | None = None
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of parcels, each batch with the value of its column `task`.

    `work`: receives the other work in the parcels, with its numbers; complete once all rows have been taken.
    """
    for task, held in contents(batches):
        other = None if work is None else other_work(held)
        if work is None or other is None:
            yield task, pa.ipc.read_record_batch(held, target)
        else:
            work.append(other)


def other_work(held: pa.Buffer) -> tuple[int, bytes] | None:
    """The number and the bytes of a parcel that contains no rows, but other work; None for other parcels."""
    if held[: len(_WORK)].to_pybytes() != _WORK:
        return None
    (number,) = _NUMBER.unpack_from(held, len(_WORK))
    return number, held[len(_WORK) + _NUMBER.size :].to_pybytes()
