"""Which files of append tables are joined: by Java's rules, on invented files."""

import pytest

from paimon_py.compaction.append_picker import AppendSettings, DeadCounts, bucket_tasks, next_window, unaware_tasks
from paimon_py.spec.data_file import DataFile

SETTINGS = AppendSettings(target_bytes=100, small_bytes=70, file_count_min=3, open_file_bytes=0)
NO_DEAD = DeadCounts()


def file(number, size, rows=10):
    return DataFile(
        name=f"f{number}", size_bytes=size, row_count=rows, min_sequence=number * 10, max_sequence=number * 10 + 9, schema_id=0, level=0
    )


def files(*sizes):
    return [file(number, size) for number, size in enumerate(sizes)]


def numbers(groups):
    return [[int(each.name[1:]) for each in group] for group in groups]


def in_bucket(sizes, full=False, settings=SETTINGS, dead=NO_DEAD):
    return numbers(bucket_tasks(files(*sizes)[::-1], settings, dead, full=full))


def without_buckets(sizes, full=False, settings=SETTINGS, dead=NO_DEAD):
    return numbers(unaware_tasks(files(*sizes), settings, dead, full=full))


def test_a_bucket_joins_neighbours_in_the_order_of_writing():
    assert in_bucket([5, 5, 5]) == [[0, 1, 2]]


def test_too_few_files_of_a_bucket_stay():
    assert in_bucket([5, 5]) == []


def test_a_bucket_continues_with_a_small_result_and_leaves_the_rest():
    assert in_bucket([5] * 6) == [[0, 1, 2, 3, 4]]


def test_a_result_of_full_size_is_not_joined_again():
    assert in_bucket([30, 30, 30, 5, 5, 5]) == [[0, 1, 2], [3, 4, 5]]


def test_the_window_slides_over_large_files():
    assert in_bucket([150, 60, 5, 5]) == [[1, 2, 3]]
    assert in_bucket([5, 199, 5, 5]) == []


def test_files_that_a_window_skipped_are_not_considered_again():
    assert in_bucket([1, 250, 250, 1, 1, 1]) == [[3, 4, 5]]


@pytest.mark.parametrize(
    ("sizes", "window"),
    [
        ([5, 5], []), ([5, 5, 5], [0, 1, 2]), ([5, 5, 5, 5], [0, 1, 2]),
        ([100, 99, 5, 5], [0, 1, 2]), ([100, 100, 5, 5], [1, 2, 3]), ([100, 101, 5, 5], [1, 2, 3]),
        ([199, 5, 5, 5], [1, 2, 3]), ([200, 5, 5, 5], [1, 2, 3]), ([5, 200, 5], []), ([5, 200, 5, 5, 5], [2, 3, 4]),
    ],
)  # fmt: skip
def test_the_window_of_a_writer_leaves_out_files_that_reach_twice_the_target(sizes, window):
    assert [int(each.name[1:]) for each in next_window(files(*sizes)[::-1], SETTINGS)] == window


def test_many_small_files_are_joined_at_once():
    assert in_bucket([0] * 5001) == [list(range(5001))]


def test_a_full_compaction_skips_large_files_at_the_beginning_and_joins_all_others():
    assert in_bucket([90, 80, 5, 90, 5, 5], full=True) == [[2, 3, 4, 5]]


def test_a_full_compaction_needs_three_files_most_of_them_small():
    assert in_bucket([5, 5], full=True) == []
    assert in_bucket([5, 90, 90], full=True) == []
    assert in_bucket([5, 90, 5, 90], full=True) == []


def test_all_files_are_rewritten_by_option():
    settings = AppendSettings(target_bytes=100, small_bytes=70, rewrite_all=True)
    assert in_bucket([90], full=True, settings=settings) == [[0]]


def test_without_buckets_small_files_fill_bins_of_twice_the_target():
    assert without_buckets([60, 50, 65, 40, 1]) == [[0, 1, 2, 3, 4]]
    assert without_buckets([69] * 7) == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("cost", [0, 7])
@pytest.mark.parametrize("sizes", [[50, 50, 50, 50], [40, 60, 60, 40], [69, 69, 62], [69, 69, 61], [1, 64, 65, 69]])
def test_a_bin_is_full_at_exactly_twice_the_target(sizes, cost):
    total = sum(sizes) + cost * len(sizes)
    for target, fills in ((total // 2, True), (total // 2 + 1, False)):
        settings = AppendSettings(target_bytes=target, small_bytes=70, file_count_min=9, open_file_bytes=cost)
        assert without_buckets(sizes, settings=settings) == ([list(range(len(sizes)))] if fills else [])


def test_without_buckets_large_files_and_leftovers_stay():
    assert without_buckets([80, 5, 5]) == []
    assert without_buckets([80, 5, 5, 5]) == [[1, 2, 3]]


def test_a_full_compaction_without_buckets_takes_leftovers_but_no_single_file():
    assert without_buckets([80, 5, 5], full=True) == [[1, 2]]
    assert without_buckets([80, 5], full=True) == []


def test_opening_a_file_counts_as_size():
    settings = AppendSettings(target_bytes=100, small_bytes=70, open_file_bytes=100)
    assert without_buckets([1, 1, 1, 1, 1], settings=settings) == [[0, 1], [2, 3]]


def test_files_with_many_dead_rows_go_with_all_files_of_their_index_file():
    settings = AppendSettings(target_bytes=100, small_bytes=70, looks_at_deletions=True)
    dead = DeadCounts(counts={"f0": 3, "f1": 2, "f3": None}, index_files={"f0": "i", "f1": "i", "f3": "j"})
    assert without_buckets([90, 90, 90, 90], settings=settings, dead=dead) == [[0, 3]]
    assert without_buckets([90, 60, 90, 90], settings=settings, dead=dead) == [[0, 1, 3]]
