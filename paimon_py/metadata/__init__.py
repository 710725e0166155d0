"""The metadata files of one table: schemas, snapshots, tags, manifests, read and written through a store.

No decisions live here; they are pure functions elsewhere.
"""
