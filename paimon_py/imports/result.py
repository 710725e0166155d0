"""The result of an import, or of a dry run."""

from __future__ import annotations

import msgspec

from paimon_py.spec.types import Field


class UnfitFile(msgspec.Struct, frozen=True):
    """A file that cannot be imported in the requested way.

    Attributes:
        path: the file.
        reason: why it does not fit.
    """

    path: str
    reason: str


class ImportResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an import; in a dry run, what it would do.

    Attributes:
        table: name of the table.
        is_new: whether the call created the table, or would create it.
        dry_run: whether it was a dry run, which changes nothing.
        by_reference: whether the files stay in place.
        files, rows, size_bytes: the number of imported files, their rows and their size.
        partitions: the number of partitions of these files.
        known_files: the number of files that an earlier call imported.
        columns: the columns of the table.
        partition_keys: the columns whose values are in the names of directories.
        misfits: files that do not fit; always empty without a dry run, where they raise an error.
        snapshot_id: the snapshot with the files, None if there was nothing to import.
        copied_because: why the rows of a table of another format were copied although `copy` was not given.
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
