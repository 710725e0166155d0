"""The public table API: the `Table` class, its methods by topic, and the values they return. No format logic."""

from __future__ import annotations

from paimon_py.table.table import Table

__all__ = ["Table"]
