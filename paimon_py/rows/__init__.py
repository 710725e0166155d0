"""Changing single rows: delete, update, upsert, merge.

These verbs read a table and write it, so they stand above both `scan` and `write`. Which rows change is decided batch
by batch (`decide.py`, `merging.py`); how a change is stored depends on the table: rows of other kinds in tables with a
primary key (`keyed.py`), deletion vectors or rewritten files elsewhere (`append.py`). `evaluation.py` publishes, and
evaluates anew what others have overtaken. Nothing here knows the bytes of a file.
"""
