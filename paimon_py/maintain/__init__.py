"""Verbs that rewrite whole partitions: rescale, and publish the rows of postponed buckets.

They stand above `scan`, `write` and `commit`, and do not change which rows a table holds. What never lives here:
compactions within buckets (`compaction`), changes of single rows (`rows`).
"""
