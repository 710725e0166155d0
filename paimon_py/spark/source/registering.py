"""Make the data source known to a session, where Spark did not find the modules `pyspark_paimon` by itself."""

from __future__ import annotations

import importlib

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from paimon_py.errors import UsageError

NAMES = ("paimon", "paimon_py")
"""Formats: the second one is there for sessions with Java's jar, where the first one is the jar's."""


def found_by_spark(name: str) -> str:
    """The module `pyspark_<name>` that Spark looks for, as text."""
    return f"from paimon_py.spark.source.classes import source_class\nDefaultSource = source_class({name!r})\n"


def has_sources(spark: SparkSession) -> bool:
    """Whether this Spark has data sources in Python: from 4.0 on."""
    return hasattr(spark, "dataSource")


def register_sources(spark: SparkSession) -> None:
    """Register both formats, but for those that are there: of Spark's own finding, or a jar's.

    Raises: UsageError for a Spark without data sources in Python.
    """
    if not has_sources(spark):
        raise UsageError(
            f"Spark {spark.version} has no data sources in Python, Spark 4.0 has: use convert_to_spark and write_spark"
        )
    classes = importlib.import_module("paimon_py.spark.source.classes")
    for name in NAMES:
        try:
            spark.dataSource.register(classes.source_class(name))
        except PySparkException as error:
            if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
                raise
