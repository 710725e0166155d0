"""The LSM tree of one bucket: key order, sorted runs, windows, merge engines, the write buffer, sorting on disk.

Everything converts Arrow batches and the metadata of files to Arrow batches and decisions. Out of scope: snapshots,
manifests and catalogs; when and into which level files are merged (`compaction`); changing the rows of a user (`rows`).
"""
