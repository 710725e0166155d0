"""Arrow batches to and from one data file: Parquet, ORC, Avro behind one seam.

A format gets an open file and the fields of the schema the file belongs to. What lives elsewhere: which file to open,
schema evolution, casts, statistics as stored in a manifest.
"""
