"""System tables: tables under a name such as `db.t$audit_log`. They are read and never written.

Some show the rows of a table in another way: what tells one from another is a value (`Kind`), and all are read through
`SystemTable`. Others are made: their rows tell of a table or of a warehouse (`Made`, `MadeTable`, `MadeScan`).
`kinds.py` knows all of them. Data files are planned and read by `scan` alone.
"""
