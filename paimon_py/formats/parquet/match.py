"""Selects the row groups and pages that may contain a match, by the statistics in a Parquet file.

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
from paimon_py.expr.references import columns_of
from paimon_py.formats.parquet.pages import PageReader, Pages, cuts_of
from paimon_py.formats.parquet.statistics import GroupStatistics, bound_array
from paimon_py.formats.part_bounds import WholeBounds, matching_parts
from paimon_py.spec.types import Atomic, Field


class ChosenPages(NamedTuple):
    """The pages of one row group to decode.

    Attributes:
        pages: all pages of each column, selected or not.
        cuts: the rows of the group at which a page of any column begins, and the row count.
        wanted: a slot for the rows between each two cuts.
    """

    pages: dict[str, Pages]
    cuts: Ints
    wanted: Mask

    @property
    def row_count(self) -> int:
        """The number of rows between selected cuts."""
        return int(np.diff(self.cuts)[self.wanted].sum())


class ParquetMatcher:
    """Evaluates predicates with the statistics of one file."""

    def __init__(self, reader: PageReader, fields: Mapping[str, Field], schema: pa.Schema) -> None:
        """`fields`: the columns that predicates may use, by name; `schema`: that of the file."""
        self._reader = reader
        self._fields = fields
        self._schema = schema

    def groups(self, predicate: Predicate, rows: Sequence[int], whole: WholeBounds | None) -> list[bool]:
        """A mask of the row groups that may contain a match. `rows`: their row counts. Raises: ValueError for
        damage."""
        statistics = {name: self._reader.statistics(name) for name in self._columns_with_statistics(predicate)}
        found: list[bool] = self._matches(predicate, statistics, rows, whole).tolist()
        return found

    def pages(
        self, group: int, row_count: int, names: Sequence[str], predicate: Predicate | None, rows: Ints | None
    ) -> ChosenPages | None:
        """The pages of a row group that may match and contain a requested row; None for all pages.

        Args:
            names: the columns to decode; columns without separate pages, such as nested ones, are ignored.
            rows: requested positions in the row group, ascending; None for all.
        Cost: a small read and 10 µs per page of the predicate's columns, and of the others only if pages are skipped.
        Raises: ValueError or IndexError for damage.
        """
        bounded = [] if predicate is None else self._columns_with_statistics(predicate)
        pages = {name: self._reader.pages(group, name) for name in bounded if self._reader.can_read(group, [name])}
        if rows is None and not pages:
            return None
        cuts = cuts_of(tuple(pages.values())) if pages else np.array([0, row_count], np.int64)
        matches = np.ones(len(cuts) - 1, np.bool_)
        if predicate is not None and pages:
            statistics = {name: each.statistics(cuts) for name, each in pages.items()}
            of_group = partial(self._of_group, bounded, group)
            matches = self._matches(predicate, statistics, np.diff(cuts).tolist(), of_group)
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
        """The footer's statistics of a row group, one slot per column; they confirm those of the pages."""
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
