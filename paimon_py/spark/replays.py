"""Whose commit a verb makes, and whether a batch that comes again is one that Spark replays: the door of all verbs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from paimon_py.distributed import CommitLabel
from paimon_py.errors import UsageError

if TYPE_CHECKING:
    from paimon_py import Table

QUERY = "sql.streaming.queryId"
"""The property in which Spark keeps the id of the streaming query that runs."""
_BATCH = "streaming.sql.batchId"


def label_of(verb: str, table: Table, spark: SparkSession, user: str | None, identifier: int | None) -> CommitLabel:
    """Who commits: the user that is given, or else the streaming query that runs now, if there is a number to count.

    Spark keeps the id of a query in its checkpoint, so that the query has the same one when it comes back. Verbs of one
    query are several users: a batch may merge into a table and then delete from the same one.

    Args:
        verb: of the adapter, by its name.

    Raises: UsageError for a number without a user, and for a batch that Spark does not replay.
    """
    label = _label_of(verb, spark, user, identifier)
    _require_replay(table, spark, label)
    return label


def _label_of(verb: str, spark: SparkSession, user: str | None, identifier: int | None) -> CommitLabel:
    if identifier is None or user is not None:
        return CommitLabel(user, identifier)
    query = _told_by_query(spark, QUERY)
    if query is None:
        raise UsageError(
            "identifier=… counts the commits of one user, and no streaming query runs here that Spark tells of: give"
            " user=…, a name of its own for each pipeline that writes to the table"
        )
    return CommitLabel(f"{verb}-{query}", identifier)


def _told_by_query(spark: SparkSession, name: str) -> str | None:
    """A property of the streaming query that runs now; None if none runs, and on Spark Connect."""
    try:
        told: str | None = spark.sparkContext.getLocalProperty(name)
    except (PySparkException, AttributeError):  # Spark Connect
        return None
    return told


def _require_replay(table: Table, spark: SparkSession, label: CommitLabel) -> None:
    """Take a batch whose number was committed for a replay only where Spark replays: a query's last batch alone.

    Raises: UsageError for an earlier batch, which may hold other rows than what was committed under its number
    """
    user, identifier = label.user, label.identifier
    if user is None or identifier is None or _told_by_query(spark, _BATCH) != str(identifier):
        return
    last = table.committed(user)
    if last is not None and identifier < last:
        raise UsageError(
            f"{user!r} committed batch {last}, and now comes batch {identifier}: the checkpoint of the query is lost, "
            "or older than the table, and its batches may hold other rows than those that were committed. Bring the "
            "newest checkpoint back; or let the source begin after what the table has, under a new name as user=. A "
            "table with a primary key that keeps the last row takes all batches again, under a new name"
        )
