"""What Java's expiry and rollback do to a table, through a store: this library has neither yet.

Source: Java `ExpireSnapshotsImpl`, `SnapshotDeletion`, `RollbackHelper`, `FileStorePathFactory`.
"""

from __future__ import annotations

import msgspec

from paimon_py.codec.snapshot_json import snapshot_to_json
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.data_file import FileKind
from paimon_py.spec.layout import earliest_hint_path, latest_hint_path, manifest_path, snapshot_path
from paimon_py.spec.manifest import GlobalIndex, IndexEntry
from paimon_py.spec.snapshot import CommitKind


def lists_of(root, snapshot):
    """Names of the manifest lists, manifests and index manifest of a snapshot."""
    lists = [snapshot.base_manifest_list, snapshot.delta_manifest_list, snapshot.changelog_manifest_list]
    names = {name for name in lists if name}
    names |= {manifest.name for name in sorted(names) for manifest in root.manifests.read_list(name)}
    return names | ({snapshot.index_manifest} if snapshot.index_manifest else set())


def index_of(root, snapshot):
    return root.manifests.read_index(snapshot.index_manifest) if snapshot.index_manifest else []


def expire(root, keep):
    """Expire all but the newest `keep` snapshots; tags keep what they name.

    Data files go by the DELETEs of the delta of the snapshot after the expired one, as in Java: a file that a later
    snapshot adds again is gone, too.
    """
    ids = root.snapshots.ids()
    if len(ids) <= keep:
        return
    first, end = ids[0], ids[-keep]
    schema = root.schemas.latest()
    tagged = [tag.snapshot for tag in root.tags.list()]
    kept_data = {name for one in tagged for name in root.manifests.live_entries(one).names().to_pylist()}
    for number in range(first + 1, end + 1):
        gone = {}
        delta = root.manifests.read_list(root.snapshots.get(number).delta_manifest_list)
        for entry in root.manifests.read_entries(delta).entries():
            place = (entry.partition, entry.bucket, entry.file.name)
            if entry.kind is FileKind.DELETE:
                gone[place] = entry
            else:
                gone.pop(place, None)
        for entry in gone.values():
            if entry.file.name not in kept_data:
                for path in OpenTable(root, schema).bucket(entry.partition, entry.bucket).paths(entry.file):
                    root.store.delete(path)
    keeping = [*tagged, root.snapshots.get(end)]
    kept = {name for one in keeping for name in lists_of(root, one)}
    kept |= {entry.name for one in keeping for entry in index_of(root, one)}
    for number in range(first, end):
        snapshot = root.snapshots.get(number)
        for entry in index_of(root, snapshot):
            if entry.name not in kept:
                root.store.delete(OpenTable(root, schema).index_path(entry))
        for name in sorted(lists_of(root, snapshot) - kept):
            root.store.delete(manifest_path(root.path, name))
        root.store.delete(snapshot_path(root.path, number))
    root.store.put(earliest_hint_path(root.path), str(end).encode())


def index_column(root):
    """Add an index over the row ids of column v, as Java does: an APPEND snapshot without files."""
    latest = root.snapshots.latest()
    if latest is None:
        return False
    partitions = {entry.partition for entry in root.manifests.live_entries(latest).entries()}
    number = latest.id + 1
    made = [
        IndexEntry(
            kind=FileKind.ADD, partition=partition, bucket=0, index_type="btree", name=f"btree-{at}-{number}.index",
            size_bytes=1, row_count=latest.next_row_id,
            global_index=GlobalIndex(row_range_start=0, row_range_end=latest.next_row_id - 1, field_id=2),
        )
        for at, partition in enumerate(sorted(partitions))
    ]  # fmt: skip
    table = OpenTable(root, root.schemas.latest())
    for entry in made:
        root.store.put(table.index_path(entry), b"x")
    base, base_bytes = root.manifests.write_list(root.manifests.base_and_delta(latest))
    delta, delta_bytes = root.manifests.write_list([])
    name, _ = root.manifests.write_index([*index_of(root, latest), *made])
    snapshot = msgspec.structs.replace(
        latest, id=number, base_manifest_list=base, base_manifest_list_size=base_bytes, delta_manifest_list=delta,
        delta_manifest_list_size=delta_bytes, index_manifest=name, commit_user="java", commit_identifier=number,
        commit_kind=CommitKind.APPEND, delta_record_count=0, uuid=root.env.ids.uuid(), built_on=None,
    )  # fmt: skip
    return root.store.put_new(snapshot_path(root.path, number), snapshot_to_json(snapshot))


def roll_back(root, back):
    """Go back by some snapshots, as Java 2.0 does: later snapshots go, newest first, their files stay."""
    ids = root.snapshots.ids()
    if len(ids) <= back:
        return
    root.store.put(latest_hint_path(root.path), str(ids[-1 - back]).encode())
    for later in reversed(ids[-back:]):
        root.store.delete(snapshot_path(root.path, later))
