"""Determines the user of a commit, and checks that a repeated batch is one that Spark replays; used by all verbs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from paimon_py.distributed import CommitLabel
from paimon_py.errors import UsageError

if TYPE_CHECKING:
    from paimon_py import Table

QUERY = "sql.streaming.queryId"
"""The property in which Spark keeps the id of the running streaming query."""
_BATCH = "streaming.sql.batchId"


def label_of(verb: str, table: Table, spark: SparkSession, user: str | None, identifier: int | None) -> CommitLabel:
    """The user and identifier of a commit: the given user, or the running streaming query if there is an identifier.

    Spark keeps the id of a query in its checkpoint, so that a restarted query has the same id. Each verb of a query is
    a separate user: a batch may merge into a table and then delete from it.

    Args:
        verb: the name of the adapter's function.

    Raises: UsageError for an identifier without a user, and for a batch that Spark does not replay.
    """
    label = _label_of(verb, spark, user, identifier)
    _require_replay(table, spark, label)
    return label


def _label_of(verb: str, spark: SparkSession, user: str | None, identifier: int | None) -> CommitLabel:
    if identifier is None or user is not None:
        return CommitLabel(user, identifier)
    query = _query_property(spark, QUERY)
    if query is None:
        raise UsageError(
            "identifier=… counts the commits of one user, and Spark reports no running streaming query: give"
            " user=…, a separate name for each pipeline that writes to the table"
        )
    return CommitLabel(f"{verb}-{query}", identifier)


def _query_property(spark: SparkSession, name: str) -> str | None:
    """A property of the running streaming query; None if none is running, and on Spark Connect."""
    try:
        value: str | None = spark.sparkContext.getLocalProperty(name)
    except (PySparkException, AttributeError):  # Spark Connect
        return None
    return value


def _require_replay(table: Table, spark: SparkSession, label: CommitLabel) -> None:
    """Check that a batch whose number was committed before is the last batch of a query, the only one Spark replays.

    Raises: UsageError for an earlier batch, which may contain other rows than those committed under its number
    """
    user, identifier = label.user, label.identifier
    if user is None or identifier is None or _query_property(spark, _BATCH) != str(identifier):
        return
    last = table.committed(user)
    if last is not None and identifier < last:
        raise UsageError(
            f"{user!r} committed batch {last}, and now comes batch {identifier}: the checkpoint of the query is lost, "
            "or older than the table, and its batches may contain other rows than those that were committed. Restore "
            "the newest checkpoint; or start the source after the rows in the table, with a new name as user=. For a "
            "table with a primary key that keeps the last row, all batches can be repeated with a new name"
        )
