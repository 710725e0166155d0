"""Compactions: what to merge, carried out as tasks that any process can run, in writers or on demand.

Decisions are pure: `levels.py`, `picker.py` (sorted runs), `append_picker.py`, `cluster_plan.py`, `steps.py` (which
files move, which are merged), `task.py` (the task as a value). `rewrite.py` and `by_lookup.py` work on batches; the
others read and write files. What never lives here: how rows merge (`lsm`), publishing (`commit`).
"""
