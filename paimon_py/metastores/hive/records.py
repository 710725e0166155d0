"""The records of databases, tables and partitions in a metastore, as Java's catalog writes them. Pure.

A record is the struct that the server returned: unknown fields are kept when it is changed.

Source: Java `HiveCatalog`, `HiveTableUtils`, `StorageLocationHelper`, `TBPropertiesLocationHelper`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import msgspec

from paimon_py.metastores.hive import thrift
from paimon_py.metastores.hive.hive_types import hive_type
from paimon_py.metastores.hive.settings import HiveSettings
from paimon_py.metastores.hive.thrift import I32, STRUCT, Struct
from paimon_py.metastores.metastore import Database, TableName
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import DataType, Field

INPUT_FORMAT = "org.apache.paimon.hive.mapred.PaimonInputFormat"
OUTPUT_FORMAT = "org.apache.paimon.hive.mapred.PaimonOutputFormat"
SERDE = "org.apache.paimon.hive.PaimonSerDe"
STORAGE_HANDLER = "org.apache.paimon.hive.PaimonStorageHandler"

PARTITIONED = "metastore.partitioned-table"
TAG_TO_PARTITION = "metastore.tag-to-partition"
LOCATION_PROPERTY = "paimon_location"
PATH = "path"
DATA_DIRECTORY = "data-file.path-directory"

_COMMENT, _OWNER, _LOCATION = "comment", "owner", "location"
_HIVE = "hive."
_LONGEST_COMMENT = 255
_CUT = "..."
_FOREVER = 2**31 - 1
_UNPREFIXED = ("partition.expiration-time", DATA_DIRECTORY)

DB_NAME, DB_COMMENT, DB_LOCATION, DB_PARAMETERS, DB_OWNER = 1, 2, 3, 4, 6
T_NAME, T_DATABASE, T_OWNER, T_CREATED, T_ACCESSED, T_RETENTION, T_SD, T_KEYS, T_PARAMETERS, T_TYPE = (
    1, 2, 3, 4, 5, 6, 7, 8, 9, 12,
)  # fmt: skip
SD_COLUMNS, SD_LOCATION, SD_INPUT, SD_OUTPUT, SD_SERDE = 1, 2, 3, 4, 7
SERDE_LIBRARY, SERDE_PARAMETERS = 2, 3
P_VALUES, P_DATABASE, P_TABLE, P_CREATED, P_ACCESSED, P_SD, P_PARAMETERS = 1, 2, 3, 4, 5, 6, 7


class Owner(msgspec.Struct, frozen=True):
    """The creator and creation time of a record."""

    user: str
    seconds: int


# -- databases ------------------------------------------------------------------------------------------------------


def database_of(record: Struct) -> Database:
    """A database from its record, with its location from any of the possible fields."""
    options = thrift.mapping(record, DB_PARAMETERS)
    location = options.pop(LOCATION_PROPERTY, None) or thrift.text(record, DB_LOCATION)
    owner = thrift.text(record, DB_OWNER)
    if owner is not None:
        options[_OWNER] = owner
    return Database(thrift.text(record, DB_NAME) or "", location, thrift.text(record, DB_COMMENT), options)


def new_database(database: Database, location: str, settings: HiveSettings) -> Struct:
    """The record of a new database at a location."""
    options = dict(database.options)
    comment = database.comment if database.comment is not None else options.pop(_COMMENT, None)
    owner = options.pop(_OWNER, None) or settings.servers.user
    options.pop(_LOCATION, None)
    made: Struct = {DB_NAME: thrift.of_text(database.name)}
    if comment is not None:
        made[DB_COMMENT] = thrift.of_text(comment)
    if settings.location_in_properties:
        options[LOCATION_PROPERTY] = location
    else:
        made[DB_LOCATION] = thrift.of_text(location)
    made[DB_PARAMETERS] = thrift.of_mapping(options)
    made[DB_OWNER] = thrift.of_text(owner)
    made[7] = (I32, 1)
    return made


# -- tables ---------------------------------------------------------------------------------------------------------


def is_paimon(record: Struct) -> bool:
    """Whether a table is a Paimon table, by its formats, as in Java."""
    sd = thrift.inner(record, T_SD)
    return thrift.text(sd, SD_INPUT) == INPUT_FORMAT and thrift.text(sd, SD_OUTPUT) == OUTPUT_FORMAT


def is_external(record: Struct) -> bool:
    """Whether the data of a table are kept when it is dropped.

    A Hive 4 metastore converts a managed table to an external one and marks it: such a table still counts as managed.
    """
    flag = thrift.mapping(record, T_PARAMETERS).get("TRANSLATED_TO_EXTERNAL", "").upper()
    return thrift.text(record, T_TYPE) == "EXTERNAL_TABLE" and flag != "TRUE"


def parameters(record: Struct) -> dict[str, str]:
    """The parameters of a table."""
    return thrift.mapping(record, T_PARAMETERS)


def location_of(record: Struct) -> str | None:
    """The location of a table or partition, None if its record has none."""
    sd, options = _fields(record)
    return thrift.mapping(record, options).get(LOCATION_PROPERTY) or thrift.text(thrift.inner(record, sd), SD_LOCATION)


def wants_external(options: Mapping[str, str], settings: HiveSettings) -> bool:
    """Whether a new table will be external: because of the catalog, its own path, or the option `external`."""
    flag = options.get("external", options.get("EXTERNAL", "")).upper()
    return PATH in options or settings.external or flag == "TRUE"


def new_table(
    name: TableName, schema: TableSchema, location: str, owner: Owner, settings: HiveSettings, *, external: bool
) -> Struct:
    """The record of a new table."""
    properties = _metastore_options(schema, settings)
    if not settings.sync_all:
        properties.update({key: schema.options[key] for key in _UNPREFIXED if key in schema.options})
    properties.update({"table_type": "PAIMON", "storage_handler": STORAGE_HANDLER})
    if external:
        properties["EXTERNAL"] = "TRUE"
    record: Struct = {
        T_NAME: thrift.of_text(name.table),
        T_DATABASE: thrift.of_text(name.database),
        T_OWNER: thrift.of_text(owner.user),
        T_CREATED: (I32, owner.seconds),
        T_ACCESSED: (I32, owner.seconds),
        T_RETENTION: (I32, _FOREVER),
        T_SD: (STRUCT, {}),
        T_KEYS: thrift.of_structs(()),
        T_PARAMETERS: thrift.of_mapping(properties),
        T_TYPE: thrift.of_text("EXTERNAL_TABLE" if external else "MANAGED_TABLE"),
    }
    return _describe(record, schema, location, settings)


def changed_table(
    record: Struct, schema: TableSchema, location: str, settings: HiveSettings, removed: Iterable[str] = ()
) -> Struct:
    """The record of a table after a schema change: columns, and options that the metastore stores."""
    changed = deepcopy(record)
    properties = {**parameters(changed), **_metastore_options(schema, settings)}
    for name in removed:
        properties.pop(name, None)
    changed[T_PARAMETERS] = thrift.of_mapping(properties)
    return _describe(changed, schema, location, settings)


def renamed_table(record: Struct, to: TableName) -> Struct:
    """The record of a table under another name."""
    return {**record, T_NAME: thrift.of_text(to.table), T_DATABASE: thrift.of_text(to.database)}


def with_location(record: Struct, location: str, settings: HiveSettings) -> Struct:
    """The record of a table or partition with another location."""
    changed = deepcopy(record)
    sd, options = _fields(record)
    if settings.location_in_properties:
        changed[options] = thrift.of_mapping({**thrift.mapping(record, options), LOCATION_PROPERTY: location})
    else:
        changed[sd] = (STRUCT, {**thrift.inner(record, sd), SD_LOCATION: thrift.of_text(location)})
    return changed


def _fields(record: Struct) -> tuple[int, int]:
    """The field numbers of storage and parameters, which differ between tables and partitions."""
    of_partition = P_SD in record and record[P_SD][0] == STRUCT
    return (P_SD, P_PARAMETERS) if of_partition else (T_SD, T_PARAMETERS)


def synchronised_keys(schema: TableSchema) -> tuple[str, ...]:
    """The keys of the partitions that the metastore stores: the table's, or that for its tags; empty if none."""
    if schema.options.get(PARTITIONED, "false").strip().lower() == "true" and schema.partition_keys:
        return tuple(schema.partition_keys)
    tag = schema.options.get(TAG_TO_PARTITION)
    return (tag,) if tag else ()


def new_partition(table: Struct, values: Sequence[str], location: str, owner: Owner, settings: HiveSettings) -> Struct:
    """The record of a new partition of a table."""
    made: Struct = {
        P_VALUES: thrift.of_texts(values),
        P_DATABASE: table[T_DATABASE],
        P_TABLE: table[T_NAME],
        P_CREATED: (I32, owner.seconds),
        P_ACCESSED: (I32, owner.seconds),
        P_SD: (STRUCT, dict(thrift.inner(table, T_SD))),
        P_PARAMETERS: thrift.of_mapping({}),
    }
    if settings.location_in_properties:
        made[P_PARAMETERS] = thrift.of_mapping({LOCATION_PROPERTY: location})
    else:
        thrift.inner(made, P_SD)[SD_LOCATION] = thrift.of_text(location)
    return made


def _metastore_options(schema: TableSchema, settings: HiveSettings) -> dict[str, str]:
    """The options of a table that the metastore stores in its parameters."""
    if not settings.sync_all:
        return {name[len(_HIVE) :]: text for name, text in schema.options.items() if name.startswith(_HIVE)}
    properties = dict(schema.options)
    for option, keys in (
        ("primary-key", schema.primary_keys),
        ("partition", schema.partition_keys),
        ("bucket-key", schema.bucket_keys),
    ):
        if keys:
            properties[option] = ",".join(keys)
    return properties


def _describe(record: Struct, schema: TableSchema, location: str, settings: HiveSettings) -> Struct:
    """Write columns, formats, comment and location into a record."""
    sd = dict(thrift.inner(record, T_SD))
    serde = dict(thrift.inner(sd, SD_SERDE))
    serde[SERDE_LIBRARY] = thrift.of_text(SERDE)
    serde[SERDE_PARAMETERS] = thrift.of_mapping({})
    sd[SD_INPUT] = thrift.of_text(INPUT_FORMAT)
    sd[SD_OUTPUT] = thrift.of_text(OUTPUT_FORMAT)
    sd[SD_SERDE] = (STRUCT, serde)
    keys: set[str] = set()
    if schema.partition_keys and schema.options.get(PARTITIONED, "false").strip().lower() == "true":
        types = {field.name: field for field in schema.fields}
        keys = set(schema.partition_keys)
        record[T_KEYS] = thrift.of_structs(
            _column(name, types[name].type, types[name].description) for name in schema.partition_keys
        )
    elif schema.options.get(TAG_TO_PARTITION):
        record[T_KEYS] = thrift.of_structs(
            [{1: thrift.of_text(schema.options[TAG_TO_PARTITION]), 2: thrift.of_text("string")}]
        )
    sd[SD_COLUMNS] = columns_of(field for field in schema.fields if field.name not in keys)
    record[T_SD] = (STRUCT, sd)
    if schema.comment is not None:
        record[T_PARAMETERS] = thrift.of_mapping({**parameters(record), _COMMENT: schema.comment})
    return with_location(record, location, settings)


def columns_of(fields: Iterable[Field]) -> tuple[int, Any]:
    """The columns of a record."""
    return thrift.of_structs(_column(field.name, field.type, _short(field.description)) for field in fields)


def _column(name: str, kind: DataType, comment: str | None) -> Struct:
    made: Struct = {1: thrift.of_text(name), 2: thrift.of_text(hive_type(kind))}
    if comment is not None:
        made[3] = thrift.of_text(comment)
    return made


def _short(comment: str | None) -> str | None:
    """A column comment in a form that a metastore can store: one line of at most 255 characters."""
    if comment is None:
        return None
    line = comment.replace("\n", " ").replace("\r", " ")
    return line if len(line) <= _LONGEST_COMMENT else line[: _LONGEST_COMMENT - len(_CUT)] + _CUT
