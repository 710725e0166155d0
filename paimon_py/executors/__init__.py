"""Executors: run the tasks of long verbs in threads of this process, other processes, Spark, or your own engine.

A long verb divides its work into tasks: values that can be sent as bytes. An executor runs the tasks and returns their
results; the verb plans the tasks, commits the results, and treats all executors alike. Out of scope: what a task does,
which is defined next to its verb.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from paimon_py.executors.error_data import error_bytes, error_from
from paimon_py.executors.executor import Executor
from paimon_py.executors.job import Job, NumberedTask, TaskResult
from paimon_py.executors.local import LocalExecutor, TaskFailed
from paimon_py.executors.processes import ProcessExecutor

if TYPE_CHECKING:
    from paimon_py.spark.executor import SparkExecutor

__all__ = [
    "Executor", "Job", "LocalExecutor", "NumberedTask", "ProcessExecutor", "SparkExecutor", "TaskFailed", "TaskResult",
    "error_bytes", "error_from",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "SparkExecutor":
        return importlib.import_module("paimon_py.spark").executor_class()
    raise AttributeError(f"module 'paimon_py.executors' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
