"""Bytes to values and back: JSON, Avro records, BinaryRow, partition directories, bitmaps, file indexes, Arrow types.

Most modules work on whole Arrow columns. What never lives here: opening a file or a store, what a table means by the
values, data files (`formats`).
"""
