"""Work for several items by a few threads: results, errors, closing, memory, forks."""

from __future__ import annotations

import os
import threading
from contextlib import closing

import pytest

from paimon_py.env import Env, SerialPool, ThreadPool, usable_cores
from paimon_py.errors import UsageError
from paimon_py.parallel import Budget, active_workers, run_streams

FREE = Budget(1 << 30, lambda item: 0, lambda result: 1)


def lane_threads():
    return [thread for thread in threading.enumerate() if thread.name == "paimon-lane"]


@pytest.fixture(autouse=True)
def no_thread_outlives_a_test():
    yield
    for thread in lane_threads():
        thread.join(timeout=10)
    assert not lane_threads()


def numbers(item):
    for number in range(item):
        yield item, number


ITEMS = [3, 0, 5, 1, 1, 0, 7, 2] * 3
EXPECTED = [(item, number) for item in ITEMS for number in range(item)]


@pytest.mark.parametrize("threads", [1, 2, 8, 64])
@pytest.mark.parametrize("limit", [0, 1, 10, 1 << 30])
@pytest.mark.parametrize("cost", [0, 3, 100])
def test_results_are_those_of_one_item_after_the_other(threads, limit, cost):
    budget = Budget(limit, lambda item: cost, lambda result: 2)
    assert list(run_streams(numbers, ITEMS, budget, threads=threads, in_order=True)) == EXPECTED
    found = list(run_streams(numbers, ITEMS, budget, threads=threads, in_order=False))
    assert sorted(found) == sorted(EXPECTED)
    assert list(run_streams(numbers, iter(ITEMS), budget, threads=threads, in_order=True)) == EXPECTED


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_nothing_comes_of_nothing(threads):
    assert list(run_streams(numbers, [], FREE, threads=threads, in_order=True)) == []
    assert list(run_streams(numbers, [0] * 200, FREE, threads=threads, in_order=False)) == []


@pytest.mark.parametrize("threads", [2, 8])
def test_the_first_error_in_order_comes_after_all_rows_before_it(threads):
    begun = []

    def failing(item):
        begun.append(item)
        yield item
        if item in (3, 5):
            raise ValueError(item)

    found = []
    with pytest.raises(ValueError, match="3"):
        for result in run_streams(failing, range(1000), FREE, threads=threads, in_order=True):
            found.append(result)
    assert found == [0, 1, 2, 3]
    assert len(begun) < 1000
    assert not lane_threads()


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("where", ["begin", "size"])
def test_an_error_of_any_part_reaches_the_caller(in_order, where):
    def fails(value):
        raise ValueError(f"{where} of {value}")

    begin = fails if where == "begin" else numbers
    budget = Budget(1 << 30, lambda item: 0, fails if where == "size" else lambda result: 1)
    with pytest.raises(ValueError, match=f"{where} of"):
        list(run_streams(begin, [2, 2, 2], budget, threads=2, in_order=in_order))
    assert not lane_threads()


@pytest.mark.parametrize("in_order", [True, False])
def test_an_error_of_the_items_ends_the_work(in_order):
    def items():
        yield from [2, 2, 2]
        raise ValueError("items")

    with pytest.raises(ValueError, match="items"):
        list(run_streams(numbers, items(), FREE, threads=2, in_order=in_order))
    assert not lane_threads()


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("after", [0, 1, 5])
def test_closing_ends_all_iterators(in_order, after):
    living = set()

    def endless(item):
        living.add(item)
        try:
            number = 0
            while True:
                yield item, number
                number += 1
        finally:
            living.discard(item)

    budget = Budget(10, lambda item: 1, lambda result: 1)
    results = run_streams(endless, range(8), budget, threads=4, in_order=in_order)
    for _ in range(after):
        next(results)
    results.close()
    assert not living and not lane_threads()


def test_a_caller_who_goes_away_without_closing_leaves_nothing():
    results = run_streams(numbers, [100] * 4, FREE, threads=2, in_order=True)
    next(results)
    del results
    assert not lane_threads()


def test_threads_end_when_the_room_is_full():
    results = run_streams(numbers, [100] * 4, Budget(10, lambda item: 1, lambda result: 1), threads=2, in_order=True)
    with closing(results):
        next(results)
        for thread in lane_threads():
            thread.join(timeout=10)
        assert not lane_threads()
        assert next(results) == (100, 1)


class Counted:
    """A budget that counts what is in use."""

    def __init__(self, limit, cost, size):
        self.lock = threading.Lock()
        self.cost, self.size = cost, size
        self.begun = self.results = self.most = self.most_begun = 0
        self.budget = Budget(limit, lambda item: cost, lambda result: size)

    def begin(self, item):
        with self.lock:
            self.begun += 1
            self._note()
        for number in range(item):
            with self.lock:
                self.results += 1
                self._note()
            yield item, number
        with self.lock:
            self.begun -= 1

    def _note(self):
        self.most = max(self.most, self.begun * self.cost + self.results * self.size)
        self.most_begun = max(self.most_begun, self.begun)

    def taken(self):
        with self.lock:
            self.results -= 1


@pytest.mark.parametrize("threads", [2, 8])
@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize(("limit", "cost", "size"), [(100, 10, 5), (20, 10, 1), (5, 10, 1), (1000, 0, 10)])
def test_bytes_in_use_stay_within_the_budget(threads, in_order, limit, cost, size):
    """Beyond it at most one item that may always go on, and the result at which each thread is."""
    counted = Counted(limit, cost, size)
    for _ in run_streams(counted.begin, [50] * 12, counted.budget, threads=threads, in_order=in_order):
        counted.taken()
    assert counted.most <= limit + cost + (threads + 1) * size
    assert counted.most_begun <= threads


def test_items_are_taken_in_the_calling_thread_and_few_ahead():
    here, taken = threading.current_thread(), []

    def items():
        for number in range(100):
            assert threading.current_thread() is here
            taken.append(number)
            yield 5

    results = run_streams(numbers, items(), Budget(10, lambda item: 1, lambda result: 1), threads=2, in_order=True)
    with closing(results):
        for count, _ in enumerate(results):
            assert len(taken) <= count + 32


def test_work_within_work_stays_in_its_thread():
    def inner(item):
        yield threading.current_thread(), active_workers()

    def outer(item):
        pool = ThreadPool(2)
        for thread, lanes in pool.streams(inner, [1, 2, 3], FREE):
            assert thread is threading.current_thread() and lanes == 2
            yield item

    assert list(ThreadPool(2).streams(outer, range(5), FREE)) == [item for item in range(5) for _ in range(3)]
    assert active_workers() == 1


@pytest.mark.parametrize("pool", [SerialPool(), ThreadPool(1), Env(threads=1).pool])
def test_one_thread_is_the_callers(pool):
    def begin(item):
        yield threading.current_thread()

    assert set(pool.streams(begin, range(5), FREE)) == {threading.current_thread()}


def test_a_budget_may_ask_for_fewer_lanes():
    begin = Counted(1 << 30, 0, 0)
    assert len(list(ThreadPool(8).streams(begin.begin, [5] * 8, begin.budget._replace(lanes=2)))) == 40
    assert begin.most_begun <= 2


@pytest.mark.parametrize("threads", [0, -1, True, "2", 1.5])
def test_threads_are_counted_from_one(threads):
    with pytest.raises(UsageError, match="from 1"):
        Env(threads=threads)


def test_a_pool_knows_its_threads():
    with pytest.raises(UsageError, match="not both"):
        Env(pool=SerialPool(), threads=2)
    assert Env(threads=3).pool.threads == 3
    assert Env().pool.threads == usable_cores() >= 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on Windows")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("limit", [4, 1 << 30])
def test_a_forked_child_is_refused_and_can_begin_anew(limit):
    results = run_streams(numbers, [50] * 4, Budget(limit, lambda item: 1, lambda result: 1), threads=2, in_order=True)
    with closing(results):
        next(results)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                next(results)
            except UsageError:
                status = 0 if len(list(run_streams(numbers, [3, 3], FREE, threads=2, in_order=True))) == 6 else 2
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        assert len(list(results)) == 199
