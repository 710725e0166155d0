"""The views and functions of a REST server.

Source: Java `RESTCatalog`, `ViewSchema`, `ViewChange`, `CreateFunctionRequest`, `FunctionDefinition`, main of
August 2026.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paimon_py.arguments import decoding_metadata
from paimon_py.errors import AlreadyExistsError, CorruptionError, DatabaseNotFoundError, NotFoundError
from paimon_py.metastores.metastore import TableName
from paimon_py.metastores.rest.client import RestClient
from paimon_py.metastores.rest.messages import FunctionAnswer, FunctionPage, ViewAnswer, ViewPage
from paimon_py.metastores.rest.transport import RestRefusedError
from paimon_py.spec.schema_changes import RemoveOption, SetOption
from paimon_py.spec.type_text import parse_field, print_field
from paimon_py.spec.types import Field
from paimon_py.spec.views_and_functions import (
    AddDefinition,
    AddDialect,
    CatalogFunction,
    CatalogView,
    Definition,
    DropDefinition,
    DropDialect,
    FileDefinition,
    FunctionChange,
    FunctionResource,
    LambdaDefinition,
    SqlDefinition,
    UpdateDefinition,
    UpdateDialect,
    ViewChange,
    changed_function,
    changed_view,
)

Json = dict[str, Any]


class RestViewStore:
    """The views and functions of a server. See `ViewStore` for the methods. Cost: one request, two for changes."""

    __slots__ = ("_client",)

    def __init__(self, client: RestClient) -> None:
        self._client = client

    def views(self, database: str) -> list[str]:
        """See `ViewStore.views`. Cost: a request per page."""
        pages = self._client.pages(self._of("views", database), ViewPage)
        return sorted({name for page in pages for name in page.items()})

    def view(self, name: TableName) -> CatalogView | None:
        """See `ViewStore.view`."""
        path = self._of("views", name.database, name.table)
        found = self._find(lambda: self._client.get(path, ViewAnswer))
        if found is None or found.schema is None:
            return None
        schema = found.schema
        return CatalogView(
            name=str(name),
            fields=_fields(schema.fields, path) or (),
            query=schema.query or "",
            dialects=schema.dialects or {},
            comment=schema.comment,
            options=schema.options or {},
        )

    def create_view(self, name: TableName, view: CatalogView) -> bool:
        """See `ViewStore.create_view`."""
        schema = {
            "fields": [print_field(field) for field in view.fields], "query": view.query,
            "dialects": dict(view.dialects), "comment": view.comment, "options": dict(view.options),
        }  # fmt: skip
        body = {"identifier": {"database": name.database, "object": name.table}, "schema": schema}
        return self._create(self._of("views", name.database), body, lambda: self.view(name) == view)

    def alter_view(self, name: TableName, changes: Sequence[ViewChange]) -> CatalogView | None:
        """See `ViewStore.alter_view`."""
        before = self.view(name)
        if before is None:
            return None
        wanted, path = changed_view(before, changes), self._of("views", name.database, name.table)
        body = {"changes": [_view_change(change) for change in changes]}
        return wanted if self._change(path, body, lambda: self.view(name) == wanted) else None

    def drop_view(self, name: TableName) -> bool:
        """See `ViewStore.drop_view`."""
        return self._drop(self._of("views", name.database, name.table))

    def rename_view(self, name: TableName, to: TableName) -> bool:
        """See `ViewStore.rename_view`."""
        body = {
            "source": {"database": name.database, "object": name.table},
            "destination": {"database": to.database, "object": to.table},
        }
        path = self._client.path("views", "rename")
        try:
            return self._change(path, body, lambda: self.view(name) is None and self.view(to) is not None)
        except RestRefusedError as refused:
            if refused.status == 409:
                raise AlreadyExistsError(f"view {str(to)!r} already exists", table=str(to)) from refused
            raise

    def functions(self, database: str) -> list[str]:
        """See `ViewStore.functions`. Cost: a request per page."""
        pages = self._client.pages(self._of("functions", database), FunctionPage)
        return sorted({name for page in pages for name in page.items()})

    def function(self, name: TableName) -> CatalogFunction | None:
        """See `ViewStore.function`."""
        path = self._of("functions", name.database, name.table)
        found = self._find(lambda: self._client.get(path, FunctionAnswer))
        if found is None:
            return None
        return CatalogFunction(
            name=str(name),
            parameters=_fields(found.inputParams, path),
            returns=_fields(found.returnParams, path),
            definitions={engine: _definition(given, path) for engine, given in (found.definitions or {}).items()},
            deterministic=found.deterministic,
            comment=found.comment,
            options=found.options or {},
        )

    def create_function(self, name: TableName, function: CatalogFunction) -> bool:
        """See `ViewStore.create_function`."""
        body = {
            "name": name.table, "inputParams": _params(function.parameters), "returnParams": _params(function.returns),
            "definitions": {engine: _definition_json(found) for engine, found in function.definitions.items()},
            "deterministic": function.deterministic, "comment": function.comment, "options": dict(function.options),
        }  # fmt: skip
        return self._create(self._of("functions", name.database), body, lambda: self.function(name) == function)

    def alter_function(self, name: TableName, changes: Sequence[FunctionChange]) -> CatalogFunction | None:
        """See `ViewStore.alter_function`."""
        before = self.function(name)
        if before is None:
            return None
        wanted, path = changed_function(before, changes), self._of("functions", name.database, name.table)
        body = {"changes": [_function_change(change) for change in changes]}
        return wanted if self._change(path, body, lambda: self.function(name) == wanted) else None

    def drop_function(self, name: TableName) -> bool:
        """See `ViewStore.drop_function`."""
        return self._drop(self._of("functions", name.database, name.table))

    # -- parts ------------------------------------------------------------------------------------------------------

    def _of(self, kind: str, database: str, *name: str) -> str:
        return self._client.path("databases", database, kind, *name)

    def _find(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except RestRefusedError as refused:
            if refused.status == 404:
                return None
            raise

    def _create(self, path: str, body: Json, is_done: Callable[[], bool]) -> bool:
        try:
            self._client.change(path, body, is_done)
        except RestRefusedError as refused:
            if refused.status == 409:
                return False
            if refused.status == 404:
                raise DatabaseNotFoundError(str(refused)) from refused
            raise
        return True

    def _change(self, path: str, body: Json, is_done: Callable[[], bool]) -> bool:
        try:
            self._client.change(path, body, is_done)
        except RestRefusedError as refused:
            if refused.status == 404 and refused.resource in ("", "VIEW", "FUNCTION"):
                return False
            if refused.status == 404:
                raise NotFoundError(str(refused)) from refused
            raise
        return True

    def _drop(self, path: str) -> bool:
        try:
            self._client.delete(path)
        except RestRefusedError as refused:
            if refused.status == 404:
                return False
            raise
        return True


def _fields(given: Sequence[Any] | None, path: str) -> tuple[Field, ...] | None:
    if given is None:
        return None
    with decoding_metadata(path):
        return tuple(map(parse_field, given))


def _params(fields: Sequence[Field] | None) -> list[Json] | None:
    return None if fields is None else [print_field(field) for field in fields]


def _definition(given: Mapping[str, Any], path: str) -> Definition:
    with decoding_metadata(path):
        match given["type"]:
            case "sql":
                return SqlDefinition(given["definition"])
            case "lambda":
                return LambdaDefinition(given["definition"], given["language"])
            case "file":
                resources = tuple(FunctionResource(one["resourceType"], one["uri"]) for one in given["fileResources"])
                return FileDefinition(resources, given["language"], given["className"], given["functionName"])
    raise CorruptionError(f"{path}: a definition of type {given['type']!r}", path=path)


def _definition_json(definition: Definition) -> Json:
    match definition:
        case SqlDefinition():
            return {"type": "sql", "definition": definition.definition}
        case LambdaDefinition():
            return {"type": "lambda", "definition": definition.definition, "language": definition.language}
        case FileDefinition():
            resources = [{"resourceType": one.kind, "uri": one.uri} for one in definition.resources]
            return {"type": "file", "fileResources": resources, "language": definition.language,
                    "className": definition.class_name, "functionName": definition.function_name}  # fmt: skip


def _view_change(change: ViewChange) -> Json:
    if isinstance(change, (AddDialect, UpdateDialect)):
        action = "addDialect" if isinstance(change, AddDialect) else "updateDialect"
        return {"action": action, "dialect": change.dialect, "query": change.query}
    if isinstance(change, DropDialect):
        return {"action": "dropDialect", "dialect": change.dialect}
    return _change(change)


def _function_change(change: FunctionChange) -> Json:
    if isinstance(change, (AddDefinition, UpdateDefinition)):
        action = "addDefinition" if isinstance(change, AddDefinition) else "updateDefinition"
        return {"action": action, "name": change.name, "definition": _definition_json(change.definition)}
    if isinstance(change, DropDefinition):
        return {"action": "dropDefinition", "name": change.name}
    return _change(change)


def _change(change: Any) -> Json:
    if isinstance(change, SetOption):
        return {"action": "setOption", "key": change.name, "value": change.value}
    if isinstance(change, RemoveOption):
        return {"action": "removeOption", "key": change.name}
    return {"action": "updateComment", "comment": change.comment}
