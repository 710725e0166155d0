"""Runs as values: a kind of table, a program for each actor, and what happens at which step."""

from __future__ import annotations

import random
from typing import NamedTuple

from simulation.kinds import KINDS, NAME, PATH, copied, prepared
from simulation.oracle import Oracle
from simulation.verbs import program
from simulation.world import Clock, Event, Ids, Random, Scripted, World, below

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


def read_back(store, clock, oracle):
    """Whether readers find what the oracle says, and the next commit succeeds."""
    lineage = oracle.lineage()
    path = next(path for path, one in oracle.lineages.items() if one is lineage)
    root = TableRoot(store, path, Env(clock, Ids("reader"), SerialPool()))
    try:
        table = Table(root, root.schemas.latest(), NAME)
        wanted = [(info, {}) for info in [lineage.there[max(lineage.there)]] if lineage.there] if lineage.there else []
        wanted += [(info, {"tag": name.removeprefix("tag-")}) for name, info in sorted(lineage.tags.items())]
        for info, how in wanted:
            found = table.scan(**how, options={"deletion-vectors.merge-on-read": "true"}).to_arrow().to_pydict()
            found = sorted(zip(found["p"], found["k"], found["v"]))
            if found != sorted(info.rows.values() if oracle.keyed else info.rows.elements()):
                return [f"a reader of snapshot {info.snapshot.id} finds {found}, not {info.rows}"]
        table.truncate()
    except PaimonError as error:
        return [f"afterwards: {error!r}"]
    return []


EARLY = ("fresh", "some", "indexed", "unindexed")
"""States in which nothing that may be repeated has been committed long ago."""

# -- at random --------------------------------------------------------------------------------------------------------

def random_script(seed, without=frozenset()):
    """A script without events: kind, state, and programs of two or three actors. `without`: what is left out, of
    "late", "repeats", and the names of verbs."""
    rng = random.Random(seed)
    kind = rng.choice(list(KINDS))
    states = ["fresh", "some", "some", "some"]
    if kind in ("append", "keyed", "append, buckets", "append, partitions"):
        states += ["late", "late_named", "late_expired"]
    if "vectors" in kind or kind == "keyed, eager":
        states += ["compacted"]
    if "indexed" in kind:
        states = ["indexed", "unindexed", "some"]
    state = rng.choice([one for one in states if "late" not in without or one in EARLY])
    ready = prepared(kind, state)
    programs = [draw_program(rng, kind, ready, number) for number in range(rng.choice((2, 2, 3)))]
    return Script(kind, state, tuple(_spared(programs, without))), rng


def _spared(programs, without):
    """Programs without the verbs and repeats that are left out."""
    seen = set()
    for steps in programs:
        left = []
        for verb, *arguments in steps:
            numbers = arguments[:2] if verb == "commit_both" else arguments[:1] if verb.startswith("commit") else []
            marks = {(verb == "commit_compaction", number) for number in numbers}
            if verb not in without and not ("repeats" in without and marks & seen):
                left.append((verb, *arguments))
            seen |= marks
        yield tuple(left)


def draw_program(rng, kind, ready, number):
    count = len(ready.changes)
    chosen = rng.choice([0, count - 1, rng.randrange(count)])
    keys = [rng.randrange(1, 6) for _ in range(rng.choice((1, 1, 2)))]
    writing = [
        ("commit", chosen), ("commit", chosen), ("commit", chosen, f"me{chosen}", 7), ("commit", chosen, f"me{chosen}"),
        ("commit_both", 0, count - 1), ("write", *keys), ("rounds", *keys),
    ]  # fmt: skip
    caring = [
        ("compact",), ("tasks", True, 2), ("commit_compaction",), ("commit_compaction", 0, "me", 9), ("expire", rng.choice((1, 2))),
        ("merge_manifests",), ("tag",), ("untag",), ("alter",), ("roll_back", rng.choice((1, 2))), ("rename",),
    ]  # fmt: skip
    rows = [("delete", keys[0]), ("update", keys[0]), ("upsert", *dict.fromkeys(keys))]
    indexing = [("index", rng.choice((True, False))) for _ in range(3)] if "indexed" in kind else []
    steps = [rng.choice(rng.choices((writing, caring, rows, indexing or writing), (5, 3, 1, 1))[0])]
    while rng.random() < 0.35:
        steps.append(rng.choice(writing + caring + rows + indexing))
    return tuple(steps)


def random_chooser(rng):
    return Random(
        rng,
        often=rng.choice((0.01, 0.03, 0.03, 0.1, 0.3)),
        faults=rng.choice((0, 0, 0, 1, 1, 2)),
        jumps=rng.choice((0, 0, 0, 1)),
        fault_share=rng.choice((0.01, 0.05)),
    )


def run_seed(seed, without=frozenset()):
    """Play the script of a seed. Gives it with its events, and what is wrong."""
    script, rng = random_script(seed, without)
    chooser = random_chooser(rng)
    wrong, _ = play(script, chooser, read=seed % 4 == 0)
    return script._replace(events=tuple(chooser.drawn)), wrong


# -- making it small --------------------------------------------------------------------------------------------------


def sort_of(wrong):
    """What two findings have in common if they are one: the words without names and numbers."""
    return "".join(letter for letter in wrong[0] if letter.isalpha())[:24] if wrong else None


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
    lines += ["            (", *(f"                Event{tuple(event)!r}," for event in script.events), "            ),"]
    return "\n".join([*lines, "        )", "    )", ""])


def check(script):
    """Play a script; what is wrong is an AssertionError with the script as a test."""
    wrong, _ = play(script)
    assert not wrong, "\n".join([*wrong, as_test(script)])


__all__ = ["PATH", "Event", "Script", "as_test", "check", "play", "random_script", "run_seed", "shrunk"]
