"""What an executor gives back, in any order, twice or not at all: the first result counts, and others leave nothing."""

from __future__ import annotations

from typing import ClassVar

import pytest

from paimon_py import CorruptionError, UsageError
from paimon_py.executors.executor import run_tasks
from paimon_py.executors.job import Job, TaskKind, TaskResult
from paimon_py.spec.serializable import Serializable


class Number(Serializable, frozen=True):
    kind: ClassVar[str] = "number"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "number"
    again: ClassVar[str] = "count"

    value: int


class Gives:
    """An executor that gives these results, whatever the tasks are."""

    def __init__(self, *results):
        self.results = results

    def run(self, job, tasks):
        assert [task.number for task in tasks] == [0, 1, 2]
        yield from self.results


def came(number, value, error=None):
    return TaskResult("number", number, None if value is None else Number(value), error)


def outcome(*results):
    """The values of three tasks, or the error; and the values that were deleted."""
    gone = []
    kind = TaskKind(task=Number, result=Number, run=None, discard=lambda _, value: gone.append(value.value))
    try:
        found = run_tasks(Gives(*results), Job(kind, None), [Number(0), Number(1), Number(2)])
    except (CorruptionError, UsageError) as error:
        return error, gone
    return [one.value for one in found], gone


@pytest.mark.parametrize(
    ("results", "values", "gone"),
    [
        ([(2, 12), (0, 10), (1, 11)], [10, 11, 12], []),
        ([(0, 10), (0, 10), (1, 11), (2, 12), (1, 11)], [10, 11, 12], []),
        ([(0, 10), (0, 20), (1, 11), (2, 12), (0, 30)], [10, 11, 12], [20, 30]),
    ],
)
def test_the_first_result_of_a_task_counts_and_what_others_wrote_goes(results, values, gone):
    assert outcome(*(came(*result) for result in results)) == (values, gone)


def test_the_error_of_the_first_task_is_raised_and_nothing_is_left():
    late, early = UsageError("of the last"), UsageError("of the first")
    for results in ([came(2, None, late), came(1, 11), came(0, None, early)], [came(0, None, early), came(2, None, late), came(1, 11)]):
        assert outcome(*results) == (early, [11])


def test_a_missing_result_is_an_error():
    error, gone = outcome(came(0, 10), came(2, 12))
    assert "returned neither a result nor an error for 1 of 3 tasks" in str(error) and gone == [10, 12]
