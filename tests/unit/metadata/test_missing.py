"""Why a file is missing: the snapshots that expired say it, and the ones before them do not."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from unit.public import new_catalog

from paimon_py.errors import CorruptionError, SnapshotExpiredError
from paimon_py.metadata.missing import missing_change_error
from paimon_py.spec.layout import snapshot_path
from paimon_py.storage.store import FileMissingError


@pytest.mark.parametrize(("since", "last"), [(0, 5), (1, 4), (2, 3), (3, 3), (4, 5)])
def test_changes_expire_with_the_snapshots_after_their_beginning(tmp_path, since, last):
    """Those after `since`, up to `last`: the one at the beginning may be gone, and so may later ones."""
    table = new_catalog(str(tmp_path)).create_table("d.t", pa.schema([("k", pa.int64())]))
    for number in range(6):
        table.write_arrow([{"k": number}])
    root, kept = table._root, {}
    for number in range(1, 7):
        kept[number] = root.store.get(snapshot_path(root.path, number))
    lost = FileMissingError("data-1.parquet is missing", path="data-1.parquet", operation="get")
    for gone in itertools.combinations(range(1, 7), 2):
        for number in kept:
            path = snapshot_path(root.path, number)
            root.store.delete(path) if number in gone else root.store.put(path, kept[number])
        found = missing_change_error(root.store, root.path, since, last, lost)
        inside = [number for number in gone if since < number <= last]
        assert type(found) is (SnapshotExpiredError if inside else CorruptionError), gone
        assert not inside or found.snapshot_id == inside[0]
