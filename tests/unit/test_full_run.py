"""Does the run of the full suites go on where it stopped, and believe no other commit?"""

from __future__ import annotations

import pytest
from full_run import GREEN, RED, SLOW, Shard, latest, read_ledger, run_shards, shards_of, summary

SHARDS = [Shard("a", ("a::1", "a::2")), Shard("b", ("b::1",)), Shard("c", ("c::1",))]


class Runs:
    """Outcomes by shard; every run takes a minute."""

    def __init__(self, **outcomes):
        self.outcomes, self.done = outcomes, []

    def __call__(self, shard):
        self.done.append(shard.name)
        return self.outcomes.get(shard.name, GREEN)

    def clock(self):
        return 60.0 * len(self.done)


def go(runs, ledger, commit="one", minutes=1000):
    run_shards(SHARDS, commit, ledger, runs, seconds=60 * minutes, clock=runs.clock)
    return runs.done


def test_files_with_many_tests_come_in_parts():
    tests = [f"t/b.py::test[{n}]" for n in range(5)] + ["t/a.py::Case::test", "t/a.py::other[x::y]"]
    assert shards_of(tests, most=2) == [
        Shard("t/a.py", ("t/a.py::Case::test", "t/a.py::other[x::y]")),
        Shard("t/b.py part0", ("t/b.py::test[0]", "t/b.py::test[1]")),
        Shard("t/b.py part1", ("t/b.py::test[2]", "t/b.py::test[3]")),
        Shard("t/b.py part2", ("t/b.py::test[4]",)),
    ]


def test_what_is_green_at_a_commit_is_not_run_again_there(tmp_path):
    ledger = tmp_path / "new" / "ledger.jsonl"
    assert go(Runs(b=RED), ledger) == ["a", "b", "c"]
    assert go(Runs(b=SLOW), ledger) == ["b"]
    assert go(Runs(), ledger) == ["b"]
    assert go(Runs(), ledger) == []
    assert go(Runs(), ledger, commit="two") == ["a", "b", "c"]
    lines = read_ledger(ledger)
    assert [(line.shard, line.outcome, line.seconds, line.tests) for line in lines[:4]] == [
        ("a", GREEN, 60.0, 2), ("b", RED, 60.0, 1), ("c", GREEN, 60.0, 1), ("b", SLOW, 60.0, 1),
    ]  # fmt: skip


def test_a_run_ends_with_its_time_and_the_next_goes_on_with_what_was_never_run(tmp_path):
    ledger = tmp_path / "ledger.jsonl"
    assert go(Runs(a=RED), ledger, minutes=2) == ["a", "b"]
    assert go(Runs(), ledger, minutes=1) == ["c"]
    assert go(Runs(), ledger, minutes=1) == ["a"]


def test_a_run_that_breaks_keeps_what_it_knew_and_a_line_that_was_cut_off_is_passed_over(tmp_path):
    ledger = tmp_path / "ledger.jsonl"

    def breaking(shard):
        if shard.name == "b":
            raise KeyboardInterrupt
        return GREEN

    with pytest.raises(KeyboardInterrupt):
        run_shards(SHARDS, "one", ledger, breaking, seconds=1e9)
    ledger.write_text(ledger.read_text() + '{"commit": "one", "shard": "b", "outc\n')
    assert go(Runs(), ledger) == ["b", "c"]


def test_the_summary_is_of_one_commit_and_all_green_only_if_every_shard_is(tmp_path):
    ledger = tmp_path / "ledger.jsonl"
    go(Runs(b=RED), ledger, minutes=2)
    text, is_green = summary(SHARDS, "one", read_ledger(ledger))
    assert text.splitlines() == ["red      b", "open     c", "one: 1 green, 1 red, 0 too slow, 1 open"] and not is_green
    assert summary(SHARDS, "two", read_ledger(ledger))[0].endswith("two: 0 green, 0 red, 0 too slow, 3 open")
    go(Runs(), ledger)
    assert summary(SHARDS, "one", read_ledger(ledger)) == ("one: 3 green, 0 red, 0 too slow, 0 open", True)
    assert latest(read_ledger(ledger), "one")["b"].outcome == GREEN
