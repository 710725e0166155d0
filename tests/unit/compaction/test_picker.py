"""Questions to `compaction.picker` and `compaction.steps`: does every decision leave a tree in which newer lies lower?"""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from java_picks import random_question

from paimon_py.compaction.levels import LevelRun, level_runs
from paimon_py.compaction.picker import PickerSettings, PickerState, Wait, drop_deletes, pick, pick_full
from paimon_py.compaction.steps import Rewrite, StepSettings, Upgrade, steps_of
from paimon_py.compaction.task import CompactionTask
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.options import Options
from paimon_py.spec.snapshot import Base

SEEDS = range(600)


def decided(seed):
    state, question = random_question(seed)
    if question["question"] == "full":
        return state, pick_full(state.runs, state.settings, deleted=question["deleted"])
    before = PickerState(question["last"], question["tries"])
    return state, pick(state.runs, state.settings, before, question["now"], question["hour"])[0]


DECIDED = [(state, choice) for state, choice in map(decided, SEEDS) if not isinstance(choice, Wait)]


def test_whole_runs_are_taken_from_the_newest_on():
    assert len(DECIDED) > 200
    for state, choice in DECIDED:
        if not choice.rewrite_all:
            files = [file for run in state.runs for file in run.files]
            assert list(choice.files) == files[: len(choice.files)]
            ends = {sum(len(run.files) for run in state.runs[: count + 1]) for count in range(len(state.runs))}
            assert len(choice.files) in ends


def test_the_output_lies_on_no_level_that_older_files_need():
    for state, choice in DECIDED:
        left = [file for file in state.files if file not in choice.files]
        assert choice.output_level > 0
        if not choice.rewrite_all:
            assert all(file.level > choice.output_level for file in left)


def test_deletes_are_dropped_only_without_older_rows_or_with_deletion_vectors():
    for state, choice in DECIDED:
        left = [file for file in state.files if file not in choice.files and not choice.rewrite_all]
        if drop_deletes(choice.output_level, state.runs, state.settings) and not state.settings.deletion_vectors:
            assert left == []


def test_every_file_has_at_most_one_step_and_none_only_if_it_may_stay():
    for state, choice in DECIDED:
        steps = state.steps(choice)
        moved = [step.file for step in steps if isinstance(step, Upgrade)]
        rewritten = [file for step in steps if isinstance(step, Rewrite) for file in step.files]
        names = [file.name for file in moved + rewritten]
        assert len(names) == len(set(names))
        for file in choice.files:
            assert file.name in names or file.level == choice.output_level
        assert all(file.level != choice.output_level for file in moved)


def one_file(**given):
    return DataFile(**{
        "name": "f", "size_bytes": 1000, "row_count": 10, "min_sequence": 0, "max_sequence": 9, "schema_id": 0, "level": 0, **given
    })  # fmt: skip


@pytest.mark.parametrize("zone", [-12 * 3_600_000, -1, 0, 1, 14 * 3_600_000])
def test_the_last_full_compaction_is_as_old_as_the_newest_file_of_the_top_level(zone):
    """Files tell the time of the clock on the wall, pickers that of UTC."""
    settings, day = PickerSettings(level_count=6), 86_400_000
    made = [one_file(level=level, creation_time_millis=time) for level, time in ((5, day), (5, 2 * day), (5, None), (4, 3 * day))]
    assert PickerState.of(made, settings, zone) == PickerState(2 * day - zone)
    assert PickerState.of(made[2:], settings, zone) == PickerState.of([], settings, zone) == PickerState(None)


@pytest.mark.parametrize(("deletes", "moves"), [(0, True), (1, False), (10, False), (None, False)])
@pytest.mark.parametrize("output", [4, 5])
def test_a_file_moves_to_the_top_level_if_it_certainly_has_no_deletes(output, deletes, moves):
    file = one_file(delete_row_count=deletes)
    task = CompactionTask(
        base=Base(0), schema_id=0, partition=b"", bucket=0, total_buckets=1, files=(file,), output_level=output, drop_deletes=output == 5
    )
    (step,) = steps_of(task, np.array([0]), np.array([9]), settings=StepSettings(small_file_bytes=10))
    assert isinstance(step, Upgrade if moves or output == 4 else Rewrite)


def test_steps_follow_each_other_in_key_order_without_touching():
    for state, choice in DECIDED:
        reach = -1
        for step in state.steps(choice) if not choice.rewrite_all else ():
            sections = [[step.file]] if isinstance(step, Upgrade) else [[f for run in s for f in run.files] for s in step.sections]
            for files in sections:
                assert min(state.keys[file.name][0] for file in files) > reach
                reach = max(state.keys[file.name][1] for file in files)


@pytest.mark.parametrize(("options", "before", "after"), [({}, 8, 9), ({"num-sorted-run.stop-trigger": "12"}, 12, 13)])
def test_picks_bring_a_bucket_back_under_the_stop_trigger(options, before, after):
    state, _ = random_question(0)
    state.options, state.files = options, []
    for number in range(after):
        state.add(0, f"g{number}", 10**number)
    settings = PickerSettings.of(Options(options))
    assert settings.stop_trigger == before
    choice, _ = pick(level_runs(state.files), settings, PickerState(), 0, 0)
    assert not isinstance(choice, Wait)
    assert after - len(choice.files) + 1 <= settings.compaction_trigger


def file_of(name, size, sequence=0):
    return DataFile(name=name, size_bytes=size, row_count=1, min_sequence=sequence, max_sequence=sequence, schema_id=0, level=0)


@pytest.mark.parametrize(("sizes", "taken"), [
    ((1, 199, 100), 0), ((1, 200, 100), 3), ((100, 100, 100), 3), ((1, 2, 100), 0), ((1, 150, 70, 60), 4),
])  # fmt: skip
def test_everything_is_compacted_if_the_other_runs_exceed_twice_the_last_one(sizes, taken):
    runs = [LevelRun(0 if at < len(sizes) - 1 else 5, (file_of(f"f{at}", size),)) for at, size in enumerate(sizes)]
    settings = PickerSettings(compaction_trigger=3, max_size_amplification=200)
    choice, _ = pick(tuple(runs), settings, PickerState(), 0, 12)
    assert len(() if isinstance(choice, Wait) else choice.files) == taken


def runs_of(text):
    """Runs from sizes, newest first; `200@3` lies on level 3."""
    parts = [part.partition("@") for part in text.split()]
    return tuple(LevelRun(int(level or 0), (msgspec.structs.replace(file_of(f"f{at}", int(size)), level=int(level or 0)),))
                 for at, (size, _, level) in enumerate(parts))  # fmt: skip


FIVE = {"compaction_trigger": 5, "level_count": 6}


@pytest.mark.parametrize(("settings", "sizes", "expected"), [
    (FIVE, "10 300 900 1000@4 1000@5", (5, 5)),
    (FIVE, "10 10 10 50@4 1000@5", (3, 3)),
    (FIVE, "10 30 100 400@4 1000@5", None),
    (FIVE, "10 30 100 200@3 400@4 3000@5", (4, 3)),
    (FIVE, "10 30 400@2 1000@3 4000@4 10000@5", (2, 1)),
    (FIVE, "10 10 500@3 2000@5", None),
    ({**FIVE, "compaction_trigger": 4}, "10 10 500@3 2000@5", (2, 2)),
    (FIVE, "100 101 900@3 900@4 90000@5", (2, 2)),
    (FIVE, "100 102 900@3 900@4 90000@5", None),
    ({**FIVE, "size_ratio": 2}, "100 102 900@3 900@4 90000@5", (2, 2)),
    ({**FIVE, "up_level_0": True}, "10 500@1 90000@5", (2, 4)),
    ({**FIVE, "up_level_0": True}, "10 500@2 90000@5", (1, 1)),
    ({**FIVE, "up_level_0": True}, "10 10 15@2 90000@5", (3, 4)),
    ({**FIVE, "up_level_0": True}, "500@1 90000@5", None),
    ({**FIVE, "up_level_0": True, "up_level_0_interval": 1}, "10 500@2 90000@5", (1, 1)),
    ({**FIVE, "up_level_0": True, "up_level_0_interval": 2}, "10 500@2 90000@5", None),
    ({**FIVE, "total_size_bytes": 1010}, "10 1000@5", None),
    ({**FIVE, "total_size_bytes": 1011}, "10 1000@5", (2, 5)),
    ({**FIVE, "incremental_size_bytes": 30}, "10 20@3 1000@5", None),
    ({**FIVE, "incremental_size_bytes": 29}, "10 20@3 1000@5", (3, 5)),
    ({**FIVE, "full_interval_millis": 500}, "10 1000@5", None),
    ({**FIVE, "full_interval_millis": 499}, "10 1000@5", (2, 5)),
    ({**FIVE, "full_interval_millis": 499}, "1000@5", None),
])  # fmt: skip
def test_the_number_of_runs_and_the_output_level(settings, sizes, expected):
    """The last full compaction was 500 ms ago."""
    choice, _ = pick(runs_of(sizes), PickerSettings(**settings), PickerState(1000), 1500, 12)
    assert (None if isinstance(choice, Wait) else (len(choice.files), choice.output_level)) == expected


def test_files_of_level_0_are_runs_from_the_newest_to_the_oldest():
    files = [file_of(f"f{number}", 1, number) for number in (3, 9, 1, 7)]
    assert [run.files[0].name for run in level_runs(files)] == ["f9", "f7", "f3", "f1"]


@pytest.mark.parametrize("option", [False, True])
@pytest.mark.parametrize("force", [None, False, True])
@pytest.mark.parametrize(("deleted", "expired"), [("", ""), ("f1", ""), ("", "f2"), ("f1", "f2"), ("f0", "f0")])
def test_of_a_bucket_with_one_run_only_files_with_dead_rows_are_rewritten_unless_all_are_to_be(deleted, expired, force, option):
    files = tuple(msgspec.structs.replace(file_of(f"f{at}", 1), level=5) for at in range(3))
    choice = pick_full([LevelRun(5, files)], PickerSettings(rewrite_all=option), deleted={deleted}, expired={expired}, force=force)
    is_all = force or (force is None and option)
    expected = [file.name for file in files if is_all or file.name in (deleted, expired)]
    assert ([] if isinstance(choice, Wait) else [file.name for file in choice.files]) == expected
    assert isinstance(choice, Wait) or (choice.output_level, choice.rewrite_all) == (5, True)
