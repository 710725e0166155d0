"""What a catalog asks of a metastore that keeps views and functions beside tables.

Source: Java `Catalog`, main of August 2026.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from paimon_py.metastores.metastore import TableName
from paimon_py.spec.views_and_functions import CatalogFunction, CatalogView, FunctionChange, ViewChange


class ProgramKeeper(Protocol):
    """Keeps views and functions. Errors are those of `Metastore`."""

    def views(self, database: str) -> list[str]:
        """Names of the views of a database that is there, sorted."""
        ...

    def view(self, name: TableName) -> CatalogView | None:
        """One view, None if there is none."""
        ...

    def create_view(self, name: TableName, view: CatalogView) -> bool:
        """Make a view. False if there is one of this name."""
        ...

    def alter_view(self, name: TableName, changes: Sequence[ViewChange]) -> CatalogView | None:
        """Change a view. Gives the view as it is now, None if there is none.

        Raises: UsageError
        """
        ...

    def drop_view(self, name: TableName) -> bool:
        """Remove a view. False if there is none."""
        ...

    def rename_view(self, name: TableName, to: TableName) -> bool:
        """Give a view another name. False if there is none.

        Raises: AlreadyExistsError
        """
        ...

    def functions(self, database: str) -> list[str]:
        """Names of the functions of a database that is there, sorted."""
        ...

    def function(self, name: TableName) -> CatalogFunction | None:
        """One function, None if there is none."""
        ...

    def create_function(self, name: TableName, function: CatalogFunction) -> bool:
        """Make a function. False if there is one of this name."""
        ...

    def alter_function(self, name: TableName, changes: Sequence[FunctionChange]) -> CatalogFunction | None:
        """Change a function. Gives the function as it is now, None if there is none.

        Raises: UsageError
        """
        ...

    def drop_function(self, name: TableName) -> bool:
        """Remove a function. False if there is none."""
        ...


@runtime_checkable
class KeepsPrograms(Protocol):
    """A metastore that keeps views and functions."""

    @property
    def programs(self) -> ProgramKeeper:
        """Who keeps them."""
        ...
