"""Commits that delete rows from tables without a primary key: their files do not show which rows were deleted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paimon_py.errors import UnsupportedError
from paimon_py.files.physical import evolves_columns
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.data_file import FileKind
from paimon_py.spec.manifest import ManifestFile
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Base, CommitKind, Snapshot

PASSING = "streaming-read-append-overwrite"
"""The option that says what becomes of such commits."""


def refuses_removals(schema: TableSchema) -> bool:
    """Whether to refuse them: the table has no primary key, and nobody has said what is to become of them."""
    return not schema.primary_keys and not Options(schema.options).is_set(PASSING)


def require_nothing_taken(root: TableRoot, snapshot: Snapshot) -> None:
    """Refuse a snapshot of a table without primary key that deletes data files, makes rows dead, or sets columns.

    Compactions and rescaling move rows and take none.

    Cost: a get; where there are deletion vectors, or columns in files of their own, one more.
    Raises: UnsupportedError
    """
    if snapshot.has_same_rows or snapshot.commit_kind in (CommitKind.COMPACT, CommitKind.ANALYZE):
        return
    with root.reading(Base.of(snapshot)):
        files = root.manifests.read_list(snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)
        sets_columns = _sets_columns(root, snapshot, files)
    if sets_columns:
        raise UnsupportedError(
            f"snapshot {snapshot.id} of {root.path} set columns of rows that were there, and the table has no primary "
            f"key by which to tell them: changes({snapshot.id - 1}, {snapshot.id}, mode='diff') compares the states and"
            f" tells what went and what came. With the option {PASSING} = 'true' or 'false' such rows are read as new "
            "ones with NULL in all other columns, as in Java",
            feature="changes of commits that set columns",
        )
    if any(file.deleted_files for file in files) or _kills(root, snapshot):
        what = snapshot.operation or snapshot.commit_kind.value
        raise UnsupportedError(
            f"snapshot {snapshot.id} of {root.path} ({what}) deleted or replaced rows, and the table has no primary key"
            f" by which to tell them: changes({snapshot.id - 1}, {snapshot.id}, mode='diff') compares the states and"
            f" tells what went and what came. With the option {PASSING} = 'true' the rows that such commits wrote are"
            " read as new ones, with 'false' they are passed over, as in Java",
            feature="changes of commits that take rows away",
        )


def _sets_columns(root: TableRoot, snapshot: Snapshot, files: Sequence[ManifestFile]) -> bool:
    """Whether a snapshot adds files with columns of rows that were there before it.

    New rows have ids from the next one of the snapshot before on. Where that is gone, every file with less than all
    columns counts.
    """
    if not evolves_columns(root.schemas.get(snapshot.schema_id)):
        return False
    before = root.snapshots.find(snapshot.id - 1) or root.changelogs.find(snapshot.id - 1)
    next_id = 0 if snapshot.id == 1 else None if before is None else before.next_row_id
    if next_id is not None and all(file.min_row_id is not None and file.min_row_id >= next_id for file in files):
        return False
    entries = root.manifests.read_entries(files)
    added = entries.take(np.flatnonzero(entries.kind == FileKind.ADD))
    if next_id is not None:
        return bool((added.first_row_id < next_id).any())
    return added.knows("write_columns")


def _kills(root: TableRoot, snapshot: Snapshot) -> bool:
    """Whether a snapshot has other deletion vectors than the one before.

    Where that one has expired the kind tells: a commit that makes rows dead is an overwrite, ours and Java's.
    """
    if snapshot.index_manifest is None:
        return False
    before = root.snapshots.find(snapshot.id - 1) or root.changelogs.find(snapshot.id - 1)
    if before is None:
        return snapshot.commit_kind is CommitKind.OVERWRITE
    return before.index_manifest != snapshot.index_manifest
