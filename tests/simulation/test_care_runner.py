"""Six hours of a warehouse in simulated time: writers commit and die, a runner looks after the tables and dies, too."""

from __future__ import annotations

import contextlib
import random
from datetime import timedelta

import pyarrow as pa
import pytest
from unit.commit.support import Clock

from paimon_py import Catalog, PaimonError
from paimon_py.env import Env, SerialPool
from paimon_py.metrics.measures import measure_table
from paimon_py.service import CareRunner, CareSettings
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.fault_store import FaultStore, SimulatedCrash

KEYED = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])
OPTIONS = {"write-only": "true", "snapshot.time-retained": "30 min", "snapshot.num-retained.min": "3"}
WAREHOUSE = "memory://lake/wh"


def opened(store, clock):
    return Catalog(store, WAREHOUSE, env=Env(clock, None, SerialPool()))


@pytest.mark.parametrize("seed", [1, 2])
def test_six_hours_keep_the_backlog_bounded_and_lose_nothing(seed):
    clock, rng = Clock(), random.Random(seed)
    store = MemoryStore(clock=clock)
    catalog = opened(store, clock)
    catalog.create_database("d")
    catalog.create_table("d.keyed", KEYED, primary_key=["k"], options={"bucket": "2", **OPTIONS})
    catalog.create_table("d.plain", KEYED, options=OPTIONS)
    keyed, plain, backlog, crashes = {}, 0, [], 0
    settings = CareSettings(
        every=timedelta(minutes=10), orphans_every=timedelta(hours=1), orphans_older_than=timedelta(minutes=30),
        budget_bytes=1 << 20,
    )  # fmt: skip
    runner = CareRunner(catalog, settings)
    for minute in range(360):
        clock.seconds = max(clock.seconds, minute * 60.0)
        for name in ("d.keyed", "d.plain"):
            rows = {rng.randrange(50): rng.randrange(1000) for _ in range(rng.randrange(1, 6))}
            dies = rng.random() < 0.05
            faulty = FaultStore(store, rng.randrange(1, 30) if dies else 0, "die")
            data = pa.table({"k": list(rows), "v": list(rows.values())}, schema=KEYED)
            table, before = opened(faulty if dies else store, clock), opened(store, clock).table(name).snapshot()
            committed = True
            try:
                table.table(name).write_arrow(data)
            except (SimulatedCrash, PaimonError):
                crashes += 1
                after = opened(store, clock).table(name).snapshot()
                committed = (after.id if after else 0) > (before.id if before else 0)
            if committed and name == "d.keyed":
                keyed.update(rows)
            elif committed:
                plain += len(rows)
        if minute % 10 == 9:
            if rng.random() < 0.2:  # the runner is killed in the middle, and another one begins
                crashes += 1
                dying = CareRunner(opened(FaultStore(store, rng.randrange(1, 400), "die_after"), clock), settings)
                with contextlib.suppress(SimulatedCrash, PaimonError):
                    dying.run_round()
                runner = CareRunner(opened(store, clock), settings)
            found = runner.run_round()
            assert found.errors == () and found.out_of_time == ()
            backlog.append(max(measure_table(opened(store, clock).table(f"d.{one}")).file_count for one in ("keyed", "plain")))
    assert crashes > 10 and max(backlog) <= 12, backlog
    clock.seconds += 3600
    CareRunner(opened(store, clock), settings).run_round()
    catalog = opened(store, clock)
    found = catalog.table("d.keyed").to_arrow()
    assert dict(zip(found["k"].to_pylist(), found["v"].to_pylist(), strict=True)) == keyed
    assert catalog.table("d.plain").to_arrow().num_rows == plain
    assert {name: catalog.table(f"d.{name}").doctor() for name in ("keyed", "plain")} == {"keyed": [], "plain": []}
