"""Work on whole tables that reads and writes: giving partitions other buckets, publishing rows that wait for theirs.

Nothing here changes what rows a table holds. Compaction within buckets lives in `write`.
"""
