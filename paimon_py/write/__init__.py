"""Writers: rows to data files, and data files to changes.

Rows are aligned with the table's schema (`align.py`), routed to their partition and bucket a whole column at a time
(`route.py`, or by the kind of bucket: `dynamic.py`, `cross_partition.py`, `postponed_writer.py`) and handed to one
writer per bucket.
Out of scope: sorting and merging rows of a bucket (`lsm`), publishing changes (`commit`).
"""
