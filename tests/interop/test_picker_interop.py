"""Do we pick and carry out compactions as Java does: on invented levels, and on those that real writers leave behind?"""

from __future__ import annotations

import pytest
from java_picks import ask_java, our_answer, random_question

pytestmark = pytest.mark.java

STATES = 2_000
MORE_STATES = 60_000


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
