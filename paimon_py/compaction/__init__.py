"""Compaction: what to merge, carried out as tasks that any process can run, in writers or on demand."""
