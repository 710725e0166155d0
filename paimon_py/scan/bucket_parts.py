"""The live files of a snapshot, some buckets at a time, for plans that must not hold all files in memory.

The entries of all manifests are first copied to temporary files: the ADD and the DELETE of a data file to the same one.
Each temporary file is then folded by itself.

Worked example: 10,000,000 entries in 5,000 buckets go to 256 temporary files of about 20 buckets. If
there are only two buckets, two files have entries. In a table without keys each of them is then cut once more, by the
names of data files, into 256 files. In a table with keys it is not, because a section needs all files of its bucket.
"""

from __future__ import annotations

from collections.abc import Iterator

from paimon_py.codec.manifest.columns import EntryColumns
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.fold import live
from paimon_py.metadata.manifests import PART_ENTRIES, entry_parts, fits_in_memory
from paimon_py.metadata.open_table import OpenTable
from paimon_py.scan.part_files import FILES_MAX, NumberedEntries, PartFiles, by_bucket, by_name, divide_entries
from paimon_py.scan.plan_snapshot import files_stand_alone
from paimon_py.spec.snapshot import Snapshot


def bucket_parts(
    table: OpenTable, snapshot: Snapshot, entry_filter: EntryFilter
) -> Iterator[EntryColumns]:
    """The live files of a snapshot as `Manifests.live_entries` returns them, in parts; `keep` is not asked.

    All files of a bucket are in the same part, unless they are independent of each other: tables without keys whose
    files have all columns.

    Cost: if the entries do not fit into the cache of manifests, they are written to local disk once or twice. Memory:
        about 65,536 entries, or those of the largest bucket.
    Raises: as `live_entries`; StorageError if the local disk fails.
    """
    manifests = table.root.manifests
    if fits_in_memory(manifests, snapshot, entry_filter):
        yield manifests.live_entries(snapshot, entry_filter)
        return
    parts = PartFiles(table.root.env.spill)
    cuts = files_stand_alone(table.schema)
    try:
        for file in parts.distribute(_by_bucket(entry_parts(manifests, snapshot, entry_filter))):
            if file.entry_count <= 2 * PART_ENTRIES or not cuts:
                yield live(file.read())
                continue
            for piece in parts.distribute(_by_name(file.frames())):
                yield live(piece.read())
    finally:
        parts.delete()


def _by_bucket(parts: Iterator[EntryColumns]) -> Iterator[NumberedEntries]:
    for entries in parts:
        yield from divide_entries(entries, by_bucket(entries) % FILES_MAX)


def _by_name(parts: Iterator[EntryColumns]) -> Iterator[NumberedEntries]:
    for entries in parts:
        yield from divide_entries(entries, by_name(entries) % FILES_MAX)
