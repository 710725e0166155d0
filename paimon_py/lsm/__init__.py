"""The LSM tree of one bucket: key order, sorted runs, merging, merge engines, the write buffer.

Everything here turns Arrow batches and file metadata into Arrow batches and decisions; nothing here knows a
snapshot, a manifest or a catalog. What is merged when, and into what, is decided in `compaction`.
"""
