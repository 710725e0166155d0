"""Which row groups, and which pages of them, may hold a match by the statistics that a Parquet file keeps.

Source: parquet-format `parquet.thrift`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.columns import Ints, Mask, integer_array
from paimon_py.expr.predicate import Predicate
from paimon_py.expr.prune import Bounds
from paimon_py.expr.split import columns_of
from paimon_py.formats.parquet.pages import PageReader, Pages, cuts_of
from paimon_py.formats.parquet.statistics import GroupStatistics, bound_array
from paimon_py.formats.part_bounds import WholeBounds, matching_parts
from paimon_py.spec.types import Atomic, Field


class ChosenPages(NamedTuple):
    """Pages of one row group that are to be decoded.

    Attributes:
        pages: those of each column, chosen or not.
        cuts: the rows of the group at which a page of any column begins, and their count.
        wanted: a slot for the rows from each cut to the next.
    """

    pages: dict[str, Pages]
    cuts: Ints
    wanted: Mask

    @property
    def row_count(self) -> int:
        """Rows between wanted cuts."""
        return int(np.diff(self.cuts)[self.wanted].sum())


class ParquetMatcher:
    """The statistics of one file against predicates on its columns."""

    def __init__(self, reader: PageReader, fields: Mapping[str, Field], schema: pa.Schema) -> None:
        """`fields`: the columns that may be asked for, by name; `schema`: that of the file."""
        self._reader = reader
        self._fields = fields
        self._schema = schema

    def groups(self, predicate: Predicate, rows: Sequence[int], whole: WholeBounds | None) -> list[bool]:
        """Whether each row group may hold a match. `rows`: their row counts. Raises: ValueError for damage."""
        statistics = {name: self._reader.statistics(name) for name in self._columns_with_statistics(predicate)}
        found: list[bool] = self._matches(predicate, statistics, rows, whole).tolist()
        return found

    def pages(
        self, group: int, row_count: int, names: Sequence[str], predicate: Predicate | None, rows: Ints | None
    ) -> ChosenPages | None:
        """The pages of a row group that may have a match and hold a wanted row; None for all pages.

        Args:
            names: the columns to decode; those that have no pages by themselves, as nested ones, are passed over.
            rows: wanted positions in the row group, ascending; None for all.
        Cost: a small read and 10 µs for each page of the predicate's columns; of the others only if pages go.
        Raises: ValueError or IndexError for damage.
        """
        told = [] if predicate is None else self._columns_with_statistics(predicate)
        pages = {name: self._reader.pages(group, name) for name in told if self._reader.can_read(group, [name])}
        if rows is None and not pages:
            return None
        cuts = cuts_of(tuple(pages.values())) if pages else np.array([0, row_count], np.int64)
        matches = np.ones(len(cuts) - 1, np.bool_)
        if predicate is not None and pages:
            statistics = {name: each.statistics(cuts) for name, each in pages.items()}
            matches = self._matches(predicate, statistics, np.diff(cuts).tolist(), partial(self._of_group, told, group))
        if rows is None and matches.all():
            return None
        readable = [name for name in names if self._reader.can_read(group, [name])]
        read = {name: pages[name] if name in pages else self._reader.pages(group, name) for name in readable}
        fine = cuts_of((*pages.values(), *read.values()))
        wanted: Mask = matches[np.searchsorted(cuts, fine[:-1], side="right") - 1]
        if rows is not None:
            wanted = wanted & (np.diff(np.searchsorted(rows, fine)) > 0)
        return None if not read or wanted.all() else ChosenPages(read, fine, wanted)

    def _of_group(self, names: Sequence[str], group: int) -> dict[str, Bounds]:
        """What the footer says of a row group, one slot for each column; it confirms what pages say."""
        return {name: self._bounds(self._fields[name], [self._reader.statistics(name)[group]]) for name in names}

    def _columns_with_statistics(self, predicate: Predicate) -> list[str]:
        """The columns of a predicate that may have statistics."""
        names = self._reader.flat_columns(sorted(columns_of(predicate)))
        return [name for name in names if name in self._fields and isinstance(self._fields[name].type, Atomic)]

    def _matches(
        self,
        predicate: Predicate,
        statistics: Mapping[str, Sequence[GroupStatistics]],
        rows: Sequence[int],
        whole: WholeBounds | None,
    ) -> Mask:
        bounds = {name: self._bounds(self._fields[name], known) for name, known in statistics.items()}
        return matching_parts(predicate, bounds, integer_array(rows, pa.int64()), whole)

    def _bounds(self, field: Field, known: Sequence[GroupStatistics]) -> Bounds:
        nulls = integer_array([each.null_count for each in known], pa.int64())
        kind = to_arrow_type(field.type)
        file_kind = self._schema.field(field.name).type
        try:
            lows = bound_array([each.low for each in known], file_kind, kind)
            highs = bound_array([each.high for each in known], file_kind, kind)
        except (pa.ArrowException, ValueError, OverflowError, TypeError):
            unknown = pa.nulls(len(known), kind)
            return Bounds(min=unknown, max=unknown, null_count=nulls)
        return Bounds(min=lows, max=highs, null_count=nulls)
