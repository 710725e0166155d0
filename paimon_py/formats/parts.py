"""The parts of a data file that are read or skipped as a whole: row groups in Parquet, stripes in ORC.

Selection is separate from reading, so that the plan that is shown is the plan that is executed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import msgspec
from pyroaring import BitMap


class Parts(msgspec.Struct, frozen=True):
    """The parts of a file, and which of them are read.

    Shapes: one slot per part, in file order; empty if a format has no parts (Avro).
    Attributes:
        row_counts: the row count of each part.
        may_match: whether the statistics allow a row that matches the predicate; True if unknown.
        has_wanted: whether the part contains a requested position.
    """

    row_counts: tuple[int, ...] = ()
    may_match: tuple[bool, ...] = ()
    has_wanted: tuple[bool, ...] = ()

    @classmethod
    def of(cls, row_counts: Sequence[int], may_match: Sequence[bool] | None, rows: BitMap | None) -> Parts:
        """The parts by their statistics (None: no predicate) and the requested positions (None: all)."""
        whole = (True,) * len(row_counts)
        ends = list(itertools.accumulate(row_counts, initial=0))
        wanted = whole if rows is None else tuple(map(bool, map(rows.range_cardinality, ends, ends[1:])))
        return cls(tuple(row_counts), whole if may_match is None else tuple(may_match), wanted)

    @property
    def chosen_parts(self) -> tuple[bool, ...]:
        """A mask of the parts that are read."""
        return tuple(may and wanted for may, wanted in zip(self.may_match, self.has_wanted, strict=True))

    @property
    def left_by_statistics(self) -> int:
        """The number of parts skipped by statistics."""
        return self.may_match.count(False)

    @property
    def left_by_positions(self) -> int:
        """The number of other parts without a requested row."""
        return self.chosen_parts.count(False) - self.left_by_statistics

    def stretches(self) -> Iterator[tuple[int, list[int]]]:
        """Runs of adjacent parts to read, with the position in the file of their first row."""
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
