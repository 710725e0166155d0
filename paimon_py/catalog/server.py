"""Catalog methods that only a server supports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from paimon_py.arguments import as_list, as_mapping, with_location
from paimon_py.catalog.verbs import CatalogVerbs
from paimon_py.errors import (
    AlreadyExistsError,
    DatabaseNotFoundError,
    TableNotFoundError,
    UnsupportedError,
    UsageError,
)
from paimon_py.metastores.server import CatalogPartition, ServerMetastore
from paimon_py.spec.new_schema import Schema
from paimon_py.spec.redact import shown_url
from paimon_py.table.table import Table


@with_location(lambda catalog: catalog.warehouse)
class CatalogServer(CatalogVerbs):
    """Methods of `Catalog` that need a server which stores the names. All methods raise UnsupportedError elsewhere."""

    __slots__ = ()

    def replace_table(
        self,
        name: str,
        schema: Schema | pa.Schema | Iterable[object],
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> Table:
        """Replace a table's columns, keys and options, and empty it: the server removes the rows and adds a schema.

        The previous content remains in the table's snapshots. The arguments are those of `create_table`.

        Raises:
            TableNotFoundError: the table does not exist.
            UnsupportedError: the server cannot replace tables (before Paimon 2.0), or not with other partition keys.
            SchemaError, OptionError: columns, keys or options break a rule; the message contains the rule.
        """
        server, full = self._server("replace_table"), self._split(name, "replace_table")
        wanted = self._new_schema(schema, primary_key, partition_by, options, comment)
        root = server.replace_table(full, wanted)
        if root is None:
            raise TableNotFoundError(f"table {name!r} does not exist", table=name)
        return Table(root, root.schemas.latest(), name)

    def register_table(self, name: str, path: str) -> Table:
        """Register an existing table at a path or URL under a name.

        Raises:
            AlreadyExistsError: a table of this name exists.
            DatabaseNotFoundError: the database does not exist.
            UsageError, UnsupportedError: the server rejects the table.
        """
        server, full = self._server("register_table"), self._split(name, "register_table")
        if not isinstance(path, str) or not path:
            raise UsageError(f"path must be the path or URL of a table, not {path!r}")
        if shown_url(path) != path:
            raise UsageError(f"the URL of a table must not contain a password or a query: {shown_url(path)}")
        if not server.register_table(full, path):
            raise AlreadyExistsError(f"table {name!r} already exists", table=name)
        return self.table(name)

    def table_by_id(self, table_id: str) -> Table:
        """Open a table by the id that its server assigned, regardless of its current name.

        Raises: TableNotFoundError
        """
        if not isinstance(table_id, str) or not table_id:
            raise UsageError(f"the id of a table must be a non-empty string, not {table_id!r}")
        found = self._server("table_by_id").find_by_id(table_id)
        if found is None:
            raise TableNotFoundError(f"the table with the id {table_id!r} does not exist")
        name, root = found
        return Table(root, root.schemas.latest(), str(name))

    def partitions(self, name: str) -> list[CatalogPartition]:
        """The partitions of a table as its server counts them from reported commits.

        `Table.partitions` reads them from the table itself, whether or not a server counts them.

        Raises:
            TableNotFoundError: the table does not exist.
            UnsupportedError: the server counts none for this table (option `metastore.partitioned-table`).
        """
        found = self._server("partitions").partitions(self._split(name, "partitions"))
        if found is None:
            raise UnsupportedError(
                f"the server has no partition statistics of {name!r}: set 'metastore.partitioned-table', or call"
                " Table.partitions()",
                feature="partitions in the metastore",
            )
        return found

    def mark_partitions_done(self, name: str, partitions: Sequence[Mapping[str, str]]) -> None:
        """Report to the server that partitions are complete; `Table.mark_partitions_done` writes files instead.

        Args:
            partitions: their values as strings, such as `[{"month": "3"}]`.

        Raises: TableNotFoundError, UnsupportedError, UsageError
        """
        server, full = self._server("mark_partitions_done"), self._split(name, "mark_partitions_done")
        specs = [as_mapping("partitions", one) for one in as_list("partitions must be a list of mappings", partitions)]
        if not specs or any(not spec or not all(isinstance(text, str) for text in spec.values()) for spec in specs):
            raise UsageError("give at least one partition, with its values as strings, such as [{'month': '3'}]")
        server.mark_partitions_done(full, specs)

    def alter_database(
        self, name: str, *, options: Mapping[str, str] | None = None, remove: Sequence[str] = ()
    ) -> None:
        """Set options of a database, and remove some.

        Raises: DatabaseNotFoundError, UsageError
        """
        updates, removals = as_mapping("options", options), as_list("remove must be a list of names", remove)
        if not updates and not removals:
            raise UsageError("alter_database needs options to set, or names to remove")
        if not self._server("alter_database").alter_database(name, updates, removals):
            raise DatabaseNotFoundError(f"database {name!r} does not exist")

    def _server(self, verb: str) -> ServerMetastore:
        if not isinstance(self._metastore, ServerMetastore):
            raise UnsupportedError(f"{verb}: this catalog has no server; use a REST catalog", feature=verb)
        return self._metastore
