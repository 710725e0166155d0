"""The guarantees of every executor, as tests to inherit.

A test module derives a class from `ExecutorSuite` and provides two pytest fixtures: `executor`, which is tested, and
`warehouse`, the path of an empty directory that all processes that run tasks can access.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Union

import msgspec
import pyarrow as pa

from paimon_py import Catalog, Schema, Table
from paimon_py.cdc import Event, Sink
from paimon_py.errors import CorruptionError, PaimonError, StorageError, UsageError
from paimon_py.executors import Executor, Job, NumberedTask, TaskResult
from paimon_py.executors.job import HOMES

_COLUMNS = Schema([("p", "INT NOT NULL"), ("k", "BIGINT NOT NULL"), ("v", "STRING")])
_PARTS, _ROWS = 3, 40
_MONTH = timedelta(days=30)
_PLANNED = {"scan.plan.executor-manifests": "0"}


class ExecutorSuite:
    """The guarantees of `paimon_py.executors.Executor`."""

    def test_buckets_are_compacted_as_one_process_does(self, executor: Executor, warehouse: str) -> None:
        table, other = _keyed_table(warehouse, "here"), _keyed_table(warehouse, "there")
        reports: list[tuple[int, int, str]] = []
        done = other.compact(full=True, executor=executor, progress=lambda *far: reports.append(far))
        assert len(done.snapshot_ids) == len(table.compact(full=True).snapshot_ids) == 1
        assert _rows(other) == _rows(table)
        assert _levels(other) == _levels(table) == {5}
        assert reports[-1] == (2 * _PARTS * _ROWS, 2 * _PARTS * _ROWS, "rows")
        assert other.compact(full=True, executor=executor).snapshot_id is None

    def test_append_tables_are_sorted(self, executor: Executor, warehouse: str) -> None:
        table = _append(warehouse, "t")
        before = sorted(_rows(table))
        table.compact(order_by=["v"], executor=executor)
        assert sorted(_rows(table)) == before
        for part in range(_PARTS):
            texts = table.scan(columns=["v"], where=f"p = {part}").to_arrow()["v"].to_pylist()
            assert texts == sorted(texts)

    def test_buckets_are_rescaled(self, executor: Executor, warehouse: str) -> None:
        table = _keyed_table(warehouse, "t", bucket="2")
        before = _rows(table)
        table.rescale(4, executor=executor)
        assert _rows(table) == before
        buckets = table.system("buckets").scan(columns=["bucket"]).to_arrow()["bucket"].to_pylist()
        assert set(buckets) <= set(range(4)) and len(set(buckets)) > 2

    def test_statistics_are_those_of_one_process(self, executor: Executor, warehouse: str) -> None:
        table, other = _keyed_table(warehouse, "here"), _keyed_table(warehouse, "there")
        here, there = table.analyze(all_columns=True), other.analyze(all_columns=True, executor=executor)
        assert here is not None and there is not None
        assert (there.columns, there.merged_record_count) == (here.columns, here.merged_record_count)

    def test_rows_are_deleted_and_updated(self, executor: Executor, warehouse: str) -> None:
        for make in (_keyed_table, _append):
            table, other = make(warehouse, f"here{make.__name__}"), make(warehouse, f"there{make.__name__}")
            here, there = table.delete("k < 10"), other.delete("k < 10", executor=executor)
            assert (there.deleted, there.updated) == (here.deleted, 0) != (0, 0)
            here = table.update("k >= 30", {"v": "new"})
            there = other.update("k >= 30", {"v": "new"}, executor=executor)
            assert there.updated == here.updated > 0
            assert sorted(_rows(other)) == sorted(_rows(table))
            assert other.delete("k < 10", executor=executor).snapshot_id is None

    def test_a_number_counts_once(self, executor: Executor, warehouse: str) -> None:
        table = _keyed_table(warehouse, "t")
        done = [table.delete("k = 1", user="u", identifier=7, executor=executor) for _ in range(2)]
        assert [one.already_committed for one in done] == [False, True]

    def test_change_events_are_written_as_one_process_does(self, executor: Executor, warehouse: str) -> None:
        table, other = _keyed_table(warehouse, "here", bucket="2"), _keyed_table(warehouse, "there", bucket="2")
        assert _write_events(other, executor) == _write_events(table, None) == ([6], 1)
        assert _rows(other) == _rows(table)
        assert _write_events(other, executor) == ([0], 1)
        assert len(other.snapshots()) == len(table.snapshots())

    def test_snapshots_expire_and_orphans_go(self, executor: Executor, warehouse: str) -> None:
        table, other = _keyed_table(warehouse, "here"), _keyed_table(warehouse, "there")
        for one, runner in ((table, None), (other, executor)):
            one.compact(full=True)
            one.expire_snapshots(retain_max=1, retain_min=1, older_than=0, executor=runner)
            _leave_orphans(one)
            dry = one.remove_orphans(older_than=_MONTH, executor=runner)
            found = one.remove_orphans(older_than=_MONTH, dry_run=False, executor=runner)
            assert (dry.files, found.files, found.left_files) == (2, 2, 0)
        assert len(_files(other)) == len(_files(table))
        assert _rows(other) == _rows(table)

    def test_plans_are_those_of_one_process(self, executor: Executor, warehouse: str) -> None:
        for make in (_keyed_table, _append):
            table = make(warehouse, f"plan{make.__name__}")
            table.delete("k < 10")
            for where in (None, "p = 1", "k > 20 AND v = 'a3'"):
                splits = table.scan(where=where, options=_PLANNED).iter_splits(executor=executor)
                assert sorted(map(bytes, splits)) == sorted(map(bytes, table.scan(where=where).splits()))

    def test_rows_are_those_of_one_process(self, executor: Executor, warehouse: str) -> None:
        for make in (_keyed_table, _append):
            table = make(warehouse, f"read{make.__name__}")
            table.delete("k < 10")
            for where in (None, "p = 1", "k > 20 AND v = 'a3'"):
                scan = table.scan(where=where)
                assert scan.to_arrow(executor=executor).equals(scan.to_arrow())
                assert scan.to_reader(executor=executor).read_all().equals(scan.to_arrow())

    # -- failures ---------------------------------------------------------------------------------------------------

    def test_a_task_that_fails_leaves_nothing(self, executor: Executor, warehouse: str) -> None:
        table = _keyed_table(warehouse, "t")
        _damage_one(table)
        before = _files(table)
        verbs: list[Callable[[], object]] = [
            lambda: table.compact(full=True, executor=executor),
            lambda: table.update("k >= 0", {"v": "x"}, executor=executor),
            lambda: table.analyze(["v"], executor=executor),
            lambda: table.rescale(3, executor=executor),
        ]
        for verb in verbs:
            try:
                verb()
            except CorruptionError as error:
                assert error.path is not None
            else:
                raise AssertionError("a damaged file was read")
            assert _files(table) == before

    def test_a_task_of_any_kind_that_fails_ends_the_call_and_the_next_call_does_it_all(
        self, executor: Executor, warehouse: str
    ) -> None:
        table, other = _keyed_table(warehouse, "here", bucket="2"), _keyed_table(warehouse, "there", bucket="2")
        _leave_orphans(table)
        _leave_orphans(other)
        for verb in _VERBS.values():
            expected, before, rows = verb(table, None), _data_files(other), _rows(other)
            try:
                verb(other, _Failing(executor))
            except StorageError as error:
                assert str(error) == "the first task failed"
            else:
                raise AssertionError("a task failed")
            assert (_data_files(other), _rows(other)) == (before, rows)
            assert verb(other, executor) == expected
        assert _rows(other) == _rows(table)

    def test_a_task_of_any_kind_that_runs_twice_counts_once(self, executor: Executor, warehouse: str) -> None:
        table, other = _keyed_table(warehouse, "here", bucket="2"), _keyed_table(warehouse, "there", bucket="2")
        twice = _Twice(executor)
        _leave_orphans(table)
        _leave_orphans(other)
        for verb in _VERBS.values():
            assert verb(other, twice) == verb(table, None)
        assert twice.tags == set(HOMES)
        assert _rows(other) == _rows(table)
        assert len(_files(other)) == len(_files(table))

    def test_a_call_that_is_cancelled_leaves_nothing(self, executor: Executor, warehouse: str) -> None:
        table = _keyed_table(warehouse, "t")
        before, rows = _files(table), _rows(table)

        def cancel(*_: object) -> None:
            raise KeyboardInterrupt

        verbs: list[Callable[[], object]] = [
            lambda: table.compact(full=True, progress=cancel, executor=executor),
            lambda: table.update("k >= 0", {"v": "x"}, progress=cancel, executor=executor),
            lambda: table.analyze(["v"], progress=cancel, executor=executor),
            lambda: table.remove_orphans(progress=cancel, executor=executor),
            lambda: table.rescale(3, progress=cancel, executor=executor),
        ]
        for verb in verbs:
            try:
                verb()
            except KeyboardInterrupt:
                pass
            else:
                raise AssertionError("the call was not cancelled")
            assert _files(table) == before
        assert _rows(table) == rows
        assert table.compact(full=True, executor=executor).snapshot_id is not None

    def test_results_that_are_lost_are_noticed(self, executor: Executor, warehouse: str) -> None:
        table = _keyed_table(warehouse, "t")
        before = _files(table)
        try:
            table.compact(full=True, executor=_Losing(executor))
        except PaimonError as error:
            assert "neither a result nor an error for 1 of 3 tasks" in str(error)
        else:
            raise AssertionError("a result was lost")
        lost = _files(table) - before
        assert len(lost) <= 1  # the file of the lost result

    def test_only_executors_are_taken(self, warehouse: str) -> None:
        table = _keyed_table(warehouse, "t")
        for verb in (table.compact, table.remove_orphans, table.expire_snapshots, table.analyze):
            try:
                verb(executor=4)  # type: ignore[arg-type]
            except UsageError as error:
                assert "paimon_py.executors" in str(error)
            else:
                raise AssertionError(f"{verb} took a number for an executor")


class _Twice:
    """Runs every task twice, and returns both results. `tags`: the kinds of tasks that ran."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.tags: set[str] = set()

    def run(self, job: Job[Any, Any], tasks: Iterable[NumberedTask[Any]]) -> Iterator[TaskResult[Any]]:
        self.tags.add(job.kind.tag)
        return self._executor.run(job, (task for one in tasks for task in (one, one)))


class _Failing:
    """Fails the first task of each job, and runs the others."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def run(self, job: Job[Any, Any], tasks: Iterable[NumberedTask[Any]]) -> Iterator[TaskResult[Any]]:
        first, *others = tasks
        yield from self._executor.run(job, others)
        error = StorageError("the first task failed", operation="get")
        yield TaskResult(job.kind.tag, first.number, None, error)


class _Losing:
    """Drops the last result."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def run(self, job: Job[Any, Any], tasks: Iterable[NumberedTask[Any]]) -> Iterator[TaskResult[Any]]:
        yield from list(self._executor.run(job, tasks))[:-1]


def _update(table: Table, executor: Executor | None) -> object:
    done = table.update("k >= 30", {"v": "new"}, executor=executor)
    return done.updated, done.deleted


def _analyze(table: Table, executor: Executor | None) -> object:
    found = table.analyze(all_columns=True, executor=executor)
    return None if found is None else (found.columns, found.merged_record_count)


def _remove_orphans(table: Table, executor: Executor | None) -> object:
    done = table.remove_orphans(older_than=_MONTH, dry_run=False, executor=executor)
    return done.files, done.left_files


def _write_events(table: Table, executor: Executor | None) -> object:
    source = table.name.rpartition(".")[2]
    sink = Sink(Catalog.open(str(Path(table.location).parents[1])), "db", user=f"events of {source}")
    events = [_event(source, "c", None, {"p": 9, "k": number, "v": "new"}) for number in range(5)]
    events.append(_event(source, "d", {"p": 0, "k": 3, "v": "a3"}, None))
    done = sink.write([*events, b"{"], identifier=1, executor=executor)
    return list(done.rows.values()), done.dead


def _event(source: str, op: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> Event:
    columns = [{"field": name, "type": kind} for name, kind in (("p", "int32"), ("k", "int64"), ("v", "string"))]
    payload = {"op": op, "before": before, "after": after, "source": {"table": source}}
    value = {"schema": {"fields": [{"field": "after", "fields": columns}]}, "payload": payload}
    key = {name: (after or before or {})[name] for name in ("p", "k")}
    encode = msgspec.json.encode
    return Event(encode(value), encode({"schema": {"fields": columns[:2]}, "payload": key}))


def _plan(table: Table, executor: Executor | None) -> object:
    splits = table.scan(options=_PLANNED).iter_splits(executor=executor)
    return sorted((split.partition, split.bucket, len(split.files), split.row_count) for split in splits)


_VERBS: dict[str, Callable[[Table, Union[Executor, None]], object]] = {
    "analyze": _analyze,
    "update": _update,
    "compact": lambda table, executor: table.compact(full=True, executor=executor).row_count,
    "rescale": lambda table, executor: table.rescale(4, executor=executor).row_count,
    "remove_orphans": _remove_orphans,
    "events": _write_events,
    "plan": _plan,
    "read": lambda table, executor: table.scan().to_arrow(executor=executor).num_rows,
}
"""Verbs that together run every kind of task, each returning its result."""


def _keyed_table(warehouse: str, name: str, bucket: str = "1") -> Table:
    return _filled_table(warehouse, name, primary_key=["p", "k"], options={"bucket": bucket})


def _append(warehouse: str, name: str) -> Table:
    return _filled_table(warehouse, name)


def _filled_table(warehouse: str, name: str, **made: Any) -> Table:
    catalog = Catalog.open(warehouse)
    catalog.create_database("db", exist_ok=True)
    table = catalog.create_table(f"db.{name}", _COLUMNS, partition_by=["p"], **made)
    for text in ("a", "b"):
        numbers = [*range(_ROWS)] * _PARTS
        parts = pa.array([part for part in range(_PARTS) for _ in range(_ROWS)], pa.int32())
        table.write_arrow(pa.table({"p": parts, "k": numbers, "v": [f"{text}{k % 7}" for k in numbers]}))
    return table


def _rows(table: Table) -> list[tuple[object, ...]]:
    found = table.scan().to_arrow().sort_by([("p", "ascending"), ("k", "ascending")])
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def _levels(table: Table) -> set[int]:
    return set(table.system("files").scan(columns=["level"]).to_arrow()["level"].to_pylist())


def _files(table: Table) -> set[str]:
    return {path.as_posix() for path in Path(table.location).rglob("bucket-*/*") if path.is_file()}


def _data_files(table: Table) -> list[Path]:
    return sorted(path for path in Path(table.location).rglob("bucket-*/data-*") if path.is_file())


def _damage_one(table: Table) -> None:
    """Overwrite the middle of the last data file."""
    path = _data_files(table)[-1]
    data = path.read_bytes()
    path.write_bytes(data[:8] + b"\xff" * (len(data) - 8))


def _leave_orphans(table: Table) -> None:
    """Create two old orphan files: a data file and a manifest."""
    bucket = _data_files(table)[0].parent
    for path in (bucket / "data-left-0.parquet", Path(table.location) / "manifest" / "manifest-left-0"):
        path.write_bytes(b"left")
        os.utime(path, (0, 0))
