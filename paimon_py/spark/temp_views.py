"""Tables of a catalog as temporary views of a Spark session, and Java's procedures as methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from paimon_py import Catalog, Predicate, Table
from paimon_py.errors import UnsupportedError, UsageError
from paimon_py.spark.convert import frame_of
from paimon_py.spark.meaning import Meaning
from paimon_py.spark.procedures import Procedures


class SparkCatalog:
    """A catalog in a Spark session: views with the names of tables, and the procedures in `sys`.

    A view always shows the snapshot that was the latest when the view was created; `refresh` moves it.

    Attributes:
        sys: Java's procedures as methods.
    """

    def __init__(self, spark: SparkSession, catalog: Catalog, databases: Sequence[str] | None) -> None:
        self._spark = spark
        self._catalog = catalog
        if databases is not None and (isinstance(databases, (str, bytes)) or not np.iterable(databases)):
            raise UsageError(f"databases are names, not {type(databases).__name__}: {databases!r}")
        self._databases = None if databases is None else list(databases)
        self.sys = Procedures(catalog, spark)
        self.refresh()

    def refresh(self, *names: str) -> list[str]:
        """Create the views of some tables, or of all, again: for the latest snapshots and schemas.

        Returns: the names of the views, `db.t` for each table. Tables that paimon_py cannot read have no view.

        Cost: a plan for each table.
        Raises: TableNotFoundError
        """
        if names:
            for name in names:
                self.view(name)
            return list(names)
        databases = self._catalog.databases() if self._databases is None else self._databases
        made = []
        for name in [f"{database}.{table}" for database in databases for table in self._catalog.tables(database)]:
            try:
                self.view(name)
            except UnsupportedError:
                continue
            made.append(name)
        return made

    def view(
        self,
        name: str,
        *,
        snapshot_id: int | None = None,
        tag: str | None = None,
        timestamp: datetime | int | None = None,
        columns: Sequence[str] | None = None,
        where: Predicate | str | None = None,
        options: Mapping[str, str] | None = None,
        as_: str | None = None,
    ) -> DataFrame:
        """Create a view of a table, a system table or a branch, and return its DataFrame.

        Args:
            name: `db.t`, `db.t$snapshots` or `db.t$branch_b1`; the view has this name, which SQL has in backticks.
            snapshot_id, tag, timestamp, columns, where, options: as in `Table.scan`; the condition as in
                `delete_spark`.
            as_: another name for the view.

        Raises:
            TableNotFoundError: there is no such table.
            UnsupportedError: the table uses a feature that paimon_py cannot read, or a type that Spark lacks.
            UsageError: another state of a system table, or an invalid name.
        """
        source = self._catalog.table(name)
        travel: dict[str, Any] = {"snapshot_id": snapshot_id, "tag": tag, "timestamp": timestamp, "options": options}
        asked = {key: value for key, value in travel.items() if value is not None}
        if asked and not isinstance(source, Table):
            raise UsageError(f"{name} is a system table, which has no {', '.join(asked)}")
        shown = name if as_ is None else as_
        if not isinstance(shown, str) or not shown:
            raise UsageError(f"as_ is the name of a view, not {as_!r}")
        meaning = Meaning.of(self._spark)
        meant = None if where is None else meaning.condition_on(where, source.scan(**asked).schema)
        scan = source.scan(columns=columns, where=meant, **asked)
        frame = frame_of(scan, self._spark, truncate_nanos=False)
        frame.createOrReplaceTempView("`{}`".format(shown.replace("`", "``")))
        return frame

    def __repr__(self) -> str:
        return f"SparkCatalog({self._catalog!r})"
