"""The PySpark adapter: DataFrames ↔ Arrow streams. It knows Spark and the public names of paimon_py, nothing between.

No JVM jar is needed: splits are read by Python workers through Arrow. Spark 3.5 and 4.x.
"""

from __future__ import annotations

from paimon_py.spark.convert import convert_from_spark, convert_to_spark

__all__ = ["convert_from_spark", "convert_to_spark"]
