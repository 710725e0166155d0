"""Files and manifests of Iceberg metadata, as values.

Source: docs/format.md §25.2; Apache Iceberg table specification, "Manifests", "Manifest Lists".
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

import msgspec

DATA, DELETES = 0, 1
"""The content of a manifest, or of a file in it."""

PartitionValues = tuple[object, ...]
"""The values of a partition in Avro's form, one for each partition key."""


class EntryStatus(enum.IntEnum):
    """The change of a file in a snapshot."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


class IcebergFile(msgspec.Struct, frozen=True, kw_only=True):
    """A data file, or a deletion vector of one.

    Attributes:
        path: the whole path.
        format: parquet, orc, avro or puffin.
        null_counts, lower_bounds, upper_bounds: by field id; None where nothing may be said.
        referenced: of a vector: the path of its data file.
        offset, length: of a vector: its place in its file.
        first_row_id: the id of the first row; None where the manifest says it.
    """

    content: int = DATA
    path: str
    format: str
    partition: PartitionValues = ()
    row_count: int
    size_bytes: int
    null_counts: Mapping[int, int] | None = None
    lower_bounds: Mapping[int, bytes] | None = None
    upper_bounds: Mapping[int, bytes] | None = None
    referenced: str | None = None
    offset: int | None = None
    length: int | None = None
    first_row_id: int | None = None


class IcebergEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a file in a snapshot, and the snapshot that added it."""

    status: EntryStatus
    snapshot_id: int
    sequence_number: int
    file_sequence_number: int
    file: IcebergFile

    @property
    def is_live(self) -> bool:
        """Whether the file is part of the snapshot."""
        return self.status is not EntryStatus.DELETED

    @classmethod
    def new(cls, file: IcebergFile, number: int) -> IcebergEntry:
        """The entry of a file that a snapshot adds."""
        return cls(
            status=EntryStatus.ADDED, snapshot_id=number, sequence_number=number, file_sequence_number=number, file=file
        )


class PartitionRange(msgspec.Struct, frozen=True, kw_only=True):
    """The values of one partition key in a manifest, in Iceberg's binary form."""

    contains_null: bool
    contains_nan: bool | None = False
    lower: bytes | None = None
    upper: bytes | None = None


class IcebergManifest(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest as described in a manifest list; counts are of files and of rows."""

    path: str
    size_bytes: int
    content: int
    sequence_number: int
    min_sequence_number: int
    added_snapshot_id: int | None
    added_files: int
    existing_files: int
    deleted_files: int
    added_rows: int
    existing_rows: int
    deleted_rows: int
    partitions: tuple[PartitionRange, ...] | None = ()
    first_row_id: int | None = None
    spec_id: int = 0

    @property
    def live_files(self) -> int:
        """The number of its files that belong to a snapshot that lists it."""
        return self.added_files + self.existing_files

    @property
    def live_rows(self) -> int:
        """The number of rows in these files."""
        return self.added_rows + self.existing_rows


def describe(
    entries: Sequence[IcebergEntry], *, path: str, size_bytes: int, content: int, number: int,
    partitions: tuple[PartitionRange, ...],
) -> IcebergManifest:  # fmt: skip
    """The description of a manifest with these entries, at least one, that snapshot `number` writes."""
    counts = {status: [0, 0] for status in EntryStatus}
    for entry in entries:
        counts[entry.status][0] += 1
        counts[entry.status][1] += entry.file.row_count
    return IcebergManifest(
        path=path, size_bytes=size_bytes, content=content, sequence_number=number,
        min_sequence_number=min(entry.sequence_number for entry in entries), added_snapshot_id=number,
        added_files=counts[EntryStatus.ADDED][0], added_rows=counts[EntryStatus.ADDED][1],
        existing_files=counts[EntryStatus.EXISTING][0], existing_rows=counts[EntryStatus.EXISTING][1],
        deleted_files=counts[EntryStatus.DELETED][0], deleted_rows=counts[EntryStatus.DELETED][1],
        partitions=partitions,
    )  # fmt: skip
