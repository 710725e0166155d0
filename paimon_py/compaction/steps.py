"""Decides for each file of a compaction: move it to the output level unchanged, or rewrite it with others.

Source: format.md §13.3; Java 2.0 `MergeTreeCompactTask`, `FileRewriteCompactTask`, and the upgrade strategy of
`LookupMergeTreeCompactRewriter`.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

import msgspec

from paimon_py.arrays import Ints
from paimon_py.compaction.picker import PickerSettings, compacts_by_lookup
from paimon_py.compaction.task import CompactionTask
from paimon_py.lsm.intervals import runs_of, sections_of
from paimon_py.lsm.runs import SortedRun, oldest_first
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema

Section = tuple[SortedRun, ...]

_KEYED_TARGET_BYTES = 128 << 20


class Upgrade(msgspec.Struct, frozen=True):
    """Move a file to the output level; its bytes are unchanged.

    `lookup`: in a table that compacts by lookup, its keys must still be looked up in the levels above the output, to
    mark the rows that they replace. `emits_changelog`: the changes of its rows are written to the changelog.
    """

    file: DataFile
    lookup: bool = False
    emits_changelog: bool = False


class Rewrite(msgspec.Struct, frozen=True, kw_only=True):
    """Merge sections, in key order, into new files of the output level.

    Attributes:
        sections: groups of overlapping runs, oldest first; sections are in key order and do not overlap.
        drop_deletes: rows of kind −U and −D are dropped.
        lookup: in a table that compacts by lookup, the sections contain level 0, whose keys are looked up in the levels
            above the output.
        emits_changelog: the changes of its rows are written to the changelog.
    """

    sections: tuple[Section, ...]
    drop_deletes: bool
    lookup: bool = False
    emits_changelog: bool = False

    @property
    def files(self) -> tuple[DataFile, ...]:
        """All files, run by run."""
        return tuple(file for section in self.sections for run in section for file in run.files)


Step = Upgrade | Rewrite


class StepSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a table that decide between upgrade and rewrite.

    Attributes:
        small_file_bytes: smaller files are rewritten with their neighbours.
        level_count: levels of the tree in the table's options.
        rewrite_all: no file is merely moved.
        keep_deletes: deletes are never dropped (chain tables).
        lookup: compactions of level 0 look up keys in higher levels.
        emits_changelog: compactions write a changelog: those of level 0 if they look up keys, otherwise full ones.
        deletion_vectors: the table has deletion vectors.
        newest_row_wins: rows of an older file have no effect (deduplicate without sequence fields).
        format, level_formats: the default file format, and the formats of specific levels.
    """

    small_file_bytes: int
    level_count: int = 6
    rewrite_all: bool = False
    keep_deletes: bool = False
    lookup: bool = False
    emits_changelog: bool = False
    deletion_vectors: bool = False
    newest_row_wins: bool = True
    format: str = "parquet"
    level_formats: Mapping[str, str] = {}

    @classmethod
    def of(cls, schema: TableSchema, *, emits_changelog: bool = True) -> StepSettings:
        """The settings of a table with a primary key. `emits_changelog`: write the changelog of the table's options."""
        options = Options(schema.options)
        producer = options.get_enum("changelog-producer")
        target = options.find_size("target-file-size")
        ratio = options.get_float("compaction.small-file-ratio")
        picker = PickerSettings.of(options)
        formats = options.get_map("file.format.per.level")
        return cls(
            small_file_bytes=int((_KEYED_TARGET_BYTES if target is None else target) * ratio),
            level_count=picker.level_count,
            rewrite_all=picker.rewrite_all,
            keep_deletes=picker.keep_deletes,
            lookup=compacts_by_lookup(schema) and producer != "full-compaction",
            emits_changelog=emits_changelog and producer in ("lookup", "full-compaction"),
            deletion_vectors=picker.deletion_vectors,
            newest_row_wins=options.get_enum("merge-engine") == "deduplicate"
            and not options.get_list("sequence.field"),
            format=options.get_str("file.format").lower(),
            level_formats={level: name.lower() for level, name in formats.items()},
        )

    def format_of(self, level: int) -> str:
        """The file format of a level."""
        return self.level_formats.get(str(level), self.format)


def steps_of(
    task: CompactionTask,
    min_ranks: Ints,
    max_ranks: Ints,
    *,
    settings: StepSettings,
    expired: Container[str] = frozenset(),
) -> tuple[Step, ...]:
    """The steps of a compaction, in key order; a file in no step stays as it is.

    Shapes: int64 ranks of the smallest and the largest key of each file in `task.files` (`key_ranks`).

    Args:
        expired: names of files with rows older than `record-level.expire-time`.
    """
    plan = _Plan(task, settings, expired)
    if task.rewrite_all:
        for file in task.files:
            plan.rewrite([_alone(file)])
        return tuple(plan.steps)
    pending: list[Section] = []
    for numbers in sections_of(min_ranks, max_ranks):
        runs = [
            SortedRun(tuple(task.files[number] for number in run)) for run in runs_of(numbers, min_ranks, max_ranks)
        ]
        if len(runs) > 1:
            pending.append(oldest_first(runs))
            continue
        for file in runs[0].files:
            if file.size_bytes < settings.small_file_bytes:
                pending.append(_alone(file))
            else:
                plan.flush(pending)
                pending = []
                plan.upgrade(file)
    plan.flush(pending)
    return tuple(plan.steps)


class _Plan:
    """The steps so far."""

    def __init__(self, task: CompactionTask, settings: StepSettings, expired: Container[str]) -> None:
        self.steps: list[Step] = []
        self.task = task
        self.settings = settings
        self.expired = expired
        levels = [file.level for file in (*task.files, *task.higher_files)]
        nothing_above = task.drop_deletes or settings.keep_deletes
        self.top_level = max(settings.level_count - 1, *levels)
        self.to_top = nothing_above and task.output_level == self.top_level
        self.emits_all = settings.emits_changelog and not settings.lookup and self.to_top

    def flush(self, pending: list[Section]) -> None:
        """Rewrite the collected sections; a single file is moved instead, since it would only be copied."""
        match pending:
            case []:
                pass
            case [(run,)]:
                for file in run.files:
                    self.upgrade(file)
            case _:
                self.rewrite(pending)

    def rewrite(self, sections: list[Section]) -> None:
        self._rewrite(sections, self.task.drop_deletes)

    def upgrade(self, file: DataFile) -> None:
        deletes_end = self.to_top and file.delete_row_count != 0
        if deletes_end or self.settings.rewrite_all or file.name in self.expired:
            self.rewrite([_alone(file)])
        elif file.level == self.task.output_level:
            pass
        elif file.level == 0 and self.settings.lookup:
            self._upgrade_by_lookup(file)
        else:
            self.steps.append(Upgrade(file, emits_changelog=self.emits_all))

    def _upgrade_by_lookup(self, file: DataFile) -> None:
        settings, output = self.settings, self.task.output_level
        other_format = settings.format_of(0) != settings.format_of(output)
        must_drop = settings.deletion_vectors and file.delete_row_count != 0
        is_final = output == self.top_level or settings.newest_row_wins
        if other_format or must_drop or not is_final:
            self._rewrite([_alone(file)], drop_deletes=settings.deletion_vectors)
        else:
            self.steps.append(Upgrade(file, lookup=True, emits_changelog=settings.emits_changelog))

    def _rewrite(self, sections: list[Section], drop_deletes: bool) -> None:
        step = Rewrite(sections=tuple(sections), drop_deletes=drop_deletes, emits_changelog=self.emits_all)
        if self.settings.lookup and self.task.output_level and any(file.level == 0 for file in step.files):
            step = msgspec.structs.replace(step, lookup=True, emits_changelog=self.settings.emits_changelog)
        self.steps.append(step)


def _alone(file: DataFile) -> Section:
    return (SortedRun((file,)),)
