"""The merge engines, one module each: how rows with equal keys become one. They do not know each other."""

from __future__ import annotations

from paimon_py.errors import UnsupportedError
from paimon_py.lsm.engines.deduplicate import Deduplicate
from paimon_py.lsm.groups import Engine
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema


def engine_of(schema: TableSchema) -> Engine:
    """The merge engine of a table with a primary key.

    Raises: UnsupportedError for an engine that is not built.
    """
    options = Options(schema.options)
    name = options.get_enum("merge-engine")
    if name != "deduplicate":
        raise UnsupportedError(f"merge engine {name!r} is not supported", feature=f"merge-engine={name}")
    return Deduplicate(ignore_delete=options.get_bool("ignore-delete"))
