"""Integers in ORC's run-length encoding, versions 1 and 2.

Source: ORC v1 specification, "Run Length Encoding".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paimon_py.codec.columns import Ints
from paimon_py.formats.orc.footer import unzigzag, varint

RUN = 512

_SHORT_REPEAT, _DIRECT, _PATCHED_BASE = 0, 1, 2
_WIDE = (26, 28, 30, 32, 40, 48, 56, 64)
_LARGEST = (1 << 63) - 1
_FIXED_WIDTHS = (*range(1, 25), *_WIDE)


def decode_v1(data: bytes, count: int) -> Ints:
    """The first `count` numbers of a version 1 stream; 64-bit overflow wraps around.

    Raises: ValueError, EOFError, IndexError, OverflowError for damage.
    """
    runs, found, at = [], 0, 0
    while found < count:
        control = data[at]
        if control < 0x80:
            step = data[at + 1] - (data[at + 1] >> 7 << 8)
            base, at = varint(data, at + 2)
            run = np.arange(control + 3, dtype=np.int64) * step + _to_signed(base)
        else:
            literals = []
            at += 1
            for _ in range(256 - control):
                value, at = varint(data, at)
                literals.append(_to_signed(value))
            run = np.array(literals, np.int64)
        runs.append(run)
        found += len(run)
    return _first(runs, count)


class Runs(NamedTuple):
    """Numbers in runs of version 2, each of `RUN` numbers except the last; `starts`: the bounds of the runs."""

    data: bytes
    starts: tuple[int, ...]

    def place(self, number: int) -> tuple[int, int]:
        """The start of the run that contains this number, and the number's index in the run."""
        run, inside = divmod(number, RUN)
        return self.starts[run], inside


def encode_v2(values: Ints) -> Runs:
    """Encode unsigned 64-bit numbers; each run uses the bit width of its largest number.

    Cost: one Python step per run.
    """
    out, starts = bytearray(), [0]
    for first in range(0, len(values), RUN):
        run = values[first : first + RUN].view(np.uint64)
        needed = max(int(run.max()).bit_length(), 1)
        code = next(code for code in range(32) if _width(code) >= needed)
        length = len(run) - 1
        out += bytes([_DIRECT << 6 | code << 1 | length >> 8, length & 255])
        bits = np.unpackbits(run.astype(">u8").view(np.uint8)).reshape(-1, 64)
        out += np.packbits(bits[:, 64 - _width(code) :]).tobytes()
        starts.append(len(out))
    return Runs(bytes(out), tuple(starts))


def to_zigzag(values: Ints) -> Ints:
    """Zigzag encoding: signed numbers as unsigned ones, small if near zero."""
    return (values << 1) ^ (values >> 63)


def decode_v2(data: bytes, count: int, *, signed: bool = False) -> Ints:
    """The first `count` numbers of a version 2 stream; 64-bit overflow wraps around.

    Cost: one Python step per run of up to 512 numbers.
    Raises: ValueError, EOFError, IndexError, OverflowError for damage.
    """
    runs, found, at = [], 0, 0
    while found < count:
        header = data[at]
        if header >> 6 == _SHORT_REPEAT:
            width = (header >> 3 & 7) + 1
            value = int.from_bytes(_take(data, at + 1, width), "big")
            run = np.full((header & 7) + 3, _number(value, signed=signed), np.int64)
            at += 1 + width
        else:
            length = ((header & 1) << 8 | data[at + 1]) + 1
            code = header >> 1 & 31
            if header >> 6 == _DIRECT:
                run = _unpack(data, at + 2, length, _width(code))
                run = _from_zigzag(run) if signed else run
                at += 2 + _size(length, _width(code))
            elif header >> 6 == _PATCHED_BASE:
                run, at = _patched_base(data, at + 2, length, _width(code))
            else:
                run, at = _deltas(data, at + 2, length, _width(code) if code else 0, signed=signed)
        runs.append(run)
        found += len(run)
    return _first(runs, count)


def _first(runs: list[Ints], count: int) -> Ints:
    return np.concatenate(runs)[:count] if runs else np.zeros(0, np.int64)


def _from_zigzag(values: Ints) -> Ints:
    return (values >> 1 & _LARGEST) ^ -(values & 1)


def _deltas(data: bytes, at: int, length: int, width: int, *, signed: bool) -> tuple[Ints, int]:
    """A delta run: a first number, the first step, then the sizes of further steps in the same direction."""
    first, at = varint(data, at)
    code, at = varint(data, at)
    step = unzigzag(code)
    if width == 0:
        return np.arange(length, dtype=np.int64) * step + _number(first, signed=signed), at
    if length < 2:
        raise ValueError("a run of steps without a step")
    steps = np.zeros(length, np.int64)
    steps[1] = step
    further = _unpack(data, at, length - 2, width)
    steps[2:] = -further if step < 0 else further
    return np.cumsum(steps) + _number(first, signed=signed), at + _size(length - 2, width)


def _patched_base(data: bytes, at: int, length: int, width: int) -> tuple[Ints, int]:
    """A patched-base run: a base, distances from it, and high bits for the few distances that need more."""
    base_bytes, patch_width = (data[at] >> 5) + 1, _width(data[at] & 31)
    gap_width, patches = (data[at + 1] >> 5) + 1, data[at + 1] & 31
    at += 2
    base = int.from_bytes(_take(data, at, base_bytes), "big")
    sign = 1 << 8 * base_bytes - 1
    base = sign - base if base & sign else base
    at += base_bytes
    values = _unpack(data, at, length, width)
    at += _size(length, width)
    if gap_width + patch_width > 64:
        raise ValueError("a patch of more than 64 bits")
    entry_width = next(fixed for fixed in _FIXED_WIDTHS if fixed >= gap_width + patch_width)
    position = 0
    for entry in _unpack(data, at, patches, entry_width).view(np.uint64).tolist():
        position += entry >> patch_width
        patch = entry & (1 << patch_width) - 1
        if patch:
            values[position] |= _to_signed(patch << width)
    return values + base, at + _size(patches, entry_width)


def _unpack(data: bytes, at: int, count: int, width: int) -> Ints:
    """Unpack numbers of `width` bits, highest bit first."""
    raw = np.frombuffer(_take(data, at, _size(count, width)), np.uint8)
    bits = np.zeros((count, 64), np.uint8)
    bits[:, 64 - width :] = np.unpackbits(raw, count=count * width).reshape(count, width)
    return np.packbits(bits, axis=1).reshape(-1).view(">u8").astype(np.uint64).view(np.int64)


def _size(count: int, width: int) -> int:
    return (count * width + 7) >> 3


def _take(data: bytes, at: int, length: int) -> bytes:
    taken = data[at : at + length]
    if len(taken) != length:
        raise EOFError("a run ends early")
    return taken


def _width(code: int) -> int:
    return code + 1 if code < 24 else _WIDE[code - 24]


def _number(value: int, *, signed: bool) -> int:
    return unzigzag(value) if signed else _to_signed(value)


def _to_signed(value: int) -> int:
    """The signed 64-bit number with the same bits as an unsigned one."""
    if value >= 1 << 64:
        raise ValueError("a number of more than 64 bits")
    return value - (1 << 64) if value >> 63 else value
