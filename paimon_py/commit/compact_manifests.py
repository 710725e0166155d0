"""Merges the manifests of a table immediately, instead of when enough of them have accumulated.

Source: Java `FileStoreCommitImpl.compactManifest`.
"""

from __future__ import annotations

import msgspec

from paimon_py.commit.attempts import Attempts
from paimon_py.commit.next_snapshot import Author
from paimon_py.commit.result import CommitResult
from paimon_py.commit.snapshot_delta import SnapshotDelta
from paimon_py.commit.state import Already
from paimon_py.metadata.manifest_merge import ManifestSettings
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, SnapshotId


def compact_manifests(table: OpenTable) -> CommitResult:
    """Fold deletions and additions of manifests, join small manifests, and publish the result without other changes.

    Returns: no snapshot if there was nothing to merge.

    Raises:
        CommitRetriesExhaustedError, CommitUnknownError, StorageError: see `Attempts.publish`.
    """
    author = Author(user=table.root.env.ids.uuid(), identifier=BATCH_COMMIT_IDENTIFIER)
    settings = msgspec.structs.replace(
        ManifestSettings.of(table.options), merge_min_count=1, full_compaction_bytes=1
    )
    attempts = Attempts(table, author, settings)
    done = attempts.publish(lambda _: SnapshotDelta(kind=CommitKind.COMPACT))
    if isinstance(done, Already):
        return CommitResult(attempts=attempts.count)
    number, before = SnapshotId.of(done.snapshot), SnapshotId.of(done.parent)
    return CommitResult(snapshot_id=number, snapshot_ids=(number,), before=before, attempts=attempts.count)
