"""All keys of a snapshot, with the partition and bucket of each: what writers must know where keys move.

Source: Java `IndexBootstrap`.
"""

from __future__ import annotations

from collections.abc import Iterator

from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.plan_snapshot import plan_snapshot
from paimon_py.scan.read import read_split
from paimon_py.scan.request import Request
from paimon_py.spec.snapshot import Snapshot
from paimon_py.write.cross_partition import LiveKeys, ReadKeys


def live_keys(table: OpenTable) -> ReadKeys:
    """Reads the keys of snapshots, merged, of all levels. With `cross-partition-upsert.index-ttl` splits are left out
    all files of which are older: their keys may lie twice.

    Cost: reads the key columns of the table, and what else its engine needs to say which keys are alive.
    """
    request = Request(schema=table.schema, columns=table.schema.primary_keys, every_level=True)
    age = table.options.find_duration("cross-partition-upsert.index-ttl")

    def read(snapshot: Snapshot) -> Iterator[LiveKeys]:
        young = None if age is None else _made_since(table.root, snapshot, table.root.env.clock.local_millis() - age)
        for split in plan_snapshot(table.root, request, snapshot).splits:
            if young is None or any(file.name in young for file in split.files):
                for batch in read_split(table.root, request, split):
                    yield LiveKeys(split.partition, split.bucket, batch.columns)

    return read


def _made_since(root: TableRoot, snapshot: Snapshot, oldest_millis: int) -> set[str]:
    """The files that are not older; one that does not say when it was made counts as new."""
    entries = root.manifests.live_entries(snapshot).entries()
    made = ((entry.file.name, entry.file.creation_time_millis) for entry in entries)
    return {name for name, millis in made if millis is None or millis >= oldest_millis}
