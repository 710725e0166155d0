"""File formats: Arrow batches to and from one data file. Parquet, ORC and Avro implement one Protocol (`base.py`).

A format gets an open file and the fields of the file's schema. Out of scope: which file to open, schema evolution,
casts between types, statistics in manifests.
"""
