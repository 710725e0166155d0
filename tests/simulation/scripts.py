"""Runs as values: a kind of table, a program for each actor, and what happens at which step."""

from __future__ import annotations

from typing import NamedTuple

from simulation.kinds import NAME, PATH, copied, prepared
from simulation.oracle import Oracle
from simulation.verbs import program
from simulation.world import Clock, Event, Ids, Scripted, When, World, below

from paimon_py import PaimonError, Table
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot


class Scene(NamedTuple):
    """What programs find: the kind of table, changes that were prepared, compactions that were."""

    kind: str
    changes: tuple
    compactions: tuple


class Script(NamedTuple):
    """A run, whole."""

    kind: str
    state: str
    programs: tuple
    events: tuple = ()


def play(script, chooser=None, *, read=True):
    """Carry out a script. Gives what is wrong, and the world. `read`: also read the table at the end, and commit."""
    ready = prepared(script.kind, script.state)
    clock = Clock(ready.seconds + 1)
    store = copied(ready.store, clock)
    before = dict(files_of(ready.store))
    scene = Scene(script.kind, ready.changes, ready.compactions)
    world = World(store, clock, [program(scene, steps) for steps in script.programs], chooser or Scripted(script.events))
    world.run()
    world.names_left = lambda: {path.rsplit("/", 1)[1] for path, _ in files_of(store)}
    oracle = Oracle(world, before, ready.done, script.kind)
    wrong = oracle.judge()
    if read and not wrong and not oracle.unjudged:
        wrong = read_back(store, clock, oracle)
    return wrong, world


def files_of(store):
    return [(path, store.get(path)) for path in below(store, "/w")]


class Passing(Clock):
    """A clock that goes on whenever somebody looks at it."""

    def elapsed(self):
        self.seconds += 0.001
        return self.seconds


def read_back(store, clock, oracle):
    """Whether readers find what the oracle says, and the next commit succeeds."""
    lineage = oracle.lineage()
    path = next(path for path, one in oracle.lineages.items() if one is lineage)
    root = TableRoot(store, path, Env(Passing(clock.seconds), Ids("reader"), SerialPool()))
    try:
        table = Table(root, root.schemas.latest(), NAME)
        wanted = [(info, {}) for info in [lineage.there[max(lineage.there)]] if lineage.there] if lineage.there else []
        wanted += [(info, {"tag": name.removeprefix("tag-")}) for name, info in sorted(lineage.tags.items())]
        for info, how in wanted:
            if info.snapshot.schema_id != table.schema.id and "vectors" in oracle.kind:
                continue  # the option below does not reach a snapshot of an older schema
            found = table.scan(**how, options={"deletion-vectors.merge-on-read": "true"}).to_arrow().to_pydict()
            found = sorted(zip(found["p"], found["k"], found["v"]))
            if found != sorted(info.rows.values() if oracle.keyed else info.rows.elements()):
                return [f"a reader of snapshot {info.snapshot.id} finds {found}, not {info.rows}"]
        table.truncate()
    except PaimonError as error:
        return [f"afterwards: {error!r}"]
    return []


# -- making it small --------------------------------------------------------------------------------------------------


SORTS = (
    "is applied twice", "is added twice", "return after", "its base is not its parent", "follows from nothing",
    "are gone", " deleted ", "was acknowledged", "over that of", "but published", "gaps", "back to life", "raised",
    "changed rows", "rows changed", "it is not its parent and", "but snapshot", "a reader", "afterwards",
)  # fmt: skip


def sort_of(wrong):
    """What two findings have in common if they are one."""
    return next((sort for sort in SORTS if wrong and sort in wrong[0]), wrong[0][:40] if wrong else None)


def shrunk(script, wrong, play=play):
    """A shorter script that fails alike: with fewer events and steps."""
    sort = sort_of(wrong)

    def fails(candidate):
        try:
            found, _ = play(candidate)
        except AssertionError:
            return False
        return any(sort_of([one]) == sort for one in found)

    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(script):
            if fails(candidate):
                script, smaller = candidate, True
                break
    return script


def _smaller(script):
    events, programs = script.events, script.programs
    size = len(events)
    while size:
        for at in range(0, len(events), size):
            yield script._replace(events=events[:at] + events[at + size :])
        size //= 2
    for number, steps in enumerate(programs):
        for at in range(len(steps)):
            shorter = steps[:at] + steps[at + 1 :]
            yield script._replace(programs=programs[:number] + (shorter,) + programs[number + 1 :])


def as_test(script, name="found"):
    """A script as a Python test."""
    lines = [f"def test_{name}():", "    check(", "        Script(", f"            {script.kind!r},", f"            {script.state!r},"]
    lines += ["            (", *(f"                {steps!r}," for steps in script.programs), "            ),"]
    lines += ["            (", *(f"                {type(event).__name__}{tuple(event)!r}," for event in script.events), "            ),"]
    return "\n".join([*lines, "        )", "    )", ""])


def check(script):
    """Play a script; what is wrong is an AssertionError with the script as a test."""
    wrong, _ = play(script)
    assert not wrong, "\n".join([*wrong, as_test(script)])


__all__ = ["PATH", "Event", "Script", "When", "as_test", "check", "play", "shrunk"]
