"""All keys of a snapshot with their partitions and buckets, for writers of cross-partition tables.

Source: Java `IndexBootstrap`.
"""

from __future__ import annotations

from collections.abc import Iterator

from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.plan_snapshot import plan_snapshot
from paimon_py.scan.read import read_split
from paimon_py.scan.request import Request
from paimon_py.scan.split import Split
from paimon_py.spec.snapshot import Snapshot
from paimon_py.write.cross_partition import LiveKeys, ReadKeys


def live_keys(table: OpenTable) -> ReadKeys:
    """A reader of the merged keys of snapshots, at all levels.

    Cost: reads the key columns of the table, and the columns that its engine needs to find live keys.
    """

    def read(snapshot: Snapshot) -> Iterator[LiveKeys]:
        for split in key_splits(table, snapshot):
            yield from keys_of_split(table, split)

    return read


def key_splits(table: OpenTable, snapshot: Snapshot) -> Iterator[Split]:
    """The splits with the keys of a snapshot. With `cross-partition-upsert.index-ttl`, splits that contain only older
    files are skipped; their keys may exist twice afterwards.
    """
    age = table.options.find_duration("cross-partition-upsert.index-ttl")
    young = None if age is None else _made_since(table.root, snapshot, table.root.env.clock.local_millis() - age)
    for split in plan_snapshot(table.root, _request(table), snapshot).splits:
        if young is None or any(file.name in young for file in split.files):
            yield split


def keys_of_split(table: OpenTable, split: Split) -> Iterator[LiveKeys]:
    """The merged keys of a split."""
    for batch in read_split(table.root, _request(table), split):
        yield LiveKeys(split.partition, split.bucket, batch.columns)


def _request(table: OpenTable) -> Request:
    return Request(schema=table.schema, columns=table.schema.primary_keys, every_level=True)


def _made_since(root: TableRoot, snapshot: Snapshot, oldest_millis: int) -> set[str]:
    """The files that are not older; files without a creation time count as new."""
    entries = root.manifests.live_entries(snapshot).entries()
    made = ((entry.file.name, entry.file.creation_time_millis) for entry in entries)
    return {name for name, millis in made if millis is None or millis >= oldest_millis}
