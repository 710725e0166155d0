"""Lookups: rows by primary key, from files. Plans for keys, finds keys, takes rows, caches decoded columns.

`Lookups` (`lookups.py`) is the entry point. `keys.py` reads the keys that a user passes; `plan.py` selects the buckets
and files that may contain them; `files.py` finds keys and takes rows in one file, `key_rows.py` in one bucket. Decoded
columns are cached in `frames.py`, sorted keys in `key_index.py`, deletion vectors in `vectors.py`. Out of scope:
predicates other than keys (`scan`), changing rows (`rows`).
"""
