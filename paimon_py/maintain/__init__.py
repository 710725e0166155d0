"""Maintenance of tables: rescaling, postponed buckets, statistics, tags, branches, history, and clean-up.

Depends on `scan`, `write` and `commit`. Out of scope: compactions within buckets (`compaction`), changes of single rows
(`rows`).
"""
