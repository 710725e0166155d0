"""Schedules in which care and writers meet: every verb that cuts, joins, keeps or lets go beside commits and streams.

Each write brings rows that no other write brings. So the journal of a run says what each snapshot has to hold: the rows
of its parent, and those of the write that published it. What is judged afterwards is in `care_judge.py`.
"""

from __future__ import annotations

import functools
import random
from datetime import timedelta

from simulation.care_judge import Judge, Taking, note
from simulation.kinds import NAME, PATH, Stage, copied, rows
from simulation.scripts import Script, files_of
from simulation.world import Clock, Random, Scripted, World

from paimon_py import PaimonError, SetOption, Table
from paimon_py.metadata.root import TableRoot

STATES = ("short", "long", "expired")
ONE_MILLI = timedelta(milliseconds=1)
KINDS = ("append", "append, partitions", "keyed", "keyed, eager", "keyed, vectors")


def table_of(actor):
    """The actor's table object: kept from its first step on, unless a step opens it again."""
    if "table" not in actor.memory:
        root = TableRoot(actor.store, PATH, actor.env)
        actor.memory["table"] = Table(root, root.schemas.latest(), NAME)
    return actor.memory["table"]


def new_rows(actor, count=1):
    first = actor.memory["rows"] = actor.memory.get("rows", 0) + count
    numbers = [10_000 * (actor.index + 1) + first - place for place in range(count)]
    return tuple((number % 2, number, number) for number in numbers)


# -- steps ------------------------------------------------------------------------------------------------------------


def reopen(actor):
    actor.memory.pop("table", None)


def write(actor, branch=None):
    values = new_rows(actor)
    actor.call(values, lambda: on(actor, branch).write_arrow(rows(values)), f"write {branch or ''}")


def numbered(actor, branch=None):
    """Write as a user under the next number, and again until the answer is known."""
    values, table = new_rows(actor), on(actor, branch)
    number = actor.memory["number"] = actor.memory.get("number", 0) + 1
    for _ in range(3):
        call = actor.call(
            values, lambda: table.write_arrow(rows(values), user=f"u{actor.index}", identifier=number), "numbered"
        )
        if call.end == "done" or not getattr(call.error, "transient", call.end == "unknown"):
            return


def on(actor, branch):
    table = table_of(actor)
    return table if branch is None else table.branch(branch)


def rollback(actor, back):
    table = table_of(actor)

    def act():
        ids = [snapshot.id for snapshot in table.snapshots()]
        return table.rollback_to(ids[max(0, len(ids) - 1 - back)] if ids else 1)

    actor.call(None, act, "rollback")


def rollback_to_tag(actor, name):
    actor.call(None, lambda: table_of(actor).rollback_to(name), "rollback")


def fast_forward(actor, name, discard):
    what = "fast_forward discard" if discard else "fast_forward"
    actor.call(None, lambda: table_of(actor).fast_forward(name, discard=discard), what)


def expire(actor, keep, branch=None):
    call = lambda: on(actor, branch).expire_snapshots(retain_min=1, retain_max=keep, older_than=ONE_MILLI)  # noqa: E731
    actor.call(None, call, "expire")


def consume(actor, steps):
    """Follow the table from its beginning as a consumer; what each step tells is noted before it is acknowledged."""
    told = actor.memory.setdefault("told", {})

    def act():
        stream = table_of(actor).stream(consumer_id=f"c{actor.index}", from_="full")
        for _ in range(steps):
            step = stream.poll()
            if step is None:
                return
            note(told, step)
            step.acknowledge()

    actor.call(None, act, "consume")


def truncate(actor):
    actor.call(Taking(lambda row: True), lambda: table_of(actor).truncate(), "truncate")


def delete(actor, remainder):
    """Delete every third row."""
    actor.call(Taking(lambda row: row[1] % 3 == remainder), lambda: table_of(actor).delete(f"k % 3 = {remainder}"), "delete")


def drop_partition(actor, value):
    actor.call(Taking(lambda row: row[0] == value), lambda: table_of(actor).drop_partitions([{"p": value}]), "drop_partitions")


def plain(name, *arguments, branch=None, what="", **how):
    """A step that calls one verb of the table."""

    def step(actor, *given):
        call = lambda: getattr(on(actor, branch), name)(*arguments, *given, **how)  # noqa: E731
        actor.call(None, call, what or name)

    return step


def option(actor, name, value):
    actor.call(None, lambda: table_of(actor).alter(SetOption(name, value)), "alter")


STEPS = {
    **{
        one.__name__: one
        for one in (
            reopen, write, numbered, rollback, rollback_to_tag, fast_forward, expire, consume, option, truncate, delete,
            drop_partition,
        )
    },
    "compact": plain("compact", full=True),
    "tag": plain("create_tag"),
    "untag": plain("delete_tag"),
    "branch": plain("create_branch"),
    "unbranch": plain("delete_branch"),
    "orphans": plain("remove_orphans", dry_run=False),
    "manifests": plain("compact_manifests"),
    "doctor": plain("doctor"),
    "replace_tag": plain("replace_tag"),
    "rename_tag": plain("rename_tag"),
    "rename_branch": plain("rename_branch"),
    "analyze": plain("analyze"),
    "unexisting": plain("remove_unexisting_files", dry_run=False),
    "expire_tags": plain("expire_tags"),
    "expire_changelogs": plain("expire_changelogs", retain_min=1, retain_max=1),
}  # fmt: skip


# -- what is drawn ----------------------------------------------------------------------------------------------------


def drawn_step(rng):
    name = rng.choice(("b", "c"))
    return rng.choice(
        [("write",), ("write",), ("write",), ("numbered",), ("write", name), ("consume", rng.randrange(1, 4)),
         ("rollback", rng.randrange(1, 4)), ("rollback_to_tag", rng.choice(("early", "t"))),
         ("fast_forward", name, rng.random() < 0.6), ("branch", name), ("branch", name), ("unbranch", name),
         ("branch", name, "early"), ("tag", "t"), ("untag", rng.choice(("early", "t"))), ("expire", rng.randrange(1, 3)),
         ("expire", 1, "b"), ("compact",), ("orphans",), ("manifests",), ("reopen",), ("doctor",),
         ("option", "snapshot.num-retained.min", "1"), ("option", "snapshot.time-retained", "1 ms"),
         ("option", "snapshot.num-retained.max", "2")]
    )  # fmt: skip


KEEN = (
    ("delete", "/snapshot/snapshot", "to"), ("put", "/snapshot/snapshot", "to"), ("put_new", "/snapshot/snapshot", "to"),
    ("put", "LATEST", "to"), ("put", "CUT", "to"), ("put_new", "CUT", "to"), ("delete", "CUT", "any"), ("delete", "LATEST", "any"),
    ("delete", "/snapshot/snapshot", "any"), ("put", "/schema/", "any"), ("put", "EARLIEST", "to"),
)  # fmt: skip


def other_step(rng, kind, *, takes):
    """A step of `drawn_step`, or one of the other verbs; those that take rows away do not go with consumers."""
    name = rng.choice(("b", "c"))
    others = [("replace_tag", rng.choice(("early", "t"))), ("rename_tag", "early", "t"), ("rename_branch", name, "c"),
              ("analyze",), ("unexisting",), ("expire_tags",), ("expire_changelogs",), ("write",), ("write", name),
              ("option", "snapshot.expire.limit", "1"), ("option", "changelog.num-retained.max", "4")]  # fmt: skip
    taking = [("truncate",), ("delete", rng.randrange(3))]
    if kind == "append, partitions":
        taking += [("drop_partition", rng.randrange(2))] * 3
    if rng.random() < 0.4:
        step = drawn_step(rng)
        return ("write",) if takes and step[0] == "consume" else step
    return rng.choice([*others, *others, *taking, *taking] if takes else others)


def drawn_script(rng, *, others=False):
    """A script without events: two or three actors, one of them often a cut."""
    kind, state = rng.choice(KINDS), rng.choice(STATES)
    takes = others and rng.random() < 0.5
    programs = []
    for _ in range(rng.choice((2, 2, 3))):
        count = rng.choice((1, 2, 3, 4))
        steps = [other_step(rng, kind, takes=takes) if others else drawn_step(rng) for _ in range(count)]
        if rng.random() < 0.3:
            name = rng.choice(("b", "c"))
            steps = [("branch", name), ("write", name), *steps, ("fast_forward", name, rng.random() < 0.5)]
        programs.append(tuple(steps))
    return Script(kind, state, tuple(programs))


def run_seed(seed, *, others=False):
    """Play the script of a seed. Gives the script with its events, and what is wrong.

    `others`: with the verbs of `other_step`, and clocks that jump.
    """
    rng = random.Random(seed)
    script = drawn_script(rng, others=others)
    keen = tuple((rng.randrange(len(script.programs)), *rng.choice(KEEN)) for _ in range(rng.choice((0, 0, 1, 2))))
    chooser = Random(
        rng, often=rng.choice((0, 0.01, 0.03, 0.1, 0.3)), faults=rng.choice((0, 0, 1, 1, 2)),
        jumps=rng.choice((0, 0, 1, 2)) if others else 0, jump_lengths=(1, 700, 4000),
        fault_share=rng.choice((0.01, 0.05)), keen=keen,
    )  # fmt: skip
    wrong, _ = play(script, chooser)
    return script._replace(events=tuple(chooser.drawn)), wrong


def play(script, chooser=None):
    """Carry out a script. Gives what is wrong, and the world."""
    ready = prepared(script.kind, script.state)
    clock = Clock(ready.seconds + 1)
    store = copied(ready.store, clock)
    before = dict(files_of(ready.store))
    programs = [functools.partial(carry_out, steps) for steps in script.programs]
    world = World(store, clock, programs, chooser or Scripted(script.events))
    world.run()
    return Judge(world, before, script.kind).judge(), world


def carry_out(steps, actor):
    for name, *arguments in steps:
        try:
            STEPS[name](actor, *arguments)
        except PaimonError:  # the table could not even be opened: somebody is at work, or the store fails
            continue


# -- the tables -------------------------------------------------------------------------------------------------------


@functools.cache
def prepared(kind, state):
    """A table with some snapshots, a tag of an early one, and a file that nobody names."""
    stage = Stage(kind)
    lengths = {"short": 2, "long": 6, "expired": 6}
    for number in range(lengths[state]):
        stage.table().write_arrow(rows(((number % 2, number, number),)))
        stage.clock.seconds += 1
        if number == 1:
            stage.table().create_tag("early")
    stage.prepare((99,))
    if state == "expired":
        stage.table().expire_snapshots(retain_min=1, retain_max=2, older_than=ONE_MILLI)
    stage.clock.seconds += 3 * 24 * 3600
    return stage.ready()

