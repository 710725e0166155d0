"""A bounded cache of decoded rows. Data files never change, so a file and its columns are name enough."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa

from paimon_py.spec.types import Field


class FrameId(NamedTuple):
    """Some columns of a file, in the types they are read with."""

    path: str
    fields: tuple[Field, ...]


class Stretch(NamedTuple):
    """Neighbouring rows of a file; `start` is the position of the first."""

    start: int
    rows: pa.RecordBatch

    @property
    def stop(self) -> int:
        """The position behind the last row."""
        stop: int = self.start + self.rows.num_rows
        return stop


class _Frame(NamedTuple):
    stretches: tuple[Stretch, ...]
    nbytes: int


class Frames:
    """What was decoded of files, at most `max_bytes` of it; what was not used for longest goes first.

    Threads may share it: a race costs a second read, nothing else.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._frames: dict[FrameId, _Frame] = {}

    @property
    def nbytes(self) -> int:
        """Memory of everything held."""
        return sum(frame.nbytes for frame in list(self._frames.values()))

    def get(self, frame: FrameId) -> tuple[Stretch, ...]:
        """What is held of these columns, by position; no two overlap."""
        held = self._frames.pop(frame, None)
        if held is None:
            return ()
        self._frames[frame] = held
        return held.stretches

    def add(self, frame: FrameId, stretches: Iterable[Stretch]) -> None:
        """Hold more of some columns, as far as these alone do not exceed the limit; what is held already stays."""
        held = self._frames.get(frame, _Frame((), 0))
        for stretch in stretches:
            kept = tuple(old for old in held.stretches if not (stretch.start <= old.start and old.stop <= stretch.stop))
            size = sum(old.rows.nbytes for old in kept) + stretch.rows.nbytes
            if stretch.rows.num_rows and size <= self.max_bytes:
                new = _outside(stretch, kept)
                together = tuple(sorted((*kept, new) if new.rows.num_rows else kept, key=_start))
                held = _Frame(together, sum(part.rows.nbytes for part in together))
        self._frames.pop(frame, None)
        self._frames[frame] = held
        while self.nbytes > self.max_bytes:
            oldest = next(iter(self._frames), None)
            if oldest is None:
                return
            self._frames.pop(oldest, None)


def _outside(stretch: Stretch, others: Iterable[Stretch]) -> Stretch:
    """What of a stretch lies outside of others, of which it holds none whole; empty if one of them holds it."""
    start, stop = stretch.start, stretch.stop
    for other in others:
        if other.start <= start < other.stop:
            start = min(stop, other.stop)
        elif other.start < stop <= other.stop:
            stop = other.start
    return Stretch(start, stretch.rows.slice(start - stretch.start, stop - start))


def _start(stretch: Stretch) -> int:
    return stretch.start


def joined(pieces: Iterable[Stretch]) -> list[Stretch]:
    """Neighbouring stretches as one each."""
    out: list[Stretch] = []
    together: list[Stretch] = []
    for piece in pieces:
        if together and together[-1].stop != piece.start:
            out.append(_one(together))
            together = []
        together.append(piece)
    if together:
        out.append(_one(together))
    return out


def _one(together: list[Stretch]) -> Stretch:
    if len(together) == 1:
        return together[0]
    table = pa.Table.from_batches([piece.rows for piece in together]).combine_chunks()
    return Stretch(together[0].start, table.to_batches()[0])
