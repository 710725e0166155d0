"""Compaction: plans tasks, and runs them in writers, on demand, or in other processes.

Decisions are pure: `levels.py`, `picker.py` (sorted runs), `append_picker.py`, `cluster_plan.py`, `steps.py` (which
files move, which are merged), `task.py` (the task as a value). `rewrite.py` and `by_lookup.py` work on batches; the
other modules read and write files. Out of scope: how rows merge (`lsm`), and publishing (`commit`).
"""
