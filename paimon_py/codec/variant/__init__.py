"""VARIANT: the binary encoding of a value and its key dictionary, JSON, casts, and shredding into columns.

Bytes, Python values and Arrow arrays; no files. The caller passes the rules of casts.
"""
