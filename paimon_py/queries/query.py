"""A query over tables of a catalog, which runs when its rows are requested."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paimon_py.arguments import with_location
from paimon_py.errors import UsageError
from paimon_py.queries.statement import NamedTable
from paimon_py.queries.time_travel import VERSION, NamedState
from paimon_py.scan import convert
from paimon_py.scan.rows import Rows, row_count

if TYPE_CHECKING:
    import pandas
    import polars

    from paimon_py.queries.session import Parameters, Session
    from paimon_py.queries.sources import TableOpener, ViewText


@with_location(lambda query: query._place)
class SqlQuery:
    """The result of a SQL query. Nothing is read before rows are requested, and each call runs the query again.

    All calls read the same states of the tables: the latest when the query was created, or those that it specifies.
    """

    def __init__(
        self, text: str, sources: tuple[Sequence[tuple[NamedTable, Rows]], Sequence[ViewText]], *,
        parameters: Parameters, database: str | None, settings: Mapping[str, str], spill: str, place: str,
    ) -> None:  # fmt: skip
        """Created by `Catalog.sql`."""
        self._text, (self._tables, self._views), self._parameters, self._database = text, sources, parameters, database
        self._settings, self._spill, self._place = settings, spill, place
        with self._session() as session:
            self._schema = session.schema(text, parameters)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns, as DuckDB reports them."""
        return self._schema

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream; rows after the last one requested are not read.

        Cost: the memory that DuckDB uses for sorting and grouping (its setting `memory_limit`; the rest is spilled)
            and a few batches of each table.

        Raises:
            UsageError: a cast or function of the query rejects a value.
            ResourceError: memory and space to spill ran out.
            PaimonError: as for reading a table. All three may also be raised while the stream is read.
        """
        return pa.RecordBatchReader.from_batches(self._schema, self._rows())

    def to_arrow(self) -> pa.Table:
        """The rows as a table in memory."""
        return pa.Table.from_batches(list(self._rows()), self._schema)

    def head(self, n: int = 5) -> pa.Table:
        """The first rows as a table in memory, at most `n` of them."""
        left, found = row_count(n, "head"), []
        for batch in self._rows() if left else ():
            found.append(batch.slice(0, left))
            left -= found[-1].num_rows
            if not left:
                break
        return pa.Table.from_batches(found, self._schema)

    def to_pandas(self, *, types_mapper: convert.TypesMapper | None = None) -> pandas.DataFrame:
        """The rows as a pandas frame, with types as of `Scan.to_pandas`."""
        return convert.to_pandas(self.to_arrow(), types_mapper)

    def to_polars(self) -> polars.DataFrame:
        """The rows as a polars frame."""
        return convert.to_polars(self.to_arrow())

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as mappings from names to Python values."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def explain(self) -> str:
        """DuckDB's plan for the query, with the columns and conditions pushed down into each scan."""
        with self._session() as session:
            return session.explain(self._text, self._parameters)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"SqlQuery({self._text!r})"

    def _rows(self) -> Iterator[pa.RecordBatch]:
        with self._session() as session:
            yield from session.batches(self._text, self._parameters)

    def _session(self) -> Session:
        from paimon_py.queries.session import Session

        session = Session(self._settings, self._spill)
        try:
            for named, rows in self._tables:
                session.add(named.database, named.view, rows)
            for view in self._views:
                session.add_view(view)
            if self._database is not None or self._views:
                session.use(self._database or "main")
        except BaseException:
            session.close()
            raise
        return session


def open_query(
    catalog: TableOpener, text: str, *, parameters: Parameters, database: str | None, settings: Mapping[str, str],
    spill: str, place: str, blobs: str | None = None,
) -> SqlQuery:  # fmt: skip
    """Open a query over the tables of a catalog, and look up the states of its tables. `blobs`: as `Catalog.sql`.

    Cost: reads the schema and the latest snapshot of each table in the query.

    Raises: as `Catalog.sql`
    """
    from paimon_py.queries.session import Session
    from paimon_py.queries.sources import QuerySources

    with Session(settings, spill) as session:
        sources = QuerySources(catalog, session)
        shown = sources.add(text, database)
    opened = [(named, _with_blobs_as(rows_of(table, named), blobs)) for named, table in sources.tables]
    return SqlQuery(
        shown, (opened, sources.views), parameters=parameters, database=database, settings=settings, spill=spill,
        place=place,
    )  # fmt: skip


def rows_of(table: Any, named: NamedTable) -> Rows:
    """The scan of a table; of its latest state, with its latest columns, if the query specifies no state."""
    options = {} if named.limit is None else {"limit": named.limit}
    if named.state is not None:
        found: Rows = table.scan(**_travel(named.state), **options)
        return found
    scan: Rows = table.scan(**options)
    return scan._narrow(None, None) if hasattr(table, "snapshot") else scan  # a copy that has looked its state up


def _with_blobs_as(rows: Rows, blobs: str | None) -> Rows:
    """The rows with BLOBs as they are asked for."""
    if blobs is None:
        return rows
    found = rows._with_blobs(blobs)
    if blobs == "bytes":
        return found
    from paimon_py.queries.references import ReferenceRows

    return ReferenceRows(found)


def _travel(state: NamedState) -> dict[str, Any]:
    if state.unit == VERSION:
        return {"options": {"scan.version": state.value}}
    return {"timestamp": int(state.value) if state.is_number else state.value}


def check_parameters(given: object) -> Parameters:
    """Raises: UsageError for anything but a list of values, or a mapping from names."""
    if given is None:
        return None
    if isinstance(given, Mapping) and all(isinstance(name, str) for name in given):
        return dict(given)
    if isinstance(given, (list, tuple)):
        return list(given)
    raise UsageError(f'parameters must be a list of values for ? or a mapping for $name, not {given!r}')
