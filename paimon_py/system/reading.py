"""Shortcuts for reading a system table, the same for all kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import pyarrow as pa

from paimon_py.scan.rows import Rows

if TYPE_CHECKING:
    import pandas
    import polars


class SystemReading(ABC):
    """Methods of system tables for reading all of their rows, as in `Table`; `scan` supports more."""

    @abstractmethod
    def scan(self) -> Rows:
        """A lazy read of all rows."""

    def to_arrow(self) -> pa.Table:
        """All rows."""
        return self.scan().to_arrow()

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a pandas frame."""
        return self.scan().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """All rows as a polars frame."""
        return self.scan().to_polars()

    def head(self, n: int = 5) -> pa.Table:
        """Up to `n` rows."""
        return self.scan().head(n)

    def count(self) -> int:
        """The number of rows."""
        return sum(batch.num_rows for batch in self.scan().to_reader())
