"""Verbs that read whole partitions and write them anew: rescale, and publish the rows that wait in postponed buckets.

They stand above `scan`, `write` and `commit`, and do not change which rows a table holds. What never lives here:
compactions within buckets (`compaction`), changes of single rows (`rows`).
"""
