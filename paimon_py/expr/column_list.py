"""The type of the columns of scans.

Source: none
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, Union

from paimon_py.expr.column import VariantColumn


class ColumnList(Protocol):
    """Columns in their order: a list or a tuple of names, and of parts of VARIANT columns (`col("v").variant(…)`)."""

    def __contains__(self, value: object, /) -> bool:
        """Whether a column is included; type checkers know by it that a plain string is not a list of columns."""

    def __iter__(self) -> Iterator[Union[str, VariantColumn]]:
        """The columns."""
