"""The messages between server and catalog, field by field as in Java's JSON. Unknown fields are ignored.

Source: Java `org.apache.paimon.rest.requests`, `org.apache.paimon.rest.responses`, `TableSnapshot`,
`PartitionStatistics`, main of August 2026.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


class RestAnswer(msgspec.Struct, frozen=True):
    """A message from the server."""


class ListPage(RestAnswer, frozen=True):
    """A part of a list; the token requests the next one."""

    nextPageToken: str | None = None

    def items(self) -> Sequence[Any]:
        """The items on the page."""
        raise NotImplementedError


class Failure(RestAnswer, frozen=True):
    """The reason why a server refused a request."""

    message: str | None = None
    code: int | None = None
    resourceType: str | None = None
    resourceName: str | None = None


class Config(RestAnswer, frozen=True):
    """Options from the server: defaults are overridden by the user's options, and these by the overrides."""

    defaults: Mapping[str, str | None] | None = None
    overrides: Mapping[str, str | None] | None = None

    def merge(self, given: Mapping[str, str]) -> dict[str, str]:
        """The options of the catalog."""
        found = {**(self.defaults or {}), **given, **(self.overrides or {})}
        return {name: text for name, text in found.items() if text is not None}

    def __repr__(self) -> str:
        return "Config(***)"


class DatabaseAnswer(RestAnswer, frozen=True):
    """One database."""

    name: str
    location: str | None = None
    options: Mapping[str, str | None] | None = None


class DatabasePage(ListPage, frozen=True):
    """Names of databases."""

    databases: tuple[str, ...] | None = None

    def items(self) -> Sequence[str]:
        """See `ListPage.items`."""
        return self.databases or ()


class SchemaAnswer(RestAnswer, frozen=True):
    """The columns and options of a table. `repr` hides the options."""

    fields: tuple[Any, ...] = ()
    partitionKeys: tuple[str, ...] | None = None
    primaryKeys: tuple[str, ...] | None = None
    options: Mapping[str, str | None] | None = None
    comment: str | None = None

    def __repr__(self) -> str:
        return f"SchemaAnswer({len(self.fields)} columns)"


class TableAnswer(RestAnswer, frozen=True):
    """One table: its location, and its latest schema."""

    name: str
    path: str | None = None
    id: str | None = None
    database: str | None = None
    isExternal: bool = False
    schemaId: int = 0
    schema: SchemaAnswer | None = None

    def option(self, name: str) -> str | None:
        """An option of the table, None if it is not set."""
        return None if self.schema is None or self.schema.options is None else self.schema.options.get(name)


class TablePage(ListPage, frozen=True):
    """Names of tables."""

    tables: tuple[str, ...] | None = None

    def items(self) -> Sequence[str]:
        """See `ListPage.items`."""
        return self.tables or ()


class LatestAnswer(RestAnswer, frozen=True):
    """The latest snapshot of a branch, with totals of the table."""

    class Counted(RestAnswer, frozen=True):
        """A snapshot as JSON."""

        snapshot: msgspec.Raw

    snapshot: Counted | None = None


class SnapshotAnswer(RestAnswer, frozen=True):
    """One snapshot as JSON; "null" if there is none."""

    snapshot: msgspec.Raw = msgspec.Raw(b"null")


class CommitAnswer(RestAnswer, frozen=True):
    """Whether a snapshot became part of the history."""

    success: bool


class TokenAnswer(RestAnswer, frozen=True):
    """Credentials for the data of one table. `repr` hides them."""

    token: Mapping[str, str]
    expiresAtMillis: int

    def __repr__(self) -> str:
        return "TokenAnswer(***)"


class BranchesAnswer(RestAnswer, frozen=True):
    """Names of branches other than main."""

    branches: tuple[str, ...] | None = None


class ViewSchemaAnswer(RestAnswer, frozen=True):
    """The definition of a view. `repr` hides the options."""

    fields: tuple[Any, ...] = ()
    query: str | None = None
    dialects: Mapping[str, str] | None = None
    comment: str | None = None
    options: Mapping[str, str] | None = None

    def __repr__(self) -> str:
        return f"ViewSchemaAnswer({self.query!r})"


class ViewAnswer(RestAnswer, frozen=True):
    """One view."""

    name: str
    schema: ViewSchemaAnswer | None = None


class ViewPage(ListPage, frozen=True):
    """Names of views."""

    views: tuple[str, ...] | None = None

    def items(self) -> Sequence[str]:
        """See `ListPage.items`."""
        return self.views or ()


class FunctionAnswer(RestAnswer, frozen=True):
    """One function. `repr` hides the options."""

    name: str
    inputParams: tuple[Any, ...] | None = None
    returnParams: tuple[Any, ...] | None = None
    definitions: Mapping[str, Mapping[str, Any]] | None = None
    deterministic: bool = False
    comment: str | None = None
    options: Mapping[str, str] | None = None

    def __repr__(self) -> str:
        return f"FunctionAnswer({self.name!r})"


class FunctionPage(ListPage, frozen=True):
    """Names of functions."""

    functions: tuple[str, ...] | None = None

    def items(self) -> Sequence[str]:
        """See `ListPage.items`."""
        return self.functions or ()


class PartitionAnswer(RestAnswer, frozen=True):
    """One partition."""

    spec: Mapping[str, str]
    recordCount: int = -1
    fileSizeInBytes: int = -1
    fileCount: int = -1
    lastFileCreationTime: int = -1
    totalBuckets: int = -1
    done: bool = False


class PartitionPage(ListPage, frozen=True):
    """Partitions of a table."""

    partitions: tuple[PartitionAnswer, ...] | None = None

    def items(self) -> Sequence[PartitionAnswer]:
        """See `ListPage.items`."""
        return self.partitions or ()
