"""Views and functions of a catalog as values, and the changes to them. Pure.

Source: Java `RowShape`, `ViewSchema`, `ViewChange`, `Function`, `FunctionDefinition`, `FunctionChange`, main of
August 2026.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeVar, Union

import msgspec

from paimon_py.errors import UsageError
from paimon_py.spec.redact import shown_options
from paimon_py.spec.schema_changes import RemoveOption, SetOption, UpdateComment
from paimon_py.spec.types import Field

_FUNCTION_NAME = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9._-]+")
T = TypeVar("T")


class CatalogView(msgspec.Struct, frozen=True, kw_only=True):
    """A view: its columns and its query; `dialects` holds queries for specific engines."""

    name: str
    fields: tuple[Field, ...]
    query: str
    dialects: Mapping[str, str] = {}
    comment: str | None = None
    options: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return f"CatalogView({self.name!r}, query={self.query!r}, options={shown_options(self.options)})"


class SqlDefinition(msgspec.Struct, frozen=True):
    """A function defined by SQL."""

    definition: str


class LambdaDefinition(msgspec.Struct, frozen=True):
    """A function defined by source code."""

    definition: str
    language: str


class FunctionResource(msgspec.Struct, frozen=True):
    """A file that a function needs, such as `FunctionResource("jar", "s3://…")`."""

    kind: str
    uri: str


class FileDefinition(msgspec.Struct, frozen=True):
    """A function defined by files."""

    resources: tuple[FunctionResource, ...]
    language: str
    class_name: str
    function_name: str


Definition: TypeAlias = Union[SqlDefinition, LambdaDefinition, FileDefinition]


class CatalogFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A function: its parameters and results, and its definition for each engine. None: not declared."""

    name: str
    parameters: tuple[Field, ...] | None = None
    returns: tuple[Field, ...] | None = None
    definitions: Mapping[str, Definition] = {}
    deterministic: bool = False
    comment: str | None = None
    options: Mapping[str, str] = {}

    def __repr__(self) -> str:
        engines = ", ".join(self.definitions)
        return f"CatalogFunction({self.name!r}, definitions=[{engines}], options={shown_options(self.options)})"


class AddDialect(msgspec.Struct, frozen=True):
    """Add the query of a view for another engine."""

    dialect: str
    query: str


class UpdateDialect(msgspec.Struct, frozen=True):
    """Replace the query of a view for an engine."""

    dialect: str
    query: str


class DropDialect(msgspec.Struct, frozen=True):
    """Drop the query of a view for an engine."""

    dialect: str


class AddDefinition(msgspec.Struct, frozen=True):
    """Add the definition of a function for another engine."""

    name: str
    definition: Definition


class UpdateDefinition(msgspec.Struct, frozen=True):
    """Replace the definition of a function for an engine."""

    name: str
    definition: Definition


class DropDefinition(msgspec.Struct, frozen=True):
    """Drop the definition of a function for an engine."""

    name: str


OfBoth: TypeAlias = Union[SetOption, RemoveOption, UpdateComment]
ViewChange: TypeAlias = Union[OfBoth, AddDialect, UpdateDialect, DropDialect]
FunctionChange: TypeAlias = Union[OfBoth, AddDefinition, UpdateDefinition, DropDefinition]


def changed_view(view: CatalogView, changes: Sequence[ViewChange]) -> CatalogView:
    """The view after the changes.

    Raises: UsageError
    """
    dialects, rest = dict(view.dialects), _Rest(view.comment, dict(view.options))
    for change in changes:
        if isinstance(change, (AddDialect, UpdateDialect)):
            _put(dialects, change.dialect, change.query, is_new=isinstance(change, AddDialect), what="dialect")
        elif isinstance(change, DropDialect):
            _drop(dialects, change.dialect, "dialect")
        else:
            rest.apply(change)
    return msgspec.structs.replace(view, dialects=dialects, comment=rest.comment, options=rest.options)


def changed_function(function: CatalogFunction, changes: Sequence[FunctionChange]) -> CatalogFunction:
    """The function after the changes.

    Raises: UsageError
    """
    definitions, rest = dict(function.definitions), _Rest(function.comment, dict(function.options))
    for change in changes:
        if isinstance(change, (AddDefinition, UpdateDefinition)):
            is_new = isinstance(change, AddDefinition)
            _put(definitions, change.name, change.definition, is_new=is_new, what="definition")
        elif isinstance(change, DropDefinition):
            _drop(definitions, change.name, "definition")
        else:
            rest.apply(change)
    return msgspec.structs.replace(function, definitions=definitions, comment=rest.comment, options=rest.options)


def check_function_name(name: str) -> str:
    """Returns `name` if it is a valid function name in Java.

    Raises: UsageError
    """
    if not isinstance(name, str) or _FUNCTION_NAME.fullmatch(name) is None:
        raise UsageError(f"a function is named with letters, digits, '.', '_' and '-', not {name!r}")
    return name


class _Rest:
    """The common properties of views and functions."""

    def __init__(self, comment: str | None, options: dict[str, str]) -> None:
        self.comment = comment
        self.options = options

    def apply(self, change: object) -> None:
        if isinstance(change, SetOption):
            self.options[change.name] = change.value
        elif isinstance(change, RemoveOption):
            self.options.pop(change.name, None)
        elif isinstance(change, UpdateComment):
            self.comment = change.comment
        else:
            raise UsageError(f"not a change of a view or function: {change!r}")


def _put(held: dict[str, T], name: str, value: T, *, is_new: bool, what: str) -> None:
    if is_new and name in held:
        raise UsageError(f"{what} {name!r} already exists")
    if not is_new and name not in held:
        raise UsageError(f"{what} {name!r} does not exist; existing ones are {sorted(held)}")
    held[name] = value


def _drop(held: dict[str, T], name: str, what: str) -> None:
    if name not in held:
        raise UsageError(f"{what} {name!r} does not exist; existing ones are {sorted(held)}")
    del held[name]
