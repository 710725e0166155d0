"""Metadata tables: snapshots, schemas, options, tags, branches, consumers, statistics, aggregates.

Source: Java `SnapshotsTable`, `SchemasTable`, `OptionsTable`, `TagsTable`, `BranchesTable`, `ConsumersTable`,
`StatisticTable`, `AggregationFieldsTable`, release 2.0.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import pyarrow as pa

from paimon_py.codec.json import decode_object, flat, pretty
from paimon_py.metadata.consumers import Consumer
from paimon_py.metadata.statistics import statistics_bytes
from paimon_py.spec.layout import BRANCH_PREFIX, branch_directory, statistics_path
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Snapshot, TagValue
from paimon_py.spec.type_text import print_field, whole_type
from paimon_py.spec.types import Field
from paimon_py.storage.store import FileStatus
from paimon_py.system.metadata_table_def import (
    Columns,
    MetadataTableDef,
    RowRequest,
    TableState,
    chunks,
    fields_of,
    wall_time,
)

_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
_FIELD_OPTION_PARTS = 3

_SNAPSHOTS: Columns[Snapshot] = {
    "snapshot_id BIGINT NOT NULL": lambda one: one.id,
    "schema_id BIGINT NOT NULL": lambda one: one.schema_id,
    "commit_user STRING NOT NULL": lambda one: one.commit_user,
    "commit_identifier BIGINT NOT NULL": lambda one: one.commit_identifier,
    "commit_kind STRING NOT NULL": lambda one: one.commit_kind.value,
    "commit_time TIMESTAMP(3) NOT NULL": lambda one: wall_time(one.time_millis),
    "base_manifest_list STRING NOT NULL": lambda one: one.base_manifest_list,
    "delta_manifest_list STRING NOT NULL": lambda one: one.delta_manifest_list,
    "changelog_manifest_list STRING": lambda one: one.changelog_manifest_list,
    "total_record_count BIGINT": lambda one: one.total_record_count or 0,
    "delta_record_count BIGINT": lambda one: one.delta_record_count or 0,
    "changelog_record_count BIGINT": lambda one: one.changelog_record_count,
    "watermark BIGINT": lambda one: one.watermark,
    "next_row_id BIGINT": lambda one: one.next_row_id,
    "operation STRING": lambda one: one.operation,
}
_SCHEMAS: Columns[TableSchema] = {
    "schema_id BIGINT NOT NULL": lambda one: one.id,
    "fields STRING NOT NULL": lambda one: flat([print_field(field) for field in one.fields]),
    "partition_keys STRING NOT NULL": lambda one: flat(one.partition_keys),
    "primary_keys STRING NOT NULL": lambda one: flat(one.primary_keys),
    "options STRING NOT NULL": lambda one: flat(one.options),
    "comment STRING": lambda one: one.comment,
    "update_time TIMESTAMP(3) NOT NULL": lambda one: wall_time(one.time_millis or 0),
}
_OPTIONS: Columns[tuple[str, str]] = {
    "key STRING NOT NULL": lambda one: one[0],
    "value STRING NOT NULL": lambda one: one[1],
}
_TAGS: Columns[TagValue] = {
    "tag_name STRING NOT NULL": lambda one: one.name,
    "snapshot_id BIGINT NOT NULL": lambda one: one.snapshot.id,
    "schema_id BIGINT NOT NULL": lambda one: one.snapshot.schema_id,
    "commit_time TIMESTAMP(3) NOT NULL": lambda one: wall_time(one.snapshot.time_millis),
    "record_count BIGINT": lambda one: one.snapshot.total_record_count or 0,
    "create_time TIMESTAMP(9)": lambda one: _moment(one.create_time),
    "time_retained STRING": lambda one: _duration(one.time_retained_seconds),
}
_BRANCHES: Columns[FileStatus] = {
    "branch_name STRING NOT NULL": lambda one: one.name.removeprefix(BRANCH_PREFIX),
    "create_time TIMESTAMP(3) NOT NULL": lambda one: wall_time(one.modified_millis or 0),
}
_CONSUMERS: Columns[Consumer] = {
    "consumer_id STRING NOT NULL": lambda one: one.name,
    "next_snapshot_id BIGINT NOT NULL": lambda one: one.next_snapshot_id,
}
_STATISTICS: Columns[dict[str, object]] = {
    "snapshot_id BIGINT NOT NULL": lambda one: one["snapshotId"],
    "schema_id BIGINT NOT NULL": lambda one: one["schemaId"],
    "mergedRecordCount BIGINT": lambda one: one.get("mergedRecordCount"),
    "mergedRecordSize BIGINT": lambda one: one.get("mergedRecordSize"),
    "colstat STRING": lambda one: pretty(one.get("colStats") or {}).decode(),
}
_AGGREGATES: Columns[tuple[Field, dict[str, str]]] = {
    "field_name STRING NOT NULL": lambda one: one[0].name,
    "field_type STRING NOT NULL": lambda one: whole_type(one[0].type),
    "function STRING": lambda one: f"[{', '.join(one[1].values())}]",
    "function_options STRING": lambda one: f"[{', '.join(one[1])}]",
    "comment STRING": lambda one: one[0].description,
}


def _snapshots(request: RowRequest, state: TableState) -> Iterator[pa.RecordBatch]:
    """The snapshots. Cost: a get for each whose id may match; snapshots that expire in the meantime are omitted."""
    root = state.root
    for ids in chunks(request.matching("snapshot_id", root.check_listed(root.snapshots.ids()))):
        found = [one for one in root.env.pool.map(root.snapshots.find, ids) if one is not None]
        yield request.rows(found, _SNAPSHOTS)


def _schemas(request: RowRequest, state: TableState) -> Iterator[pa.RecordBatch]:
    """The schemas. Cost: a get for each whose id may match."""
    schemas = state.root.schemas
    for ids in chunks(request.matching("schema_id", schemas.ids())):
        yield request.rows([schemas.get(number) for number in ids], _SCHEMAS)


def _options(request: RowRequest, state: TableState) -> Iterator[pa.RecordBatch]:
    """The options of the latest schema."""
    yield request.rows(list(state.root.schemas.latest().options.items()), _OPTIONS)


def _aggregation_fields(request: RowRequest, state: TableState) -> Iterator[pa.RecordBatch]:
    """The columns of the latest schema, each with its options `fields.<name>.…`."""
    schema = state.root.schemas.latest()
    options: dict[str, dict[str, str]] = {}
    for key, value in schema.options.items():
        parts = key.split(".")
        if len(parts) >= _FIELD_OPTION_PARTS and parts[0] == "fields":
            options.setdefault(parts[1], {})[key] = value
    yield request.rows([(field, options.get(field.name, {})) for field in schema.fields], _AGGREGATES)


def _tags(request: RowRequest, state: TableState) -> Iterator[pa.RecordBatch]:
    """The tags. Cost: a get for each whose name may match; tags that are deleted in the meantime are omitted."""
    tags = state.root.tags
    for names in chunks(request.matching("tag_name", tags.names())):
        yield request.rows(tags.those(names), _TAGS)


def _branches(request: RowRequest, state: TableState) -> Iterator[pa.RecordBatch]:
    """Cost: one list. The time is that of the branch's directory: it changes when a file is added to the directory."""
    statuses = state.root.store.list(branch_directory(state.root.path))
    found = [one for one in statuses if one.is_directory and one.name.startswith(BRANCH_PREFIX)]
    yield request.rows(sorted(found, key=lambda one: one.name), _BRANCHES)


def _consumers(request: RowRequest, state: TableState) -> Iterator[pa.RecordBatch]:
    """The consumers. Cost: a get for each whose name may match."""
    consumers = state.root.consumers
    for names in chunks(request.matching("consumer_id", consumers.names())):
        yield request.rows(consumers.those(names), _CONSUMERS)


def _statistics(request: RowRequest, state: TableState) -> Iterator[pa.RecordBatch]:
    """The statistics that the snapshot references, if any."""
    snapshot = state.snapshot
    if snapshot is not None and snapshot.statistics is not None:
        path = statistics_path(state.root.path, snapshot.statistics)
        yield request.rows([decode_object(statistics_bytes(state.root, snapshot), path)], _STATISTICS)


def _moment(parts: tuple[int, ...] | None) -> int | None:
    """The creation time of a tag. Java's column is TIMESTAMP(3), but its values have nanoseconds."""
    if parts is None:
        return None
    first, nanos = (*parts[:6], 0, 0)[:6], parts[6] if len(parts) > 6 else 0
    days = datetime.date(*first[:3]).toordinal() - _EPOCH_DAY
    return ((days * 24 + first[3]) * 3600 + first[4] * 60 + first[5]) * 1_000_000_000 + nanos


def _duration(seconds: float | None) -> str | None:
    """Java's `Duration.toString`: hours, minutes and seconds."""
    if seconds is None:
        return None
    nanos = round(seconds * 1_000_000_000)
    sign, whole = (-1 if nanos < 0 else 1), abs(nanos)
    hours, rest = divmod(whole, 3_600_000_000_000)
    minutes, rest = divmod(rest, 60_000_000_000)
    text = "PT" + (f"{sign * hours}H" if hours else "") + (f"{sign * minutes}M" if minutes else "")
    if rest or not whole:
        second, fraction = divmod(rest, 1_000_000_000)
        digits = f".{fraction:09d}".rstrip("0") if fraction else ""
        text += f"{'-' if sign < 0 else ''}{second}{digits}S"
    return text


METADATA_TABLES = (
    MetadataTableDef(name="snapshots", fields=fields_of(_SNAPSHOTS), keys=("snapshot_id",), make=_snapshots),
    MetadataTableDef(name="schemas", fields=fields_of(_SCHEMAS), keys=("schema_id",), make=_schemas),
    MetadataTableDef(name="options", fields=fields_of(_OPTIONS), keys=("key",), make=_options),
    MetadataTableDef(
        name="aggregation_fields", fields=fields_of(_AGGREGATES), keys=("field_name",), make=_aggregation_fields
    ),
    MetadataTableDef(name="tags", fields=fields_of(_TAGS), keys=("tag_name",), make=_tags),
    MetadataTableDef(name="branches", fields=fields_of(_BRANCHES), keys=("branch_name",), make=_branches),
    MetadataTableDef(name="consumers", fields=fields_of(_CONSUMERS), keys=("consumer_id",), make=_consumers),
    MetadataTableDef(
        name="statistics", fields=fields_of(_STATISTICS), keys=("snapshot_id",), make=_statistics, has_states=True
    ),
)
