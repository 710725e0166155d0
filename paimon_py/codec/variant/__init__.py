"""VARIANT: the binary encoding of one value and its dictionary of keys, JSON, casts, and shredding into columns.

Bytes, Python values and Arrow arrays; no files. What the types of casts are is told by the caller.
"""
