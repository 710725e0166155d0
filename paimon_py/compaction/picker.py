"""Selects what to compact in one bucket: universal compaction as a function of its sorted runs.

The module uses neither files nor clocks: time and hour are arguments, the choice and the next state are results.

Source: format.md §13.2; Java 2.0 `UniversalCompaction`, `EarlyFullCompaction`, `ForceUpLevel0Compaction`,
`OffPeakHours`, `CompactStrategy`, `MergeTreeCompactManager`, `MergeTreeCompactManagerFactory`. (Java's branch after 2.0
also continues past a run of level 1 that is too large, unlike release 2.0.0 and this module.)
"""

from __future__ import annotations

from collections.abc import Container, Sequence

import msgspec

from paimon_py.compaction.levels import LevelRun
from paimon_py.errors import OptionError
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.engine_rules import needs_lookup
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema

Runs = Sequence[LevelRun]

_NO_FILES: frozenset[str] = frozenset()
_INT_MAX = 2**31 - 1


class Wait(msgspec.Struct, frozen=True):
    """Nothing to compact now."""


class Compact(msgspec.Struct, frozen=True):
    """Compact these files, in the order of their runs, to a level.

    `rewrite_all`: the files are already on that level, and each is rewritten separately.
    """

    files: tuple[DataFile, ...]
    output_level: int
    rewrite_all: bool = False


Choice = Wait | Compact


class OffPeak(msgspec.Struct, frozen=True):
    """Hours of the day, from `start` to before `end`, possibly across midnight, in which runs may be larger."""

    start: int
    end: int
    ratio: int

    def ratio_at(self, hour: int) -> int:
        """Percent to add to the size ratio."""
        after, before = self.start <= hour, hour < self.end
        inside = (after and before) if self.start <= self.end else (after or before)
        return self.ratio if inside else 0


class PickerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a table that decide when and what to compact. Sizes in bytes, times in milliseconds.

    Attributes:
        level_count: levels of the tree; buckets with files on higher levels have more.
        compaction_trigger: the number of runs from which sizes are compared; more runs are always compacted.
        stop_trigger: with more runs than this, writers wait for compaction.
        max_size_amplification: the maximum total size of all other runs, in percent of the last run.
        size_ratio: percent by which a run may be larger than the total of the runs before it.
        off_peak: None if there are no off-peak hours.
        full_interval, total_size, incremental_size: triggers of early full compactions.
        up_level_0: level 0 is always compacted; at every attempt, or every n-th if `up_level_0_interval` is n.
        deletion_vectors, keep_deletes, rewrite_all: the table has deletion vectors; is a chain table, which keeps
            deletes; rewrites every file in a full compaction.
    """

    level_count: int = 6
    compaction_trigger: int = 5
    stop_trigger: int = 8
    max_size_amplification: int = 200
    size_ratio: int = 1
    off_peak: OffPeak | None = None
    full_interval_millis: int | None = None
    total_size_bytes: int | None = None
    incremental_size_bytes: int | None = None
    up_level_0: bool = False
    up_level_0_interval: int | None = None
    deletion_vectors: bool = False
    keep_deletes: bool = False
    rewrite_all: bool = False

    @classmethod
    def of(cls, options: Options) -> PickerSettings:
        """The settings of a table with a primary key.

        Raises:
            OptionError: an option is invalid, such as a trigger below 1.
        """
        trigger = _at_least("num-sorted-run.compaction-trigger", options, 1)
        stop = options.find_int("num-sorted-run.stop-trigger")
        return cls(
            level_count=_level_count(options, trigger),
            compaction_trigger=trigger,
            stop_trigger=max(trigger, min(trigger + 3, _INT_MAX) if stop is None else stop),
            max_size_amplification=options.get_int("compaction.max-size-amplification-percent"),
            size_ratio=options.get_int("compaction.size-ratio"),
            off_peak=_off_peak(options),
            full_interval_millis=options.find_duration("compaction.optimization-interval"),
            total_size_bytes=options.find_size("compaction.total-size-threshold"),
            incremental_size_bytes=options.find_size("compaction.incremental-size-threshold"),
            up_level_0=forces_level_0(options),
            up_level_0_interval=_up_level_0_interval(options, trigger),
            deletion_vectors=options.get_bool("deletion-vectors.enabled"),
            keep_deletes=options.get_bool("chain-table.enabled"),
            rewrite_all=options.get_bool("compaction.force-rewrite-all-files"),
        )

    def top_level(self, runs: Runs) -> int:
        """The highest level of a bucket: the output level of full compactions."""
        return max([self.level_count - 1, *(run.level for run in runs)])

    @property
    def compacts_early(self) -> bool:
        """Whether the table has a trigger of early full compactions."""
        triggers = (self.full_interval_millis, self.total_size_bytes, self.incremental_size_bytes)
        return any(trigger is not None for trigger in triggers)


class PickerState(msgspec.Struct, frozen=True):
    """The state of a picker between two picks: the last full compaction, and attempts since level 0 was forced up."""

    last_full_millis: int | None = None
    tries: int = 0

    @classmethod
    def of(cls, files: Sequence[DataFile], settings: PickerSettings, zone_offset_millis: int = 0) -> PickerState:
        """The initial state on the files of a bucket, whose top level dates from the last full compaction.

        `zone_offset_millis`: local time minus UTC, since files contain the local time of their creation.
        """
        times = [file.creation_time_millis for file in files if file.level == settings.level_count - 1]
        known = [time - zone_offset_millis for time in times if time is not None]
        newest = max(known, default=-1)
        return cls(newest if newest >= 0 else None)


def compacts_by_lookup(schema: TableSchema) -> bool:
    """Whether compactions of level 0 look up keys in the levels above their output."""
    return bool(schema.primary_keys) and needs_lookup(Options(schema.options))


def forces_level_0(options: Options) -> bool:
    """Whether level 0 is compacted even if no trigger is reached."""
    return needs_lookup(options) or options.get_bool("compaction.force-up-level-0")


def full_compaction_interval(options: Options) -> int | None:
    """The number of hand-overs after which a writer runs a full compaction; None for never. With the changelog
    producer `full-compaction` only these compactions write a changelog.

    Source: Java `StoreSinkWrite`.
    """
    every = options.find_int("full-compaction.delta-commits")
    if every is None and options.get_enum("changelog-producer") != "full-compaction":
        return None
    return max(every or 1, 1)


def pick(
    runs: Runs, settings: PickerSettings, state: PickerState, now_millis: int, hour: int
) -> tuple[Choice, PickerState]:
    """The next compaction of a bucket, if one is due.

    Shapes: runs as `level_runs` gives them, newest first.
    Units: `hour` of the day in local time, for off-peak hours.
    """
    return _Picker(runs, settings, now_millis, hour).pick(state)


def pick_full(
    runs: Runs,
    settings: PickerSettings,
    *,
    deleted: Container[str] = _NO_FILES,
    expired: Container[str] = _NO_FILES,
    force: bool | None = None,
) -> Choice:
    """A full compaction.

    If a bucket has only its top level, only files with a deletion vector (`deleted`) or with expired rows (`expired`)
    are rewritten, or all files with `force`, which defaults to `compaction.force-rewrite-all-files`.
    """
    if not runs:
        return Wait()
    top = settings.top_level(runs)
    files = tuple(file for run in runs for file in run.files)
    if len(runs) > 1 or runs[0].level != top:
        return Compact(files, top)
    rewrite_all = settings.rewrite_all if force is None else force
    chosen = tuple(file for file in files if rewrite_all or file.name in expired or file.name in deleted)
    return Compact(chosen, top, rewrite_all=True) if chosen else Wait()


def drop_deletes(output_level: int, runs: Runs, settings: PickerSettings) -> bool:
    """Whether a compaction to a level drops rows of kind −U and −D: there are no older rows above it.

    With deletion vectors they are always dropped, because the vectors delete the older rows.
    """
    if settings.keep_deletes or output_level == 0:
        return False
    return settings.deletion_vectors or output_level >= max((run.level for run in runs), default=-1)


def writers_wait(runs: Runs, settings: PickerSettings) -> bool:
    """Whether a bucket has so many runs that its writer must wait for a compaction before it flushes."""
    return len(runs) > settings.stop_trigger


class _Picker:
    """One pick. `last_full` is set if the pick contains all files."""

    def __init__(self, runs: Runs, settings: PickerSettings, now_millis: int, hour: int) -> None:
        self.runs = runs
        self.settings = settings
        self.now_millis = now_millis
        self.sizes = [run.size_bytes for run in runs]
        self.top = settings.top_level(runs)
        self.percent = 100.0 + settings.size_ratio + (settings.off_peak.ratio_at(hour) if settings.off_peak else 0)
        self.takes_all = False

    def pick(self, state: PickerState) -> tuple[Choice, PickerState]:
        choice = self._early(state)
        if choice is None:
            choice = self._universal()
        tries = state.tries
        if choice is None and self.settings.up_level_0:
            tries += 1
            if self.settings.up_level_0_interval is None or tries == self.settings.up_level_0_interval:
                tries = 0
                choice = self._level_0()
        last_full = self.now_millis if self.takes_all and self.settings.compacts_early else state.last_full_millis
        after = PickerState(last_full, tries)
        if choice is None or not choice.files:
            return Wait(), after
        if len(choice.files) == 1 and choice.files[0].level == choice.output_level:
            return Wait(), after
        return choice, after

    def _early(self, state: PickerState) -> Compact | None:
        """An early full compaction, triggered by time or by sizes."""
        if len(self.runs) == 1:
            return None
        interval, total = self.settings.full_interval_millis, self.settings.total_size_bytes
        due = interval is not None and (
            state.last_full_millis is None or self.now_millis - state.last_full_millis > interval
        )
        small = total is not None and sum(self.sizes) < total
        return self._all() if due or small or self._much_is_new() else None

    def _much_is_new(self) -> bool:
        limit = self.settings.incremental_size_bytes
        if limit is None:
            return False
        return sum(size for run, size in zip(self.runs, self.sizes, strict=True) if run.level != self.top) > limit

    def _universal(self) -> Compact | None:
        """The compaction that the sizes or the number of runs require."""
        # Examples with trigger 5, amplification 200 %, ratio 1 %; sizes of the runs, newest first, @ level above 0:
        #   10 300 900 1000@4 1000@5    all others are 2210 > 200 % of 1000: compact everything to level 5
        #   10 10 10 50@4 1000@5        10 >= 10, 20 >= 10, but 30 < 50: compact three runs to level 3, just below 50@4
        #   10 30 100 400@4 1000@5      10 < 30, and no more runs than the trigger: wait
        #   10 30 100 200@3 400@4 3000@5    one run too many: take at least two; 40 < 100 adds none. The output would
        #                                   stay on level 0, so runs up to the first above it join: four to level 3
        count, trigger = len(self.runs), self.settings.compaction_trigger
        if count < trigger:
            return None
        if sum(self.sizes[:-1]) * 100 > self.settings.max_size_amplification * self.sizes[-1]:
            return self._all()
        taken = self._extend(1)
        if taken > 1:
            return self._prefix(taken)
        if count > trigger:
            return self._prefix(self._extend(count - trigger + 1))
        return None

    def _level_0(self) -> Compact | None:
        """All of level 0, and the runs that the sizes add; level 1 is included, or the output would be level 0."""
        count = sum(run.level == 0 for run in self.runs)
        if not count:
            return None
        if count < len(self.runs) and self.runs[count].level == 1:
            count += 1
        return self._prefix(self._extend(count))

    def _extend(self, count: int) -> int:
        """The number of runs to compact: extends `count` by each next run not much larger than those before it."""
        size = sum(self.sizes[:count])
        for following in self.sizes[count:]:
            if float(size) * self.percent / 100.0 < float(following):
                break
            size += following
            count += 1
        return count

    def _prefix(self, count: int) -> Compact:
        """The first runs and, if the output would stay on level 0, those up to the first run above level 0."""
        rest = self.runs[count:]
        output = max(0, rest[0].level - 1) if rest else self.top
        if output == 0:
            for run in rest:
                count += 1
                if run.level:
                    output = run.level
                    break
        if count == len(self.runs):
            return self._all()
        return Compact(self._files(count), output)

    def _all(self) -> Compact:
        self.takes_all = True
        return Compact(self._files(len(self.runs)), self.top)

    def _files(self, count: int) -> tuple[DataFile, ...]:
        return tuple(file for run in self.runs[:count] for file in run.files)


def _up_level_0_interval(options: Options, trigger: int) -> int | None:
    if not needs_lookup(options) or options.get_enum("lookup-compact") == "radical":
        return None
    given = options.find_int("lookup-compact.max-interval")
    return max(trigger, min(trigger * 2, _INT_MAX) if given is None else given)


def _off_peak(options: Options) -> OffPeak | None:
    start, end = options.get_int("compaction.offpeak.start.hour"), options.get_int("compaction.offpeak.end.hour")
    if -1 in (start, end) or start == end:
        return None
    return OffPeak(start, end, options.get_int("compaction.offpeak-ratio"))


def _level_count(options: Options, trigger: int) -> int:
    if options.find_int("num-levels") is None:
        return min(trigger + 1, _INT_MAX)
    return _at_least("num-levels", options, 2)


def _at_least(name: str, options: Options, least: int) -> int:
    value = options.get_int(name)
    if value < least:
        raise OptionError(f"option {name!r} is {value}; it must be at least {least}", option=name, value=str(value))
    return value
