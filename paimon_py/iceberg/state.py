"""The state of the Iceberg metadata of a table: the version that readers find, hidden rows, problems, and orphans.

Source: docs/format.md §25.9.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import numpy_values
from paimon_py.errors import CorruptionError, PaimonError
from paimon_py.html import AsPage
from paimon_py.iceberg.catalogs.open import open_catalog
from paimon_py.iceberg.directory import IcebergDirectory, named_files, version_numbers
from paimon_py.iceberg.metadata import IcebergVersion
from paimon_py.iceberg.publication import IcebergPublisher
from paimon_py.iceberg.values import DATA
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.iceberg import decimal_partitions, hidden_vectors, iceberg_options, writes_iceberg
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Snapshot
from paimon_py.storage.store import FileMissingError, FileStatus

_MEND = "; table.publish_iceberg() repairs the metadata"


class IcebergState(AsPage, msgspec.Struct, frozen=True, kw_only=True):
    """The state of the Iceberg metadata of a table.

    Attributes:
        enabled: whether commits publish Iceberg metadata.
        version: the version that readers find, which is the id of the Paimon snapshot; None if there is none.
        path: the metadata file of this version.
        snapshot_id: the Paimon snapshot that readers see; None if the version belongs to no snapshot of the table.
        lag: the number of Paimon snapshots committed after it; None if readers see no snapshot of the table.
        catalog_id: the snapshot that the Hive or REST catalog of Iceberg shows; None without a catalog.
        format_version: the format version of the metadata that readers find.
        hidden_rows: the number of rows in files that readers do not see.
        not_seen: differences between the latest snapshot and what readers see, each with its fix.
        problems: the problems of the metadata, each with its fix.
    """

    enabled: bool
    version: int | None = None
    path: str | None = None
    snapshot_id: int | None = None
    lag: int | None = None
    catalog_id: int | None = None
    format_version: int | None = None
    hidden_rows: int = 0
    not_seen: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def iceberg_state(table: OpenTable) -> IcebergState:
    """Compare the metadata that a reader finds with the table.

    Cost: two lists and some gets, a request to the Iceberg catalog; the manifests of the Iceberg snapshot and of the
        latest Paimon snapshot.
    Raises: CorruptionError, StorageError of the Paimon table; errors of the Iceberg metadata are listed as problems.
    """
    if not writes_iceberg(table.schema):
        return IcebergState(enabled=False)
    latest = table.root.snapshots.latest()
    directory = IcebergPublisher(table).directory
    version, problems = _find(directory)
    if latest is None or version is None:
        if latest is not None and not problems:
            problems = ("there is no Iceberg metadata yet: the next commit or table.publish_iceberg() writes it",)
        return IcebergState(enabled=True, problems=problems, not_seen=_general(table.schema))
    shown = table.root.snapshots.find(version.number)
    if shown is None or not version.is_of(shown):
        problems += (_foreign_version(version, shown),)
        shown = None
    if not version.lies_at(table.root.path):
        place = version.value.get("location")
        problems += (f"version {version.number} names files in {place}: the table was renamed{_MEND}",)
    catalog_id, unpublished = _ask_catalog(table, version.number)
    seen, broken = _seen_paths(directory, version, table.schema)
    hidden_rows, hidden = _count_hidden(table, latest, seen)
    return IcebergState(
        enabled=True, version=version.number, path=directory.version_path(version.number),
        snapshot_id=None if shown is None else shown.id, lag=None if shown is None else latest.id - shown.id,
        catalog_id=catalog_id, format_version=version.format_version, hidden_rows=hidden_rows,
        not_seen=hidden + _general(table.schema), problems=problems + broken + unpublished,
    )  # fmt: skip


def iceberg_orphans(table: OpenTable) -> list[FileStatus]:
    """The files of Iceberg metadata that no version references: failed publications and dead processes left them.

    Cost: two lists, a get for each version, manifest list and manifest of deletes.
    Raises: CorruptionError, StorageError: the orphans cannot be determined.
    """
    if not writes_iceberg(table.schema):
        return []
    directory = IcebergPublisher(table).directory
    listed = [one for one in table.root.store.list(directory.path) if not one.is_directory]
    lists = [
        one["manifest-list"]
        for number in version_numbers(status.name for status in table.root.store.list(directory.path))
        if (version := directory.version(number)) is not None
        for one in version.snapshots
    ]
    named = named_files(directory, lists, table.schema)
    return [status for status in listed if status.name.endswith((".avro", ".puffin")) and status.name not in named]


def _find(directory: IcebergDirectory) -> tuple[IcebergVersion | None, tuple[str, ...]]:
    """The version that a reader finds: the one in the hint, or a later one that follows without a gap."""
    numbers = set(version_numbers(directory.list_names()))
    number = directory.hint()
    if number is None:
        number = max(numbers, default=0)
    while number + 1 in numbers:
        number += 1
    try:
        version = directory.version(number)
    except CorruptionError as error:
        return None, (f"{error}{_MEND}",)
    if version is None and number:
        return None, (f"version-hint.text names version {number}, which does not exist{_MEND}",)
    return version, ()


def _foreign_version(version: IcebergVersion, shown: Snapshot | None) -> str:
    if version.value.get("current-snapshot-id") != version.number:
        return f"version {version.number} was written by another writer of Iceberg tables{_MEND}"
    what = "a snapshot that no longer exists" if shown is None else "a snapshot that was rolled back"
    return f"version {version.number} belongs to {what}{_MEND}"


def _ask_catalog(table: OpenTable, number: int) -> tuple[int | None, tuple[str, ...]]:
    """The snapshot that the Iceberg catalog shows, and the problems with it."""
    try:
        catalog = open_catalog(table)
        if catalog is None:
            return None, ()
        shown = catalog.shown_id()
    except PaimonError as error:
        return None, (f"the Iceberg catalog cannot be reached: {error}",)
    if shown == number:
        return shown, ()
    what = "does not have the table" if shown is None else f"shows snapshot {shown}, not {number}"
    return shown, (f"the Iceberg catalog {what}{_MEND}",)


def _seen_paths(
    directory: IcebergDirectory, version: IcebergVersion, schema: TableSchema
) -> tuple[set[str], tuple[str, ...]]:
    """The names of the data files that readers see, and the problems found."""
    current = version.current
    if current is None:
        return set(), ()
    try:
        manifests = [one for one in directory.manifests(current["manifest-list"]) if one.content == DATA]
        entries = [entry for one in manifests for entry in directory.entries(one, schema)]
    except (CorruptionError, FileMissingError) as error:
        return set(), (f"readers cannot read version {version.number}: {error}{_MEND}",)
    return {entry.file.path.rpartition("/")[2] for entry in entries if entry.is_live}, ()


def _count_hidden(table: OpenTable, latest: Snapshot, seen: set[str]) -> tuple[int, tuple[str, ...]]:
    """The number of rows in files that readers do not see, and how to show them."""
    live = table.root.manifests.live_entries(latest)
    known = numpy_values(pc.is_in(live.names(), value_set=pa.array(sorted(seen), pa.string())))
    places = np.flatnonzero(~known)
    rows = int(live.row_count[places].sum())
    if not len(places):
        return 0, ()
    what = f"{rows} rows in {len(places)} files are not seen"
    if not table.schema.primary_keys:
        return rows, (f"{what}: they were committed later, or the metadata does not belong to the table",)
    options = iceberg_options(table.schema)
    if not options.shows_vectors and bool((live.level[places] == options.top_level).any()):
        return rows, (f"{what}, some of them from the last full compaction: table.publish_iceberg() shows those",)
    if options.shows_vectors:
        return rows, (f"{what}: readers see rows that lookup compaction moved above level 0; run table.compact()",)
    return rows, (f"{what}: readers see the result of the last full compaction; run table.compact(full=True)",)


def _general(schema: TableSchema) -> tuple[str, ...]:
    """Data that readers do not see correctly in any snapshot of the table."""
    vectors, decimals = hidden_vectors(schema), decimal_partitions(schema)
    found: Sequence[str] = () if vectors is None else (f"readers still see deleted rows: {vectors}",)
    if decimals:
        names = ", ".join(decimals)
        found = (*found, f"most readers cannot read a table that is partitioned by a DECIMAL column ({names})")
    return tuple(found)
