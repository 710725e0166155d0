"""Whether changes from another process belong to this table, and whether their files still exist.

A snapshot that names a missing file cannot be read, and no later commit mends it.
"""

from __future__ import annotations

from collections.abc import Iterator

from paimon_py.commit.changes import Changes
from paimon_py.env import is_distant
from paimon_py.errors import UsageError
from paimon_py.metadata.open_table import OpenTable

_ARITY_BYTES = 4


def check_origin(table: OpenTable, changes: Changes) -> None:
    """Refuse changes that were not written to this table, and files that are given twice.

    Cost: one list of schemas, unless the schema is the table's own.
    Raises:
        UsageError: the table has no such schema, or partitions of another kind, or a new file occurs again.
    """
    names = [file.name for bucket in changes.buckets for file in bucket.made_files]
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise UsageError(
            f"nothing was committed: the same changes are given twice (file {twice}); their rows would count twice, "
            "so leave one of them out"
        )
    if changes.branch != table.root.branch:
        raise UsageError(
            f"the changes were written to the branch {changes.branch!r}, this is {table.root.branch!r} of"
            f" {table.root.path}; commit"
            " them there"
        )
    if changes.schema_id != table.schema.id and changes.schema_id not in table.root.schemas.ids():
        raise UsageError(
            f"the changes were written under schema {changes.schema_id}, which {table.root.path} does not have:"
            " they are of "
            "another table; commit them there"
        )
    wanted = len(table.schema.partition_keys)
    for bucket in changes.buckets:
        if int.from_bytes(bucket.partition[:_ARITY_BYTES], "big") != wanted:
            raise UsageError(
                f"the changes lie in partitions of other columns than {list(table.schema.partition_keys)}: they are of "
                f"another table than {table.root.path}; commit them there"
            )


def missing_file(files: OpenTable, changes: Changes) -> str | None:
    """The path of a new file that is not there, or not as long as it was written; None if all are.

    Cost: one stat for each new file, for each file beside it and each new index file; several at once where requests
        take their time.
    """
    expected = list(_expected_files(files, changes))
    stat, paths = files.root.files.stat, [path for path, _ in expected]
    found = files.root.env.io.map(stat, paths) if is_distant(files.root.path) else map(stat, paths)
    for (path, size), status in zip(expected, found, strict=True):
        if status is None or size not in (None, status.size_bytes):
            return path
    return None


def _expected_files(files: OpenTable, changes: Changes) -> Iterator[tuple[str, int | None]]:
    """Paths of all new files, and how long they are, as far as the changes say."""
    for bucket in changes.buckets:
        place = files.bucket(*bucket.place)
        for file in bucket.made_files:
            path, *beside = place.paths(file)
            yield path, file.size_bytes
            yield from ((one, None) for one in beside)
        for entry in (*bucket.written.made_index, *bucket.compacted.made_index):
            yield files.index_path(entry), entry.size_bytes
