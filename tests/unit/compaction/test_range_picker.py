"""Which files of the same rows, and of neighbouring ones, become one."""

from __future__ import annotations

import random

import pytest

from paimon_py import CorruptionError
from paimon_py.compaction.append_picker import AppendSettings
from paimon_py.compaction.range_picker import range_bins, ranges_of
from paimon_py.spec.data_file import DataFile

SETTINGS = AppendSettings(target_bytes=100, file_count_min=3, open_file_bytes=10)


def file(name, first, rows, size=10, number=1):
    return DataFile(name=name, size_bytes=size, row_count=rows, min_sequence=number, max_sequence=number, schema_id=0, level=0, first_row_id=first)


def bins(*files, full=False, settings=SETTINGS):
    return ["".join(one.name for one in group) for group in range_bins(files, settings, full=full)]


def test_files_of_the_same_rows_and_of_those_that_follow_become_one():
    files = (file("a", 0, 10), file("d", 20, 5), file("b", 0, 10, number=2), file("c", 10, 10), file("e", 30, 5), file("f", 30, 5, number=3))
    assert bins(*files) == ["abcd"]
    assert bins(*files, full=True) == ["abcd", "ef"]
    assert [[one.name for one in group] for group in ranges_of(files)] == [["a", "b"], ["c"], ["d"], ["e", "f"]]


def test_a_gap_is_never_bridged_and_one_file_stays():
    assert bins(file("a", 0, 10), file("b", 11, 10), file("c", 22, 10), full=True) == []


def test_small_files_count_as_what_opening_them_costs():
    files = [file(str(n), 10 * n, 10, size=1) for n in range(9)] + [file("x", 90, 10, size=1)]
    assert bins(*files) == ["012345678x"]
    assert bins(*files, file("y", 100, 10, size=1), full=True) == ["012345678x"]


def test_a_large_range_is_alone():
    large = [file("a", 0, 10, 80), file("b", 0, 10, 40, 2), file("c", 0, 10, 1, 3)]
    assert bins(*large, file("d", 10, 10), file("e", 20, 10), file("f", 30, 10)) == ["abc", "def"]


@pytest.mark.parametrize("other", [file("g", 5, 10), file("g", 0, 5), file("g", 0, 20)])
def test_broken_ranges_are_refused(other):
    with pytest.raises(CorruptionError, match="columns of only some rows"):
        bins(file("f", 0, 10), other)


def test_a_file_without_first_id_is_refused():
    with pytest.raises(CorruptionError, match="no first row id"):
        bins(file("f", None, 10))


def test_random_ranges_stay_in_order_and_whole():
    rng = random.Random(3)
    for _ in range(200):
        files, at = [], 0
        for n in range(rng.randrange(1, 12)):
            at += rng.choice((0, 0, 7))
            rows = rng.randrange(1, 9)
            files += [file(f"{n}-{m}", at, rows, rng.randrange(1, 60), m + 1) for m in range(rng.randrange(1, 4))]
            at += rows
        rng.shuffle(files)
        for group in range_bins(files, SETTINGS, full=True):
            spans = sorted({(one.first_row_id, one.row_count) for one in group})
            assert all(a[0] + a[1] == b[0] for a, b in zip(spans, spans[1:])) and len(group) > 1
            whole = [one for one in files if (one.first_row_id, one.row_count) in spans]
            assert sorted(one.name for one in whole) == sorted(one.name for one in group)
