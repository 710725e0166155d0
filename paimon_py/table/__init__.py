"""The table as a user holds it: one class, its verbs by topic, and the values that it gives. No logic of the format."""

from __future__ import annotations

from paimon_py.table.table import Table

__all__ = ["Table"]
