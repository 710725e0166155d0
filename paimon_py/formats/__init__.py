"""Formats: Arrow batches to and from one data file. Parquet, ORC and Avro behind one Protocol (`base.py`).

A format gets an open file and the fields of the schema that the file belongs to. What never lives here: which file to
open, schema evolution, casts between types, statistics as a manifest has them.
"""
