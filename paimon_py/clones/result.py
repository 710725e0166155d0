"""The result of a clone."""

from __future__ import annotations

import msgspec


class CloneResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `Catalog.clone_table`, or of its dry run.

    Attributes:
        table: name of the new table.
        source: location of the table that was cloned.
        snapshot_id: the newest snapshot of the clone; None if the source is empty.
        snapshots: number of snapshots.
        tags: names of the tags, sorted.
        files: number of files of data, indexes, statistics and manifests.
        size_bytes: total size of these files, as far as metadata state it: without manifests.
        dry_run: whether nothing was copied.
    """

    table: str
    source: str
    snapshot_id: int | None
    snapshots: int
    tags: tuple[str, ...]
    files: int
    size_bytes: int
    dry_run: bool
