"""Executors of one machine: threads and processes do what one thread does, and undo what failed."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import paimon_py
from paimon_py import Catalog, Schema
from paimon_py.compaction.compact import COMPACT
from paimon_py.errors import CorruptionError, ResourceError, SchemaError, StorageError, UnsupportedError, UsageError
from paimon_py.executors import Job, LocalExecutor, NumberedTask, ProcessExecutor, TaskFailed, TaskResult
from paimon_py.executors.job import HOMES, TaskKind, kind_of
from paimon_py.maintain.analyze import ANALYZE, AnalyzeTask
from paimon_py.maintain.file_tasks import DELETE, DeleteTask, Deletion
from paimon_py.metadata.open_table import OpenTable
from paimon_py.testing.executor_suite import ExecutorSuite

PACKAGE = Path(paimon_py.__file__).parent


@pytest.fixture
def warehouse(tmp_path):
    return str(tmp_path)


class TestLocalExecutor(ExecutorSuite):
    @pytest.fixture(params=[None, 1, 3])
    def executor(self, request):
        return LocalExecutor(request.param)


@pytest.fixture(scope="module")
def processes():
    with ProcessExecutor(2) as executor:
        yield executor


class TestProcessExecutor(ExecutorSuite):
    @pytest.fixture
    def executor(self, processes):
        return processes


@pytest.fixture
def table(warehouse):
    catalog = Catalog.open(warehouse)
    catalog.create_database("db")
    made = catalog.create_table("db.t", Schema([("k", "BIGINT"), ("v", "STRING")]))
    made.write_arrow(pa.table({"k": [1, 2], "v": ["a", "b"]}))
    return made


def shouted(rows):
    return pc.utf8_upper(rows["v"])


def dies(rows):
    os._exit(3)


def raises(rows):
    raise ZeroDivisionError("a function of the user")


def test_functions_of_a_module_can_be_sent_and_others_are_refused(processes, table):
    with pytest.raises(UsageError, match="instead of lambdas and nested functions, or LocalExecutor"):
        table.update("true", {"v": lambda rows: rows["v"]}, executor=processes)
    assert table.update("k = 1", {"v": shouted}, executor=processes).updated == 1
    assert table.scan().to_arrow().sort_by("k")["v"].to_pylist() == ["A", "b"]


def test_an_error_of_a_users_function_is_raised_as_it_is(processes, table):
    for executor in (processes, LocalExecutor()):
        with pytest.raises(ZeroDivisionError, match="a function of the user"):
            table.update("true", {"v": raises}, executor=executor)
        assert table.snapshot().id == 1


def test_a_process_that_dies_is_an_error_and_new_ones_are_started(processes, table):
    with pytest.raises(ResourceError, match="a process died while it ran a task"):
        table.update("true", {"v": dies}, executor=processes)
    assert table.delete("k = 1", executor=processes).deleted == 1


def test_rows_that_must_be_written_together_are_refused_by_name(warehouse):
    catalog = Catalog.open(warehouse)
    catalog.create_database("db")
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    table = catalog.create_table("db.e", Schema([("k", "BIGINT")]), options=options)
    with pytest.raises(UnsupportedError, match="update with an executor"):
        table.update("k = 1", {"k": 2}, executor=LocalExecutor())


@pytest.mark.parametrize("number", [0, -1, 1.5, True, "2"])
def test_numbers_of_processes_and_threads_begin_at_one(number):
    with pytest.raises(UsageError, match="whole number from 1"):
        ProcessExecutor(number)
    with pytest.raises(UsageError, match="whole number from 1"):
        LocalExecutor(number)


def test_a_job_is_small_and_finds_its_function_by_its_tag(table):
    job = Job(COMPACT, OpenTable(table._root, table.schema))
    data = pickle.dumps(job)
    assert len(data) < 4000
    there = pickle.loads(data)
    assert (there.kind, there.table.root.path, there.is_remote) == (COMPACT, table.location, True)


def test_every_task_kind_is_found_by_its_tag():
    assert {tag: kind_of(tag).tag for tag in HOMES} == {tag: tag for tag in HOMES}
    made = [path for path in PACKAGE.rglob("*.py") for _ in range(path.read_text().count(" = TaskKind("))]
    assert len(made) == len(HOMES) and isinstance(kind_of("rows"), TaskKind)
    with pytest.raises(CorruptionError, match="unknown kind of tasks 'nonsense'"):
        kind_of("nonsense")


def test_values_of_options_that_pickles_leave_out_come_from_the_table(warehouse):
    catalog = Catalog.open(warehouse)
    catalog.create_database("db")
    table = catalog.create_table("db.t", Schema([("k", "BIGINT")]), options={"my.secret": "hidden"})
    data = pickle.dumps(Job(COMPACT, OpenTable(table._root, table.schema)))
    assert b"hidden" not in data
    assert pickle.loads(data).table.schema.options["my.secret"] == "hidden"


def test_tasks_and_results_are_checked_when_they_come_as_bytes(table):
    job = Job(DELETE, OpenTable(table._root, table.schema))
    data = bytes(NumberedTask(3, DeleteTask(paths=("gone",))))
    done = TaskResult.from_bytes(job.run_bytes(data))
    assert (done.number, done.value, done.error) == (3, Deletion(left=0), None)
    for wrong in (data[:4], data[:-1], data[:8] + b"paimon-listing-1:"):
        with pytest.raises((CorruptionError, UsageError)):
            job.run_bytes(wrong)
    with pytest.raises(CorruptionError, match="not the bytes of a task result"):
        TaskResult.from_bytes(b"\xc1")


def test_a_result_keeps_its_error(table):
    job = Job(ANALYZE, OpenTable(table._root, table.schema))
    failed = job(NumberedTask(0, AnalyzeTask(splits=(), columns=("nowhere",))))
    back = pickle.loads(pickle.dumps(failed))
    assert isinstance(back.error, SchemaError) and back.error.fields == ("nowhere",)
    assert not back.is_retryable


class Broken:
    """Gives one result, hands another one over, and fails."""

    def __init__(self, error):
        self.error = error

    def run(self, job, tasks):
        first, second, *_ = map(job, tasks)
        yield first
        raise TaskFailed(self.error, [second])


@pytest.mark.parametrize("error", [StorageError("down", operation="put"), KeyboardInterrupt()])
def test_what_an_executor_hands_over_with_its_failure_is_deleted(warehouse, error):
    catalog = Catalog.open(warehouse)
    catalog.create_database("db")
    table = catalog.create_table(
        "db.t", Schema([("k", "BIGINT NOT NULL")]), primary_key=["k"], options={"bucket": "2"}
    )
    for start in (0, 50):
        table.write_arrow(pa.table({"k": range(start, start + 100)}))
    before = sorted(Path(table.location).rglob("*.parquet"))
    with pytest.raises(type(error)):
        table.compact(full=True, executor=Broken(error))
    assert sorted(Path(table.location).rglob("*.parquet")) == before
