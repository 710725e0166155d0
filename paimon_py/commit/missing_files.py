"""Checks that changes from another process belong to this table, and that their files still exist.

A snapshot that references a missing file cannot be read, and no later commit repairs it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import numpy as np

from paimon_py.commit.changes import Changes
from paimon_py.commit.listed_files import ExpectedFile, find_unlisted, is_whole
from paimon_py.env import is_distant
from paimon_py.errors import UsageError
from paimon_py.metadata.open_table import OpenTable

_ARITY_BYTES = 4


def check_origin(table: OpenTable, changes: Changes) -> None:
    """Refuse changes that were not written to this table, and files that occur twice.

    Cost: one list of schemas, unless the schema is the table's own.
    Raises:
        UsageError: the table has no such schema, or partitions of another kind, or a new file occurs again.
    """
    twice = _named_twice(changes)
    if twice is not None:
        raise UsageError(
            f"nothing was committed: the same changes are given twice (file {twice}); their rows would be added"
            " twice, so remove one of them"
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

    Cost: one stat for each new file, each extra file and each new index file. On distant stores, several requests
        run in parallel, and many files are looked for in listings instead (`listed_files.py`).
    """
    expected: Iterable[ExpectedFile] = _expected_files(files, changes)
    if is_distant(files.root.path):
        expected = list(find_unlisted(files, expected))
        found = files.root.env.io.map(files.root.files.stat, [path for path, _ in expected])
    else:
        expected, again = itertools.tee(expected)
        found = map(files.root.files.stat, (path for path, _ in again))
    for one, status in zip(expected, found, strict=True):
        if not is_whole(one, None if status is None else status.size_bytes):
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


def _expected_files(files: OpenTable, changes: Changes) -> Iterator[ExpectedFile]:
    for bucket in changes.buckets:
        place = files.bucket(*bucket.place)
        for file in bucket.made_files:
            path, *beside = place.paths(file)
            yield path, file.size_bytes
            yield from ((one, None) for one in beside)
        for entry in (*bucket.written.made_index, *bucket.compacted.made_index):
            yield files.index_path(entry), entry.size_bytes
