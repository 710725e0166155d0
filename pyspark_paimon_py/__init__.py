"""Spark 4 looks for modules called `pyspark_…` and registers their `DefaultSource`: `format("paimon_py")`.

The name for sessions with Java's jar, where `paimon` is the jar's.
"""

from paimon_py.spark.source.classes import source_class

DefaultSource = source_class("paimon_py")
