"""Updates a metastore from the file system.

Source: Java `HiveCatalog.repairTable`, release 2.0.
"""

from __future__ import annotations

from paimon_py.errors import AlreadyExistsError
from paimon_py.metadata.partition_files import partition_files
from paimon_py.metadata.schemas import Schemas
from paimon_py.metastores.hive.records import is_paimon, location_of, new_table, synchronised_keys, wants_external
from paimon_py.metastores.hive.tables import HiveTables
from paimon_py.metastores.metastore import TableName


def tables_below_database(tables: HiveTables, database: str) -> list[str]:
    """The tables below the directory of a database. Cost: one list, and one per directory in it."""
    store, path = tables.places.open(tables.database_location(database))
    directories = [status for status in store.list(path) if status.is_directory]
    known = tables.env.pool.map(lambda status: bool(Schemas(store, status.path).ids()), directories)
    return [status.name for status, is_table in zip(directories, known, strict=True) if is_table]


def repair(tables: HiveTables, name: TableName) -> None:
    """Update the record of one table, and add the partitions and tags that the metastore lacks.

    Raises:
        TableNotFoundError: the table does not exist in the file system.
        AlreadyExistsError: the name is that of a table or view of Hive.
    """
    record = tables.verbs.table(name)
    if record is not None and not is_paimon(record):
        raise AlreadyExistsError(f"{str(name)!r} is a table or view of Hive, not of Paimon", table=str(name))
    location = (None if record is None else location_of(record)) or tables.location(name)
    root = tables.root(name, location)
    schema = root.schemas.latest()
    keys = synchronised_keys(schema)
    registration = tables.registration(name, keys)
    if record is None:
        external = wants_external(schema.options, tables.settings)
        made = new_table(name, schema, location, tables.owner(), tables.settings, external=external)
        tables.verbs.create_table(name, made)
    else:
        registration.report_schema(record, schema)
    snapshot = root.snapshots.latest()
    if keys and schema.partition_keys and snapshot is not None:
        registration.add_partitions(schema, partition_files(root, snapshot)["partition"])
    elif keys and not schema.partition_keys:
        registration.add_tags(root.tags.names())
