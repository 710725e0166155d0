"""The public catalog API: names, tables, and work on many tables. `metastores` stores the names."""

from __future__ import annotations

from paimon_py.catalog.catalog import Catalog

__all__ = ["Catalog"]
