"""Writing and committing: rows into data files, changes into snapshots.

Rows are aligned with the table's schema, routed to their partition and bucket a whole column at a time, and handed to
one writer per bucket. Deciding what a commit contains is pure and lives in modules of its own.
"""
