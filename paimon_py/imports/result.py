"""What an import did, or would do."""

from __future__ import annotations

import msgspec

from paimon_py.spec.types import Field


class UnfitFile(msgspec.Struct, frozen=True):
    """A file that cannot be brought the way that was asked for.

    Attributes:
        path: the file.
        reason: what does not fit.
    """

    path: str
    reason: str


class ImportResult(msgspec.Struct, frozen=True, kw_only=True):
    """What an import brought, or would bring if it was a dry run.

    Attributes:
        table: name of the table.
        is_new: whether the table was made by the call, or would be.
        dry_run: whether nothing was done.
        by_reference: whether the files stay where they are.
        files, rows, size_bytes: what is brought, with what it holds.
        partitions: how many partitions these are.
        known_files: files that an earlier call brought.
        columns: the columns of the table.
        partition_keys: those of them whose values are in the names of directories.
        misfits: files that do not fit; without a dry run there are none, since they are refused.
        snapshot_id: the snapshot that holds the files, None if there was nothing to bring.
        copied_because: why the rows of a table of another format are written anew where nobody asked for it.
    """

    table: str
    is_new: bool
    dry_run: bool
    by_reference: bool
    files: int
    rows: int
    size_bytes: int
    partitions: int
    known_files: int
    columns: tuple[Field, ...]
    partition_keys: tuple[str, ...]
    misfits: tuple[UnfitFile, ...] = ()
    snapshot_id: int | None = None
    copied_because: str | None = None
