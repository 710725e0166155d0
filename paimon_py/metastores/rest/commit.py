"""Publishes a snapshot through the server, which compares its parent with the latest snapshot.

If the answer was lost, the same snapshot is sent again: only one of the calls can succeed, since it changes the latest
snapshot. Before the result counts as a failure, the latest snapshot is checked.

Source: Java `CatalogSnapshotCommit`, `RESTApi.commitSnapshot`, `PartitionEntry`, main of August 2026.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from paimon_py.codec.manifest.columns import ABSENT
from paimon_py.codec.partition_text import partition_texts
from paimon_py.codec.snapshot_json import snapshot_from_json, snapshot_to_json
from paimon_py.errors import CorruptionError, PaimonError, StorageError, StorageUnknownError, TableNotFoundError
from paimon_py.metadata.committer import Committed, LostRace, Publication, Unknown, keep_number
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.partition_files import partition_changes, partition_columns
from paimon_py.metadata.root import TableRoot
from paimon_py.metastores.rest.messages import CommitAnswer, SnapshotAnswer
from paimon_py.metastores.rest.transport import RestRefusedError
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Snapshot

if TYPE_CHECKING:
    from paimon_py.metastores.rest.registration import RestTable

_ATTEMPTS = 3
_NAMES = {
    "record_count": "recordCount", "file_size_in_bytes": "fileSizeInBytes", "file_count": "fileCount",
    "creation_time_millis": "lastFileCreationTime", "total_buckets": "totalBuckets",
}  # fmt: skip


class ServerCommitter:
    """Publishes snapshots through the server."""

    __slots__ = ("_root", "_table")

    def __init__(self, root: TableRoot, table: RestTable) -> None:
        self._root = root
        self._table = table

    def publish(self, snapshot: Snapshot, parent: Snapshot | None, *, deadline: float) -> Publication:
        """See `Committer.publish`. Cost: one request, and reads the delta manifests of the snapshot."""
        found = self._publish(snapshot, parent, deadline)
        if isinstance(found, Committed):
            keep_number(self._root, snapshot)
        return found

    def _publish(self, snapshot: Snapshot, parent: Snapshot | None, deadline: float) -> Publication:
        if self._root.env.clock.elapsed() > deadline:
            return LostRace("planning took so long that the snapshot it was based on may have expired")
        path = self._table.path("commit")
        body = {
            "tableId": self._table.id,
            "baseSnapshotUuid": None if parent is None else parent.uuid,
            "snapshot": msgspec.Raw(snapshot_to_json(snapshot)),
            "statistics": statistics(OpenTable(self._root, self._root.schemas.latest()), snapshot),
        }
        lost: PaimonError | None = None
        for _ in range(_ATTEMPTS):
            try:
                if self._is_taken(path, body):
                    return Committed(snapshot)
                if lost is None:
                    return self._after_refusal(snapshot, parent)
            except StorageUnknownError as error:
                lost = error
            except PaimonError as error:
                refused = error if isinstance(error, RestRefusedError) else None
                if lost is None and (refused is None or not refused.unsure):
                    raise error if refused is None else self._error(refused) from refused
                lost = error
            found = self._check_history(snapshot, parent)
            if found is not None:
                return found
        return Unknown(f"the server did not report whether it accepted the snapshot: {lost}", snapshot.id)

    def _is_taken(self, path: str, body: object) -> bool:
        answer = self._table.client.post(path, body)
        try:
            return self._table.client.decode(answer, CommitAnswer, path).success
        except StorageError as error:
            raise StorageUnknownError(str(error), operation="commit") from error

    def _after_refusal(self, snapshot: Snapshot, parent: Snapshot | None) -> Publication:
        """The result after the server rejected the snapshot.

        A proxy may have repeated a successful call, so the history is checked.
        """
        found = self._check_history(snapshot, parent)
        return LostRace("the server has another latest snapshot") if found is None else found

    def _check_history(self, snapshot: Snapshot, parent: Snapshot | None) -> Publication | None:
        """The state of a snapshot according to the history; None if the history still ends at its parent."""
        try:
            newest = self._root.snapshots.latest()
            if newest is not None and newest.uuid == snapshot.uuid:
                return Committed(snapshot)
            if newest == parent or (newest is not None and parent is not None and newest.uuid == parent.uuid):
                return None
            there = self._find_on_server(snapshot.id)
        except (StorageError, CorruptionError, TableNotFoundError) as error:
            return Unknown(f"the server did not report the result, and its history is unreadable: {error}", snapshot.id)
        if there is None:
            reason = "the history has continued, and the snapshot has expired or was rolled back"
            return Unknown(reason, snapshot.id)
        if there.uuid == snapshot.uuid:
            return Committed(snapshot)
        return LostRace(f"snapshot {snapshot.id} is {there.commit_user}'s")

    def _find_on_server(self, snapshot_id: int) -> Snapshot | None:
        path = self._table.path("snapshots", str(snapshot_id))
        try:
            found = bytes(self._table.client.get(path, SnapshotAnswer).snapshot)
        except RestRefusedError as refused:
            if refused.status == 404 and refused.resource == "SNAPSHOT":
                return None
            raise
        return None if found == b"null" else snapshot_from_json(found, path)

    def _error(self, refused: RestRefusedError) -> PaimonError:
        return self._table.missing(refused) if refused.status == 404 else refused


def statistics(table: OpenTable, snapshot: Snapshot) -> list[dict[str, Any]]:
    """The changes of a snapshot to each of its partitions, in the form of the server. Cost, Raises: as
    `partition_changes`"""
    changed = partition_changes(table.root, snapshot)
    zone = table.root.env.clock.local_millis() - table.root.env.clock.millis()
    specs = partition_specs(table.schema, changed["partition"])
    rows = []
    for spec, row in zip(specs, changed.select(list(_NAMES)).to_pylist(), strict=True):
        made = row["creation_time_millis"]
        row["creation_time_millis"] = 0 if made == ABSENT else made - zone
        rows.append({"spec": spec, **{_NAMES[name]: value for name, value in row.items()}})
    return rows


def partition_specs(schema: TableSchema, partitions: Any) -> list[dict[str, str]]:
    """Serialized partitions as strings of their values."""
    fields, options = schema.partition_fields, Options(schema.options)
    if not fields:
        return [{} for _ in range(len(partitions))]
    legacy, default_name = options.get_bool("partition.legacy-name"), options.get_str("partition.default-name")
    columns = partition_columns(schema, partitions)
    texts = [
        partition_texts(columns[field.name].combine_chunks(), field.type, legacy=legacy).to_pylist() for field in fields
    ]
    names = [field.name for field in fields]
    return [
        {name: default_name if not (text or "").strip() else text for name, text in zip(names, row, strict=True)}
        for row in zip(*texts, strict=True)
    ]
