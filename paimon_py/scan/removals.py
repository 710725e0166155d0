"""Detects commits that delete rows from tables without a primary key; their files do not show which rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from paimon_py.errors import UnsupportedError
from paimon_py.files.physical import evolves_columns, tracks_rows
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.manifest import ManifestFile
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Base, CommitKind, Snapshot

PASSING = "streaming-read-append-overwrite"
"""The option that configures how streams treat such commits."""

_Previous = Callable[[], Snapshot | None]
"""The snapshot before, or its kept changelog, which is read once; None if both have expired."""


def refuses_removals(schema: TableSchema) -> bool:
    """Whether to refuse them: the table has no primary key, and the option is not set."""
    return not schema.primary_keys and not Options(schema.options).is_set(PASSING)


def identifies_removals(schema: TableSchema) -> bool:
    """Whether to compare the states before and after them: rows have ids, and the option is not set."""
    return refuses_removals(schema) and tracks_rows(schema)


def changes_rows(root: TableRoot, snapshot: Snapshot) -> bool:
    """Whether a snapshot of a table with row tracking changes rows that the previous one has, or gives them other ids.

    Cost: a get; one more with deletion vectors, or columns in separate files.
    """
    if snapshot.has_same_rows or snapshot.commit_kind is CommitKind.ANALYZE:
        return False
    previous = _previous(root, snapshot)
    if snapshot.commit_kind is CommitKind.COMPACT:
        return _gives_new_ids(root, snapshot, previous)
    sets_columns, takes_rows = _effects(root, snapshot, previous)
    rewrites = snapshot.commit_kind is CommitKind.OVERWRITE and snapshot.delta_record_count == 0
    return sets_columns or takes_rows or (rewrites and _gives_new_ids(root, snapshot, previous))


def _previous(root: TableRoot, snapshot: Snapshot) -> _Previous:
    return functools.cache(lambda: root.find_kept(snapshot.id - 1))


def require_no_removals(root: TableRoot, snapshot: Snapshot) -> None:
    """Refuse a snapshot of a table without a primary key that deletes data files, marks rows dead, or sets columns.

    Compactions and rescaling move rows but delete none.

    Cost: a get; one more with deletion vectors, or columns in separate files.
    Raises: UnsupportedError
    """
    if snapshot.has_same_rows or snapshot.commit_kind in (CommitKind.COMPACT, CommitKind.ANALYZE):
        return
    sets_columns, takes_rows = _effects(root, snapshot, _previous(root, snapshot))
    number = snapshot.id
    ways = f"changes({number - 1}, {number}, mode='diff') compares the states and returns deleted and added rows"
    if identifies_removals(root.schemas.get(snapshot.schema_id)):
        ways = f"{ways}, mode='auto' and streams return the rows before and after the change"
    if sets_columns:
        raise UnsupportedError(
            f"snapshot {snapshot.id} of {root.path} set columns of existing rows, and the table has no primary "
            f"key to identify them: {ways}. With the option {PASSING} = 'true' or 'false' such rows are read as new "
            "ones with NULL in all other columns, as in Java",
            feature="changes of commits that set columns",
        )
    if takes_rows:
        what = snapshot.operation or snapshot.commit_kind.value
        raise UnsupportedError(
            f"snapshot {snapshot.id} of {root.path} ({what}) deleted or replaced rows, and the table has no primary key"
            f" to identify them: {ways}. With the option {PASSING} = 'true' the rows that such commits wrote are"
            " read as new ones, with 'false' they are skipped, as in Java",
            feature="changes of commits that take rows away",
        )


def _effects(root: TableRoot, snapshot: Snapshot, previous: _Previous) -> tuple[bool, bool]:
    """Whether a snapshot sets columns of existing rows, and whether it deletes data files or marks rows dead."""
    with root.reading(Base.of(snapshot)):
        files = root.manifests.delta(snapshot)
        sets_columns = _sets_columns(root, snapshot, files, previous)
    return sets_columns, any(file.deleted_files for file in files) or _kills(snapshot, previous)


def _gives_new_ids(root: TableRoot, snapshot: Snapshot, previous: _Previous) -> bool:
    """Whether a commit that adds no rows gives rows new ids: a compaction of Java that drops deleted rows for good, or
    Java's `reassign_row_id`, which writes the base list again.
    """
    if not evolves_columns(root.schemas.get(snapshot.schema_id)):
        return False
    before = previous()
    return before is not None and snapshot.next_row_id != before.next_row_id


def _sets_columns(
    root: TableRoot, snapshot: Snapshot, files: Sequence[ManifestFile], previous: _Previous
) -> bool:
    """Whether a snapshot adds files with columns of existing rows.

    The ids of new rows begin at the next row id of the previous snapshot. If that has expired, every file without all
    columns counts.
    """
    if not evolves_columns(root.schemas.get(snapshot.schema_id)):
        return False
    before = previous()
    next_id = 0 if snapshot.id == 1 else None if before is None else before.next_row_id
    if next_id is not None and all(file.min_row_id is not None and file.min_row_id >= next_id for file in files):
        return False
    entries = root.manifests.read_entries(files)
    added = entries.additions()
    if next_id is not None:
        return bool((added.first_row_id < next_id).any())
    return added.knows("write_columns")


def _kills(snapshot: Snapshot, previous: _Previous) -> bool:
    """Whether a snapshot has other deletion vectors than the previous one.

    If that has expired, the kind decides: a commit that marks rows dead is an OVERWRITE, in paimon_py and in Java.
    """
    if snapshot.index_manifest is None:
        return False
    before = previous()
    if before is None:
        return snapshot.commit_kind is CommitKind.OVERWRITE
    return before.index_manifest != snapshot.index_manifest
