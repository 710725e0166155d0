"""Where the names of tables are kept: one module or package for each kind of metastore, and the Protocol they fill.

`Catalog` and `Table` know the Protocols alone: `Metastore` (`metastore.py`) and `Registration`
(`paimon_py/metadata/registration.py`).
"""
