"""Checks that changes from another process belong to this table, and that their files still exist.

A snapshot that references a missing file cannot be read, and no later commit repairs it.
"""

from __future__ import annotations

import itertools
import posixpath
from collections.abc import Iterable, Iterator

import numpy as np

from paimon_py.commit.changes import Changes
from paimon_py.env import is_distant
from paimon_py.errors import UsageError
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode

_ARITY_BYTES = 4
_LISTED_FROM = 16
"""The number of new files in a directory from which listing it costs less than a request for each file."""

_LISTED_FROM_OF_MANY = 1000
"""The same where rows have no bucket yet: a directory may hold any number of older files, and a call lists 1,000."""

_Expected = tuple[str, int | None]
"""The path of a new file and its size, if the changes contain it."""


def check_origin(table: OpenTable, changes: Changes) -> None:
    """Refuse changes that were not written to this table, and files that occur twice.

    Cost: one list of schemas, unless the schema is the table's own.
    Raises:
        UsageError: the table has no such schema, or partitions of another kind, or a new file occurs again.
    """
    twice = _named_twice(changes)
    if twice is not None:
        raise UsageError(
            f"nothing was committed: the same changes are given twice (file {twice}); their rows would count twice, "
            "so leave one of them out"
        )
    if changes.branch != table.root.branch:
        raise UsageError(
            f"the changes were written to the branch {changes.branch!r}, this is {table.root.branch!r} of "
            f"{table.root.path}; commit them there"
        )
    if changes.schema_id != table.schema.id and changes.schema_id not in table.root.schemas.ids():
        raise UsageError(
            f"the changes were written under schema {changes.schema_id}, which {table.root.path} does not have: "
            "they belong to another table; commit them there"
        )
    wanted = len(table.schema.partition_keys)
    for bucket in changes.buckets:
        if int.from_bytes(bucket.partition[:_ARITY_BYTES], "big") != wanted:
            raise UsageError(
                f"the changes are for partitions of other columns than {list(table.schema.partition_keys)}: they "
                f"belong to another table than {table.root.path}; commit them there"
            )


def missing_file(files: OpenTable, changes: Changes) -> str | None:
    """The path of a new file that does not exist or has another size than written; None if all are complete.

    Cost: one stat for each new file, each file beside it and each new index file. On distant stores, several requests
        run in parallel, and directories with many new files are listed once instead.
    """
    expected: Iterable[_Expected] = _expected_files(files, changes)
    if is_distant(files.root.path):
        expected = _without_listed(files, expected)
        found = files.root.env.io.map(files.root.files.stat, [path for path, _ in expected])
    else:
        expected, again = itertools.tee(expected)
        found = map(files.root.files.stat, (path for path, _ in again))
    for one, status in zip(expected, found, strict=True):
        if not _is_whole(one, None if status is None else status.size_bytes):
            return one[0]
    return None


def _named_twice(changes: Changes) -> str | None:
    """The name of a new file that occurs again. Cost: eight bytes of memory for each file."""
    numbers = np.fromiter(map(hash, _new_names(changes)), np.int64)
    if len(np.unique(numbers)) == len(numbers):
        return None
    seen = set[str]()
    for name in _new_names(changes):
        if name in seen:
            return name
        seen.add(name)
    return None


def _new_names(changes: Changes) -> Iterator[str]:
    return (file.name for bucket in changes.buckets for file in bucket.made_files)


def _without_listed(files: OpenTable, expected: Iterable[_Expected]) -> list[_Expected]:
    """The files to check one by one: those that no listing contains with their size."""
    is_crowded = bucket_mode(files.schema) in (BucketMode.NONE, BucketMode.POSTPONED)
    least = _LISTED_FROM_OF_MANY if is_crowded else _LISTED_FROM
    by_directory: dict[str, list[tuple[str, int | None]]] = {}
    for path, size in expected:
        directory, name = posixpath.split(path)
        by_directory.setdefault(directory, []).append((name, size))
    listed = [
        directory for directory, new in by_directory.items()
        if len(new) >= least and directory.startswith(f"{files.root.path}/")
    ]  # fmt: skip

    def find_unlisted(directory: str) -> list[_Expected]:
        sizes = {status.name: status.size_bytes for status in files.root.store.list(directory)}
        unlisted = (one for one in by_directory.pop(directory) if not _is_whole(one, sizes.get(one[0])))
        return [(f"{directory}/{name}", size) for name, size in unlisted]

    rest = list(itertools.chain.from_iterable(files.root.env.io.map(find_unlisted, listed)))
    return [*rest, *((f"{directory}/{name}", size) for directory, new in by_directory.items() for name, size in new)]


def _is_whole(expected: _Expected, found: int | None) -> bool:
    """Whether a file exists with the size that was written. `found`: its size; None if it does not exist."""
    return found is not None and expected[1] in (None, found)


def _expected_files(files: OpenTable, changes: Changes) -> Iterator[_Expected]:
    for bucket in changes.buckets:
        place = files.bucket(*bucket.place)
        for file in bucket.made_files:
            path, *beside = place.paths(file)
            yield path, file.size_bytes
            yield from ((one, None) for one in beside)
        for entry in (*bucket.written.made_index, *bucket.compacted.made_index):
            yield files.index_path(entry), entry.size_bytes
