"""Displays rows that are not read yet: as one line, and in a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import pyarrow as pa

from paimon_py.notebook import scan_page


class ShownRows(ABC):
    """Rows with a description of themselves."""

    _title: ClassVar[str] = "Scan"

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Names and types of the columns that are returned."""

    @abstractmethod
    def _description(self) -> dict[str, object]:
        """The arguments of a scan as text: the table, the state if given, and the others by name."""

    def _seen_plan(self) -> dict[str, object]:
        """The summary of the plan for notebooks."""
        return {}

    def _repr_html_(self) -> str:
        shown = {name.replace("_", " "): value for name, value in self._description().items() if name != "columns"}
        return scan_page(self._title, shown, lambda: self.schema, self._seen_plan)

    def __repr__(self) -> str:
        shown = {name: value for name, value in self._description().items() if value is not None}
        first = [repr(shown.pop("table")), *([str(shown.pop("state"))] if "state" in shown else ())]
        rest = [f"{name}={list(value) if isinstance(value, tuple) else value!r}" for name, value in shown.items()]
        return f"{self._title}({', '.join(first + rest)})"
