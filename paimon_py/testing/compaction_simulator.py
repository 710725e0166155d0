"""Simulates the cost of universal compaction over a long time: writes of given sizes into a bucket without files.

The picker and the steps are those of real compactions; only the rows are a model. Keys are points on a line. A share
of every write updates keys drawn uniformly from a fixed set, the other keys are new, random or in ascending order.
Merging runs with shares s₁, s₂, … of the set results in the share 1 − (1 − s₁)(1 − s₂)… of it, and all new keys.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from paimon_py.compaction.levels import LevelRun, level_runs
from paimon_py.compaction.picker import (
    Choice,
    Compact,
    PickerSettings,
    PickerState,
    Wait,
    compacts_by_lookup,
    drop_deletes,
    pick,
    pick_full,
)
from paimon_py.compaction.steps import Rewrite, Section, Step, StepSettings, Upgrade, steps_of
from paimon_py.compaction.task import CompactionTask
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Base
from paimon_py.spec.types import Atomic, Field, Root

KEY_SPACE = 1 << 30
"""Keys are from 0 to below this; only ascending keys may exceed it."""

_HOUR_MILLIS = 3_600_000


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """Writes of one size.

    Attributes:
        rows, row_bytes: rows of a write, and bytes of a row.
        updates: share of rows that update one of `keys` keys; the others have new keys.
        keys: the number of keys that are updated, at least 2.
        ordered: new keys ascend from write to write, like keys derived from a time.
        full_every: the number of writes between full compactions; 0 for none.
        step_millis: time between writes.
    """

    rows: int = 10_000
    row_bytes: int = 100
    updates: float = 1.0
    keys: int = 1_000_000
    ordered: bool = False
    full_every: int = 0
    step_millis: int = 60_000


class SimulatedWrite(msgspec.Struct, frozen=True, kw_only=True):
    """One write and the compaction after it.

    Attributes:
        number: the number of the write, from 1 on.
        now_millis, state: the arguments of the picker.
        runs: runs of the bucket after the write.
        choice, steps: the picker's choice, and the steps for the files.
        after: runs of the bucket after the compaction.
        flushed_bytes, rewritten_bytes: total bytes so far of written files and of compacted files.
        unique_bytes: the size of the bucket if it contained each key once.
    """

    number: int
    now_millis: int
    state: PickerState
    runs: tuple[LevelRun, ...]
    choice: Choice
    steps: tuple[Step, ...]
    after: tuple[LevelRun, ...]
    flushed_bytes: int
    rewritten_bytes: int
    unique_bytes: int

    @property
    def stored_bytes(self) -> int:
        """Bytes of the bucket after the compaction."""
        return sum(run.size_bytes for run in self.after)

    @property
    def write_amplification(self) -> float:
        """The average number of times that each byte was written so far."""
        return (self.flushed_bytes + self.rewritten_bytes) / self.flushed_bytes

    @property
    def space_amplification(self) -> float:
        """The ratio of stored bytes to needed bytes."""
        return self.stored_bytes / self.unique_bytes


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A summary of many writes. Averages are over all writes."""

    writes: int
    write_amplification: float
    space_amplification: float
    most_space_amplification: float
    runs: float
    most_runs: int
    compactions: int
    full_compactions: int
    upgraded_files: int


class _Rows(NamedTuple):
    """Rows of a file: keys of the fixed set, and new keys."""

    updated: float
    new: float


def simulate(workload: Workload, options: Mapping[str, str], writes: int) -> Iterator[SimulatedWrite]:
    """Write into an empty bucket of a table with these options, and compact after every write.

    Raises:
        OptionError: an option is invalid.
    """
    bucket = _Bucket(workload, options)
    for number in range(1, writes + 1):
        yield bucket.write(number)


def summary(moments: Iterable[SimulatedWrite]) -> Summary:
    """Summarize writes; there must be at least one."""
    every = list(moments)
    spaces = [moment.space_amplification for moment in every]
    counts = [len(moment.after) for moment in every]
    compacted = [moment for moment in every if moment.steps]
    return Summary(
        writes=len(every),
        write_amplification=every[-1].write_amplification,
        space_amplification=sum(spaces) / len(every),
        most_space_amplification=max(spaces),
        runs=sum(counts) / len(every),
        most_runs=max(len(moment.runs) for moment in every),
        compactions=len(compacted),
        full_compactions=sum(len(moment.after) == 1 for moment in compacted),
        upgraded_files=sum(isinstance(step, Upgrade) for moment in compacted for step in moment.steps),
    )


class _Bucket:
    """Files with the model of their rows and the range of their keys."""

    def __init__(self, workload: Workload, options: Mapping[str, str]) -> None:
        self.workload = workload
        self.schema = _schema(options)
        self.settings = PickerSettings.of(Options(options))
        self.step_settings = StepSettings.of(self.schema)
        self.target_bytes = Options(options).find_size("target-file-size") or 128 << 20
        self.state = PickerState()
        self.files: list[DataFile] = []
        self.rows: dict[str, _Rows] = {}
        self.keys: dict[str, tuple[int, int]] = {}
        self.named = 0
        self.written = _Rows(0.0, 0.0)
        self.flushed_bytes = 0
        self.rewritten_bytes = 0

    def write(self, number: int) -> SimulatedWrite:
        self._flush(number)
        runs, before = level_runs(self.files), self.state
        now = number * self.workload.step_millis
        choice: Choice
        if self.workload.full_every and number % self.workload.full_every == 0:
            choice = pick_full(runs, self.settings)
        else:
            choice, self.state = pick(runs, self.settings, before, now, now // _HOUR_MILLIS % 24)
        steps = self._compact(runs, choice)
        return SimulatedWrite(
            number=number,
            now_millis=now,
            state=before,
            runs=runs,
            choice=choice,
            steps=steps,
            after=level_runs(self.files),
            flushed_bytes=self.flushed_bytes,
            rewritten_bytes=self.rewritten_bytes,
            unique_bytes=self._bytes(self.written),
        )

    def _flush(self, number: int) -> None:
        load = self.workload
        updates = round(load.rows * load.updates)
        updated = -math.expm1(updates * math.log1p(-1 / load.keys)) * load.keys
        rows = _Rows(updated, load.rows - updates)
        self.written = self._merge([self.written, rows], load.keys)
        low, high = 0, KEY_SPACE - 1
        if load.ordered and not updates:
            low = number * load.rows
            high = low + load.rows - 1
        self.flushed_bytes += self._add(0, rows, low, high, sequence=number)

    def _compact(self, runs: Sequence[LevelRun], choice: Choice) -> tuple[Step, ...]:
        if isinstance(choice, Wait):
            return ()
        steps = self._steps(runs, choice)
        for step in steps:
            self._carry_out(step, choice.output_level)
        return steps

    def _steps(self, runs: Sequence[LevelRun], choice: Compact) -> tuple[Step, ...]:
        higher = tuple(file for file in self.files if file.level > choice.output_level)
        task = CompactionTask(
            base=Base(0),
            schema_id=0,
            partition=b"",
            bucket=0,
            total_buckets=1,
            files=choice.files,
            output_level=choice.output_level,
            drop_deletes=drop_deletes(choice.output_level, runs, self.settings),
            rewrite_all=choice.rewrite_all,
            higher_files=higher if compacts_by_lookup(self.schema) else (),
        )
        lows, highs = zip(*(self.keys[file.name] for file in choice.files), strict=True)
        return steps_of(task, np.array(lows, np.int64), np.array(highs, np.int64), settings=self.step_settings)

    def _carry_out(self, step: Step, level: int) -> None:
        if isinstance(step, Upgrade):
            place = self.files.index(step.file)
            self.files[place] = msgspec.structs.replace(step.file, level=level)
            return
        gone = {file.name for file in step.files}
        self.files = [file for file in self.files if file.name not in gone]
        self._roll(step, level)

    def _roll(self, step: Rewrite, level: int) -> None:
        """Write the rows of sections into files of the target size, with keys distributed evenly over the range."""
        merged = [self._section(section) for section in step.sections]
        rows = _Rows(sum(part.updated for part in merged), sum(part.new for part in merged))
        low = min(self.keys[file.name][0] for file in step.files)
        high = max(self.keys[file.name][1] for file in step.files)
        newest = max(file.max_sequence for file in step.files)
        count = max(1, math.ceil(self._bytes(rows) / self.target_bytes))
        edges = [low + (high + 1 - low) * part // count for part in range(count + 1)]
        share = _Rows(rows.updated / count, rows.new / count)
        for start, end in itertools.pairwise(edges):
            self.rewritten_bytes += self._add(level, share, start, end - 1, sequence=newest)

    def _section(self, section: Section) -> _Rows:
        runs = [[self.rows[file.name] for file in run.files] for run in section]
        ends = [self.keys[file.name] for run in section for file in run.files]
        share = (max(high for _, high in ends) + 1 - min(low for low, _ in ends)) / KEY_SPACE
        totals = [_Rows(sum(rows.updated for rows in run), sum(rows.new for rows in run)) for run in runs]
        return self._merge(totals, self.workload.keys * share)

    def _merge(self, runs: Sequence[_Rows], keys: float) -> _Rows:
        """Merge rows of runs over a part of the line that contains `keys` keys of the fixed set."""
        return _Rows(_union([rows.updated / keys for rows in runs]) * keys, sum(rows.new for rows in runs))

    def _add(self, level: int, rows: _Rows, low: int, high: int, *, sequence: int) -> int:
        self.named += 1
        name = f"f{self.named}"
        size = self._bytes(rows)
        self.rows[name], self.keys[name] = rows, (low, high)
        self.files.append(
            DataFile(
                name=name,
                size_bytes=size,
                row_count=round(rows.updated + rows.new),
                min_key=_key(low),
                max_key=_key(high),
                min_sequence=sequence,
                max_sequence=sequence,
                schema_id=0,
                level=level,
                delete_row_count=0,
            )
        )
        return size

    def _bytes(self, rows: _Rows) -> int:
        return round((rows.updated + rows.new) * self.workload.row_bytes)


def _union(shares: Sequence[float]) -> float:
    """The share of keys in at least one of several independent draws."""
    missing = 1.0
    for share in shares:
        missing *= 1.0 - min(share, 1.0)
    return 1.0 - missing


def _key(value: int) -> bytes:
    """A serialized BinaryRow of one BIGINT."""
    return b"\x00\x00\x00\x01" + bytes(8) + value.to_bytes(8, "little")


def _schema(options: Mapping[str, str]) -> TableSchema:
    key = Field(id=0, name="k", type=Atomic(root=Root.BIGINT, nullable=False))
    return TableSchema(id=0, fields=(key,), highest_field_id=0, primary_keys=("k",), options=dict(options))
