"""Validates a compaction task from another process against the table, so that it cannot change the table's rows.

Concurrent changes since the task was planned are detected by the commit, which drops such a compaction.

Source: docs/decisions/0019-travelling-values.md; format.md §13.2, §13.3.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.commit.deletion_index import index_entries
from paimon_py.compaction.append_picker import age
from paimon_py.compaction.levels import level_runs
from paimon_py.compaction.picker import PickerSettings, compacts_by_lookup, drop_deletes
from paimon_py.compaction.range_picker import first_of, ranges_of
from paimon_py.compaction.task import CompactionTask
from paimon_py.errors import CorruptionError
from paimon_py.files.physical import evolves_columns
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.clustering import is_incremental
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema


def check_task(table: OpenTable, task: CompactionTask) -> None:
    """Reject a task that disagrees with the latest snapshot about its bucket.

    Cost: the manifests of the bucket, and the index manifest.
    Raises:
        CorruptionError: the task is damaged, or not of this table.
        SnapshotExpiredError: the latest snapshot expired in the meantime.
    """
    _require(len({file.name for file in task.files}) == len(task.files) > 0, "it has no files, or one of them twice")
    latest = table.root.latest()
    if latest is None or task.schema_id != table.schema.id:
        return
    places = table.deletion_places(task.index).get((task.partition, task.bucket), {})
    _require(dict(task.deletions) == places, "its deletion vectors are not in its index files")
    index = {entry.name: entry for entry in index_entries(table.root, latest)}
    _require(all(index.get(one.name, one) == one for one in task.index), "the entry of an index file differs")
    chosen = PartitionChoice.of_rows([task.partition])
    live = table.root.manifests.live_entries(latest, EntryFilter(partitions=chosen, buckets=frozenset({task.bucket})))
    entries = [entry for entry in live.entries() if entry.partition == task.partition]
    known = {entry.file.name: entry.file for entry in entries}
    for file in (*task.files, *task.higher_files):
        _require(_lasting(known.get(file.name, file)) == _lasting(file), f"the entry of file {file.name} differs")
    if not all(known.get(file.name) == file for file in task.files):
        return
    _require({entry.total_buckets for entry in entries} == {task.total_buckets}, "the number of buckets differs")
    in_ranges = evolves_columns(table.schema)
    check = _check_keyed if table.schema.primary_keys else _check_ranges if in_ranges else _check_append
    check(table.schema, task, list(known.values()))


def _lasting(file: DataFile) -> DataFile:
    """The part of a file's entry that stays the same when others move the file to another level or change its index."""
    return msgspec.structs.replace(file, level=0, embedded_index=None, extra_files=())


def _check_keyed(schema: TableSchema, task: CompactionTask, live: Sequence[DataFile]) -> None:
    """Check that the task includes all files up to its output level, except newer ones."""
    settings, level, runs = PickerSettings.of(Options(schema.options)), task.output_level, level_runs(live)
    taken = {file.name for file in task.files}
    rest = [file for file in live if file.name not in taken]
    top = max(settings.level_count - 1, *(file.level for file in live))
    _require(max(file.level for file in task.files) <= level <= top, f"files cannot move to level {level}")
    oldest, newest = min(file.min_sequence for file in task.files), max(file.max_sequence for file in task.files)
    looks_up = compacts_by_lookup(schema)
    below = oldest if not (task.drop_deletes or looks_up) else 0
    level_0 = [file for file in rest if file.level == 0]
    older = [file.name for file in level_0 if below <= file.max_sequence and file.min_sequence <= newest]
    _require(not older, f"file {min(older, default='')} is missing, although its rows are not newer")
    alone = all(file.level == level for file in task.files)
    between = [file.name for file in rest if 0 < file.level <= level and not alone]
    _require(not between, f"file {min(between, default='')} is missing, although it is below level {level}")
    _require(
        not task.drop_deletes or drop_deletes(level, runs, settings), "it drops deletes of rows that still exist"
    )
    above = [file for file in rest if file.level > level] if looks_up else []
    names = sorted(file.name for file in task.higher_files)
    _require(names == sorted(file.name for file in above), "the files above differ")
    _require(task.clustering is None, "rows of a table with a primary key cannot be clustered")


def _check_append(schema: TableSchema, task: CompactionTask, live: Sequence[DataFile]) -> None:
    """Check that rows keep their order, and that the columns to sort by exist."""
    settings = PickerSettings.of(Options(schema.options)) if is_incremental(schema) else PickerSettings(level_count=1)
    top = max(settings.level_count - 1, *(file.level for file in live))
    _require(0 <= task.output_level <= top, f"files cannot move to level {task.output_level}")
    _require(list(task.files) == sorted(task.files, key=age), "the files are not in the order of their rows")
    wanted = set(task.clustering.columns) if task.clustering is not None else set()
    _require(wanted <= {field.name for field in schema.fields}, "it sorts by columns that do not exist")
    _require(not task.higher_files, "it has files of higher levels")


def _check_ranges(_: TableSchema, task: CompactionTask, live: Sequence[DataFile]) -> None:
    """Check that all files of the same rows are joined, except newer ones, and only with those of consecutive rows."""
    taken, newest = {file.name for file in task.files}, max(file.max_sequence for file in task.files)
    joined = {(file.first_row_id, file.row_count) for file in task.files}
    others = [file for file in live if file.name not in taken and not file.is_apart]
    left = [
        file.name for file in others
        if (file.first_row_id, file.row_count) in joined and file.max_sequence <= newest
    ]  # fmt: skip
    _require(not left, f"file {min(left, default='')} is missing, although it contains columns of the same rows")
    _require(sum(task.joins) == len(task.files) and 0 not in task.joins, "it joins files that it does not list")
    _require(all(file.first_row_id is not None for file in task.files), "a file has no first row id")
    rest = list(task.files)
    for count in task.joins:
        ranges, rest = ranges_of(rest[:count]), rest[count:]
        ends = [first_of(files[0]) + files[0].row_count for files in ranges]
        firsts = [first_of(files[0]) for files in ranges]
        _require(firsts[1:] == ends[:-1], "it joins rows that are not consecutive")
    _require(task.output_level == 0 and task.clustering is None and not task.higher_files, "it sorts, or has levels")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise CorruptionError(
            f"the compaction task does not match the table: {otherwise}. It is damaged, belongs to another table, or "
            "others changed the bucket; call compaction_tasks() again"
        )
