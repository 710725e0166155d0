"""Writing: rows into data files.

Rows are aligned with the table's schema, routed to their partition and bucket a whole column at a time, and handed to
one writer per bucket.
"""
