"""What others committed since a writer opened: the largest sequence numbers, bucket counts, and our own earlier commit.

Source: notes on reliability, §3 (b), (c), (h).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import Mask, binary_array, numpy_values, text_array
from paimon_py.codec.manifest.columns import EntryColumns
from paimon_py.commit.changes import Changes
from paimon_py.commit.plan import Bucket
from paimon_py.errors import PaimonError
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.data_file import FileKind
from paimon_py.spec.manifest import ManifestFile
from paimon_py.spec.snapshot import BATCH_COMMIT_IDENTIFIER, Base, Snapshot
from paimon_py.storage.store import FileMissingError

_DELTAS_MAX = 32
"""Up to so many snapshots are looked at one by one; beyond that the live files say the same for less."""

_NOWHERE = ""
"""A mark that no snapshot has."""


class Foreign:
    """Follows the snapshots after a base, for some partitions.

    `names`: of our own new files. With `deltas` off only snapshots are looked at, not what they added.

    Attributes:
        highest: largest sequence number committed since the base, per bucket of those partitions.
        bucket_counts: number of buckets of partitions in which files were added, where it is fixed.
        own_names: which of our file names were seen in the table, with the snapshot where known.
        snapshots: the snapshots that were looked at one by one.
    """

    def __init__(
        self,
        root: TableRoot,
        base: Base,
        partitions: frozenset[bytes],
        names: frozenset[str],
        *,
        deltas: bool,
    ) -> None:
        self._root = root
        self._deltas = deltas
        self._position = base
        self._partitions = partitions
        self._names = names
        self.highest: dict[Bucket, int] = {}
        self.bucket_counts: dict[bytes, int] = {}
        self.own_names: set[str] = set()
        self.snapshots: list[Snapshot] = []

    def advance(self, latest: Snapshot | None) -> None:
        """Look at everything between the last position and `latest`.

        What came after a snapshot that is there no more, be it expired or rolled back, is not known.

        Cost: one get, for each snapshot one more, and two for its delta unless they were read before; or once the live
            files.
        """
        if latest is None or self._position.is_of(latest):
            return
        between = None
        if 0 < latest.id - self._position.id <= _DELTAS_MAX and is_there(self._root, self._position, latest):
            between = self._find(range(self._position.id + 1, latest.id), latest)
        if between is not None:
            self.snapshots += between
        if self._deltas and (between is None or not self._take_deltas(between)):
            self._take(self._root.manifests.live_entries(latest, EntryFilter(partitions=self._wanted)))
        self._position = Base.of(latest)

    def _find(self, ids: Sequence[int], latest: Snapshot) -> list[Snapshot] | None:
        found = list(_mapped(self._root, ids))
        between = [snapshot for snapshot in found if snapshot is not None]
        return [*between, latest] if len(between) == len(found) else None

    def _take_deltas(self, snapshots: Sequence[Snapshot]) -> bool:
        manifests: list[ManifestFile] = []
        try:
            for snapshot in snapshots:
                manifests += self._root.manifests.read_list(snapshot.delta_manifest_list)
            columns = self._root.manifests.read_entries(manifests, EntryFilter(partitions=self._wanted))
        except FileMissingError:
            return False
        self._take(columns.take(columns.kind == FileKind.ADD))
        return True

    def _take(self, adds: EntryColumns) -> None:
        if not len(adds):
            return
        codes, values = adds.distinct("partition")
        partitions = values.to_pylist()
        pairs = np.stack([codes, adds.bucket])
        buckets, places = np.unique(pairs, axis=1, return_inverse=True)
        highest = np.full(buckets.shape[1], np.iinfo(np.int64).min)
        np.maximum.at(highest, places.reshape(-1), adds.max_sequence)
        for code, bucket, number in zip(*buckets.tolist(), highest.tolist(), strict=True):
            key = (partitions[code], bucket)
            self.highest[key] = max(number, self.highest.get(key, number))
        for code, partition in enumerate(partitions):
            counts = adds.total_buckets[codes == code]
            if int(counts[-1]) > 0:
                self.bucket_counts[partition] = int(counts[-1])
        if self._names:
            names = adds.names()
            own = pc.is_in(names, value_set=text_array(sorted(self._names)))
            self.own_names.update(names.filter(own).to_pylist())

    def _wanted(self, partitions: pa.Array) -> Mask:
        wanted = binary_array(sorted(self._partitions))
        mask: Mask = numpy_values(pc.is_in(partitions, value_set=wanted))
        return mask


def committed_by(root: TableRoot, user: str, identifier: int) -> list[Snapshot]:
    """The snapshots of a user's last commit, if its identifier is at least `identifier`; newest first.

    Batch commits of the same user do not count: they have no identifier of their own.

    Cost: one get per snapshot since that commit, or all of them if the user has none.
    """
    found: list[Snapshot] = []
    for snapshot in newest_first(root):
        if snapshot.commit_user != user or snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER:
            if found:
                break
            continue
        if snapshot.commit_identifier < identifier or (
            found and snapshot.commit_identifier != found[0].commit_identifier
        ):
            break
        found.append(snapshot)
    return found


def newest_first(root: TableRoot) -> Iterator[Snapshot]:
    """All snapshots, newest first, until one has expired; read ahead in growing chunks where requests take time."""
    latest = root.snapshots.latest()
    if latest is None:
        return
    yield latest
    next_id, size = latest.id - 1, 1
    while next_id > 0:
        ids = range(next_id, max(next_id - size, 0), -1)
        for snapshot in _mapped(root, ids):
            if snapshot is None:
                return
            yield snapshot
        next_id, size = ids[-1] - 1, min(2 * size, 64)


def _mapped(root: TableRoot, ids: Sequence[int]) -> Iterator[Snapshot | None]:
    if "://" in root.path:
        return root.env.pool.map(root.snapshots.find, ids)
    return map(root.snapshots.find, ids)


def is_there(root: TableRoot, base: Base, latest: Snapshot | None) -> bool:
    """Whether what comes after a base up to `latest` followed from it: it neither expired nor was rolled back.

    Cost: one get, unless the base is the empty table or `latest`.
    """
    if base.id == 0 or base.id == (latest.id if latest else 0):
        return base.is_of(latest if base.id else None)
    return base.is_of(root.snapshots.find(base.id))


def base_of(root: TableRoot, changes: Changes) -> Base:
    """The snapshot that changes are based on; if one of several is there no more, one that is nowhere.

    Cost: one get for each base but the first.
    """
    if all(is_there(root, base, None) for base in changes.further_bases):
        return changes.base
    return Base(changes.base.id, _NOWHERE)


def indexes_named(root: TableRoot, changes: Changes) -> set[str] | None:
    """Names of all index files made after the base of changes that a snapshot names; None if the store does not say.

    A store that fails is asked once more. Where the base has expired, all snapshots are looked at.
    """
    for _ in range(2):
        try:
            after = snapshots_after(root, base_of(root, changes))
            known = newest_first(root) if after is None else after
            manifests = {snapshot.index_manifest for snapshot in known if snapshot.index_manifest is not None}
            return {entry.name for name in manifests for entry in root.manifests.read_index(name)}
        except PaimonError:
            continue
    return None


def names_added(root: TableRoot, base: Base, *, last_id: int | None = None) -> set[str] | None:
    """Names of all files added after a base, up to snapshot `last_id`; None if that cannot be said any more."""
    names: set[str] = set()
    try:
        after = snapshots_after(root, base)
        for snapshot in after or ():
            if last_id is None or snapshot.id <= last_id:
                lists = [snapshot.delta_manifest_list, snapshot.changelog_manifest_list]
                manifests = [file for name in lists if name for file in root.manifests.read_list(name)]
                names.update(root.manifests.read_entries(manifests).names().to_pylist())
        return None if after is None else names
    except PaimonError:
        return None


def snapshots_after(root: TableRoot, base: Base) -> list[Snapshot] | None:
    """The snapshots after a base, newest first; None if it, or one of them, is there no more.

    Cost: one get for each, and for the base.
    """
    after: list[Snapshot] = []
    for snapshot in newest_first(root):
        if snapshot.id <= base.id:
            return after if base.is_of(snapshot) else None
        after.append(snapshot)
    return after if base.is_of(None) and (not after or after[-1].id == 1) else None
