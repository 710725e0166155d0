"""The catalog of a Hive Metastore: databases, tables and partitions as Hive, Spark, Flink and Java Paimon use them.

`thrift.py` and `connection.py` implement the protocol, `calls.py` lists the calls in use, `records.py` and
`hive_types.py` define the records, `metastore.py` is the catalog, `lock.py` its lock, and `registration.py` reports
changes of a table to the metastore.
"""
