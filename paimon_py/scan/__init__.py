"""Scans: select a snapshot, its files and splits, and read splits as batches.

`scan.py` describes what to read, `plan.py` builds splits, `read.py` reads a split as batches. Out of scope: decoding
files (`formats`, `files`), merging rows (`lsm`), the meaning of predicates (`expr`).
"""
