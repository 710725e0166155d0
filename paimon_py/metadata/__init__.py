"""The metadata files of one table: schemas, snapshots, tags, hints, manifests and index files in a store.

`root.py` is the table as a place: its store, its path and the doors to these files. Entries are folded here
(`fold.py`), because that is what a manifest means. What never lives here: what a commit, a scan or a compaction makes
of live files.
"""
