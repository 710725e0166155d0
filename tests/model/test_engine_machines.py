"""Every merge engine under every way to compact, against a model that merges row by row.

A Hypothesis state machine draws the verbs; the rows come from a seed that it draws along. After every step the table
must hold the model's rows, levels must not overlap, no file may be lost or left over.
"""

from __future__ import annotations

import random
import time

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from model.engine_models import CASES
from model.machine import PARTITIONS, Life, Mode

import paimon_py.compaction.compact
import paimon_py.compaction.run
from paimon_py.commit import sequence_numbers as numbering
from paimon_py.table import writing as table_writing

TRIGGER = "num-sorted-run.compaction-trigger"
VECTORS = "deletion-vectors.enabled"
TINY = {"write-buffer-size": "300 b"}
MODES = (
    Mode(name="dedicated", options={"write-only": "true", TRIGGER: "3"}),
    Mode(name="in writers", options={TRIGGER: "2"}),
    Mode(name="full after commits", options={"full-compaction.delta-commits": "2", TRIGGER: "4"}),
    Mode(name="vectors", options={VECTORS: "true", TRIGGER: "3"}),
    Mode(
        name="gentle vectors",
        options={
            VECTORS: "true",
            "deletion-vectors.bitmap64": "true",
            "lookup-compact": "gentle",
            "lookup-compact.max-interval": "3",
            TRIGGER: "3",
        },
    ),
    Mode(name="dedicated vectors", options={VECTORS: "true", "write-only": "true", TRIGGER: "2"}),
    Mode(name="lookup", options={"force-lookup": "true", TRIGGER: "3"}),
    Mode(name="level 0 up", options={"compaction.force-up-level-0": "true", TRIGGER: "3"}),
    Mode(name="two levels", options={"num-levels": "2", TRIGGER: "2", "num-sorted-run.stop-trigger": "3"}),
    Mode(name="tiny files", options={"target-file-row-num": "4", "target-file-size": "1 kb", TRIGGER: "3"}),
    Mode(name="spilling", options={**TINY, TRIGGER: "3"}),
    Mode(
        name="flushing",
        options={**TINY, "write-buffer-spillable": "false", TRIGGER: "2", "num-sorted-run.stop-trigger": "4"},
    ),
    Mode(name="formats by level", options={"file.format.per.level": "0:avro,3:orc", TRIGGER: "3"}),
    Mode(
        name="ending by age",
        options={"record-level.expire-time": "1 h", "record-level.time-field": "age", TRIGGER: "2"},
        columns={"age": "INT"},
    ),
    Mode(
        name="vectors ending by age",
        options={
            "record-level.expire-time": "1 h",
            "record-level.time-field": "age",
            VECTORS: "true",
            "write-only": "true",
            TRIGGER: "2",
        },
        columns={"age": "INT"},
    ),
)
PAIRS = [(case, mode) for case in CASES for mode in MODES if mode.goes_with(case)]
NAMES = [f"{case.name}, {mode.name}" for case, mode in PAIRS]
SEEDS = st.integers(0, 2**32 - 1)
HELD_MAX = 3
STEPS = 80_000


class EngineMachine(RuleBasedStateMachine):
    """The verbs of a table, for one merge engine and one way to compact."""

    case = CASES[0]
    mode = MODES[0]
    steps = 0
    life: Life

    @initialize(seed=SEEDS)
    def begun(self, seed):
        self.life = SEEN.life = Life(self.case, self.mode, seed)

    @rule(seed=SEEDS)
    def write(self, seed):
        self.life.commit([self.made(seed)])

    @rule(seed=SEEDS)
    def write_again(self, seed):
        self.life.commit([self.made(seed)])

    def made(self, seed):
        rng, life = random.Random(seed), self.life
        batches = [life.rows(rng, rng.choice([1, 3, 8, 20])) for _ in range(rng.choice([1, 1, 1, 4]))]
        with life.table.writer() as writer:
            return life.fill(writer, batches, life.token())

    @rule(seed=SEEDS)
    def go_on_writing(self, seed):
        """A writer that stays open over commits."""
        rng, life = random.Random(seed), self.life
        if life.writer is None:
            life.writer = life.table.writer()
        batches = [life.rows(rng, rng.choice([1, 5, 12])) for _ in range(rng.choice([1, 3]))]
        life.commit([life.fill(life.writer, batches, life.token())])

    @precondition(lambda self: len(self.life.held) < HELD_MAX)
    @rule(seed=SEEDS)
    def write_but_wait(self, seed):
        self.life.held.append(self.made(seed))

    @precondition(lambda self: len(self.life.held) < HELD_MAX)
    @rule(full=st.booleans())
    def compact_but_wait(self, full):
        life = self.life
        for task in life.tasks_by_bytes(full):
            life.held.append(life.held_of(life.table.run_compaction(task)))

    @precondition(lambda self: self.life.held)
    @rule(seed=SEEDS)
    def commit_what_waited(self, seed):
        """In any order, one or several at once."""
        rng, life = random.Random(seed), self.life
        life.commit(rng.sample(life.held, rng.choice([1, min(2, len(life.held))])))

    @rule(full=st.booleans())
    def compact(self, full):
        self.life.compact(full)

    @rule()
    def reopen(self):
        self.life.open_table()

    @precondition(lambda self: len(self.life.columns) < len(self.case.columns) + len(self.mode.columns) + 4)
    @precondition(lambda self: not self.life.held)
    @rule()
    def add_column(self):
        self.life.add_column()

    @rule(seed=SEEDS)
    def overwrite(self, seed):
        rng, life = random.Random(seed), self.life
        where = {"p": rng.choice(PARTITIONS)} if life.parted else {}
        life.overwrite(where, life.rows(rng, rng.choice([1, 6])))

    @rule(seed=SEEDS)
    def read(self, seed):
        """An earlier snapshot, a filter, a projection, a limit, a count."""
        rng, life = random.Random(seed), self.life
        if life.latest:
            life.check_scan(rng)

    @rule(seed=SEEDS)
    def give_up_writing(self, seed):
        rng, life = random.Random(seed), self.life
        if not life.mode.flushes:
            writer = life.table.writer()
            writer.write_arrow(life.arrow(life.rows(rng, 10)))
            writer.abort()

    @precondition(lambda self: self.mode.columns)
    @rule()
    def wait(self):
        self.life.clock.sleep(700)

    @invariant()
    def holds(self):
        if hasattr(self, "life"):
            EngineMachine.steps += 1
            self.life.check()

    def teardown(self):
        if hasattr(self, "life"):
            SEEN.life = None


class Seen:
    """What the code under test does on the way, for the life that is going on."""

    life: Life | None = None


SEEN = Seen()


@pytest.fixture(autouse=True)
def watched(monkeypatch):
    """Compactions and renumberings are seen by the model."""
    compaction_run = paimon_py.compaction.run
    run_task, steps_of, renumber = compaction_run.run_task, compaction_run.steps_of, numbering.renumber

    def steps(*args, **settings):
        SEEN.life.steps_taken = steps_of(*args, **settings)
        return SEEN.life.steps_taken

    monkeypatch.setattr(compaction_run, "steps_of", steps)
    for module in (compaction_run, paimon_py.compaction.compact):
        monkeypatch.setattr(module, "run_task", lambda *given, **more: SEEN.life.saw_task(run_task, *given, **more))
    commit = table_writing.commit
    for module in (table_writing, paimon_py.compaction.compact):
        monkeypatch.setattr(module, "commit", lambda *given, **more: SEEN.life.saw_commit(commit, *given, **more))
    monkeypatch.setattr(numbering, "renumber", lambda *given: SEEN.life.saw_renumbering(renumber, *given))


def play(pair, *, examples, length, number=0, phases=(Phase.generate, Phase.shrink)):
    """Run the machine of a pair; returns the steps that were taken."""

    class Machine(EngineMachine):
        case, mode = pair

    EngineMachine.steps, began = 0, time.process_time()
    run_state_machine_as_test(
        seed(1000 * number + PAIRS.index(pair))(Machine),
        settings=settings(
            max_examples=examples,
            stateful_step_count=length,
            deadline=None,
            database=None,
            phases=phases,
            suppress_health_check=list(HealthCheck),
            print_blob=False,
        ),
    )
    print(f"{EngineMachine.steps} steps in {time.process_time() - began:.1f} s")
    return EngineMachine.steps


SOME = [number for number in range(len(PAIRS)) if number % 8 == 3]


@pytest.mark.parametrize("pair", [PAIRS[number] for number in SOME], ids=[NAMES[number] for number in SOME])
def test_rows_are_those_of_the_model(pair):
    assert play(pair, examples=4, length=15) >= 30


@pytest.mark.full
@pytest.mark.parametrize("pair", PAIRS, ids=NAMES)
def test_rows_are_those_of_the_model_for_long(pair):
    steps = number = 0
    while steps < STEPS // len(PAIRS):
        number += 1
        steps += play(pair, examples=14 if number == 1 else 3, length=28, number=number)
