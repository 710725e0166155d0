"""The shared base of the classes with methods of `Catalog`: its state, and methods of each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import pyarrow as pa

from paimon_py.arguments import NameList
from paimon_py.env import Env
from paimon_py.metastores.metastore import Metastore, TableName
from paimon_py.spec.new_schema import Schema
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.views_and_functions import CatalogView
from paimon_py.table.table import Table


class CatalogVerbs(ABC):
    """The parts of `Catalog` that its methods in other modules use."""

    __slots__ = ()

    _env: Env
    _metastore: Metastore

    @property
    @abstractmethod
    def warehouse(self) -> str:
        """Directory or URL of the warehouse."""

    @abstractmethod
    def databases(self) -> list[str]:
        """Names of all databases, sorted."""

    @abstractmethod
    def tables(self, database: str) -> list[str]:
        """Names of all tables of a database, sorted."""

    @abstractmethod
    def table(self, name: str) -> Table:
        """Open a table."""

    @abstractmethod
    def view(self, name: str) -> CatalogView:
        """Get a view."""

    @abstractmethod
    def create_table(
        self,
        name: str,
        schema: Schema | pa.Schema | Iterable[object],
        *,
        primary_key: NameList = (),
        partition_by: NameList = (),
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
        exist_ok: bool = False,
    ) -> Table:
        """Create a table."""

    @abstractmethod
    def drop_table(self, name: str, *, missing_ok: bool = False) -> None:
        """Drop a table."""

    @abstractmethod
    def _report(
        self, action: Literal["create", "drop", "rename"], name: str, path: str, old_name: str | None = None
    ) -> None:
        """Report an event of a table as a whole to observers."""

    @abstractmethod
    def _require_database(self, name: str) -> None:
        """Raises: DatabaseNotFoundError"""

    @abstractmethod
    def _split(self, name: str, verb: str) -> TableName:
        """Database and object of a full name."""

    @abstractmethod
    def _new_schema(
        self,
        columns: Schema | pa.Schema | Iterable[object],
        primary_key: Sequence[str],
        partition_by: Sequence[str],
        options: Mapping[str, str] | None,
        comment: str | None,
    ) -> TableSchema:
        """The first schema of a table, with the defaults of the catalog."""
