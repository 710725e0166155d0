"""Bytes and values: JSON, Avro records, BinaryRow, bitmaps, Arrow types. Nothing here opens a file or a store."""
