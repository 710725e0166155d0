"""The parts of a data file that a reader takes or leaves whole: row groups in Parquet, stripes in ORC.

Deciding is apart from reading, so that a plan can be shown which is the one that is carried out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import msgspec
from pyroaring import BitMap


class Parts(msgspec.Struct, frozen=True):
    """The parts of a file, and which of them are read.

    Shapes: one slot per part, in file order; no slots where a format has no parts (Avro).
    Attributes:
        row_counts: rows of each part.
        may_match: whether its statistics allow a row that matches the predicate; True where they do not know.
        has_wanted: whether it holds a row at one of the wanted positions.
    """

    row_counts: tuple[int, ...] = ()
    may_match: tuple[bool, ...] = ()
    has_wanted: tuple[bool, ...] = ()

    @classmethod
    def of(cls, row_counts: Sequence[int], may_match: Sequence[bool] | None, rows: BitMap | None) -> Parts:
        """Parts by what their statistics say (None: nothing is asked) and the wanted positions (None: all)."""
        whole = (True,) * len(row_counts)
        ends = list(itertools.accumulate(row_counts, initial=0))
        wanted = whole if rows is None else tuple(map(bool, map(rows.range_cardinality, ends, ends[1:])))
        return cls(tuple(row_counts), whole if may_match is None else tuple(may_match), wanted)

    @property
    def chosen_parts(self) -> tuple[bool, ...]:
        """Which parts are read."""
        return tuple(may and wanted for may, wanted in zip(self.may_match, self.has_wanted, strict=True))

    @property
    def left_by_statistics(self) -> int:
        """How many parts statistics leave out."""
        return self.may_match.count(False)

    @property
    def left_by_positions(self) -> int:
        """How many of the others hold no wanted row."""
        return self.chosen_parts.count(False) - self.left_by_statistics

    def stretches(self) -> Iterator[tuple[int, list[int]]]:
        """Neighbouring parts to read, with the position in the file of their first row."""
        stretch: list[int] = []
        start = position = 0
        for number, (count, taken) in enumerate(zip(self.row_counts, self.chosen_parts, strict=True)):
            if taken:
                start = start if stretch else position
                stretch.append(number)
            elif stretch:
                yield start, stretch
                stretch = []
            position += count
        if stretch:
            yield start, stretch
