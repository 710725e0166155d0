"""View and function methods of `Catalog`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from paimon_py.arguments import as_mapping, check_flag, with_location
from paimon_py.catalog.verbs import CatalogVerbs
from paimon_py.catalog.view import View
from paimon_py.codec.arrow_types import from_arrow_schema
from paimon_py.errors import AlreadyExistsError, NotFoundError, UnsupportedError, UsageError
from paimon_py.metastores.metastore import TableName
from paimon_py.metastores.views_and_functions import FunctionStore, SupportsViews, ViewStore
from paimon_py.spec.layout import check_text
from paimon_py.spec.new_schema import Schema
from paimon_py.spec.types import Field
from paimon_py.spec.views_and_functions import (
    CatalogFunction,
    CatalogView,
    Definition,
    FunctionChange,
    ViewChange,
    check_function_name,
)


@with_location(lambda catalog: catalog.warehouse)
class CatalogViewsAndFunctions(CatalogVerbs):
    """Methods of `Catalog` for the views and functions of a metastore that stores them.

    Hive, JDBC and REST catalogs store views, REST catalogs also functions; for others the methods raise
    UnsupportedError. `Catalog.sql` and `View.to_duckdb` run views; only engines run functions.
    """

    __slots__ = ()

    # -- views ------------------------------------------------------------------------------------------------------

    def views(self, database: str) -> list[str]:
        """Names of all views of a database, sorted.

        Raises: DatabaseNotFoundError
        """
        keeper = self._view_store("views")
        self._require_database(database)
        return keeper.views(database)

    def view(self, name: str) -> View:
        """Get a view.

        Raises: NotFoundError
        """
        found = self._view_store("view").view(self._split(name, "view"))
        if found is None:
            raise _missing("view", name)
        return View.of(found, self)

    def create_view(
        self,
        name: str,
        schema: Schema | pa.Schema,
        query: str,
        *,
        dialects: Mapping[str, str] | None = None,
        comment: str | None = None,
        options: Mapping[str, str] | None = None,
        exist_ok: bool = False,
    ) -> None:
        """Create a view.

        Args:
            schema: the columns that the query returns.
            dialects: the query in the dialects of other engines, such as `{"spark": "SELECT …"}`.
            exist_ok: leave an existing view unchanged.

        Raises:
            AlreadyExistsError, DatabaseNotFoundError: a view of this name exists, or the database does not.
            UsageError: the view is invalid.
            UnsupportedError: `dialects` are given, and a Hive catalog stores one query per view.
        """
        keeper, full = self._view_store("create_view"), self._split(name, "create_view")
        check_flag("exist_ok", exist_ok)
        if not isinstance(query, str) or not query.strip():
            raise UsageError(f"a view needs a query as a string, not {query!r}")
        view = CatalogView(
            name=str(full),
            fields=_fields(schema),
            query=query,
            dialects=as_mapping("dialects", dialects),
            comment=check_text("comment", comment),
            options=as_mapping("options", options),
        )
        self._require_database(full.database)
        if not keeper.create_view(full, view) and not exist_ok:
            raise AlreadyExistsError(f"view {name!r} already exists", table=name)

    def alter_view(self, name: str, *changes: ViewChange) -> CatalogView:
        """Apply changes to a view: SetOption, RemoveOption, UpdateComment, AddDialect, UpdateDialect, DropDialect.

        Returns: the changed view.

        Raises:
            NotFoundError: the view does not exist.
            UsageError: a change does not fit.
            UnsupportedError: a Hive catalog cannot change views, nor can Java's.
        """
        _require_some(changes)
        changed = self._view_store("alter_view").alter_view(self._split(name, "alter_view"), changes)
        if changed is None:
            raise _missing("view", name)
        return changed

    def drop_view(self, name: str, *, missing_ok: bool = False) -> None:
        """Drop a view.

        Raises: NotFoundError unless `missing_ok`
        """
        keeper, full = self._view_store("drop_view"), self._split(name, "drop_view")
        check_flag("missing_ok", missing_ok)
        if not keeper.drop_view(full) and not missing_ok:
            raise _missing("view", name)

    def rename_view(self, name: str, new_name: str) -> None:
        """Rename a view, optionally moving it to another database.

        Raises: NotFoundError, DatabaseNotFoundError, AlreadyExistsError
        """
        keeper = self._view_store("rename_view")
        full, target = self._split(name, "rename_view"), self._split(new_name, "rename_view")
        self._require_database(target.database)
        if not keeper.rename_view(full, target):
            raise _missing("view", name)

    # -- functions --------------------------------------------------------------------------------------------------

    def functions(self, database: str) -> list[str]:
        """Names of all functions of a database, sorted.

        Raises: DatabaseNotFoundError
        """
        keeper = self._function_store("functions")
        self._require_database(database)
        return keeper.functions(database)

    def function(self, name: str) -> CatalogFunction:
        """Get a function.

        Raises: NotFoundError
        """
        found = self._function_store("function").function(self._function_name(name, "function"))
        if found is None:
            raise _missing("function", name)
        return found

    def create_function(
        self,
        name: str,
        definitions: Mapping[str, Definition],
        *,
        parameters: Schema | pa.Schema | None = None,
        returns: Schema | pa.Schema | None = None,
        deterministic: bool = False,
        comment: str | None = None,
        options: Mapping[str, str] | None = None,
        exist_ok: bool = False,
    ) -> None:
        """Create a function.

        Args:
            definitions: for each engine a SqlDefinition, LambdaDefinition or FileDefinition.
            exist_ok: leave an existing function unchanged.

        Raises:
            AlreadyExistsError, DatabaseNotFoundError: a function of this name exists, or the database does not.
            UsageError: the function is invalid.
        """
        keeper, full = self._function_store("create_function"), self._function_name(name, "create_function")
        check_flag("deterministic", deterministic)
        check_flag("exist_ok", exist_ok)
        function = CatalogFunction(
            name=str(full),
            parameters=None if parameters is None else _fields(parameters),
            returns=None if returns is None else _fields(returns),
            definitions=as_mapping("definitions", definitions),
            deterministic=deterministic,
            comment=check_text("comment", comment),
            options=as_mapping("options", options),
        )
        self._require_database(full.database)
        if not keeper.create_function(full, function) and not exist_ok:
            raise AlreadyExistsError(f"function {name!r} already exists", table=name)

    def alter_function(self, name: str, *changes: FunctionChange) -> CatalogFunction:
        """Apply changes to a function: options, comment, and definitions.

        The changes are SetOption, RemoveOption, UpdateComment, AddDefinition, UpdateDefinition, DropDefinition.

        Returns: the changed function.

        Raises:
            NotFoundError: the function does not exist.
            UsageError: a change does not fit.
        """
        _require_some(changes)
        full = self._function_name(name, "alter_function")
        changed = self._function_store("alter_function").alter_function(full, changes)
        if changed is None:
            raise _missing("function", name)
        return changed

    def drop_function(self, name: str, *, missing_ok: bool = False) -> None:
        """Drop a function.

        Raises: NotFoundError unless `missing_ok`
        """
        keeper, full = self._function_store("drop_function"), self._function_name(name, "drop_function")
        check_flag("missing_ok", missing_ok)
        if not keeper.drop_function(full) and not missing_ok:
            raise _missing("function", name)

    # -- parts ------------------------------------------------------------------------------------------------------

    def _all_views(self, database: str) -> list[str]:
        """Names of all views of a database; none if the metastore stores no views."""
        return self._metastore.view_store.views(database) if isinstance(self._metastore, SupportsViews) else []

    def _drop_views(self, database: str, names: Iterable[str]) -> None:
        for name in names:
            self._view_store("drop_view").drop_view(TableName(database, name))

    def _view_store(self, verb: str) -> ViewStore:
        if not isinstance(self._metastore, SupportsViews):
            raise UnsupportedError(
                f"{verb}: a catalog of a file system stores no views; use a Hive, JDBC or REST catalog", feature="views"
            )
        return self._metastore.view_store

    def _function_store(self, verb: str) -> FunctionStore:
        found = self._metastore.view_store if isinstance(self._metastore, SupportsViews) else None
        if not isinstance(found, FunctionStore):
            raise UnsupportedError(
                f"{verb}: this catalog stores no functions, nor does Java's; use a REST catalog", feature="functions"
            )
        return found

    def _function_name(self, name: str, verb: str) -> TableName:
        full = self._split(name, verb)
        check_function_name(full.table)
        return full


def _fields(schema: Schema | pa.Schema) -> tuple[Field, ...]:
    if isinstance(schema, pa.Schema):
        return Schema(from_arrow_schema(schema)).fields
    if not isinstance(schema, Schema):
        raise UsageError(f"columns are a pyarrow.Schema or a paimon_py.Schema, not {type(schema).__name__}")
    return schema.fields


def _require_some(changes: Iterable[object]) -> None:
    if not changes:
        raise UsageError("give at least one change, such as UpdateComment('…')")


def _missing(kind: str, name: str) -> NotFoundError:
    return NotFoundError(f"{kind} {name!r} does not exist", table=name)
