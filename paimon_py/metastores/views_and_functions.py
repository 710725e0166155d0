"""The interfaces between a catalog and a metastore that stores views, or views and functions.

Source: Java `Catalog`, main of August 2026.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from paimon_py.metastores.metastore import TableName
from paimon_py.spec.views_and_functions import CatalogFunction, CatalogView, FunctionChange, ViewChange


class ViewStore(Protocol):
    """Stores views. Errors are those of `Metastore`."""

    def views(self, database: str) -> list[str]:
        """Names of the views of an existing database, sorted."""
        ...

    def view(self, name: TableName) -> CatalogView | None:
        """One view, None if it does not exist."""
        ...

    def create_view(self, name: TableName, view: CatalogView) -> bool:
        """Create a view. False if one of this name exists."""
        ...

    def alter_view(self, name: TableName, changes: Sequence[ViewChange]) -> CatalogView | None:
        """Change a view. Returns the changed view, None if it does not exist.

        Raises: UsageError; UnsupportedError if the metastore cannot change views.
        """
        ...

    def drop_view(self, name: TableName) -> bool:
        """Drop a view. False if it does not exist."""
        ...

    def rename_view(self, name: TableName, to: TableName) -> bool:
        """Rename a view. False if it does not exist.

        Raises: AlreadyExistsError
        """
        ...


@runtime_checkable
class FunctionStore(Protocol):
    """Stores functions. Errors are those of `Metastore`."""

    def functions(self, database: str) -> list[str]:
        """Names of the functions of an existing database, sorted."""
        ...

    def function(self, name: TableName) -> CatalogFunction | None:
        """One function, None if it does not exist."""
        ...

    def create_function(self, name: TableName, function: CatalogFunction) -> bool:
        """Create a function. False if one of this name exists."""
        ...

    def alter_function(self, name: TableName, changes: Sequence[FunctionChange]) -> CatalogFunction | None:
        """Change a function. Returns the changed function, None if it does not exist.

        Raises: UsageError
        """
        ...

    def drop_function(self, name: TableName) -> bool:
        """Drop a function. False if it does not exist."""
        ...


@runtime_checkable
class SupportsViews(Protocol):
    """A metastore that stores views."""

    @property
    def view_store(self) -> ViewStore:
        """The store of views, which may be a `FunctionStore`, too."""
        ...
