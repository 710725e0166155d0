"""The entry point of work on an executor, which reports a missing paimon_py without needing paimon_py itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, cast

import pyarrow as pa
from pyspark import cloudpickle

import paimon_py

Work = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A function for `mapInArrow`: takes the batches of one task, returns other batches."""


Given = TypeVar("Given", bound=Callable[..., Any])


def wrap_for_executor(work: Given, job: str | None = None) -> Given:
    """Wrap `work` so that an executor without paimon_py, or with another version, fails with advice on what to do.

    The only place that unpickles: Spark sends functions from this process to its executors as pickles. Values and
    errors are sent as data.

    An inner function is pickled by its code, so that the executor imports nothing before the function runs.

    Before each task the worker reads the directory of each Spark archive on its path again, which takes Python before
    3.12 a tenth of a second: the function removes the importers of these archives from the cache, until they are used
    again.

    Args:
        job: the job whose errors are recognised; see `jobs.new_job`.
    """
    payload, version = cloudpickle.dumps(work), paimon_py.__version__
    named = f"(paimon-job {job}) " if job else ""

    def enter(*given: Any) -> Any:
        import pickle
        import sys

        for path, finder in list(sys.path_importer_cache.items()):
            if getattr(finder, "archive", "").endswith(("pyspark.zip", "-src.zip", ".jar")):
                del sys.path_importer_cache[path]
        install_own = "install paimon_py there as it is here, or call paimon_py.ship(spark) before"

        def missing_module(error: ModuleNotFoundError) -> RuntimeError:
            name = str(error.name)
            own = name.partition(".")[0] == "paimon_py"
            others = "install there what paimon_py needs; paimon_py.ship(spark) does not bring that"
            advice = install_own if own else others
            return RuntimeError(f"{named}the Python of the executors lacks the module {name!r}; {advice}")

        def guard(found: Iterator[Any]) -> Iterator[Any]:
            try:
                yield from found
            except ModuleNotFoundError as error:
                raise missing_module(error) from error

        try:
            import paimon_py as there

            if there.__version__ != version:
                raise RuntimeError(
                    f"{named}the executors have paimon_py {there.__version__}, the driver has {version}; {install_own}"
                )
            found = pickle.loads(payload)(*given)
        except ModuleNotFoundError as error:
            raise missing_module(error) from error
        return guard(found) if hasattr(found, "__next__") else found

    return cast(Given, enter)
