"""Shortcuts that read the current state of a table."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Literal, TypeVar

import pyarrow as pa

from paimon_py.errors import UsageError
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.convert import TypesMapper
from paimon_py.table.verbs import TableVerbs, at_table_door, reads

if TYPE_CHECKING:
    import pandas
    import polars

    from paimon_py.scan.scan import Scan

_Table = TypeVar("_Table", bound="TableReading")


@at_table_door
class TableReading(TableVerbs):
    """Methods of `Table` that read all columns of the latest snapshot under the latest schema; `Table.scan` does more.

    Every method raises TableNotFoundError if the table no longer exists; otherwise it raises the errors of the `Scan`
    method of the same name.
    """

    def __new__(cls: type[_Table], *given: object, **_named: object) -> _Table:
        if not given or not isinstance(given[0], TableRoot):
            raise UsageError("write Table.open(path), or Catalog.open(warehouse).table('db.t') for a table by name")
        return super().__new__(cls)

    @abstractmethod
    def _now(self) -> Scan:
        """A scan of the latest snapshot under the latest schema."""

    @reads
    def refresh(self: _Table) -> _Table:
        """Switch this table object to the latest schema, which other processes may have changed.

        Returns: the table object itself.

        Cost: one list and, if the schema changed, one get.
        Raises: TableNotFoundError if the table was dropped, renamed or recreated.
        """
        self._schema = self._root.require_same(self._schema)
        return self

    @reads
    def to_arrow(self) -> pa.Table:
        """All rows."""
        return self._now().to_arrow()

    @reads
    def to_pandas(self, *, types_mapper: TypesMapper | None = None) -> pandas.DataFrame:
        """All rows as a pandas DataFrame; see `Scan.to_pandas`."""
        return self._now().to_pandas(types_mapper=types_mapper)

    @reads
    def to_polars(self) -> polars.DataFrame:
        """All rows as a polars DataFrame."""
        return self._now().to_polars()

    @reads
    def head(self, n: int = 5, *, blobs: Literal["bytes", "refs"] | None = None) -> pa.Table:
        """Any `n` rows, or fewer if the table has fewer; `blobs`: see `Scan.head`."""
        return self._now().head(n, blobs=blobs)

    @reads
    def count(self) -> int:
        """The number of rows. Cost: as `Scan.count`."""
        return self._now().count()
