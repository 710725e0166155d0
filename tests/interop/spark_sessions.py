"""A local Spark for a file of tests, and the marks that such a file has."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator

import pytest

MARKS = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def local_session(
    *, zone: str | None = None, master: str = "local[2]", log_level: str = "ERROR", connects: bool = False
) -> Iterator:
    """A session that ends with the fixture that yields from it; skipped by name where there is no Java.

    Args:
        zone: the session's time zone; None for that of the machine.
        connects: whether it is one of Spark Connect.
    """
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.remote(master) if connects else SparkSession.builder.master(master)
    builder = builder.config("spark.ui.enabled", "false")
    if zone is not None:
        builder = builder.config("spark.sql.session.timeZone", zone)
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    if not connects:
        session.sparkContext.setLogLevel(log_level)
    yield session
    session.stop()
