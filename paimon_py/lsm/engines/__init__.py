"""The merge engines, one module each: how rows with equal keys become one. They do not know each other."""

from __future__ import annotations

from collections.abc import Mapping

from paimon_py.errors import UnsupportedError
from paimon_py.lsm.engines.deduplicate import deduplicate, deduplicate_ignoring_deletes
from paimon_py.lsm.groups import Engine


def engine_of(options: Mapping[str, str]) -> Engine:
    """The merge engine a table's options ask for.

    Raises: UnsupportedError for an engine that is not built yet.
    """
    name = options.get("merge-engine", "deduplicate")
    if name != "deduplicate":
        raise UnsupportedError(f"merge engine {name!r} is not supported", feature=f"merge-engine={name}")
    return deduplicate_ignoring_deletes if options.get("ignore-delete", "false").lower() == "true" else deduplicate
