"""Operations on single rows: delete, update, upsert, merge.

The operations read a table and write to it, so they depend on `scan`, `lookup` and `write`. Rows to change are
determined batch by batch (`decide.py`, `merging.py`). The form of a change depends on the table: rows of another kind
in primary-key tables (`keyed.py`), deletion vectors or rewritten files in others (`append.py`). `evaluation.py`
publishes, and re-evaluates after a conflicting commit; `live_keys.py` reads all keys for writers of cross-partition
tables. Out of scope: lookups by key (`lookup`), the bytes of files.
"""
