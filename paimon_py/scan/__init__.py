"""Reading: which snapshot, which files, which splits, and from splits to batches.

What never lives here: decoding files (formats, files), merging rows (lsm), deciding what a predicate means (expr).
"""
