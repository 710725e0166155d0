"""Finds new files in listings, so that a commit of many files does not send a request for each of them.

Object stores list keys in order, from any key on, 1,000 in each request. The new files are sorted by their paths; the
first page begins at the first of them, and the next page at the first one after the end of the page. Directories
without new files are skipped, and old files between two new ones are listed only if they are in the same page.

Worked example: 100 new files in each of 10,000 buckets are 1,000,000 keys in a new table, hence 1,000 pages and not
10,000 listings of directories. If each bucket has 5,000 older files, the new files of one writer are still next to
each other, since their names begin alike: 10,000 pages, and not 51,000.

A file counts as found only if a page contains its path and size. The caller asks for all others one by one.
"""

from __future__ import annotations

import posixpath
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

import pyarrow as pa

from paimon_py.errors import StorageError
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.storage.store import ListFrom, page_lister

LISTED_FROM = 16
"""The number of new files in a page or a directory from which listing costs less than a request for each file."""

_LISTED_FROM_OF_MANY = 1000
"""The same for whole directories of rows without buckets: they may contain any number of older files."""

_FILES_PER_RANGE = 8_192
"""New files that are looked for one page after the other; ranges are looked for at the same time."""

ExpectedFile = tuple[str, int | None]
"""The path of a new file and its size, if the changes contain it."""


def is_whole(expected: ExpectedFile, found: int | None) -> bool:
    """Whether a file exists with the size that was written. `found`: its size; None if it does not exist."""
    return found is not None and expected[1] in (None, found)


def find_unlisted(table: OpenTable, expected: Iterable[ExpectedFile]) -> Iterator[ExpectedFile]:
    """The files that no listing contains with their size, to be asked for one by one.

    Cost: one request for a page of 1,000 files; in stores that cannot list from a path on, one listing for a directory
        with many new files. Memory: about 100 bytes for each file.
    Raises: StorageError if a listing fails.
    """
    lists = page_lister(table.root.store)
    if lists is None:
        return _not_in_directories(table, expected)
    files = _SortedFiles.of(expected)
    if len(files) < LISTED_FROM:
        return iter(files.part(0, len(files)))
    seek = _Seek(lists, table.root.path)
    starts = range(0, len(files), _FILES_PER_RANGE)
    found = list(table.root.env.io.map(lambda at: seek(files.part(at, _FILES_PER_RANGE)), starts))
    return chain(
        chain.from_iterable(one.unseen for one in found),
        _not_in_directories(table, chain.from_iterable(one.unlisted for one in found)),
    )


class _Looked(NamedTuple):
    """The rest of a range: files to ask for, and files that the store does not list from a path on."""

    unseen: list[ExpectedFile]
    unlisted: list[ExpectedFile]


class _Seek:
    """Looks for the files of a range below the directory of the table, page by page."""

    def __init__(self, lists: ListFrom, root: str) -> None:
        self._list = lists
        self._root = root

    def __call__(self, files: list[ExpectedFile]) -> _Looked:
        below = f"{self._root}/"
        unseen = [one for one in files if not one[0].startswith(below)]  # in other directories, or other stores
        files = [one for one in files if one[0].startswith(below)] if unseen else files
        at = pages = found = 0
        while at < len(files) and found >= pages * LISTED_FROM:
            sizes = self._page(files[at][0])
            last = max(sizes, default="")
            if last < files[at][0]:
                return _Looked(unseen, files[at:])
            stop = bisect_right(files, last, at, key=itemgetter(0))
            missed = [one for one in files[at:stop] if not is_whole(one, sizes.get(one[0]))]
            found += stop - at - len(missed)
            unseen += missed
            pages, at = pages + 1, stop
        return _Looked(unseen + files[at:], [])

    def _page(self, start: str) -> dict[str, int]:
        """The sizes of the files in a page; none if the store refuses such requests, as some servers of S3 may."""
        try:
            return {status.path: status.size_bytes for status in self._list(self._root, start)}
        except StorageError as error:
            if error.transient:
                raise
            return {}


class _SortedFiles:
    """Files in the order of their paths; about 100 bytes each, where tuples of texts take 300."""

    def __init__(self, directories: list[str], files: pa.Table) -> None:
        self._directories = directories
        self._files = files

    @classmethod
    def of(cls, expected: Iterable[ExpectedFile]) -> _SortedFiles:
        """Sort files."""
        numbers: dict[str, int] = {}
        columns: list[list[object]] = [[], [], []]
        parts = []
        for path, size in expected:
            directory, name = posixpath.split(path)
            for column, value in zip(columns, (numbers.setdefault(directory, len(numbers)), name, size), strict=True):
                column.append(value)
            if len(columns[0]) == _FILES_PER_RANGE:
                parts.append(pa.table(columns, schema=_FILES))
                for column in columns:
                    column.clear()
        parts.append(pa.table(columns, schema=_FILES))
        directories = sorted(numbers, key=lambda directory: f"{directory}/")
        ranks = {numbers[directory]: rank for rank, directory in enumerate(directories)}
        order = pa.array([ranks[number] for number in range(len(ranks))], pa.int32())
        files = pa.concat_tables(parts).combine_chunks()
        del parts
        files = files.set_column(0, "directory", order.take(files["directory"]))
        return cls(directories, files.sort_by([("directory", "ascending"), ("name", "ascending")]))

    def __len__(self) -> int:
        return int(self._files.num_rows)

    def part(self, start: int, length: int) -> list[ExpectedFile]:
        """The files from a place on."""
        columns = (column.to_pylist() for column in self._files.slice(start, length).columns)
        return [(f"{self._directories[at]}/{name}", size) for at, name, size in zip(*columns, strict=True)]


_FILES = pa.schema([("directory", pa.int32()), ("name", pa.large_string()), ("size", pa.int64())])


def _not_in_directories(table: OpenTable, expected: Iterable[ExpectedFile]) -> Iterator[ExpectedFile]:
    """The files that no listing of a whole directory contains; directories with few new files are not listed."""
    is_crowded = bucket_mode(table.schema) in (BucketMode.NONE, BucketMode.POSTPONED)
    least = _LISTED_FROM_OF_MANY if is_crowded else LISTED_FROM
    by_directory: dict[str, list[ExpectedFile]] = {}
    for path, size in expected:
        directory, name = posixpath.split(path)
        by_directory.setdefault(directory, []).append((name, size))
    listed = [
        directory for directory, new in by_directory.items()
        if len(new) >= least and directory.startswith(f"{table.root.path}/")
    ]  # fmt: skip

    def search(directory: str) -> list[ExpectedFile]:
        sizes = {status.name: status.size_bytes for status in table.root.store.list(directory)}
        missed = (one for one in by_directory.pop(directory) if not is_whole(one, sizes.get(one[0])))
        return [(f"{directory}/{name}", size) for name, size in missed]

    yield from chain.from_iterable(list(table.root.env.io.map(search, listed)))
    for directory, new in by_directory.items():
        yield from ((f"{directory}/{name}", size) for name, size in new)
