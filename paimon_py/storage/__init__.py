"""The only access to stored bytes: local files, object stores, memory.

`store.py` has one Protocol per verb, which specifies its guarantees; `retry.py` wraps a store, `data_store.py` combines
the stores that contain the files of one table. Out of scope: tables, names of files, formats.
"""
