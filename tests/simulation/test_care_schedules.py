"""All verbs of care beside writers, streams and changes of options, interleaved by seed: the judge finds nothing wrong.

A seed that fails prints itself and a short script that fails alike, as a test to be kept.
"""

from __future__ import annotations

import random

import pytest
from simulation import care, world
from simulation.scripts import Event, Script, When, as_test, shrunk

pytestmark = pytest.mark.filterwarnings("ignore::paimon_py.PaimonWarning")
BOUNDED, BOUNDED_SHARDS = 120, 4
FULL, FULL_SHARDS = 50_000, 200


def go_through(seeds, *, others=False):
    for seed in seeds:
        script, wrong = care.run_seed(seed, others=others)
        if wrong:
            raise AssertionError("\n".join([f"seed {seed}", *wrong, as_test(shrunk(script, wrong, care.play))]))


def shard(number, shards, count, first=0):
    size = count // shards
    return range(first + number * size, first + (number + 1) * size)


@pytest.mark.parametrize("number", range(BOUNDED_SHARDS))
def test_no_schedule_of_care_breaks_a_table(number):
    go_through(shard(number, BOUNDED_SHARDS, BOUNDED))


@pytest.mark.full
@pytest.mark.parametrize("number", range(FULL_SHARDS))
def test_no_schedule_of_care_of_many_breaks_a_table(number):
    go_through(shard(number, FULL_SHARDS, FULL, first=1_000_000))


@pytest.mark.parametrize("number", range(BOUNDED_SHARDS))
def test_no_schedule_of_all_verbs_of_care_breaks_a_table(number):
    go_through(shard(number, BOUNDED_SHARDS, BOUNDED), others=True)


@pytest.mark.full
@pytest.mark.parametrize("number", range(FULL_SHARDS))
def test_no_schedule_of_all_verbs_of_many_breaks_a_table(number):
    go_through(shard(number, FULL_SHARDS, FULL, first=2_000_000), others=True)


def test_schedules_cut_race_fail_and_end():
    """The schedules are not idle."""
    seen = set()
    for seed in range(70):
        script, _ = care.run_seed(seed)
        _, run = care.play(script)
        seen |= {(call.what.split()[0], call.end) for call in run.calls} | {event.what for event in script.events}
        seen |= {"told" for actor in run.actors if actor.memory.get("told")}
        seen |= {"cut off" for call in run.calls if "is in progress" in str(call.error)}
    verbs = {"write", "numbered", "rollback", "fast_forward", "create_branch", "delete_branch", "create_tag", "expire", "consume"}
    assert seen >= {(verb, "done") for verb in verbs}
    assert seen >= {("rollback", "failed"), ("fast_forward", "failed"), "to", "told", "cut off"}
    assert seen & set(world.FAULTS)


def test_schedules_of_all_verbs_end_well_and_see_clocks_jump():
    seen = set()
    for seed in range(70):
        script, _ = care.run_seed(seed, others=True)
        _, run = care.play(script)
        seen |= {call.what for call in run.calls if call.end == "done"} | {event.what for event in script.events}
    assert seen >= {
        "jump", "truncate", "delete", "drop_partitions", "replace_tag", "rename_tag", "rename_branch", "analyze",
        "remove_unexisting_files", "expire_tags", "expire_changelogs",
    }  # fmt: skip


FOUND = {
    "a commit while a branch is moved to that builds on all of main": Script(
        "keyed",
        "expired",
        ((("branch", "c"), ("write", "c"), ("fast_forward", "c", False)), (), (("orphans",), ("write",))),
        (Event(0, 52, "to", 2), Event(0, 88, "to", 2), Event(2, 100, "to", 0)),
    ),
    "a commit while a branch is moved to that has nothing new": Script(
        "keyed, eager",
        "short",
        (
            (("branch", "c"),),
            (("write",), ("expire", 1), ("branch", "b"), ("fast_forward", "c", False)),
            (("compact",), ("rollback_to_tag", "early"), ("write",)),
        ),
        (
            Event(0, 3, "to", 2),
            Event(2, 1, "to", 1),
            Event(1, 4, "to", 0),
            Event(0, 5, "to", 2),
            Event(1, 77, "to", 0),
            Event(1, 78, "to", 2),
            Event(2, 54, "to", 1),
            Event(2, 71, "to", 1),
            Event(1, 94, "to", 2),
        ),
    ),
    "a rollback that begins and ends between two looks of an expiry": Script(
        "keyed, eager",
        "long",
        ((("branch", "b"), ("rollback", 1)), (("orphans",), ("expire", 1))),
        (
            Event(1, 56, "to", 0),
            Event(0, 30, "to", 1),
            Event(1, 58, "to", 0),
            Event(0, 31, "to", 1),
            Event(1, 59, "to", 0),
            Event(0, 32, "to", 1),
            Event(1, 60, "to", 0),
            Event(0, 33, "to", 1),
            Event(1, 67, "after", 0),
            Event(1, 69, "to", 0),
            Event(0, 34, "to", 1),
            Event(1, 71, "to", 0),
            Event(0, 35, "to", 1),
            Event(1, 72, "to", 0),
            Event(0, 37, "to", 1),
        ),
    ),
    "a commit that a fast-forward takes away, and has to name": Script(
        "append, partitions",
        "short",
        (
            (("write",), ("branch", "c", "early"), ("numbered",)),
            (("branch", "b"), ("write", "b"), ("consume", 2), ("fast_forward", "b", True)),
        ),
        (Event(0, 59, "to", 1), Event(1, 99, "to", 0)),
    ),
    "an expiry that deletes what another one reads": Script(
        "keyed, vectors", "long", ((), (("expire", 1),), (("write",), ("expire", 1))), (Event(1, 18, "to", 2),)
    ),
    "a commit that is published right before a fast-forward puts its snapshot there": Script(
        "keyed",
        "short",
        ((("write",),), (("branch", "c"), ("write", "c"), ("fast_forward", "c", True))),
        (
            When(0, "put_new", "/t/snapshot/snapshot-3", "to", 1),
            When(1, "put", "/t/snapshot/snapshot-3", "to", 0),
            When(1, "put_new", "/t/snapshot/snapshot-3", "to", 0),
        ),
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_schedules_of_care_found_stays_mended(name):
    wrong, _ = care.play(FOUND[name])
    assert not wrong


ON_B, ON_C = ((("branch", name), ("write", name)) for name in ("b", "c"))
MEETING = {
    "fast-forwards to two branches": ("keyed", "expired", (*ON_C, ("fast_forward", "c", True)), (*ON_B, ("fast_forward", "b", False))),
    "fast-forwards to two branches, nothing discarded": (
        "append, partitions", "short", (*ON_C, ("fast_forward", "c", False)), (*ON_B, ("fast_forward", "b", False)),
    ),
    "a fast-forward and a rollback to a tag": (
        "keyed, eager", "expired", (*ON_C, ("fast_forward", "c", True)), (("rollback_to_tag", "early"), ("write",)),
    ),
    "two rollbacks": ("append", "short", (("write",), ("rollback", 1)), (("rollback_to_tag", "early"), ("write",))),
    "a fast-forward that discards a schema, and a commit": (
        "keyed, eager", "expired",
        (*ON_C, ("option", "snapshot.num-retained.min", "1"), ("fast_forward", "c", True)), (("write",), ("compact",)),
    ),
    "a fast-forward to nothing new that discards a schema, and a commit": (
        "append", "short",
        (("branch", "c"), ("option", "snapshot.num-retained.min", "1"), ("fast_forward", "c", True)), (("write",),),
    ),
    "a fast-forward, and a change of options": (
        "keyed", "short", (*ON_C, ("fast_forward", "c", False)), (("option", "snapshot.num-retained.min", "1"), ("write",)),
    ),
    "a rollback, and compaction of manifests": (
        "keyed, eager", "short", (("manifests",), ("compact",)), (("write",), ("rollback", 1), ("write",), ("branch", "b")),
    ),
}  # fmt: skip
"""By name: a kind of table, its state, and two programs, of which the second one runs in the last step of the first."""
MEETING_PARTS = 10


def meetings(name):
    """Every call of the last step of the first program, with every call of the second one at which the first goes on."""
    kind, state, first, second = MEETING[name]

    def steps(program):
        return care.play(Script(kind, state, (program,)))[1].actors[0].steps

    return [(at, then) for at in range(steps(first[:-1]) + 1, steps(first) + 1) for then in range(1, steps(second) + 1)]


def meet(name, chosen):
    kind, state, *programs = MEETING[name]
    for at, then in chosen:
        script = Script(kind, state, tuple(programs), (Event(0, at, "to", 1), Event(1, then, "to", 0)))
        wrong, _ = care.play(script)
        assert not wrong, "\n".join([*wrong, as_test(script)])


@pytest.mark.parametrize("name", MEETING)
def test_two_calls_take_turns_at_some_steps(name, pytestconfig):
    meet(name, random.Random(f"meetings {pytestconfig.option.seed}").sample(meetings(name), 25))


@pytest.mark.full
@pytest.mark.parametrize("part", range(MEETING_PARTS))
@pytest.mark.parametrize("name", MEETING)
def test_two_calls_take_turns_at_every_step(name, part):
    meet(name, meetings(name)[part::MEETING_PARTS])


# -- the judge can say no ---------------------------------------------------------------------------------------------


def meddled(script, change):
    """What the judge says of a run in which somebody meddles with the store before the first step of actor 1."""

    class Meddler(world.Scripted):
        done = False

        def events(self, run, actor, verb, path):
            if actor.index == 1 and not self.done:
                self.done = True
                change(actor.world.store)
            return super().events(run, actor, verb, path)

    return care.play(script, Meddler(script.events))[0]


def test_the_judge_misses_rows_that_were_acknowledged():
    script = Script("append", "short", ((("write",),), (("doctor",),)))
    assert any("acknowledged" in one for one in meddled(script, lambda store: store.delete("/w/db.db/t/snapshot/snapshot-3")))


def test_the_judge_misses_a_file_of_a_tag():
    def lose(store):
        store.delete(sorted(path for path in world.below(store, "/w") if "/data-" in path)[0])

    assert any("are gone" in one for one in meddled(Script("append", "short", ((("write",),), (("doctor",),))), lose))


def test_the_judge_misses_what_a_cut_does_not_name():
    def forget(store):
        store.put("/w/db.db/t/tag/CUT", b"{}")

    assert meddled(Script("append", "short", ((("write",),), (("doctor",),))), forget)
