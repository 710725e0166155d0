"""The user of a number in the verbs of the Spark adapter: without a query of Spark's, callers name it."""

from __future__ import annotations

import pytest

from paimon_py import UsageError

pytest.importorskip("pyspark", reason="the Spark adapter needs pyspark")
from paimon_py.spark import replays


class Session:
    """What a session says of the running query; a session of Spark Connect has no context."""

    def __init__(self, query):
        self.sparkContext = self
        self.query = query

    def getLocalProperty(self, name):
        return self.query if name == replays.QUERY else None


@pytest.mark.parametrize("session", [Session(None), object()], ids=["a thread of foreachBatch, a plain job", "Connect"])
def test_a_number_without_a_query_needs_a_user(session):
    with pytest.raises(UsageError, match="give user=…, a separate name for each pipeline"):
        replays.label_of("write_spark", None, session, None, 0)
    assert replays.label_of("write_spark", None, session, "mine", 0).user == "mine"


def test_two_queries_are_two_users():
    first, second = (replays.label_of("write_spark", None, Session(name), None, 0).user for name in "ab")
    assert first != second
