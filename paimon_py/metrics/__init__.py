"""Metrics: numbers of what this process does to tables, and of how tables are.

`follow(catalog)` counts from now on, `measure(table)` looks at a table, and `prometheus()` gives all of it as text.
These three use one `Metrics` for the process; a program that wants several makes its own.

What counts is an observer (`Catalog.register_observer`) and nothing else: without it no number is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paimon_py.metrics.measures import BucketLevel, ConsumerLag, TableMeasures, measure_table
from paimon_py.metrics.registry import Metrics
from paimon_py.metrics.samples import Sample

if TYPE_CHECKING:
    from paimon_py.catalog.catalog import Catalog
    from paimon_py.table.table import Table

__all__ = [
    "BucketLevel", "ConsumerLag", "Metrics", "Sample", "TableMeasures", "follow", "measure", "prometheus", "samples",
]  # fmt: skip

_PROCESS = Metrics()


def follow(catalog: Catalog) -> Metrics:
    """Count what this process does to the tables of a catalog, from now on.

    Calls to stores are counted for tables that are opened from now on.

    Returns: the metrics of the process.
    """
    catalog.register_observer(_PROCESS)
    return _PROCESS


def measure(table: Table) -> TableMeasures:
    """Look at a table, and keep what was seen as gauges of the process.

    Cost: all manifests of the latest snapshot that were not read before, its consumers and tags; no data file.
    Raises: as `Table.levels`
    """
    found = measure_table(table)
    _PROCESS.set_measures(found)
    return found


def samples() -> list[Sample]:
    """All numbers of the process, by name and labels."""
    return _PROCESS.samples()


def prometheus() -> str:
    """All numbers of the process as text for Prometheus (content type `text/plain; version=0.0.4`)."""
    return _PROCESS.prometheus()


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
