"""Groups the row groups of a Parquet file for reading; for remote files, prefetches their column chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import BinaryIO, Protocol, cast

import pyarrow.parquet as pq

_FETCH_BYTES = 16 << 20
"""The number of bytes of column chunks that are fetched from a remote store at once."""

Ranges = list[tuple[int, int]]
"""Parts of a file: position and length of each."""


class Fetches(Protocol):
    """A remote file that receives announcements of future reads: see `RangedFile`."""

    def fetch(self, ranges: Ranges) -> None:
        """Load parts into memory."""
        ...

    def announce(self, ranges: Ranges) -> None:
        """Start fetching the ranges of the next `fetch`."""
        ...


class GroupsTogether:
    """Divides row groups into those that are read together, for columns given by the paths of stored fields."""

    def __init__(self, metadata: pq.FileMetaData, source: BinaryIO, paths: set[str]) -> None:
        self._metadata = metadata
        self._source = cast(Fetches, source) if hasattr(source, "fetch") else None
        self._paths = paths

    def of(self, stretches: Iterable[tuple[int, list[int]]]) -> Iterator[tuple[int, list[int], Callable[[], None]]]:
        """Row groups to read together, with the position of their first row.

        Calling the returned function starts fetching the next ones; call it when more than the first rows are needed.
        The bytes of a remote file are in memory when its groups are returned.
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
            yield position, together, partial(self._announce, following)

    def row_count(self, groups: Iterable[int]) -> int:
        """The number of rows in row groups."""
        return sum(self._metadata.row_group(group).num_rows for group in groups)

    def _announce(self, following: list[Ranges]) -> None:
        if self._source is not None and following:
            self._source.announce(following.pop())

    def _divide(self, groups: list[int]) -> Iterator[tuple[list[int], Ranges]]:
        """Divide row groups: for remote files into fetches, else all together."""
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
        """The locations of the requested column chunks of a row group."""
        metadata = self._metadata.row_group(group)
        columns = [metadata.column(number) for number in range(metadata.num_columns)]
        chosen = [column for column in columns if _is_below(column.path_in_schema, self._paths)]
        return [(_begin(column), column.total_compressed_size) for column in chosen]


def _is_below(path: str, wanted: set[str]) -> bool:
    """Whether a leaf belongs to a requested column or nested field."""
    parts = path.split(".")
    return any(".".join(parts[:count]) in wanted for count in range(1, len(parts) + 1))


def _begin(column: pq.ColumnChunkMetaData) -> int:
    """The start of a column chunk: its dictionary page if it has one."""
    first, dictionary = int(column.data_page_offset), column.dictionary_page_offset
    return first if dictionary is None or not 0 < dictionary < first else int(dictionary)
