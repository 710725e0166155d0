"""Commits that take rows away from tables without a primary key: nothing that they wrote tells which rows went."""

from __future__ import annotations

from paimon_py.errors import UnsupportedError
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Base, CommitKind, Snapshot

PASSING = "streaming-read-append-overwrite"
"""The option that says what becomes of such commits."""


def refuses_removals(schema: TableSchema) -> bool:
    """Whether to refuse them: the table has no primary key, and nobody has said what is to become of them."""
    return not schema.primary_keys and not Options(schema.options).is_set(PASSING)


def require_nothing_taken(root: TableRoot, snapshot: Snapshot) -> None:
    """Refuse a snapshot of a table without primary key that deletes data files or makes rows dead.

    Compactions move rows and take none.

    Cost: a get; where there are deletion vectors one more.
    Raises: UnsupportedError
    """
    if snapshot.commit_kind in (CommitKind.COMPACT, CommitKind.ANALYZE):
        return
    with root.reading(Base.of(snapshot)):
        files = root.manifests.read_list(snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)
    if any(file.deleted_files for file in files) or _kills(root, snapshot):
        what = snapshot.operation or snapshot.commit_kind.value
        raise UnsupportedError(
            f"snapshot {snapshot.id} of {root.path} ({what}) deleted or replaced rows, and the table has no primary key"
            f" by which to tell them: changes({snapshot.id - 1}, {snapshot.id}, mode='diff') compares the states and"
            f" tells what went and what came. With the option {PASSING} = 'true' the rows that such commits wrote are"
            " read as new ones, with 'false' they are passed over, as in Java",
            feature="changes of commits that take rows away",
        )


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
