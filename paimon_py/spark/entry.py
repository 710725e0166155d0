"""Where work begins on an executor: what travels there needs nothing of paimon_py to say that paimon_py is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, cast

import pyarrow as pa
from pyspark import cloudpickle

import paimon_py

Work = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What `mapInArrow` takes: the batches of one task in, other batches out."""


Given = TypeVar("Given", bound=Callable[..., Any])


def travelling(work: Given, job: str | None = None) -> Given:
    """`work` in a form that an executor without paimon_py, or with another version, refuses with the way out.

    The one place that unpickles: what Spark carries as a function, from this process to its executors, is one. Values
    and errors travel as data.

    An inner function travels by its code, so that the executor imports nothing before the function runs.

    Before each task the worker looks anew what lies in the archives of Spark on its path, which costs Python before
    3.12 a tenth of a second: the function makes the worker forget that it imports from them, until it does again.

    Args:
        job: the job whose errors are looked for; see `jobs.new_job`.
    """
    payload, version = cloudpickle.dumps(work), paimon_py.__version__
    named = f"(paimon-job {job}) " if job else ""

    def enter(*given: Any) -> Any:
        import pickle
        import sys

        for path, finder in list(sys.path_importer_cache.items()):
            if getattr(finder, "archive", "").endswith(("pyspark.zip", "-src.zip", ".jar")):
                del sys.path_importer_cache[path]
        way_out = "install paimon_py there as it is here, or call paimon_py.ship(spark) before"

        def lacking(error: ModuleNotFoundError) -> RuntimeError:
            name = str(error.name)
            own = name.partition(".")[0] == "paimon_py"
            advice = way_out if own else "install there what paimon_py needs; paimon_py.ship(spark) does not bring that"
            return RuntimeError(f"{named}the Python of the executors lacks the module {name!r}; {advice}")

        def guard(found: Iterator[Any]) -> Iterator[Any]:
            try:
                yield from found
            except ModuleNotFoundError as error:
                raise lacking(error) from error

        try:
            import paimon_py as there

            if there.__version__ != version:
                raise RuntimeError(
                    f"{named}the executors have paimon_py {there.__version__}, the driver has {version}; {way_out}"
                )
            found = pickle.loads(payload)(*given)
        except ModuleNotFoundError as error:
            raise lacking(error) from error
        return guard(found) if hasattr(found, "__next__") else found

    return cast(Given, enter)
