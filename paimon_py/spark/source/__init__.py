"""The data source of Spark 4: `format("paimon")`, and `format("paimon_py")` beside Java's jar.

Spark runs a data source in processes of its own beside the driver: where a table is and what is asked of the table come
in options, texts by names that Spark makes lower-case.
"""
