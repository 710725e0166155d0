"""Scans: which snapshot, which files, which splits, and from splits to batches.

`scan.py` describes what to read, `plan.py` makes splits, `read.py` turns a split into batches. What never lives here:
decoding files (`formats`, `files`), merging rows (`lsm`), what a predicate means (`expr`).
"""
