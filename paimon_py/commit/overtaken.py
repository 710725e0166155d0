"""Whether a compaction that misses a file came too late, or the table is damaged."""

from __future__ import annotations

from paimon_py.commit.changes import Bucket
from paimon_py.errors import CorruptionError
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.store import FileMissingError


def overtaken(root: TableRoot, key: Bucket, error: FileMissingError) -> str:
    """Why the compaction of a bucket is pointless: others replaced a file of it, and expiry has deleted that since.

    Cost: the manifests of the latest snapshot.
    Raises:
        CorruptionError: the file should be there.
    """
    latest = root.snapshots.latest()
    if latest is not None:
        names = root.manifests.file_names(latest, EntryFilter(buckets=frozenset({key[1]})))
        if str(error.path).rpartition("/")[2] in names:
            raise CorruptionError(
                f"{error.path} is missing, although snapshot {latest.id} names it", path=error.path
            ) from error
    return f"others replaced files of the bucket meanwhile: {error}"
