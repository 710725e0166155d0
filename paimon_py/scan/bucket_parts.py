"""The live files of a snapshot, some buckets at a time, for plans that must not hold all files in memory.

The entries of all manifests are first copied to temporary files: the ADD and the DELETE of a data file to the same one.
Each temporary file is then folded by itself.

Worked example: 10,000,000 entries in 5,000 buckets go to 256 temporary files of about 20 buckets. If
there are only two buckets, two files have entries. In a table without keys each of them is then cut once more, by the
names of data files, into 256 files. In a table with keys it is not, because a section needs all files of its bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import BinaryIO
from zlib import crc32

import numpy as np

from paimon_py.codec.columns import Ints
from paimon_py.codec.manifest.columns import EntryColumns, concat
from paimon_py.codec.manifest.copy import copy_manifests
from paimon_py.codec.manifest.entries import read_manifests
from paimon_py.env import SpillFile, SpillPlace
from paimon_py.errors import StorageError
from paimon_py.logs import SPILLS, fields
from paimon_py.lsm.spill_errors import spilling
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.fold import live
from paimon_py.metadata.manifests import PART_ENTRIES, entry_parts, fits_in_memory
from paimon_py.metadata.open_table import OpenTable
from paimon_py.scan.plan_snapshot import files_stand_alone
from paimon_py.spec.snapshot import Snapshot

_FILES_MAX = 256
"""Temporary files that are open at the same time."""

_LENGTH_BYTES = 8
_WHOLE = 1 << 40

Numbering = Callable[[EntryColumns], Ints]
"""A number for each entry; entries of the same data file have the same number."""


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
    parts = _Parts(table.root.env.spill)
    cuts = files_stand_alone(table.schema)
    try:
        for file in parts.distribute(entry_parts(manifests, snapshot, entry_filter), by_bucket):
            if file.entry_count <= 2 * PART_ENTRIES or not cuts:
                yield live(file.read())
                continue
            for piece in parts.distribute(file.frames(), by_name):
                yield live(piece.read())
    finally:
        parts.delete()


def by_bucket(entries: EntryColumns) -> Ints:
    """A number for the partition and bucket of each entry."""
    codes, values = entries.distinct("partition")
    hashes = np.array([crc32(value) for value in values.to_pylist()], np.int64)
    numbers: Ints = hashes[codes] + entries.bucket * 2_654_435_761
    return numbers


def by_name(entries: EntryColumns) -> Ints:
    """A number for the name of the data file of each entry."""
    return np.fromiter((crc32(name.encode()) for name in entries.names().to_pylist()), np.int64, len(entries))


class _PartFile:
    """A temporary file of manifests, each preceded by its length."""

    def __init__(self, file: SpillFile) -> None:
        self.file = file
        self.entry_count = 0

    def frames(self) -> Iterator[EntryColumns]:
        """The entries, in parts as they were written.

        Raises: StorageError if the file is not as it was written.
        """
        read = 0
        for data in self._manifests():
            entries = read_manifests([(self.file.path, data)])
            read += len(entries)
            yield entries
        if read != self.entry_count:
            raise StorageError(
                f"{self.file.path} had {self.entry_count} manifest entries, now it has {read}: plan the scan again",
                path=self.file.path, operation="spill", transient=False,
            )  # fmt: skip

    def read(self) -> EntryColumns:
        """All entries. Raises: as `frames`"""
        return concat(list(self.frames()))

    def _manifests(self) -> Iterator[bytes]:
        with _spilling(self.file.path), self.file.open_read() as source:
            while length := source.read(_LENGTH_BYTES):
                yield source.read(int.from_bytes(length, "big"))


class _Parts:
    """The temporary files of one plan; its creator must call `delete` at the end."""

    def __init__(self, place: SpillPlace) -> None:
        self._place = place
        self._made: list[SpillFile] = []

    def distribute(self, parts: Iterable[EntryColumns], number_of: Numbering) -> list[_PartFile]:
        """Write entries to temporary files by their number; those files that have entries."""
        found: dict[int, _PartFile] = {}
        with ExitStack() as stack, _spilling("a temporary directory"):
            sinks: dict[int, BinaryIO] = {}
            for entries in parts:
                numbers = number_of(entries) % _FILES_MAX
                order = np.argsort(numbers, kind="stable")
                present, starts = np.unique(numbers[order], return_index=True)
                for number, rows in zip(present.tolist(), np.split(order, starts[1:]), strict=True):
                    if number not in found:
                        found[number] = _PartFile(self._create())
                        sinks[number] = stack.enter_context(found[number].file.open_write())
                    found[number].entry_count += len(rows)
                    for copied in copy_manifests(entries.take(rows), "zstd", _WHOLE):
                        sinks[number].write(len(copied.data).to_bytes(_LENGTH_BYTES, "big"))
                        sinks[number].write(copied.data)
            stack.close()
        said = fields(None, parts=len(found))
        SPILLS.info("the manifests of a plan went to disk, in %d parts", len(found), extra=said)
        return list(found.values())

    def delete(self) -> None:
        """Delete all temporary files."""
        for file in self._made:
            with suppress(OSError):
                file.delete()
        self._made.clear()

    def _create(self) -> SpillFile:
        self._made.append(self._place.create())
        return self._made[-1]


def _spilling(path: str) -> AbstractContextManager[None]:
    return spilling("the plan of a scan", path, OSError)
