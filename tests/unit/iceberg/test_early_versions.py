"""Versions that continue the one of the same table object, made from the entries of its commit."""

from __future__ import annotations

import pytest
from unit.iceberg.reader import seen
from unit.iceberg.support import DIRECTORY, VECTORS, World, data, stored

from paimon_py import AddColumn, col
from paimon_py.iceberg.early_versions import EarlyVersions

KINDS = {
    "append": {},
    "keyed": {"key": ["k"], "write-only": "false", "num-sorted-run.compaction-trigger": "2"},
    "vectors": {**VECTORS, "bucket": "-1"},
    "partitions": {"partition_by": ["v"], "metadata.stats-dense-store": "false"},
    "all bounds": {"metadata.stats-mode": "full"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_entries_of_a_commit_are_those_of_its_manifests(kind, monkeypatch):
    compared = []
    make = EarlyVersions._make

    def compare(self, snapshot, base, delta):
        manifests = self._table.root.manifests
        read = manifests.read_entries(manifests.read_list(snapshot.delta_manifest_list)).entries()
        compared.append(snapshot.commit_kind)
        assert list(delta) == read
        return make(self, snapshot, base, delta)

    monkeypatch.setattr(EarlyVersions, "_make", compare)
    world = World(**KINDS[kind])
    table = world.table
    for number in range(3):
        table.write_arrow(data(number, number + 10, v="ab"[number % 2]))
    table.alter(AddColumn("w", "INT"))
    table.write_arrow(data(20))
    table.delete(col("k") == 10)
    table.write_arrow(data(21), overwrite={} if kind != "partitions" else {"v": "a"})
    table.compact(full=True)
    assert len(compared) >= 3
    rows = sorted(([row["k"], row["v"]] for row in table.to_arrow().to_pylist()), key=repr)
    assert [row[:2] for row in seen(world.store, DIRECTORY)[1]] == rows == [row[:2] for row in stored(table)]


def test_the_entries_of_a_commit_are_not_held_after_its_verb():
    for world in (World(**{"metadata.iceberg.storage": None}), World()):
        for number in range(3):
            world.table.write_arrow(data(number))
            assert world.table._root.maintenance.committed_delta is None
