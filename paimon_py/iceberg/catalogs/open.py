"""Opens the Iceberg catalog in the options of a table; a client is imported when a table has such a catalog."""

from __future__ import annotations

from paimon_py.iceberg.catalogs.catalog import IcebergCatalog
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.iceberg import HIVE, REST, iceberg_options, writes_iceberg


def open_catalog(table: OpenTable) -> IcebergCatalog | None:
    """The catalog to which each version is published; None if the options do not name one.

    Raises: OptionError, UnsupportedError
    """
    if not writes_iceberg(table.schema):
        return None
    kind = iceberg_options(table.schema).catalog
    if kind == REST:
        from paimon_py.iceberg.catalogs.rest import open_rest

        return open_rest(table)
    if kind == HIVE:
        from paimon_py.iceberg.catalogs.hive import open_hive

        return open_hive(table)
    return None
