"""Do we pick and carry out compactions as Java does: on invented levels, and on those that real writers leave behind?"""

from __future__ import annotations

import pytest
from java_picks import ask_java, our_answer, questions_of, random_question
from pair import Pair
from picker_lives import life, live, live_ours, replay_java

from paimon_py.compaction.steps import Rewrite
from paimon_py.testing.compaction_simulator import Workload, simulate

pytestmark = pytest.mark.java

STATES = 2_000
MORE_STATES = 60_000
LIVES = range(6)
OUR_LIVES = range(3)
MORE_LIVES = range(6, 300)


def differences(seeds) -> list[tuple]:
    asked = [(seed, *random_question(seed)) for seed in seeds]
    answers = ask_java([question for _, _, question in asked])
    ours = [(seed, question, our_answer(state, question)) for seed, state, question in asked]
    return [(seed, question, mine, theirs) for (seed, question, mine), theirs in zip(ours, answers, strict=True) if mine != theirs]


def test_random_levels_are_compacted_as_by_java():
    assert differences(range(STATES)) == []


@pytest.mark.full
def test_many_random_levels_are_compacted_as_by_java():
    assert differences(range(STATES, MORE_STATES)) == []


SIMULATIONS = {
    "updates": (Workload(keys=200_000), {}),
    "inserts": (Workload(updates=0.0), {"num-sorted-run.compaction-trigger": "3", "target-file-size": "8 mb"}),
    "ascending": (Workload(updates=0.0, ordered=True, rows=100_000), {"target-file-size": "8 mb"}),
    "deletion vectors": (Workload(updates=0.5), {"deletion-vectors.enabled": "true", "num-levels": "4"}),
    "gentle": (Workload(updates=0.9, keys=50_000), {"force-lookup": "true", "lookup-compact": "gentle"}),
    "early": (
        Workload(updates=0.5, step_millis=1_500_000),
        {
            "compaction.optimization-interval": "1 d", "compaction.total-size-threshold": "5 mb", "compaction.incremental-size-threshold": "64 mb",
            "compaction.offpeak.start.hour": "22", "compaction.offpeak.end.hour": "5", "compaction.offpeak-ratio": "100",
        },
    ),
}  # fmt: skip


def test_the_simulator_writes_as_often_as_java_would():
    moments = {name: list(simulate(load, options, 400)) for name, (load, options) in SIMULATIONS.items()}
    asked = {name: questions_of(moments[name], SIMULATIONS[name][1], lambda m: m.now_millis // 3_600_000 % 24) for name in moments}
    answers = iter(ask_java([question for questions in asked.values() for _, question in questions]))
    for name, questions in asked.items():
        rewritten = 0
        for moment, (state, question) in zip(moments[name], questions, strict=True):
            theirs = next(answers)
            assert our_answer(state, question) == theirs, (name, moment.number)
            assert [file.name for step in moment.steps for file in _rewritten(step)] == _rewritten_by_java(theirs), name
            sizes = {file.name: file.size_bytes for file in state.files}
            rewritten += sum(sizes[file] for file in _rewritten_by_java(theirs))
        assert rewritten == sum(file.size_bytes for moment in moments[name] for step in moment.steps for file in _rewritten(step))


def _rewritten(step):
    return sorted(step.files, key=lambda file: file.name) if isinstance(step, Rewrite) else []


def _rewritten_by_java(answer) -> list[str]:
    return [name for step in answer["steps"] if step["do"] == "rewrite" for name in sorted(sum(step["sections"], []))]


@pytest.mark.parametrize("seed", LIVES)
def test_compactions_of_java_writers_are_decided_again_alike(seed, java, tmp_path):
    replayed(seed, java, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("seed", MORE_LIVES)
def test_many_compactions_of_java_writers_are_decided_again_alike(seed, java, tmp_path):
    replayed(seed, java, tmp_path)


def replayed(seed, java, tmp_path):
    version = "1.4.2" if seed % 3 == 2 else "2.0.0"
    lived = life(seed, version)
    pair = Pair(java(version), tmp_path)
    live(pair, lived)
    assert replay_java(pair, lived).compactions > 0


@pytest.mark.parametrize("seed", OUR_LIVES)
def test_our_writers_compact_as_the_picker_says(seed, tmp_path):
    followed(seed, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("seed", MORE_LIVES)
def test_many_of_our_writers_compact_as_the_picker_says(seed, tmp_path):
    followed(seed, tmp_path)


def followed(seed, tmp_path):
    lived = life(seed, "2.0.0")
    lived.options = {name: value for name, value in lived.options.items() if value != "first-row" and "vectors" not in name}
    assert live_ours(Pair(None, tmp_path), lived).compactions > 0
