"""The table format as frozen values: types, schemas, snapshots, manifest entries, data files, options, names.

The rules on schemas and options live here as well, as pure functions. What never lives here: reading, writing, Arrow, a
clock, a store.
"""
