"""Row groups of a Parquet file that are read together; at a distance their column chunks are fetched ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import BinaryIO, Protocol, cast

import pyarrow.parquet as pq

_FETCH_BYTES = 16 << 20
"""Column chunks of so many bytes are fetched at once from a distance."""

Ranges = list[tuple[int, int]]
"""Parts of a file: position and length of each."""


class Fetches(Protocol):
    """A file at a distance that is told what will be read: see `RangedFile`."""

    def fetch(self, ranges: Ranges) -> None:
        """Have parts in memory."""
        ...

    def foresee(self, ranges: Ranges) -> None:
        """Begin to fetch what the next `fetch` names."""
        ...


class GroupsTogether:
    """Divides row groups into those that are read together, for columns given by the paths of stored fields."""

    def __init__(self, metadata: pq.FileMetaData, source: BinaryIO, paths: set[str]) -> None:
        self._metadata = metadata
        self._source = cast(Fetches, source) if hasattr(source, "fetch") else None
        self._paths = paths

    def of(self, stretches: Iterable[tuple[int, list[int]]]) -> Iterator[tuple[int, list[int], Callable[[], None]]]:
        """Row groups that are read together, with the position of their first row.

        At a distance their bytes are in memory then. The call begins to fetch those that come next: for whoever sees
        that somebody asks for more than the first rows.
        """
        found: list[tuple[int, list[int], Ranges]] = []
        for position, groups in stretches:
            for together, ranges in self._divide(groups):
                found.append((position, together, ranges))
                position += self.row_count(together)
        for place, (position, together, ranges) in enumerate(found):
            if self._source is not None:
                self._source.fetch(ranges)
            following = [ranges for *_, ranges in found[place + 1 : place + 2]]
            yield position, together, partial(self._foresee, following)

    def row_count(self, groups: Iterable[int]) -> int:
        """Rows of row groups."""
        return sum(self._metadata.row_group(group).num_rows for group in groups)

    def _foresee(self, following: list[Ranges]) -> None:
        if self._source is not None and following:
            self._source.foresee(following.pop())

    def _divide(self, groups: list[int]) -> Iterator[tuple[list[int], Ranges]]:
        """At a distance as many row groups as are fetched at once, else all."""
        if self._source is None:
            yield groups, []
            return
        together: list[int] = []
        ranges: Ranges = []
        room = _FETCH_BYTES
        for group in groups:
            chunks = self._chunks(group)
            size = sum(length for _, length in chunks)
            if together and size > room:
                yield together, ranges
                together, ranges, room = [], [], _FETCH_BYTES
            together.append(group)
            ranges.extend(chunks)
            room -= size
        if together:
            yield together, ranges

    def _chunks(self, group: int) -> Ranges:
        """Where the wanted column chunks of a row group lie."""
        metadata = self._metadata.row_group(group)
        columns = [metadata.column(number) for number in range(metadata.num_columns)]
        chosen = [column for column in columns if _is_below(column.path_in_schema, self._paths)]
        return [(_begin(column), column.total_compressed_size) for column in chosen]


def _is_below(path: str, wanted: set[str]) -> bool:
    """Whether a leaf belongs to a column or inner field that is wanted."""
    parts = path.split(".")
    return any(".".join(parts[:count]) in wanted for count in range(1, len(parts) + 1))


def _begin(column: pq.ColumnChunkMetaData) -> int:
    """Where a column chunk begins: with its dictionary if it has one."""
    first, dictionary = int(column.data_page_offset), column.dictionary_page_offset
    return first if dictionary is None or not 0 < dictionary < first else int(dictionary)
