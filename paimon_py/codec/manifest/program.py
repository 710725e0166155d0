"""The decoding steps of each field of a manifest entry, computed once per schema, and a decoder that executes them
record by record.

A program follows the shape of the records; each step names the row of the table of `EntryColumns` that a field belongs
to. The lock-step decoder executes the same program over many records at once; cases that it does not support (long
varints, sized array blocks, unusual types) are handled here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from paimon_py.codec.avro.container import read_long
from paimon_py.codec.avro.shape import Shape, reader
from paimon_py.codec.columns import Ints
from paimon_py.codec.manifest.columns import ABSENT, ARRAYS, NUMBERS, OPTIONAL, ROW_COUNT, ROW_OF, SHAPE_ROW, SPANS
from paimon_py.errors import CorruptionError

UNWANTED = -1
_RECORD = ROW_OF["record"]
_SPANS = frozenset(("bytes", "string"))
_Walk = Callable[[bytes, int, list[int]], int]


class Instruction(msgspec.Struct, frozen=True):
    """One decoding step, for one value.

    `kind`: long, span (bytes or string), nullable, record, array, other. `row`: of the table, UNWANTED for none.
    """

    kind: str
    row: int
    parts: tuple[Instruction, ...]
    shape: Shape


class Records(msgspec.Struct, frozen=True):
    """A run of records in a buffer: its start, its end, and the number of records."""

    start: int
    stop: int
    entries: int


class RecordFault(Exception):
    """The record that starts at `position` of the buffer is broken."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


@functools.lru_cache(maxsize=64)
def program(shape: Shape) -> Instruction:
    """Compile the program for records of `shape`.

    Raises:
        CorruptionError: a field that every manifest has is missing or has another type.
    """
    found: set[tuple[str, ...]] = set()
    step = _compile(shape, (), found)
    missing = [path[-1] for path in (*NUMBERS, *SPANS, *ARRAYS) if path not in found and path not in OPTIONAL]
    if missing:
        raise CorruptionError(f"manifest schema without usable {', '.join(missing)}")
    return step


def walk(buffer: bytes, runs: Sequence[Records], shape: Shape, number: int) -> Ints:
    """The table of records of one shape, decoded one by one; `number` is the number of the shape in the table.

    Raises:
        RecordFault: a record does not follow its shape or does not end where it should.
    """
    step = _walker(program(shape))
    blank = [ABSENT] * len(NUMBERS) + [0, -1] * ((ROW_COUNT - len(NUMBERS)) // 2) + [number]
    rows: list[list[int]] = []
    for run in runs:
        position = run.start
        for _ in range(run.entries):
            start, row = position, blank.copy()
            try:
                position = step(buffer, position, row)
            except (IndexError, UnicodeDecodeError) as error:
                raise RecordFault(start) from error
            if position > run.stop:
                raise RecordFault(start)
            row[_RECORD] = start
            row[_RECORD + 1] = position - start
            rows.append(row)
        if position != run.stop:
            raise RecordFault(position)
    assert len(blank) == ROW_COUNT and blank[SHAPE_ROW] == number
    return np.ascontiguousarray(np.array(rows, np.int64).reshape(len(rows), ROW_COUNT).T)


def _compile(shape: Shape, path: tuple[str, ...], found: set[tuple[str, ...]]) -> Instruction:
    value = shape.nullable
    if value is not None:
        return Instruction("nullable", UNWANTED, (_compile(value, path, found),), shape)
    if shape.kind == "record":
        parts = (_compile(part, (*path, name), found) for name, part in zip(shape.names, shape.parts, strict=True))
        return Instruction("record", UNWANTED, tuple(parts), shape)
    wanted = {"long": NUMBERS, "bytes": SPANS, "string": SPANS, "array": ARRAYS}.get(shape.kind, {}).get(path)
    row = UNWANTED
    if wanted is not None:
        found.add(path)
        row = ROW_OF[wanted]
    if shape.kind == "array":
        return Instruction("array", row, (_compile(shape.parts[0], (*path, "[]"), found),), shape)
    kind = "span" if shape.kind in _SPANS else shape.kind if shape.kind == "long" else "other"
    return Instruction(kind, row, (), shape)


@functools.lru_cache(maxsize=1024)
def _walker(step: Instruction) -> _Walk:
    if step.kind == "long":
        return _number_walker(step.row)
    if step.kind == "span":
        return _span_walker(step.row)
    if step.kind == "record":
        return _record_walker([_walker(part) for part in step.parts])
    if step.kind == "nullable":
        return _nullable_walker(_walker(step.parts[0]))
    return _region_walker(step)


def _number_walker(row: int) -> _Walk:
    def walk_number(data: bytes, position: int, out: list[int]) -> int:
        value, position = read_long(data, position)
        if row >= 0:
            out[row] = value
        return position

    return walk_number


def _span_walker(row: int) -> _Walk:
    def walk_span(data: bytes, position: int, out: list[int]) -> int:
        length, position = read_long(data, position)
        if length < 0:
            raise IndexError(position)
        if row >= 0:
            out[row] = position
            out[row + 1] = length
        return position + length

    return walk_span


def _record_walker(parts: Sequence[_Walk]) -> _Walk:
    def walk_record(data: bytes, position: int, out: list[int]) -> int:
        for part in parts:
            position = part(data, position, out)
        return position

    return walk_record


def _nullable_walker(value: _Walk) -> _Walk:
    def walk_nullable(data: bytes, position: int, out: list[int]) -> int:
        branch = data[position]
        if branch == 0:
            return position + 1
        if branch == 2:
            return value(data, position + 1, out)
        raise IndexError(position)

    return walk_nullable


def _region_walker(step: Instruction) -> _Walk:
    read, row = reader(step.shape), step.row
    is_array = step.kind == "array"

    def walk_region(data: bytes, position: int, out: list[int]) -> int:
        start = position
        if is_array and not data[position]:
            position += 1
        else:
            _, position = read(data, position)
        if row >= 0:
            out[row] = start
            out[row + 1] = position - start
        return position

    return walk_region
