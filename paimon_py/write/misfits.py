"""Values that do not fit their column, with their row numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from paimon_py.codec.columns import Ints
from paimon_py.errors import SchemaError

WIDEN = "change the value, or widen the column with table.alter(UpdateColumnType(…))"
"""The hint for a value that is too large or too fine."""


class ColumnPlace(NamedTuple):
    """A column, or a part of one; `path` is for messages, such as `pos.x`."""

    column: str
    path: str

    def __str__(self) -> str:
        return self.path

    @property
    def is_whole(self) -> bool:
        """Whether this is a whole column."""
        return self.column == self.path

    def inner(self, name: str) -> ColumnPlace:
        """A nested part."""
        return ColumnPlace(self.column, f"{self.path}.{name}")


def place_of(column: str) -> ColumnPlace:
    """A whole column."""
    return ColumnPlace(column, column)


class Misfit(Exception):
    """A value that does not fit its column; a caller that knows the row turns it into a `SchemaError`.

    Attributes:
        place: the column, or the part of one, that the value is in.
        row: the index in the array that was converted.
    """

    def __init__(self, place: ColumnPlace, row: int, before: str, after: str) -> None:
        """`before` and `after`: the message around the row."""
        super().__init__(place, row, before, after)
        self.place = place
        self.row = row
        self._before = before
        self._after = after

    def in_row(self, row: int) -> Misfit:
        """The same value with the row number of an enclosing array."""
        return Misfit(self.place, row, self._before, self._after)

    def error(self, first: int | None = None) -> SchemaError:
        """The error for the user.

        Args:
            first: the number of the user's rows before the array; None: not counted.
        """
        row = f"row {self.row} of a batch" if first is None else f"row {first + self.row}"
        return SchemaError(f"column {self.place}{self._before}{row}{self._after}", fields=(self.place.column,))


def error_of(misfits: Sequence[Misfit], first: int | None) -> SchemaError:
    """One error for all columns of a batch with misfits; `first`: see `Misfit.error`."""
    errors = [misfit.error(first) for misfit in misfits]
    if len(errors) == 1:
        return errors[0]
    lines = "".join(f"\n  {error}" for error in errors)
    return SchemaError(f"values do not fit the table:{lines}", fields=tuple(misfit.place.column for misfit in misfits))


@contextmanager
def in_lists(sizes: Ints) -> Iterator[None]:
    """Replace the item index of a misfit in lists of these sizes by the index of its list."""
    try:
        yield
    except Misfit as misfit:
        row = int(np.searchsorted(np.cumsum(sizes), misfit.row, side="right"))
        raise misfit.in_row(row) from misfit.__cause__
