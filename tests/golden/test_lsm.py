"""Invented states of the LSM tree: is the decision on each of them the one that is written down (and was looked at)?"""

from __future__ import annotations

import pytest
from lsm_states import FOLDER, answered

from paimon_py.compaction.picker import PickerSettings
from paimon_py.errors import OptionError
from paimon_py.spec.options import Options


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.txt")))
def test_every_state_is_decided_as_written(name):
    text = (FOLDER / f"{name}.txt").read_text()
    assert answered(text) == text


def test_every_question_has_an_answer():
    for path in FOLDER.glob("*.txt"):
        lines = [line for line in path.read_text().splitlines() if line]
        for line, following in zip(lines, lines[1:], strict=False):
            assert not line.startswith(("pick", "full")) or following.startswith("->"), line


@pytest.mark.parametrize(
    ("name", "value"),
    [("num-sorted-run.compaction-trigger", "0"), ("num-levels", "1"), ("num-sorted-run.compaction-trigger", "x")],
)
def test_settings_without_sense_are_refused_by_name(name, value):
    with pytest.raises(OptionError, match=name):
        PickerSettings.of(Options({name: value}))


def test_stop_trigger_is_never_below_the_trigger():
    def stop(**texts):
        return PickerSettings.of(Options({name.replace("_", "-"): text for name, text in texts.items()})).stop_trigger

    assert stop() == 8
    assert PickerSettings.of(Options({"num-sorted-run.compaction-trigger": "10"})).stop_trigger == 13
    assert PickerSettings.of(Options({"num-sorted-run.stop-trigger": "2"})).stop_trigger == 5
    assert PickerSettings.of(Options({"num-sorted-run.compaction-trigger": "2147483647"})).stop_trigger == 2**31 - 1
