"""The metadata files of one table: schemas, snapshots, tags, hints, manifests and index files in a store.

`root.py` is the location of a table: its store, its path and the objects for these files. Entries are folded here
(`fold.py`), because folding defines the meaning of a manifest. Out of scope: the use of live files by commits, scans
and compactions.
"""
