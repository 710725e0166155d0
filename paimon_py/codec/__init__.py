"""Bytes to values and back: JSON, Avro records, BinaryRow, partition directories, bitmaps, file indexes, Arrow types.

Most modules work on whole Arrow columns. Out of scope: opening files or stores, what a table means by the values, and
data files (`formats`).
"""
