"""The table format as frozen values: types, schemas, snapshots, manifest entries, data files, options, names.

Rules on schemas and options are part of this package, as pure functions. Out of scope: reading, writing, Arrow, clocks
and stores.
"""
