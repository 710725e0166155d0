"""The one door to bytes at rest: local files, object stores, memory.

`store.py` has one Protocol per verb, and says what each verb promises; `retry.py` wraps a store, `data_store.py` joins
the stores that the files of one table lie in. What never lives here: tables, names of files, formats.
"""
