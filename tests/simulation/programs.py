"""Programs by seed: half of them mix all verbs, the others are families in which a certain race is probable."""

from __future__ import annotations

import random

from simulation.kinds import KINDS, prepared
from simulation.scripts import Script, play
from simulation.world import Random

EARLY = ("fresh", "some", "indexed", "unindexed")
"""States in which nothing that may be repeated has been committed long ago."""

COMPACTING = ("keyed, eager", "keyed, vectors", "dynamic, eager")
OTHER_KINDS = [kind for kind in KINDS if not kind.startswith("columns")]
LATE = ("append", "append, buckets", "append, partitions", "keyed", "keyed, partitions")


class Draw:
    """Draws the programs of one run."""

    def __init__(self, rng, kind, state):
        self.rng = rng
        self.kind = kind
        self.state = state
        self.count = len(prepared(kind, state).changes)

    def number(self):
        """One of the prepared changes."""
        return self.rng.choice([0, self.count - 1, self.rng.randrange(self.count)])

    def who(self, number):
        """As whom they are committed: nobody, a user, a user with an identifier."""
        return self.rng.choice([(), (f"me{number}", 7), (f"me{number}",)])

    def keys(self, most=2):
        return [self.rng.randrange(1, 6) for _ in range(self.rng.randrange(most) + 1)]

    def writing(self):
        number = self.number()
        return self.rng.choice(
            [("commit", number, *self.who(number)), ("write", *self.keys()), ("rounds", *self.keys()),
             ("commit", number, *self.who(number)), ("commit_both", 0, self.count - 1)]
        )  # fmt: skip

    def caring(self):
        number = self.rng.choice((1, 2))
        return self.rng.choice(
            [("compact",), ("compact", False), ("tasks", True, 2), ("commit_compaction",), ("commit_compaction", 0, "me", 9),
             ("expire", number), ("merge_manifests",), ("tag",), ("untag",), ("alter",), ("roll_back", number), ("rename",)]
        )  # fmt: skip

    def changing(self):
        key, *more = dict.fromkeys(self.keys())
        return self.rng.choice([("delete", key), ("update", key), ("upsert", key, *more)])

    def indexing(self):
        return ("index", self.rng.choice((True, False)))

    def anything(self):
        draws = [self.writing, self.caring, self.changing, self.indexing if "indexed" in self.kind else self.writing]
        return self.rng.choices(draws, (5, 3, 1, 1))[0]()

    def program(self, step):
        steps = [step()]
        while self.rng.random() < 0.35:
            steps.append(self.anything())
        return tuple(steps)


def mixed(draw):
    return [draw.program(draw.anything) for _ in range(draw.rng.choice((2, 2, 3)))]


def same_bytes(draw):
    """Several commit the very same changes, in the same way or not."""
    number = draw.number()
    who, verb = draw.who(number), draw.rng.choice(("commit", "commit", "replace"))
    return [((verb, number, *(who if draw.rng.random() < 0.8 else draw.who(number))),) for _ in range(draw.rng.choice((2, 3)))]


def unknown(draw):
    """A user commits, does not know what came of it, and repeats the call later, among others who write the same keys."""
    number = draw.rng.choice((0, 2, draw.count - 1))
    who = draw.rng.choice([(f"me{number}",), (f"me{number}",), (), (f"me{number}", 7)])
    rivals = [(("write", 1, 2), ("write", 1)), (("write", 2),)]
    return [(("commit_once", number, *who), ("pause",), ("commit", number, *who)), *rivals[: draw.rng.choice((1, 2))]]


def stalled(draw):
    """A commit that sleeps while others commit and expire."""
    number = draw.number()
    rival = [("write", *draw.keys(2)) for _ in range(draw.rng.choice((2, 3)))]
    return [(("commit", number, *draw.who(number)),), (*rival, ("expire", draw.rng.choice((1, 2))))]


def rolled_back(draw):
    number = draw.number()
    more = [("write", *draw.keys()) for _ in range(draw.rng.choice((0, 1, 2)))]
    return [(("commit", number, *draw.who(number)),), (("roll_back", draw.rng.choice((1, 2))), *more)]


def forked(draw):
    return [(("forked", *draw.keys()),), (("child",),)]


def late(draw):
    """Repeats of what was committed long ago, or tagged and expired since."""
    who = draw.rng.choice([(), ("me0", 7), ("me0",)])
    if draw.state == "compacted":
        return [(("commit_compaction", 0, *who),), draw.program(draw.anything)]
    forget = (("untag", "early"),) if draw.state == "late_expired" and draw.rng.random() < 0.5 else ()
    return [(*forget, ("commit", 0, *who)), draw.program(draw.anything)]


def indexed(draw):
    flips = [("index", draw.rng.choice((True, False))) for _ in range(draw.rng.choice((1, 2, 3)))]
    return [tuple(flips), draw.program(draw.writing)]


def moved(draw):
    return [draw.program(draw.writing), (("rename",), ("rename", "u", "t")) if draw.rng.random() < 0.3 else (("rename",),)]


def beside_java(draw):
    """A Java writer on a local disk, which puts its snapshot there whatever has come meanwhile."""
    number, other = draw.rng.sample(range(draw.count), 2)
    ours = draw.rng.choice([("commit", number, *draw.who(number)), ("write", *draw.keys())])
    return [(ours,), (("java_commit", other),)]


def by_row_id(draw):
    """Updates by row id beside all that changes ranges, columns and indexes."""
    key, blind = draw.rng.randrange(1, 5), draw.rng.random() < 0.3
    setting = [("set_rows", key, not blind)]
    beside = [
        ("compact",), ("compact", False), ("tasks", True, 1), ("update", key), ("set_rows", key, not blind),
        ("delete", key), ("write", key) if blind else ("upsert", key), ("replace", draw.count - 1), ("grow",), ("write", key), ("java_index",),
        ("roll_back", 1), ("delete", draw.rng.randrange(1, 5)),
    ]  # fmt: skip
    programs = [(*setting, *draw.rng.choices(beside, k=draw.rng.randrange(2)))]
    return [*programs, *(tuple(draw.rng.choices(beside, k=draw.rng.randrange(1, 3))) for _ in range(draw.rng.choice((1, 1, 2))))]


def impatient(draw):
    """A table that keeps snapshots for no time, or a short one."""
    option = ("alter", draw.rng.choice(("0 s", "1 s", "1 min")), "snapshot.time-retained")
    return [(option, ("reopen",), *(draw.writing() for _ in range(2))), draw.program(draw.writing)]


FAMILIES = {
    mixed: (10, OTHER_KINDS, ("fresh", "some", "some", "some")),
    same_bytes: (2, OTHER_KINDS, ("fresh", "some")),
    unknown: (1, ["append", "append, partitions", "keyed", "keyed", "keyed, eager", "dynamic"], ("some",)),
    stalled: (1, OTHER_KINDS, ("some",)),
    rolled_back: (1, OTHER_KINDS, ("some",)),
    forked: (1, OTHER_KINDS, ("fresh", "some")),
    late: (2, [*LATE, "keyed, vectors", "append, vectors", "keyed, vectors apart"], ("late", "late_named", "late_expired")),
    indexed: (1, ["append, indexed"], ("indexed", "unindexed", "some")),
    moved: (1, OTHER_KINDS, ("fresh", "some")),
    beside_java: (1, OTHER_KINDS, ("fresh", "some")),
    impatient: (1, OTHER_KINDS, ("fresh", "some")),
}
"""By family: its weight, kinds, and states."""


PUBLISHES = (0, "put_new", "/snapshot/snapshot", "to")
KEEN = {
    unknown: ((*PUBLISHES[:3], "any"), (0, "get", "/snapshot/snapshot-3", "fault"), (0, "sleep", "", "to")),
    stalled: (PUBLISHES, (1, "put", "EARLIEST", "to")),
    rolled_back: (PUBLISHES, (1, "put", "LATEST", "to")),
    forked: ((0, "sleep", "", "to"), (1, "open_write", "", "to")),
    moved: (PUBLISHES, (0, "open_write", "", "to")),
    beside_java: (PUBLISHES, (1, "put", "/snapshot/snapshot", "to"), (0, "get", "/snapshot/snapshot", "to")),
    same_bytes: (PUBLISHES,),
}
"""By family: the calls at which the race is probable, in half of its runs."""


def random_script(seed, without=frozenset()):
    """A script without events, what draws them, and the family. `without`: families, verbs, "repeats" to leave out."""
    rng = random.Random(seed)
    families = [family for family in FAMILIES if family.__name__ not in without]
    family = rng.choices(families, [FAMILIES[one][0] for one in families])[0]
    _, kinds, states = FAMILIES[family]
    kind = rng.choice(kinds)
    state = "compacted" if family is late and "vectors" in kind else rng.choice(states)
    if kind == "append, indexed" and family is mixed:
        state = rng.choice(("indexed", "unindexed"))
    draw = Draw(rng, kind, state)
    programs = tuple(family(draw))
    return Script(kind, state, tuple(_spared(programs, without))), rng, family


def _spared(programs, without):
    """Programs without the verbs and repeats that are left out."""
    seen = set()
    for steps in programs:
        left = []
        for verb, *arguments in steps:
            numbers = arguments[:2] if verb == "commit_both" else arguments[:1] if verb.startswith(("commit", "repl")) else []
            marks = {(verb == "commit_compaction", number) for number in numbers}
            if verb not in without and not ("repeats" in without and marks & seen):
                left.append((verb, *arguments))
            seen |= marks
        yield tuple(left)


KEEN_BY_ROW_ID = (PUBLISHES, (0, "sleep", "", "to"), (1, "put_new", "/snapshot/snapshot", "to"))


def run_by_row_id(seed):
    """Play updates by row id of a seed. Gives the script with its events, and what is wrong."""
    rng = random.Random(seed)
    kind, state = rng.choice(("columns", "columns, partitions")), rng.choice(("fresh", "some", "some"))
    script = Script(kind, state, tuple(by_row_id(Draw(rng, kind, state))))
    keen = KEEN_BY_ROW_ID if rng.random() < 0.5 else ()
    faults = 0 if keen else rng.choice((0, 0, 1, 2))
    chooser = Random(rng, often=rng.choice((0, 0.03, 0.1, 0.3)), faults=faults, jumps=0, fault_share=0.03, keen=keen)
    wrong, _ = play(script, chooser, read=seed % 4 == 0)
    return script._replace(events=tuple(chooser.drawn)), wrong


def run_seed(seed, without=frozenset()):
    """Play the script of a seed. Gives the script with its events, and what is wrong."""
    script, rng, family = random_script(seed, without)
    keen = KEEN.get(family, ()) if rng.random() < 0.5 else ()
    faults = (2, 3, 4) if family is unknown else (0,) if keen else (0, 0, 0, 1, 1, 2)
    chooser = Random(
        rng,
        often=rng.choice((0, 0.01) if keen else (0.01, 0.03, 0.03, 0.1, 0.3)),
        faults=rng.choice(faults),
        jumps=rng.choice((0, 0, 0, 1)),
        fault_share=0 if keen else rng.choice((0.01, 0.05)),
        keen=keen,
    )
    wrong, _ = play(script, chooser, read=seed % 4 == 0)
    return script._replace(events=tuple(chooser.drawn)), wrong
