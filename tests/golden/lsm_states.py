"""States of an LSM tree as text, and what is decided on them.

A case is a title, options, levels and questions; answers follow each question:

    == everything because the upper runs are large
    options num-sorted-run.compaction-trigger=2
    L0 a:100 b:100[5-9]d3
    L5 c:90
    pick hour=3
    -> compact a b c to L5, deletes end
       rewrite [c | b | a]

A file is `name:size`, its first and last key in brackets (0 and 99 if left out), its deletes (`d?`: unknown) and `@`
its creation time. Sizes take k, m, g. Level 0 is written newest first. Questions are `pick` (now=, hour=, last=,
tries=) and `full` (deleted=, expired=); `[b | a]` is a section with the runs b and a, oldest first.

`python tests/golden/lsm_states.py` answers all questions of `lsm/*.txt` anew; look at the difference.
"""

from __future__ import annotations

import pathlib
import re
from dataclasses import dataclass, field

import numpy as np

from paimon_py.compaction.levels import LevelRun, level_runs
from paimon_py.compaction.picker import (
    Compact,
    PickerSettings,
    PickerState,
    Wait,
    compacts_by_lookup,
    drop_deletes,
    pick,
    pick_full,
)
from paimon_py.compaction.steps import Step, StepSettings, Upgrade, steps_of
from paimon_py.compaction.task import CompactionTask
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Base
from paimon_py.spec.types import Atomic, Field, Root

FOLDER = pathlib.Path(__file__).parent / "lsm"
_FILE = re.compile(r"(\w+):(\d+)([kmg]?)(?:\[(\d+)-(\d+)\])?(?:d(\d+|\?))?(?:@(\d+))?")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass
class State:
    """Levels with their options; key ranges by file name."""

    options: dict[str, str] = field(default_factory=dict)
    files: list[DataFile] = field(default_factory=list)
    keys: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, level, name, size, *, low=0, high=99, deletes=0, created=None, newest=None):
        newest = 1000 - len(self.files) if newest is None else newest
        self.keys[name] = (low, high)
        self.files.append(
            DataFile(
                name=name, level=level, size_bytes=size, row_count=1, min_sequence=newest, max_sequence=newest, schema_id=0,
                delete_row_count=deletes, creation_time_millis=created,
            )
        )  # fmt: skip

    @property
    def runs(self) -> tuple[LevelRun, ...]:
        return level_runs(self.files)

    @property
    def schema(self) -> TableSchema:
        column = Field(id=0, name="k", type=Atomic(root=Root.INT, nullable=False))
        options = {"bucket": "1", **self.options}
        return TableSchema(id=0, fields=(column,), primary_keys=("k",), options=options, highest_field_id=0, time_millis=0)

    @property
    def settings(self) -> PickerSettings:
        return PickerSettings.of(Options(self.options))

    def above(self, level: int) -> tuple[DataFile, ...]:
        """What a task knows of higher levels; of chain tables, which are refused, it would have to know them too."""
        known = compacts_by_lookup(self.schema) or self.settings.keep_deletes
        return tuple(file for file in self.files if known and file.level > level)

    def steps(self, choice: Compact, expired=frozenset()) -> tuple[Step, ...]:
        """What becomes of the chosen files."""
        task = CompactionTask(
            base=Base(1), schema_id=0, partition=b"", bucket=0, total_buckets=1, files=choice.files,
            output_level=choice.output_level, drop_deletes=drop_deletes(choice.output_level, self.runs, self.settings),
            rewrite_all=choice.rewrite_all, higher_files=self.above(choice.output_level),
        )  # fmt: skip
        lows, highs = (np.array([self.keys[f.name][end] for f in choice.files], np.int64) for end in (0, 1))
        return steps_of(task, lows, highs, settings=StepSettings.of(self.schema), expired=expired)


def answered(text: str) -> str:
    """The text with all answers made anew."""
    lines: list[str] = []
    state = State()
    for line in text.splitlines():
        word, *rest = line.split() or [""]
        if word == "->" or line.startswith("   "):
            continue
        lines.append(line)
        if word == "==":
            state = State()
        elif word == "options":
            state.options |= dict(option.split("=") for option in rest)
        elif re.fullmatch(r"L\d+", word):
            for name, size, unit, low, high, deletes, created in map(_parsed, rest):
                state.add(
                    int(word[1:]), name, int(size) * _UNITS[unit], low=int(low or 0), high=int(high or 99),
                    deletes=None if deletes == "?" else int(deletes or 0), created=int(created) if created else None,
                )  # fmt: skip
        elif word in ("pick", "full"):
            lines += _answers(state, word, dict(argument.split("=") for argument in rest))
    return "\n".join(lines) + "\n"


def _parsed(text: str) -> tuple[str, ...]:
    found = _FILE.fullmatch(text)
    assert found is not None, text
    return found.groups()


def _answers(state: State, question: str, arguments: dict[str, str]) -> list[str]:
    settings = state.settings
    expired = frozenset(arguments.get("expired", "").split(","))
    if question == "full":
        before = None
        choice = pick_full(state.runs, settings, deleted=arguments.get("deleted", "").split(","), expired=expired)
    else:
        known = PickerState.of(state.files, settings)
        last = int(arguments["last"]) if "last" in arguments else known.last_full_millis
        before = PickerState(last, int(arguments.get("tries", 0)))
        choice, after = pick(state.runs, settings, before, int(arguments.get("now", 0)), int(arguments.get("hour", 12)))
    lines = describe(state, choice, expired)
    if before is not None and after != before:
        lines.append(f"   state: last full {after.last_full_millis}, tries {after.tries}")
    return lines


def describe(state: State, choice, expired=frozenset()) -> list[str]:
    """A decision and its steps in words."""
    if isinstance(choice, Wait):
        return ["-> wait"]
    names = " ".join(file.name for file in choice.files)
    end = drop_deletes(choice.output_level, state.runs, state.settings)
    how = "rewrite each of" if choice.rewrite_all else "compact"
    lines = [f"-> {how} {names} to L{choice.output_level}, deletes {'end' if end else 'stay'}"]
    steps = state.steps(choice, expired)
    return lines + ["   " + _step(step, end) for step in steps] or ["   nothing to do"]


def _step(step: Step, end: bool) -> str:
    lookup = ", lookup" if step.lookup else ""
    if isinstance(step, Upgrade):
        return f"upgrade {step.file.name}{lookup}"
    sections = (" | ".join(" ".join(file.name for file in run.files) for run in section) for section in step.sections)
    deletes = "" if step.drop_deletes == end else ", deletes end" if step.drop_deletes else ", deletes stay"
    return f"rewrite {' '.join(f'[{section}]' for section in sections)}{lookup}{deletes}"


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.txt")):
        path.write_text(answered(path.read_text()))
