"""The package as a zip that Spark sends to executors that lack it."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import zipfile
from pathlib import Path

from pyspark.sql import SparkSession

import paimon_py
from paimon_py.env import Env
from paimon_py.spark.source.registering import NAMES, data_source_module, has_sources, register_sources


def ship(spark: SparkSession) -> None:
    """See `paimon_py.ship`."""
    path = _package_zip()
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        spark.addArtifacts(path, pyfile=True)
    else:
        spark.sparkContext.addPyFile(path)
    if has_sources(spark):
        register_sources(spark)


def _package_zip() -> str:
    """A zip of the package, kept until this process ends: Spark sends it to each new executor."""
    package = Path(paimon_py.__file__).parent
    directory = tempfile.mkdtemp(prefix="paimon_py-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    path = os.path.join(directory, f"paimon_py-{paimon_py.__version__}-{Env().ids.uuid()}.zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(package.rglob("*.py")):
            archive.write(file, Path(package.name, file.relative_to(package)).as_posix())
        for name in NAMES:
            archive.writestr(f"pyspark_{name}/__init__.py", data_source_module(name))
    return path
