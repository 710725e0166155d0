"""Files that are not committed yet: their owners, and when they are deleted.

The creator of files owns them until they are handed to a commit that certainly succeeded. After a certain failure the
owner deletes them. If the outcome is unknown they are kept: a snapshot may reference them. Files of changes that came
as bytes have no owner here: another process may still publish them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence

from paimon_py.commit.changes import BucketChanges, Changes, with_index
from paimon_py.commit.concurrent_commits import joint_base
from paimon_py.errors import CommitUnknownError, PaimonError
from paimon_py.metadata.history import HistoryGap, SnapshotLog
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.manifest import HASH, IndexEntry


@contextlib.contextmanager
def discarding_on_failure(discard: Callable[[], object]) -> Iterator[None]:
    """Run a commit in this block: its files are discarded if it certainly failed.

    They are kept if the outcome is unknown; and after any other exception than errors of paimon_py, such as Ctrl-C,
    which may come after publication.
    """
    try:
        yield
    except CommitUnknownError:
        raise
    except PaimonError:
        discard()
        raise


def delete_made(files: OpenTable, buckets: Iterable[BucketChanges]) -> None:
    """Delete the files and packs of changes that will never be committed, including compacted files.

    Files that cannot be deleted stay as orphans.
    """
    for bucket in buckets:
        place = files.bucket(*bucket.place)
        place.delete(bucket.made_files)
        place.delete_packs(bucket.packs)


def discard(files: OpenTable, changes: Changes) -> None:
    """Delete the files of changes that will never be committed and whose writers have ended, if the store allows."""
    edits = (edit for bucket in with_index(changes.buckets) for edit in (bucket.written, bucket.compacted))
    delete_handed_index(files, changes, {entry.name for edit in edits for entry in edit.made_index})
    delete_made(files, changes.buckets)


def delete_compaction(files: OpenTable, bucket: BucketChanges, keep: Container[str] = ()) -> None:
    """Delete the files that compacting a bucket created, referenced by no snapshot, except data files to `keep`."""
    files.bucket(*bucket.place).delete([file for file in bucket.compaction_files if file.name not in keep])
    files.delete_index(bucket.compacted.made_index)


def delete_unnamed_index(files: OpenTable, changes: Changes, entries: Sequence[IndexEntry]) -> None:
    """Delete the index files of changes that certainly no snapshot references.

    A writer's later rounds reference the index files of its earlier ones, and may be committed before them.

    Cost: if there are any, a get per snapshot since the base, and its index manifest.
    """
    named = _named_index(files.root, changes) if entries else None
    if named is not None:
        files.delete_index([entry for entry in entries if entry.name not in named])


def delete_handed_index(files: OpenTable, changes: Changes, own: Container[str]) -> None:
    """Delete the index files of changes that will not be committed, except hashes that a later round relies on.

    `own`: names of files that no later round knows.
    """
    edits = (edit for bucket in with_index(changes.buckets) for edit in (bucket.written, bucket.compacted))
    made = [entry for edit in edits for entry in edit.made_index]
    shared = [entry for entry in made if entry.index_type == HASH and entry.name not in own]
    names = {entry.name for entry in shared}
    files.delete_index([entry for entry in made if entry.name not in names])
    delete_unnamed_index(files, changes, shared)


def _named_index(root: TableRoot, changes: Changes) -> set[str] | None:
    """Names of the index files that snapshots after the base of changes reference; None if the store fails.

    A store that fails is asked once more, and so is one whose snapshots expired in the meantime. If the base has
    expired, all snapshots and tags are searched.
    """
    for _ in range(2):
        try:
            snapshot_log, latest = SnapshotLog(root), root.snapshots.latest()
            history = snapshot_log.after(joint_base(snapshot_log, changes, latest), latest)
            found = snapshot_log.all_existing(latest) if isinstance(history, HistoryGap) else history
            names = found.index_names()
        except PaimonError:
            continue
        if not isinstance(names, HistoryGap):
            return names
    return None
