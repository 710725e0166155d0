"""Writers wait while compaction falls behind."""

from datetime import timedelta

import pytest
from unit.commit.support import Clock
from unit.public import ROWS, keyed_table

from paimon_py import Catalog, ResourceError, UsageError
from paimon_py.env import Env
from paimon_py.service import wait_for_compaction


class BusyClock(Clock):
    """A clock on which something happens while others wait."""

    def __init__(self, then):
        super().__init__()
        self.slept, self.then = [], then

    def elapsed(self):
        return sum(self.slept)

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.then(len(self.slept))


@pytest.fixture
def piled_up(tmp_path):
    def make(then):
        clock = BusyClock(then)
        catalog = Catalog.open(str(tmp_path / "lake"), env=Env(clock=clock))
        catalog.create_database("d")
        table = keyed_table(catalog, "d.t", **{"write-only": "true"})
        for _ in range(9):
            table.write_arrow(ROWS)
        clock.slept.clear()
        return table, clock

    return make


def test_a_writer_waits_until_another_process_has_compacted(piled_up):
    table, clock = piled_up(lambda looks: looks == 3 and other.compact())
    other = Catalog.open(table.location.rpartition("/d.db")[0]).table("d.t")
    assert wait_for_compaction(table) == timedelta(seconds=15)
    assert clock.slept == [5, 5, 5]
    assert wait_for_compaction(table) == timedelta(0)


def test_waiting_ends_with_an_error_that_names_the_ways_out(piled_up):
    table, clock = piled_up(lambda looks: None)
    with pytest.raises(ResourceError, match=r"d\.t still has \d+ sorted runs in a bucket after 12 s, more than the 8 of .*care"):
        wait_for_compaction(table, timeout=timedelta(seconds=12))
    assert clock.slept == [5, 5, 2]
    for wrong in (timedelta(0), 5, None):
        with pytest.raises(UsageError, match="timeout must be a timedelta above 0"):
            wait_for_compaction(table, timeout=wrong)
