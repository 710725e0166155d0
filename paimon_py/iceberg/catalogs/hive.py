"""Publishes the newest version of a table's Iceberg metadata to a Hive Metastore, as Java does.

The entry is an external table of the type ICEBERG whose parameter `metadata_location` names the version. A publisher
reads the entry first and does not change one that names a later version of the table. The metastore does not compare:
if a later version is published between the two calls, the entry goes back, until the publisher checks the table again
after the change (`iceberg/publication.py`). Columns that the metastore refuses to change remain as they are, because
Iceberg readers take the columns from the version.

Source: docs/format.md §25.10; Java `IcebergHiveMetadataCommitter`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy

from paimon_py.env import Env
from paimon_py.errors import AlreadyExistsError, StorageError
from paimon_py.iceberg.catalogs.catalog import CatalogedVersion
from paimon_py.iceberg.directory import version_numbers
from paimon_py.iceberg.history import TableHistory
from paimon_py.iceberg.metadata import plain_path
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metastores.hive import thrift
from paimon_py.metastores.hive.connection import Client, RefusedError
from paimon_py.metastores.hive.hive_types import hive_type
from paimon_py.metastores.hive.records import (
    SD_COLUMNS,
    SD_INPUT,
    SD_LOCATION,
    SD_OUTPUT,
    SD_SERDE,
    SERDE_LIBRARY,
    SERDE_PARAMETERS,
    T_ACCESSED,
    T_CREATED,
    T_DATABASE,
    T_KEYS,
    T_NAME,
    T_OWNER,
    T_PARAMETERS,
    T_RETENTION,
    T_SD,
    T_TYPE,
    parameters,
)
from paimon_py.metastores.hive.settings import HiveSettings
from paimon_py.metastores.hive.thrift import I32, STRUCT, Struct
from paimon_py.metastores.hive.verbs import HiveVerbs
from paimon_py.metastores.metastore import TableName
from paimon_py.spec.iceberg import iceberg_names
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema

LOCATION, PREVIOUS = "metadata_location", "previous_metadata_location"
_KIND = "table_type"
_ICEBERG = "ICEBERG"
_INPUT, _OUTPUT = "org.apache.hadoop.mapred.FileInputFormat", "org.apache.hadoop.mapred.FileOutputFormat"
_SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
_LONGEST_COMMENT = 255
_FOREVER = 2**31 - 1
_ATTEMPTS = 12


class HiveIcebergCatalog:
    """The entries of one table in a Hive Metastore, one for each database; see `IcebergCatalog`."""

    def __init__(
        self, verbs: HiveVerbs, names: Sequence[TableName], schema: TableSchema, env: Env, context: Mapping[str, str]
    ) -> None:
        """`context`: the environment context that is sent with each change."""
        self._verbs = verbs
        self._names = tuple(names)
        self._schema = schema
        self._env = env
        self._context = dict(context)

    def publish(self, shown: CatalogedVersion, history: TableHistory) -> tuple[str, ...]:
        """See `IcebergCatalog.publish`. Cost: two calls for each database, a third the first time."""
        for name in self._names:
            self._publish(name, shown, history)
        return ()

    def shown_id(self) -> int | None:
        """See `IcebergCatalog.shown_id`. Cost: one call."""
        record = self._verbs.table(self._names[0])
        return None if record is None else _number_of(parameters(record))

    def _publish(self, name: TableName, shown: CatalogedVersion, history: TableHistory) -> None:
        for _ in range(_ATTEMPTS):
            record = self._verbs.table(name)
            if record is None:
                if self._create(name, shown):
                    return
                continue
            if not self._is_due(name, record, shown, history) or self._alter(name, record, shown):
                return
        text = f"the table {name} of the metastore was changed by others {_ATTEMPTS} times"
        raise StorageError(text, operation="publish")

    def _is_due(self, name: TableName, record: Struct, shown: CatalogedVersion, history: TableHistory) -> bool:
        """Whether an entry must be changed: not if it names this version or a later one of the table.

        Only the version of the latest snapshot replaces a later version, which was rolled back.

        Raises: AlreadyExistsError
        """
        properties = parameters(record)
        self._require_ours(name, properties, shown)
        if properties.get(LOCATION) == shown.path:
            return False
        there = _number_of(properties)
        if there is None or there < shown.version.number:
            return True
        return not history.shows_number(there) and history.is_latest(shown.snapshot)

    def _require_ours(self, name: TableName, properties: Mapping[str, str], shown: CatalogedVersion) -> None:
        """Raises: AlreadyExistsError if the entry does not belong to the Iceberg metadata of this table."""
        kind, location = properties.get(_KIND, ""), properties.get(LOCATION)
        place = plain_path(location or "").rpartition("/")[0]
        if kind.upper() == _ICEBERG and (location is None or place == plain_path(shown.directory)):
            return
        what = f"is another Iceberg table: {location}"
        if kind.upper() != _ICEBERG:
            what = f"is a table of type {kind or 'Hive'}"
        raise AlreadyExistsError(
            f"{name} in the metastore {what}: set metadata.iceberg.database or metadata.iceberg.table to another name"
        )

    def _create(self, name: TableName, shown: CatalogedVersion) -> bool:
        """Create the entry. Returns: False if a table of this name exists now."""
        table, seconds = shown.directory.rpartition("/")[0], self._env.clock.millis() // 1000
        user = self._verbs.client.settings.user
        database = table.rpartition("/")[0]
        if self._verbs.database(name.database) is None:
            new: Struct = {1: thrift.of_text(name.database), 3: thrift.of_text(database), 4: thrift.of_mapping({})}
            self._verbs.create_database(name.database, new)
        properties = {"EXTERNAL": "TRUE", "DO_NOT_UPDATE_STATS": "true", _KIND: _ICEBERG, LOCATION: shown.path}
        serde: Struct = {SERDE_LIBRARY: thrift.of_text(_SERDE), SERDE_PARAMETERS: thrift.of_mapping({})}
        sd: Struct = {
            SD_COLUMNS: _columns(self._schema),
            SD_LOCATION: thrift.of_text(table),
            SD_INPUT: thrift.of_text(_INPUT),
            SD_OUTPUT: thrift.of_text(_OUTPUT),
            SD_SERDE: (STRUCT, serde),
        }
        return self._verbs.create_table(name, {
            T_NAME: thrift.of_text(name.table),
            T_DATABASE: thrift.of_text(name.database),
            T_OWNER: thrift.of_text(user),
            T_CREATED: (I32, seconds),
            T_ACCESSED: (I32, seconds),
            T_RETENTION: (I32, _FOREVER),
            T_SD: (STRUCT, sd),
            T_KEYS: thrift.of_structs(()),
            T_PARAMETERS: thrift.of_mapping(properties),
            T_TYPE: thrift.of_text("EXTERNAL_TABLE"),
        })  # fmt: skip

    def _alter(self, name: TableName, record: Struct, shown: CatalogedVersion) -> bool:
        """Change the entry. Returns: False if another publisher changed it since it was read."""
        changed, properties = deepcopy(record), parameters(record)
        before = properties.pop(LOCATION, None)
        properties.update({_KIND: _ICEBERG, LOCATION: shown.path})
        if before is not None:
            properties[PREVIOUS] = before
        changed[T_PARAMETERS] = thrift.of_mapping(properties)
        changed[T_SD] = (STRUCT, {**thrift.inner(record, T_SD), SD_COLUMNS: _columns(self._schema)})
        try:
            try:
                self._verbs.alter_table(name, changed, self._context)
            except RefusedError as error:
                if "incompatible" not in error.message:
                    raise
                changed[T_SD] = record[T_SD]  # Iceberg readers take the columns from the version
                self._verbs.alter_table(name, changed, self._context)
        except RefusedError as error:
            there = self._verbs.table(name)
            if there is None or parameters(there).get(LOCATION) != before:
                return False
            text = f"the metastore refuses the change of {name}: {error}"
            raise StorageError(text, operation="alter_table") from error
        return True


def open_hive(table: OpenTable) -> HiveIcebergCatalog:
    """The metastore in the options of a table; connections are kept for the next commit of the table object.

    Raises: OptionError; UnsupportedError for Kerberos, SASL, TLS and other unsupported features
    """
    root, schema = table.root, table.schema
    options = Options(schema.options)
    named = {"uri": options.find_str("metadata.iceberg.uri"), "hive-conf-dir": options.find_str(_CONF_DIR)}
    given = {name: text for name, text in named.items() if text}
    databases, name = iceberg_names(root.path, schema)
    key = (tuple(sorted(given.items())),)
    client = root.maintenance.clients.get(key)
    if not isinstance(client, Client):
        client = Client(HiveSettings.of(given, root.path).servers, root.env)
        root.maintenance.clients[key] = client
    context = {"CASCADE": "true"}
    if options.get_bool("metadata.iceberg.glue.skip-archive"):
        context["skipAWSGlueArchive"] = "true"
    if options.get_bool("metadata.iceberg.hive-skip-update-stats"):
        context["DO_NOT_UPDATE_STATS"] = "true"
    names = [TableName(database.lower(), name.lower()) for database in databases]
    return HiveIcebergCatalog(HiveVerbs(client), names, schema, root.env, context)


_CONF_DIR = "metadata.iceberg.hive-conf-dir"


def _columns(schema: TableSchema) -> tuple[int, object]:
    made = []
    for field in schema.fields:
        column: Struct = {1: thrift.of_text(field.name), 2: thrift.of_text(hive_type(field.type))}
        if field.description is not None:
            column[3] = thrift.of_text(field.description.replace("\n", " ")[:_LONGEST_COMMENT])
        made.append(column)
    return thrift.of_structs(made)


def _number_of(properties: Mapping[str, str]) -> int | None:
    """The number of the version that an entry names."""
    name = (properties.get(LOCATION) or "").rpartition("/")[2]
    return next(iter(version_numbers([name])), None)
