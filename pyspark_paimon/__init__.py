"""Spark 4 looks for modules called `pyspark_…` and registers their `DefaultSource`: `format("paimon")`."""

from paimon_py.spark.source.classes import source_class

DefaultSource = source_class("paimon")
