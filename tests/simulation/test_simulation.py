"""Real commit code of several actors, interleaved by seed: whatever happens, the oracle finds nothing wrong.

A seed that fails prints itself and a short script that fails alike, as a test to be kept.
"""

import hashlib
import os
from pathlib import Path

import pytest
from simulation import world
from simulation.programs import FAMILIES, run_seed
from simulation.scripts import Event, Script, as_test, check, play, shrunk

pytestmark = pytest.mark.filterwarnings("ignore:.*does nothing yet", "ignore:.*a later commit tries again")
BOUNDED = 2_080
BOUNDED_SHARDS = 8
FULL = 52_000
FULL_SHARDS = 208
LEDGER = "PAIMON_SIMULATION_LEDGER"
"""Names a file that notes which shards of the full run are done: a run that was cut off goes on behind them."""


def go_through(seeds):
    for seed in seeds:
        script, wrong = run_seed(seed)
        if wrong:
            small = shrunk(script, wrong)
            raise AssertionError("\n".join([f"seed {seed}", *wrong, as_test(small, f"seed_{seed}")]))


def shard(number, shards, count, first=0):
    size = count // shards
    return range(first + number * size, first + (number + 1) * size)


@pytest.mark.budget(10)
@pytest.mark.parametrize("number", range(BOUNDED_SHARDS))
def test_no_schedule_breaks_a_table(number):
    go_through(shard(number, BOUNDED_SHARDS, BOUNDED))


@pytest.mark.full
@pytest.mark.parametrize("number", range(FULL_SHARDS))
def test_no_schedule_of_many_breaks_a_table(number):
    ledger = os.environ.get(LEDGER)
    entry = f"{number} {code_digest()}"
    if ledger and Path(ledger).exists() and entry in Path(ledger).read_text(encoding="utf-8").splitlines():
        pytest.skip("done before, says the ledger")
    go_through(shard(number, FULL_SHARDS, FULL, first=1_000_000))
    if ledger:
        with Path(ledger).open("a", encoding="utf-8") as file:
            file.write(entry + "\n")


def code_digest():
    """What tells one state of the code and of the simulation from another."""
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted([*here.glob("*.py"), *(here.parents[1] / "paimon_py").rglob("*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def test_a_seed_plays_the_same_every_time():
    for seed in range(40):
        script, wrong = run_seed(seed)
        again, wrong_again = run_seed(seed)
        assert (script, wrong) == (again, wrong_again)


def test_a_script_plays_what_the_seed_drew():
    for seed in range(40, 70):
        script, drawn = run_seed(seed)
        _, one = play(script)
        _, other = play(script)
        journals = [[(each.actor.index, each.verb, each.path, each.data) for each in run.journal] for run in (one, other)]
        assert journals[0] == journals[1]
        assert [repr(call) for call in one.calls] == [repr(call) for call in other.calls]
        assert any(event.what == "to" for event in script.events) or one.steps


def test_many_seeds_interleave_fail_and_end():
    """The schedules are not idle: there are races, faults, deaths, and commits that come through all the same."""
    seen = set()
    others = frozenset(family.__name__ for family in FAMILIES) - {"unknown"}
    for seed in range(100):
        script, _ = run_seed(seed, others if seed % 2 else frozenset())
        seen |= {event.what for event in script.events}
        _, run = play(script)
        seen |= {call.end for call in run.calls}
        seen |= {"raced" for call in run.calls if getattr(call.result, "attempts", 0) > 1}
        seen |= {"already" for call in run.calls if getattr(call.result, "already_committed", False)}
    assert seen >= {*world.FAULTS, "to", "jump", "done", "failed", "unknown", "died", "raced", "already"}


# -- what seeds found -------------------------------------------------------------------------------------------------

FOUND = {
    "a rename right after the first snapshot was published": Script(
        "dynamic, eager", "fresh", ((("write", 4),), (("rename",),)), (Event(0, 26, "to", 1),)
    ),
    "files of changes that others committed and rolled back": Script(
        "keyed, vectors apart",
        "some",
        ((("merge_manifests",), ("commit_both", 0, 4)), (("commit_both", 0, 4), ("roll_back", 2), ("upsert", 5, 2))),
        (Event(0, 42, "to", 1),),
    ),
    "an index that was dropped beside a compaction task": Script(
        "append, indexed",
        "indexed",
        ((("index", False),), (("write", 1, 4), ("tasks", True, 2))),
        (Event(0, 33, "to", 1), Event(1, 31, "to", 0)),
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_seeds_found_stays_mended(name):
    check(FOUND[name])


# -- the oracle can say no --------------------------------------------------------------------------------------------


def broken_by(script, change):
    """What the oracle says of a run in which somebody meddles with the store before the first step of actor 1."""

    class Meddler(world.Scripted):
        def events(self, run, actor, verb, path):
            if actor.index == 1 and not self.done:
                self.done = True
                change(actor)
            return super().events(run, actor, verb, path)

    chooser = Meddler(script.events)
    chooser.done = False
    return play(script, chooser)[0]


IDLE = Script("append", "some", ((("commit", 0),), (("tag",),)))


def test_the_oracle_misses_a_data_file():
    def lose(actor):
        gone = [path for path in world.below(actor.world.store, "/w") if "data-s2-0" in path]
        actor.store._note("delete", gone[0])
        actor.world.store.delete(gone[0])

    assert any("which snapshot" in one or "gone" in one for one in broken_by(IDLE, lose))


def test_the_oracle_misses_a_snapshot():
    def lose(actor):
        actor.store._note("delete", "/w/db.db/t/snapshot/snapshot-3")
        actor.world.store.delete("/w/db.db/t/snapshot/snapshot-3")

    assert any("deleted snapshot 3" in one for one in broken_by(IDLE, lose))


def test_the_oracle_finds_a_snapshot_put_over_another():
    def put(actor):
        path = "/w/db.db/t/snapshot/snapshot-3"
        data = actor.world.store.get("/w/db.db/t/snapshot/snapshot-2").replace(b'"id" : 2', b'"id" : 3')
        actor.store._note("put", path, data)
        actor.world.store.put(path, data)

    assert any("over that of" in one for one in broken_by(IDLE, put))


def test_a_failing_script_shrinks_and_prints_as_a_test():
    programs = ((("write", 1), ("commit", 0)), (("tag",), ("write", 2)), (("alter",),))
    events = (Event(0, 9, "to", 2), Event(2, 3, "to", 0), Event(0, 3, "jump", 5))
    script = Script("append", "some", programs, events)

    def wrong_if_two_writers(candidate):
        names = [step[0] for steps in candidate.programs for step in steps]
        return ["two writers"] if names.count("write") == 2 else []

    small = shrunk(script, ["two writers"], lambda candidate: (wrong_if_two_writers(candidate), None))
    assert small == Script("append", "some", ((("write", 1),), (("write", 2),), ()), ())
    found = {"Script": Script, "Event": Event, "check": check}
    exec(as_test(script), found)
    found["test_found"]()
