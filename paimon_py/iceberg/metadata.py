"""A version of the Iceberg metadata: the JSON file `v<n>.metadata.json` as a value.

Source: docs/format.md §25.3; Java `IcebergMetadata`, `IcebergSnapshot`; Apache Iceberg table specification,
"Table Metadata".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from paimon_py.arguments import decoding_metadata
from paimon_py.errors import CorruptionError
from paimon_py.iceberg.avro_schemas import LINEAGE_VERSION
from paimon_py.iceberg.fields import FIRST_PARTITION_ID, partition_fields
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Snapshot, TagValue

IDENTITY = "paimon-commit-identity"
"""The summary key for the identity of the Paimon snapshot that an Iceberg snapshot represents; in Java since 2.1."""

MAIN_REF = "main"
_FOR_EVER = 9_223_372_036_854_775_807

IcebergSnapshot = Mapping[str, Any]
"""One of the `snapshots` of the metadata, as decoded from JSON."""


class IcebergVersion(msgspec.Struct, frozen=True):
    """A version: its number, which is the id of the Paimon snapshot that it was made for, and its JSON value."""

    number: int
    value: Mapping[str, Any]

    @property
    def format_version(self) -> int:
        """2 or 3."""
        return int(self.value["format-version"])

    @property
    def uuid(self) -> str:
        """The table's id for Iceberg readers."""
        return str(self.value["table-uuid"])

    @property
    def snapshots(self) -> Sequence[IcebergSnapshot]:
        """All snapshots, oldest first."""
        found: Sequence[IcebergSnapshot] = self.value["snapshots"]
        return found

    @property
    def schemas(self) -> Sequence[Mapping[str, Any]]:
        """All versions of the schema."""
        found: Sequence[Mapping[str, Any]] = self.value["schemas"]
        return found

    @property
    def current(self) -> IcebergSnapshot | None:
        """The current snapshot, which readers see; None if there is none."""
        return self.find(self.value.get("current-snapshot-id"))

    @property
    def next_row_id(self) -> int | None:
        """The first unassigned row id; None if rows have no ids."""
        found = self.value.get("next-row-id")
        return None if found is None else int(found)

    def list_names(self) -> set[str]:
        """The names of the manifest lists of all snapshots."""
        return {one["manifest-list"].rpartition("/")[2] for one in self.snapshots}

    def find(self, snapshot_id: object) -> IcebergSnapshot | None:
        """The snapshot with this id; None if the version does not contain it."""
        return next((one for one in self.snapshots if one["snapshot-id"] == snapshot_id), None)

    def lies_at(self, path: str) -> bool:
        """Whether the version describes a table in this directory; after a rename it names files in another one."""
        return plain_path(str(self.value.get("location", ""))).rstrip("/") == plain_path(path).rstrip("/")

    def is_of(self, snapshot: Snapshot) -> bool:
        """Whether the version was made for this Paimon snapshot, not by another writer or for a rolled back one."""
        current = self.current
        return self.number == snapshot.id and current is not None and stands_for(current, snapshot)


class KnownVersion(msgspec.Struct, frozen=True):
    """A version with the bytes of its file."""

    version: IcebergVersion
    data: bytes


class MetadataParts(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a new version.

    `refs`: tags by name; `uuid`: copied from the previous version.
    """

    uuid: str
    location: str
    format_version: int
    schema: TableSchema
    schemas: Sequence[Mapping[str, Any]]
    last_column_id: int
    snapshots: Sequence[IcebergSnapshot]
    current: int
    updated_millis: int
    refs: Mapping[str, Any]
    next_row_id: int | None = None


def identity_of(snapshot: Snapshot) -> str:
    """A text that distinguishes a Paimon snapshot from others with the same id."""
    return snapshot.uuid or f"{snapshot.commit_user}:{snapshot.commit_identifier}:{snapshot.time_millis}"


def stands_for(found: IcebergSnapshot, snapshot: Snapshot) -> bool:
    """Whether an Iceberg snapshot was made for a Paimon snapshot.

    Java 2.0 writes no identity. There the time of writing decides: it is before the time of a later snapshot.
    """
    if found["snapshot-id"] != snapshot.id:
        return False
    identity = found.get("summary", {}).get(IDENTITY)
    if identity is None:
        return bool(found["timestamp-ms"] >= snapshot.time_millis)
    return bool(identity == identity_of(snapshot))


def parse_version(data: bytes, path: str, number: int) -> IcebergVersion:
    """The version in a file.

    Raises: CorruptionError if no reader could use it.
    """
    with decoding_metadata(path):
        value = msgspec.json.decode(data)
        version = IcebergVersion(number, value)
        current = version.current
        for one in version.snapshots:
            _ = int(one["snapshot-id"]), int(one["timestamp-ms"]), one["manifest-list"].encode()
            _ = one.get("summary", {}).get
        _ = [int(one["schema-id"]) for one in version.schemas]
        _ = version.format_version, version.uuid, version.next_row_id
    if current is None and value.get("snapshots"):
        raise CorruptionError(f"the current snapshot of {path} is not among its snapshots", path=path)
    return version


def metadata_value(parts: MetadataParts) -> dict[str, Any]:
    """The JSON value of a version."""
    fields = partition_fields(parts.schema)
    value: dict[str, Any] = {
        "format-version": parts.format_version,
        "table-uuid": parts.uuid,
        "location": parts.location,
        "last-sequence-number": parts.current,
        "last-updated-ms": parts.updated_millis,
        "last-column-id": parts.last_column_id,
        "schemas": list(parts.schemas),
        "current-schema-id": parts.schema.id,
        "partition-specs": [{"spec-id": 0, "fields": fields}],
        "default-spec-id": 0,
        "last-partition-id": FIRST_PARTITION_ID - 1 + len(fields),
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "snapshots": list(parts.snapshots),
        "current-snapshot-id": parts.current,
    }
    if parts.format_version >= LINEAGE_VERSION:
        value["next-row-id"] = parts.next_row_id
    log = [{"snapshot-id": one["snapshot-id"], "timestamp-ms": one["timestamp-ms"]} for one in parts.snapshots]
    return {**value, "properties": {}, "refs": dict(parts.refs), "snapshot-log": log}


def encode(value: Mapping[str, Any]) -> bytes:
    """The bytes of a version."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2)


def refs_of(snapshots: Sequence[IcebergSnapshot], current: int, tags: Sequence[TagValue]) -> dict[str, Any]:
    """The refs of a version: main, and the tags whose snapshots it contains."""
    found = {one["snapshot-id"]: one for one in snapshots}
    refs: dict[str, Any] = {MAIN_REF: {"snapshot-id": current, "type": "branch"}}
    for tag in tags:
        there = found.get(tag.snapshot.id)
        if there is not None and tag.name != MAIN_REF and stands_for(there, tag.snapshot):
            refs[tag.name] = {"snapshot-id": tag.snapshot.id, "type": "tag", "max-ref-age-ms": _FOR_EVER}
    return refs


def with_tags(version: IcebergVersion, tags: Sequence[TagValue]) -> IcebergVersion:
    """A version with the refs for these tags; the same object if it has them already."""
    refs = refs_of(version.snapshots, version.number, tags)
    if refs == version.value.get("refs"):
        return version
    return IcebergVersion(version.number, {**version.value, "refs": refs})


def plain_path(path: str) -> str:
    """A path without its scheme, which may differ between writers of one table (`s3://` and `s3a://`)."""
    scheme, colon, rest = path.partition(":")
    if not colon or "/" in scheme:
        return path
    return "/" + rest.lstrip("/")
