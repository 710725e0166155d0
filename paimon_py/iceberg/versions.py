"""Makes the parts of a new version: manifests, list and snapshot, from the previous version or from the table alone.

Source: docs/format.md §25.3, §25.5; Java `IcebergCommitCallback`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from paimon_py.iceberg.avro_schemas import LINEAGE_VERSION
from paimon_py.iceberg.directory import IcebergDirectory, MetadataWriter
from paimon_py.iceberg.fields import last_column_id, schema_value
from paimon_py.iceberg.lineage import assign_row_ids
from paimon_py.iceberg.manifest_changes import ChangedManifests, ManifestChange
from paimon_py.iceberg.metadata import (
    IDENTITY,
    IcebergSnapshot,
    IcebergVersion,
    MetadataParts,
    identity_of,
    metadata_value,
    refs_of,
)
from paimon_py.iceberg.shown_files import ShownFiles
from paimon_py.iceberg.values import DATA, DELETES, IcebergEntry, IcebergFile, IcebergManifest
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.data_file import ManifestEntry
from paimon_py.spec.iceberg import IcebergOptions
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import CommitKind, Snapshot, TagValue

_SIZE = "total-files-size"


class WholeVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version that is made from the table alone.

    Attributes:
        uuid: the table's id for readers.
        first_row_id: the first row id that may be assigned.
        top_levels: see `ShownFiles.whole`.
    """

    uuid: str
    first_row_id: int = 0
    top_levels: bool = False


class VersionMaker:
    """Makes the value of the version of one Paimon snapshot, and writes the files that the value references.

    `.snapshot` is the Paimon snapshot.
    """

    def __init__(
        self, root: TableRoot, directory: IcebergDirectory, schema: TableSchema, options: IcebergOptions,
        snapshot: Snapshot,
    ) -> None:
        """`schema`: the latest one, which determines partition keys and options."""
        self._root = root
        self._directory = directory
        self._schema = schema
        self._options = options
        self.snapshot = snapshot
        self._shown = ShownFiles(OpenTable(root, schema), options)
        self._schemas: list[TableSchema] | None = None
        self.writer = MetadataWriter(directory, schema, options, snapshot.id, root.env.ids)

    def whole(self, how: WholeVersion) -> dict[str, Any]:
        """The value of a version that contains only this snapshot.

        Raises: SnapshotExpiredError, CorruptionError, StorageError
        """
        number = self.snapshot.id
        files = self._shown.whole(self.snapshot, top_levels=how.top_levels)
        manifests = self.writer.manifests([IcebergEntry.new(file, number) for file in files], DATA)
        touched = {file.partition for file in files}
        changed = ChangedManifests(
            manifests=manifests, added=files, removed=[], partition_count=len(touched), rewrote=False
        )
        vectors = self._vectors([file.path for file in files])
        made, free = self._assign_row_ids([*manifests, *vectors], how.first_row_id)
        snapshot = self._value(made, changed, None, (how.first_row_id, free))
        schemas = [schema_value(one) for one in self._all_schemas()]
        return self._metadata(how.uuid, schemas, [snapshot], free, 0)

    def on(
        self, base: IcebergVersion, before: Snapshot, expired: int | None,
        listed: Sequence[IcebergManifest] | None = None, delta: Sequence[ManifestEntry] | None = None,
    ) -> dict[str, Any] | None:  # fmt: skip
        """The value of a version that continues the one of the previous snapshot; None if its schemas are not ours.

        Args:
            expired: the number of oldest snapshots to leave out.
            listed: the manifests of the base, if it is known and contains all schemas of the table.
            delta: the entries of the snapshot's delta, if they are known.

        Raises: SnapshotExpiredError, CorruptionError, StorageError; FileMissingError if the previous version is broken.
        """
        current = base.current
        assert current is not None
        if listed is None:
            listed = found = list[IcebergManifest]()
            read = [lambda: found.extend(self._directory.manifests(current["manifest-list"])), self._read_schemas]
            self._directory.at_once(read)
        else:
            self._schemas = [self._root.schemas.get(int(one["schema-id"])) for one in base.schemas]
        if not self._knows_schemas_of(base):
            return None
        change = ManifestChange(self._directory, self.writer, self._schema, self._options, self.snapshot.id)
        changes = self._shown.changes(self.snapshot, delta)
        changed = change.run([one for one in listed if one.content == DATA], changes)
        if self._shown.vectors_changed(before, self.snapshot):
            vectors = self._vectors(None)
        else:
            vectors = [one for one in listed if one.content == DELETES]
        first = base.next_row_id or 0
        made, free = self._assign_row_ids([*changed.manifests, *vectors], first)
        snapshot = self._value(made, changed, current, (first, free))
        known = {one["schema-id"] for one in base.schemas}
        newer = [schema_value(one) for one in self._all_schemas() if one.id not in known]
        kept = list(base.snapshots)[expired or 0 :]
        return self._metadata(
            base.uuid, [*base.schemas, *newer], [*kept, snapshot], free, int(base.value["last-column-id"])
        )

    def _knows_schemas_of(self, base: IcebergVersion) -> bool:
        """Whether the schemas of a version are those of the table."""
        mine = {schema.id: schema_value(schema) for schema in self._all_schemas()}
        return all(mine.get(one["schema-id"]) == _comparable(one) for one in base.schemas)

    def _all_schemas(self) -> list[TableSchema]:
        if self._schemas is None:
            self._read_schemas()
        assert self._schemas is not None
        return self._schemas

    def _read_schemas(self) -> None:
        ids = self._root.schemas.ids()
        self._schemas = [self._root.schemas.get(number) for number in ids if number <= self._schema.id]

    def _vectors(self, paths: Sequence[str] | None) -> list[IcebergManifest]:
        """New manifests of all deletion vectors, which are copied into a new Puffin file."""
        found = self._shown.vectors(self.snapshot, paths)
        if not found:
            return []
        path, size_bytes, offsets = self.writer.vectors([blob for blob, _ in found])
        files = [
            msgspec.structs.replace(file, path=path, size_bytes=size_bytes, offset=offset, length=len(blob.data))
            for (blob, file), offset in zip(found, offsets, strict=True)
        ]
        return self.writer.manifests([IcebergEntry.new(file, self.snapshot.id) for file in files], DELETES)

    def _assign_row_ids(self, manifests: list[IcebergManifest], first: int) -> tuple[list[IcebergManifest], int]:
        if self._options.format_version < LINEAGE_VERSION:
            return manifests, first
        return assign_row_ids(manifests, first)

    def _value(
        self, manifests: Sequence[IcebergManifest], changed: ChangedManifests, before: IcebergSnapshot | None,
        row_ids: tuple[int, int],
    ) -> dict[str, Any]:  # fmt: skip
        snapshot = self.snapshot
        parent = snapshot.id - 1 if snapshot.id > 1 else None
        value: dict[str, Any] = {"sequence-number": snapshot.id, "snapshot-id": snapshot.id}
        if parent is not None:
            value["parent-snapshot-id"] = parent
        value |= {
            "timestamp-ms": snapshot.time_millis,
            "summary": self._summary(manifests, changed, before),
            "manifest-list": self.writer.manifest_list(manifests, parent),
            "schema-id": snapshot.schema_id,
        }
        if self._options.format_version >= LINEAGE_VERSION:
            value |= {"first-row-id": row_ids[0], "added-rows": row_ids[1] - row_ids[0]}
        return value

    def _summary(
        self, manifests: Sequence[IcebergManifest], changed: ChangedManifests, before: IcebergSnapshot | None
    ) -> dict[str, str]:
        added, removed = changed.added, changed.removed
        data = [one for one in manifests if one.content == DATA]
        deletes = [one for one in manifests if one.content == DELETES]
        added_bytes, removed_bytes = _bytes(added), sum(file.size_bytes for file in removed)
        bytes_before = 0 if before is None else int(before.get("summary", {}).get(_SIZE, 0))
        numbers = {
            "added-data-files": len(added),
            "added-records": sum(file.row_count for file in added),
            "added-files-size": added_bytes,
            "deleted-data-files": len(removed),
            "deleted-records": sum(file.row_count for file in removed),
            "removed-files-size": removed_bytes,
            "changed-partition-count": changed.partition_count,
            "total-records": sum(one.live_rows for one in data),
            "total-data-files": sum(one.live_files for one in data),
            _SIZE: max(bytes_before + added_bytes - removed_bytes, 0),
            "total-delete-files": sum(one.live_files for one in deletes),
            "total-position-deletes": sum(one.live_rows for one in deletes),
            "total-equality-deletes": 0,
        }
        is_compaction = self.snapshot.commit_kind is CommitKind.COMPACT
        operation = "append" if not changed.rewrote else ("replace" if is_compaction else "overwrite")
        given = self.snapshot.properties or {}
        return {
            "operation": operation, **{name: str(number) for name, number in numbers.items()}, **given,
            IDENTITY: identity_of(self.snapshot),
        }  # fmt: skip

    def _metadata(
        self, uuid: str, schemas: Sequence[Mapping[str, Any]], snapshots: Sequence[IcebergSnapshot], free: int,
        last_column: int,
    ) -> dict[str, Any]:  # fmt: skip
        number = self.snapshot.id
        tags: list[TagValue] = []
        self._directory.at_once([self.writer.flush, lambda: tags.extend(self._root.tags.list())])
        return metadata_value(MetadataParts(
            uuid=uuid, location=self._root.path, format_version=self._options.format_version, schema=self._schema,
            schemas=schemas, last_column_id=max(last_column, last_column_id(self._all_schemas())),
            snapshots=snapshots, current=number,
            updated_millis=max(self._root.env.clock.millis(), self.snapshot.time_millis),
            refs=refs_of(snapshots, number, tags), next_row_id=free,
        ))  # fmt: skip


def _bytes(files: Sequence[IcebergFile]) -> int:
    return sum(file.size_bytes for file in files)


def with_schemas(version: IcebergVersion, table: OpenTable) -> IcebergVersion:
    """A version with the schemas of a table and its latest one as the current; the same object if it has them already.

    Raises: CorruptionError, StorageError
    """
    schemas = [table.root.schemas.get(number) for number in table.root.schemas.ids() if number <= table.schema.id]
    values = [schema_value(one) for one in schemas]
    is_current = version.value["current-schema-id"] == table.schema.id
    if is_current and [_comparable(one) for one in version.schemas] == values:
        return version
    last_column = max(int(version.value["last-column-id"]), last_column_id(schemas))
    value = {"schemas": values, "current-schema-id": table.schema.id, "last-column-id": last_column}
    return IcebergVersion(version.number, {**version.value, **value})


def _comparable(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of a version in the form of `schema_value`, without further keys."""
    return {name: schema.get(name) for name in ("type", "schema-id", "fields")}
