"""The table options that only paimon_py has; other engines ignore them.

Source: docs/decisions/0036-plans-by-executors.md.
"""

from __future__ import annotations

from paimon_py.spec.option_rows.kinds import INT, Row

ROWS: tuple[Row, ...] = (
    ("scan.plan.executor-manifests", INT, "50",
     "Manifests from which a plan is made by the tasks of an executor, if the scan has one, or of Spark."),
)  # fmt: skip
