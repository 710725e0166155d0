"""The catalog as a user holds it: names, tables, and work on many tables. Where names are kept is `metastores`."""

from __future__ import annotations

from paimon_py.catalog.catalog import Catalog

__all__ = ["Catalog"]
