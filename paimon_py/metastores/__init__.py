"""Stores of table names: one module or package per kind of metastore, and the Protocol that they implement.

`Catalog` and `Table` use only the Protocols: `Metastore` (`metastore.py`) and `CatalogEntry`
(`paimon_py/metadata/catalog_entry.py`).
"""
