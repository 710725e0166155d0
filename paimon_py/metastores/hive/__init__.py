"""The catalog of a Hive Metastore: databases, tables and partitions as Hive, Spark, Flink and Java Paimon see them.

`thrift.py` and `connection.py` speak to a server, `calls.py` names the few calls that are used, `records.py` and
`hive_types.py` say what is written there, `metastore.py` is the catalog, `lock.py` the lock, `registration.py` what a
table tells the metastore when it changes.
"""
