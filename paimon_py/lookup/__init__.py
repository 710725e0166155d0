"""Lookups: rows by primary key, from files. Plan for keys, find keys, take rows, keep what was decoded.

`Lookups` (`lookups.py`) is the door. `keys.py` reads the keys that a user hands over; `plan.py` says which buckets and
files may hold them; `files.py` finds keys and takes rows of one file, `key_rows.py` those of one bucket. Decoded
columns stay in `frames.py`, sorted keys in `key_index.py`, deletion vectors in `vectors.py`. What never lives here:
predicates other than keys (`scan`), changing rows (`rows`).
"""
