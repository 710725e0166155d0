"""Temporary files of manifest entries, divided by number: each can be read and folded by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import BinaryIO, NamedTuple
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

FILES_MAX = 256
"""Temporary files that are open at the same time."""

_LENGTH_BYTES = 8
_WHOLE = 1 << 40


class NumberedEntries(NamedTuple):
    """Entries with the same number: how many they are, and a manifest that contains them."""

    number: int
    entry_count: int
    manifest: bytes


def by_bucket(entries: EntryColumns) -> Ints:
    """A number for the partition and bucket of each entry."""
    codes, values = entries.distinct("partition")
    hashes = np.array([crc32(value) for value in values.to_pylist()], np.int64)
    numbers: Ints = hashes[codes] + entries.bucket * 2_654_435_761
    return numbers


def by_name(entries: EntryColumns) -> Ints:
    """A number for the name of the data file of each entry."""
    return np.fromiter((crc32(name.encode()) for name in entries.names().to_pylist()), np.int64, len(entries))


def divide_entries(entries: EntryColumns, numbers: Ints) -> Iterator[NumberedEntries]:
    """The entries by their numbers, in order; several manifests for a number if their schemas do not fit into one.

    Cost: 0.5 µs per entry, plus compression.
    """
    order = np.argsort(numbers, kind="stable")
    present, starts = np.unique(numbers[order], return_index=True)
    for number, rows in zip(present.tolist(), np.split(order, starts[1:]), strict=True):
        for copied in copy_manifests(entries.take(rows), "zstd", _WHOLE):
            yield NumberedEntries(number, len(copied.columns), copied.data)


class PartFile:
    """A temporary file of manifests, each preceded by its length."""

    def __init__(self, file: SpillFile) -> None:
        self.file = file
        self.entry_count = 0
        self.byte_count = 0

    def frames(self) -> Iterator[EntryColumns]:
        """The entries, in parts as they were written. Raises: as `manifests`"""
        for data in self.manifests():
            yield read_manifests([(self.file.path, data)])

    def read(self) -> EntryColumns:
        """All entries. Raises: as `frames`"""
        return concat(list(self.frames()))

    def manifests(self) -> Iterator[bytes]:
        """The manifests, in the order in which they were written.

        Raises: StorageError if the file does not have the size with which it was written.
        """
        read = 0
        with _spilling(self.file.path), self.file.open_read() as source:
            while len(length := source.read(_LENGTH_BYTES)) == _LENGTH_BYTES:
                data = source.read(int.from_bytes(length, "big"))
                if len(data) < int.from_bytes(length, "big"):
                    break
                read += _LENGTH_BYTES + len(data)
                yield data
        if read != self.byte_count:
            raise StorageError(
                f"{self.file.path} had {self.byte_count:,} bytes of manifests, now {read:,}: plan the scan again",
                path=self.file.path, operation="spill", transient=False,
            )  # fmt: skip


class PartFiles:
    """The temporary files of one plan; its creator must call `delete` at the end."""

    def __init__(self, place: SpillPlace) -> None:
        self._place = place
        self._made: list[SpillFile] = []

    def distribute(self, parts: Iterable[NumberedEntries]) -> list[PartFile]:
        """Write entries to temporary files, one for each number, at most `FILES_MAX`; the files in order of numbers."""
        found: dict[int, PartFile] = {}
        sinks: dict[int, BinaryIO] = {}
        with ExitStack() as stack:
            for number, count, manifest in parts:
                with _spilling("a temporary directory"):
                    if number not in found:
                        found[number] = PartFile(self._create())
                        sinks[number] = stack.enter_context(found[number].file.open_write())
                    found[number].entry_count += count
                    found[number].byte_count += _LENGTH_BYTES + len(manifest)
                    sinks[number].write(len(manifest).to_bytes(_LENGTH_BYTES, "big"))
                    sinks[number].write(manifest)
            with _spilling("a temporary directory"):
                stack.close()
        said = fields(None, parts=len(found))
        SPILLS.info("the manifests of a plan went to disk, in %d parts", len(found), extra=said)
        return [found[number] for number in sorted(found)]

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
