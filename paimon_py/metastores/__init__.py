"""Where the names of tables are kept: one module or package for each kind of metastore, and the Protocol they fill.

`Catalog` and `Table` know the Protocols alone: `Metastore` (`metastore.py`) and `CatalogEntry`
(`paimon_py/metadata/catalog_entry.py`).
"""
