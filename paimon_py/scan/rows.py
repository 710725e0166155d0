"""Ways to read rows from any source of batches: scans of tables and of system tables alike."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from numbers import Integral
from typing import TYPE_CHECKING, Literal, overload

import pyarrow as pa

from paimon_py.api_hints import no_items, unknown_attribute
from paimon_py.arguments import NameList, check_flag, with_location
from paimon_py.errors import UsageError
from paimon_py.scan import convert
from paimon_py.scan.shown_rows import ShownRows

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    from pyarrow.dataset import Dataset

    from paimon_py.expr.predicate import Predicate
    from paimon_py.scan.projection import Projection

_ROWS_MAX = (1 << 63) - 1
_OF_DATASETS = ("scanner", "to_batches", "to_table")
"""Methods of a pyarrow dataset that a caller may use on a scan by mistake."""


def _require_table(rows: Rows) -> None:
    """Raises: TableNotFoundError if the rows belong to a table that no longer exists."""
    root = getattr(rows, "_root", None)
    if root is not None:
        root.schemas.latest()


@with_location(lambda rows: rows._place, _require_table)
class Rows(ShownRows):
    """Rows that are read on demand, as batches of one schema."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Names and types of the columns that are returned."""

    @property
    @abstractmethod
    def limit(self) -> int | None:
        """The maximum number of rows returned, None for all."""

    def to_reader(self, *, in_order: bool = True) -> pa.RecordBatchReader:
        """The rows as a stream, in memory that does not grow with the table.

        Splits are read in parallel, by as many threads as the table has (`Env(threads=…)`). Threads read ahead as far
        as memory allows, and end when it is full, when the last row was consumed, or when the reader is released.

        Args:
            in_order: return the rows as if one split were read after the other; else as soon as they are available,
                which keeps more cores busy if splits are large.
        """
        check_flag("in_order", in_order)
        return pa.RecordBatchReader.from_batches(self.schema, self._rows(in_order=in_order))

    def to_arrow(self, *, blobs: Literal["bytes", "refs"] | None = None) -> pa.Table:
        """The rows as a table in memory.

        Args:
            blobs: return BLOBs as bytes, or as references to the bytes, which `BlobRef.from_bytes` decodes. None: as
                the option `blob-as-descriptor` says; the default is bytes.
        """
        rows = self if blobs is None else self._with_blobs(blobs)
        return table_of(rows._rows(keeps=True), rows.schema)

    def head(self, n: int = 5, *, blobs: Literal["bytes", "refs"] | None = None) -> pa.Table:
        """The rows as a table in memory, at most `n` of them, to look at.

        Args:
            blobs: as in `to_arrow`; references suffice for a look at a table of large BLOBs.
        """
        most = row_count(n, "head")
        return self._limit_to(most if self.limit is None else min(most, self.limit)).to_arrow(blobs=blobs)

    def to_pandas(self, *, types_mapper: convert.TypesMapper | None = None) -> pandas.DataFrame:
        """The rows as a pandas DataFrame.

        Integer columns with NULL keep their values: they use pandas types such as `Int64`.

        Args:
            types_mapper: maps each Arrow type to a pandas type instead, as in `pyarrow.Table.to_pandas`.
        """
        return convert.to_pandas(self.to_arrow(), types_mapper)

    @overload
    def to_polars(self, *, lazy: Literal[False] = False) -> polars.DataFrame: ...

    @overload
    def to_polars(self, *, lazy: Literal[True]) -> polars.LazyFrame: ...

    def to_polars(self, *, lazy: bool = False) -> polars.DataFrame | polars.LazyFrame:
        """The rows as a polars DataFrame.

        Args:
            lazy: return a LazyFrame. Columns, filters and limits of a query are pushed into the scan, and the rows of
                one state are read each time polars collects. A scan with a limit gets columns only.
        """
        check_flag("lazy", lazy)
        return convert.to_lazy_polars(self) if lazy else convert.to_polars(self.to_arrow())

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection, name: str) -> duckdb.DuckDBPyRelation:
        """Register the rows as a view of a DuckDB connection; every query of the view reads again.

        Columns and filters of a query are pushed into the scan; DuckDB stops reading when a limit is reached.

        Returns: the view as a relation.

        Raises: UsageError if the arguments are not a connection and a name.
        """
        if isinstance(connection, type) or not hasattr(connection, "register") or not isinstance(name, str) or not name:
            raise UsageError("to_duckdb takes a connection and a name: to_duckdb(duckdb.connect(), 'flights')")
        return convert.to_duckdb(self.to_dataset(), connection, name)

    def to_dataset(self) -> Dataset:
        """The rows as a pyarrow dataset, which pushes columns and filters into the scan.

        Use it for libraries that accept datasets: `polars.scan_pyarrow_dataset(scan.to_dataset())`, DuckDB,
        `to_batches` and `to_table` with `columns=` and `filter=`. The dataset has no fragments: `splits` are the parts
        of a scan.
        """
        return convert.to_dataset(self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def _with_blobs(self, blobs: str) -> Rows:
        """A copy that returns BLOBs as 'bytes' or as 'refs'. Raises: UsageError for something else"""
        if blobs not in ("bytes", "refs"):
            raise UsageError(f"blobs must be 'bytes' or 'refs', not {blobs!r}")
        return self._showing_blobs(as_refs=blobs == "refs")

    def _showing_blobs(self, *, as_refs: bool) -> Rows:
        """A copy that returns BLOBs as bytes or as references; rows without BLOBs are unchanged."""
        del as_refs
        return self

    @property
    @abstractmethod
    def _place(self) -> str:
        """Directory or URL of the table, for messages."""

    @abstractmethod
    def _rows(self, *, in_order: bool = True, keeps: bool = False) -> Iterator[pa.RecordBatch]:
        """The rows, in batches of the schema. `in_order`: as `to_reader`; `keeps`: the caller keeps all batches."""

    @abstractmethod
    def _limit_to(self, most: int) -> Rows:
        """A copy with another limit."""

    @property
    @abstractmethod
    def _projection(self) -> Projection:
        """The columns that are returned, and their position in the table."""

    @property
    @abstractmethod
    def _takes_conditions(self) -> bool:
        """Whether rows may be filtered before others are counted or ordered."""

    @abstractmethod
    def _narrow(self, columns: NameList | None, where: Predicate | None) -> Rows:
        """A copy with some of the columns (None: all) and, if `_takes_conditions`, only the matching rows."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            if name in _OF_DATASETS:
                raise AttributeError(
                    f"a scan has no {name}: pass scan.to_dataset() to libraries that take pyarrow datasets, or use "
                    "scan.to_polars(lazy=True)"
                )
            raise AttributeError(unknown_attribute(type(self), name))

        def __getitem__(self, item: object) -> object:
            raise TypeError(no_items(type(self)))

        __iter__ = None  # else Python would loop by __getitem__


def row_count(count: object, verb: str) -> int:
    """A row count from a caller, capped at the 64-bit maximum.

    Raises: UsageError if it is not a whole number from 0.
    """
    if isinstance(count, bool) or not isinstance(count, Integral) or count < 0:
        raise UsageError(f"{verb} must be a whole number of rows from 0, not {count!r}")
    return min(int(count), _ROWS_MAX)


def limit_of(limit: object, order_by: object) -> int | None:
    """The limit of a scan from a caller, None for all rows.

    Raises: UsageError if it is not a number of rows, or is missing although `order_by` is given.
    """
    if order_by is not None and limit is None:
        raise UsageError("order_by finds the first rows of an order: set their number with limit=…")
    return None if limit is None else row_count(limit, "limit")


def table_of(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """The rows of batches as a table, which has a number of rows even without columns."""
    found = list(batches)
    if len(schema) or not found:
        return pa.Table.from_batches(found, schema)
    return pa.table({"rows": pa.nulls(sum(batch.num_rows for batch in found))}).select([])
