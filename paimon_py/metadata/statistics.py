"""The statistics files of a table, each referenced by snapshots.

Source: format.md §4.2; Java `StatsFileHandler`, `StatsFile`.
"""

from __future__ import annotations

from paimon_py.codec.statistics_json import schema_id_of, statistics_from_json, statistics_to_json
from paimon_py.errors import StorageError
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import statistics_path
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.spec.statistics import Statistics
from paimon_py.storage.store import FileMissingError


def read_statistics(root: TableRoot, snapshot: Snapshot) -> Statistics | None:
    """The statistics that a snapshot references; None if there are none.

    Raises:
        SnapshotExpiredError: the snapshot has expired in the meantime.
        CorruptionError: the file is damaged, or missing although the snapshot exists.
    """
    if snapshot.statistics is None:
        return None
    path = statistics_path(root.path, snapshot.statistics)
    data = statistics_bytes(root, snapshot)
    return statistics_from_json(data, path, root.schemas.get(schema_id_of(data, path)))


def statistics_bytes(root: TableRoot, snapshot: Snapshot) -> bytes:
    """The contents of the statistics file that a snapshot references. Raises: as `read_statistics`"""
    assert snapshot.statistics is not None
    try:
        return root.store.get(statistics_path(root.path, snapshot.statistics))
    except FileMissingError as error:
        raise root.missing(Base.of(snapshot), error) from error


def write_statistics(root: TableRoot, statistics: Statistics) -> str:
    """Write a new statistics file, which no snapshot references yet; bounds are strings. Returns: its name.

    Raises:
        TableNotFoundError: the table was renamed or dropped.
        StorageError: the written file is deleted.
    """
    name = f"stat-{root.env.ids.uuid()}-0"
    try:
        root.store.put(statistics_path(root.path, name), statistics_to_json(statistics), within=root.path)
    except FileMissingError:
        root.schemas.latest()
        raise
    except StorageError:
        delete_statistics(root, name)
        raise
    return name


def delete_statistics(root: TableRoot, name: str) -> None:
    """Delete a statistics file that no snapshot references; if it cannot be deleted it stays as an orphan."""
    try:
        root.store.delete(statistics_path(root.path, name))
    except StorageError:
        return
