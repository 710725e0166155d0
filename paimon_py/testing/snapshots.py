"""Puts snapshots into a table that no commit would create, to test how they are read."""

from __future__ import annotations

from paimon_py.codec.snapshot_json import snapshot_to_json
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import snapshot_path
from paimon_py.spec.snapshot import Snapshot


def put_snapshot(root: TableRoot, snapshot: Snapshot) -> None:
    """Store a snapshot under its id, which must be free.

    Raises: AssertionError if the id is taken.
    """
    if not root.store.put_new(snapshot_path(root.branch_path, snapshot.id), snapshot_to_json(snapshot)):
        raise AssertionError(f"snapshot {snapshot.id} already exists")
