"""Machines whose clocks are ahead: found by a review, in which they decided who is newer and who is forgotten."""

from __future__ import annotations

import pyarrow as pa
import pytest

from paimon_py import Catalog, Table
from paimon_py.env import Env, SystemClock

SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])
DAY = 24 * 3_600_000


class Moved(SystemClock):
    """This machine's clock, moved."""

    def __init__(self, by):
        super().__init__()
        self.by = by

    def millis(self):
        return super().millis() + self.by

    def local_millis(self):
        return super().local_millis() + self.by


def created(place, **options):
    catalog = Catalog.open(place, {"fs.local.fsync": "false"})
    catalog.create_database("d")
    return catalog.create_table("d.t", SCHEMA, primary_key=["k"], options=options)


@pytest.mark.parametrize("by", [60_000, 2 * DAY, 0, -60_000])
@pytest.mark.parametrize(("engine", "wanted"), [("deduplicate", 2), ("partial-update", 2), ("first-row", 1)])
def test_waiting_rows_of_a_machine_that_is_ahead_do_not_win_over_later_commits(tmp_path, engine, wanted, by):
    table = created(tmp_path, bucket="-2", **{"merge-engine": engine})
    Table.open(table.location, env=Env(Moved(by))).write_arrow([{"k": 1, "v": 1}])
    table.write_arrow([{"k": 1, "v": 2}])
    table.compact(full=True)
    assert table.to_arrow().to_pylist() == [{"k": 1, "v": wanted}]


def test_a_commit_of_a_machine_two_days_ahead_takes_nothing_from_a_consumer(tmp_path):
    few = {"snapshot.num-retained.min": "2", "snapshot.num-retained.max": "2", "consumer.expiration-time": "1 d"}
    table = created(tmp_path, bucket="1", **few)
    table.write_arrow([{"k": 0, "v": 0}])
    stream = table.stream(from_="latest", consumer_id="reads")
    assert stream.poll() is None
    for number in range(1, 5):
        table.write_arrow([{"k": number, "v": number}])
    ahead = Table.open(table.location, env=Env(Moved(2 * DAY)))
    ahead.write_arrow([{"k": 5, "v": 5}])
    assert ahead.expire_consumers() == []
    steps = list(iter(table.stream(consumer_id="reads").poll, None))
    assert [row["k"] for step in steps for row in step.to_arrow().to_pylist()] == [1, 2, 3, 4, 5]
