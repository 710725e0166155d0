"""Verbs on single rows: delete, update, upsert, merge.

They read a table and write to it, so they stand above `scan`, `lookup` and `write`. Which rows change is decided batch
by batch (`decide.py`, `merging.py`). How a change is stored depends on the table: rows of other kinds in tables with a
primary key (`keyed.py`), deletion vectors or rewritten files elsewhere (`append.py`). `evaluation.py` publishes, and
evaluates anew what others have overtaken; `live_keys.py` reads all keys for writers of tables whose keys move. What
never lives here: lookups by key (`lookup`), the bytes of a file.
"""
