"""Expiry of snapshots: old snapshots go, and with them the files that nothing else names.

First everything is read that tells what goes. Then the snapshots go, oldest first, then their manifests, then data
files: whoever dies on the way leaves files that nobody names, never a snapshot without its files.

Source: format.md §16.1, §16.2; docs/reliability.md §3 (d); Java `ExpireSnapshotsImpl`, `SnapshotDeletion`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from paimon_py.logs import EXPIRY
from paimon_py.maintain.doomed import Doomed, kept_beside
from paimon_py.maintain.expired import ExpiredSnapshots
from paimon_py.maintain.hands import Hands
from paimon_py.maintain.retention import FirstKept, Lasting, Retention, first_kept, lasting_changes
from paimon_py.metadata.hints import raise_hint
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import earliest_hint_path, snapshot_path
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Snapshot
from paimon_py.tally import Progress, Tally


def expire_snapshots(
    root: TableRoot, schema: TableSchema, retention: Retention, *, dry_run: bool, hands: Hands | None = None,
    progress: Progress | None = None,
) -> ExpiredSnapshots:
    """Let snapshots go, and the files that only they name.

    Tags, branches and consumers are spared. A tag that is made meanwhile, too: tags are listed again once the
    snapshots are gone.

    Args:
        hands: who deletes files; None: this process.
        progress: is told of snapshots that are looked at, then of files that are deleted.

    Cost: one list, a get for each snapshot that goes and for its lists, each manifest of its delta, and of its
        changelog; the manifests of tags among or right before them, and of each branch; a delete per file.
    Raises:
        CorruptionError, StorageError: a snapshot, tag, branch or consumer cannot be read; nothing was deleted.
    """
    ids = root.known(root.snapshots.ids())
    if not ids:
        return ExpiredSnapshots(reason="the table is empty", dry_run=dry_run)
    known = _Known(root)
    lasting = lasting_changes(schema.options)
    kept = first_kept(ids[0], ids[-1], retention, _held(root, schema, lasting), known.time_of)
    going = [snapshot for number in ids if number < kept.snapshot_id for snapshot in known.get(number)]
    following = known.get(kept.snapshot_id)
    if not going or not following:
        return _result(ids, kept, [], None, dry_run=dry_run)
    beside = kept_beside(root, going)
    doomed = _doomed(root, schema, going, following[0], lasting, Tally(progress, len(going), "snapshots"))
    doomed.spare(beside.near(going[0].id, kept.snapshot_id))
    doomed.spare_changes(beside)
    if dry_run:
        return _result(ids, kept, going, doomed, dry_run=True)
    if lasting is not Lasting.NOTHING:
        for snapshot in going:
            root.changelogs.keep(snapshot)
    raise_hint(root.store, earliest_hint_path(root.branch_path), kept.snapshot_id)
    for snapshot in going:
        root.store.delete(snapshot_path(root.branch_path, snapshot.id))
    doomed.spare(kept_beside(root, going).without(beside))
    done = _result(ids, kept, going, doomed, dry_run=False, left_files=doomed.delete(hands, progress))
    EXPIRY.info(
        "%s: snapshots %d to %d went, with %d data files; %s", root.path, done.snapshot_ids[0], done.snapshot_ids[-1],
        done.data_files, done.reason,
    )  # fmt: skip
    return done


def _held(root: TableRoot, schema: TableSchema, lasting: Lasting) -> dict[str, int]:
    """The next snapshot of each consumer; of none where kept changelogs are all that consumers need."""
    if lasting is not Lasting.NOTHING and Options(schema.options).get_bool("consumer.changelog-only"):
        return {}
    return {consumer.name: consumer.next_snapshot_id for consumer in root.consumers.all()}


def _doomed(
    root: TableRoot, schema: TableSchema, going: Sequence[Snapshot], following: Snapshot, lasting: Lasting, tally: Tally
) -> Doomed:
    """All that snapshots name and the one that follows them does not, but for what tells of changes kept longer."""
    doomed = Doomed(root, schema)
    for snapshot in (*going[1:], following):
        doomed.add_deleted(snapshot, written=lasting is not Lasting.WRITTEN)
        tally.add(1)
    for snapshot in going:
        doomed.add_indexes(snapshot)
        if lasting is not Lasting.WRITTEN:
            doomed.add_lists(snapshot.base_manifest_list, snapshot.delta_manifest_list)
        if lasting is Lasting.NOTHING:
            doomed.add_changelog(snapshot)
            doomed.add_lists(snapshot.changelog_manifest_list)
    doomed.spare_metadata(following)
    return doomed


def _result(
    ids: Sequence[int],
    kept: FirstKept,
    going: Sequence[Snapshot],
    doomed: Doomed | None,
    *,
    dry_run: bool,
    left_files: int = 0,
) -> ExpiredSnapshots:
    found = ExpiredSnapshots(
        snapshot_ids=tuple(snapshot.id for snapshot in going),
        earliest_id=kept.snapshot_id if going else ids[0],
        latest_id=ids[-1],
        reason=kept.reason,
        left_files=left_files,
        dry_run=dry_run,
    )
    if doomed is None:
        return found
    return msgspec.structs.replace(found, **doomed.counts._asdict())


class _Known:
    """Snapshots, each fetched once."""

    def __init__(self, root: TableRoot) -> None:
        self._root = root
        self._found: dict[int, Snapshot | None] = {}

    def get(self, number: int) -> list[Snapshot]:
        """The snapshot, or none if others expired it meanwhile."""
        if number not in self._found:
            self._found[number] = self._root.snapshots.find(number)
        found = self._found[number]
        return [] if found is None else [found]

    def time_of(self, number: int) -> int | None:
        return next((snapshot.time_millis for snapshot in self.get(number)), None)
