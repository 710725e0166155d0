"""Whether a compaction that misses a file came too late, or the table is damaged."""

from __future__ import annotations

from paimon_py.commit.deletion_index import index_entries
from paimon_py.commit.plan import Bucket
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
    partition, bucket = key
    latest = root.snapshots.latest()
    if latest is not None:
        live = root.manifests.live_entries(latest, EntryFilter(buckets=frozenset({bucket}))).entries()
        names = {entry.file.name for entry in live if entry.partition == partition}
        names |= {entry.name for entry in index_entries(root, latest)}
        if str(error.path).rpartition("/")[2] in names:
            raise CorruptionError(
                f"{error.path} is missing, although snapshot {latest.id} names it", path=error.path
            ) from error
    return f"others replaced files of the bucket meanwhile: {error}"
