"""The table format as frozen values: types, schemas, snapshots, manifest entries, data files, options, names.

Nothing here reads, writes, knows Arrow, a clock or a store.
"""
