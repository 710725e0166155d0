"""The LSM tree of one bucket: key order, sorted runs, windows, merge engines, the write buffer, sorting on disk.

Everything turns Arrow batches and the metadata of files into Arrow batches and decisions. What never lives here:
snapshots, manifests, catalogs; what is merged when, and into which level (`compaction`); whose rows a user changes
(`rows`).
"""
