"""Registers the data source in a session, if Spark did not find the modules `pyspark_paimon` by itself."""

from __future__ import annotations

import importlib

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from paimon_py.errors import UsageError

NAMES = ("paimon", "paimon_py")
"""Formats: the second one is for sessions with Java's jar, where the first one belongs to the jar."""


def data_source_module(name: str) -> str:
    """The source text of the module `pyspark_<name>` that Spark looks for."""
    return f"from paimon_py.spark.source.classes import source_class\nDefaultSource = source_class({name!r})\n"


def has_sources(spark: SparkSession) -> bool:
    """Whether this version of Spark has data sources in Python: from 4.0 on."""
    return hasattr(spark, "dataSource")


def register_sources(spark: SparkSession) -> None:
    """Register both formats, except those that exist: found by Spark itself, or from a jar.

    Raises: UsageError for a version of Spark without data sources in Python.
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
