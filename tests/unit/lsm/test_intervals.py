"""Questions to `lsm.intervals` and `lsm.runs`: do sections never touch, and are runs few, sorted and of known age?"""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon_py.lsm.intervals import runs_of, sections_of
from paimon_py.lsm.runs import SortedRun, ages_are_disjoint, oldest_first
from paimon_py.spec.data_file import DataFile

RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6)).map(lambda p: (p[0], p[0] + p[1])), max_size=25)


def ranks(ranges):
    return np.array([low for low, _ in ranges], np.int64), np.array([high for _, high in ranges], np.int64)


def test_example_of_the_java_documentation_gives_four_sections():
    files = [(1, 2), (3, 4), (5, 180), (5, 190), (200, 600), (210, 700)]
    lows, highs = ranks(files)
    sections = sections_of(lows, highs)
    assert sections == [[0], [1], [2, 3], [4, 5]]
    assert runs_of(sections[3], lows, highs) == [[4], [5]]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(RANGES)
def test_sections_hold_every_file_and_touch_no_other_section(ranges):
    lows, highs = ranks(ranges)
    sections = sections_of(lows, highs)
    assert sorted(file for section in sections for file in section) == list(range(len(ranges)))
    for before, after in zip(sections[:-1], sections[1:], strict=True):
        assert max(ranges[file][1] for file in before) < min(ranges[file][0] for file in after)
    for section in sections:
        reach = ranges[section[0]][1]
        for file in section[1:]:
            assert ranges[file][0] <= reach
            reach = max(reach, ranges[file][1])


@settings(max_examples=300, deadline=None, derandomize=True)
@given(RANGES)
def test_runs_are_sorted_and_as_few_as_the_deepest_overlap(ranges):
    lows, highs = ranks(ranges)
    for section in sections_of(lows, highs):
        runs = runs_of(section, lows, highs)
        assert sorted(file for run in runs for file in run) == sorted(section)
        for run in runs:
            assert all(ranges[a][1] < ranges[b][0] for a, b in zip(run[:-1], run[1:], strict=True))
        depth = max(sum(ranges[f][0] <= p <= ranges[f][1] for f in section) for p in range(50))
        assert len(runs) == depth


def file(name, low, high, level=0):
    return DataFile(
        name=name, size_bytes=10, row_count=5, min_sequence=low, max_sequence=high, schema_id=0, level=level
    )


def test_runs_are_ordered_by_sequence_and_their_ages_compared():
    base = SortedRun((file("base", 0, 9, 5), file("base2", 3, 12, 5)))
    newer, newest = SortedRun((file("a", 13, 13),)), SortedRun((file("b", 14, 20),))
    assert oldest_first([newest, base, newer]) == (base, newer, newest)
    assert ages_are_disjoint((base, newer, newest))
    assert not ages_are_disjoint((base, SortedRun((file("c", 12, 30),))))
    assert (base.row_count, base.size_bytes, base.may_delete) == (10, 20, True)


def test_an_upper_level_is_newer_if_sequence_numbers_do_not_decide():
    old, new = SortedRun((file("x", 1, 1, 3),)), SortedRun((file("a", 1, 1, 0),))
    assert oldest_first([new, old]) == (old, new)
