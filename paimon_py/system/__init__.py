"""System tables: tables under a name such as `db.t$audit_log`. They are read and never written.

Some show the rows of a table in another form: each is a value (`Kind`), and all are read through `SystemTable`. Others
are metadata tables: their rows describe a table or a warehouse (`MetadataTableDef`, `MetadataTable`, `MetadataScan`).
`kinds.py` lists all of them. Only `scan` plans and reads data files.
"""
