"""The lines of the comparison, and what runs the programs of a peer: `python ours.py` prints what was seen, as JSON."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Mapping
from typing import Any

FEATURES = {
    "append": "append, read columns and rows back by a condition",
    "batches": "read batch by batch, never all rows at once",
    "upsert": "upsert by key without reading old rows",
    "writers": "two writers upsert the same key at the same time",
    "upsert_keeps": "upsert some columns, the others keep their values",
    "merge": "merge: update, delete and insert by conditions",
    "delete": "delete rows by a condition",
    "update": "update rows by a condition",
    "delete_in_place": "delete without writing other rows again",
    "partial_update": "several sources fill columns of one row, by merge engine",
    "aggregation": "sums kept by the table, by merge engine",
    "changes": "row by row, what an update changed, old and new values",
    "stream": "follow commits from a position that the table keeps",
    "exactly_once": "a commit that is repeated does nothing",
    "lookup": "look rows up by key, with a cache",
    "time_travel": "read an earlier state, by number and by time",
    "tags": "name a state",
    "branches": "branches",
    "rollback": "go back to an earlier state",
    "compact": "merge small files",
    "zorder": "sort along a z-order",
    "index": "indexes in files (Bloom, bitmap) that skip files and rows",
    "expire": "let old states expire and delete their files",
    "orphans": "find and delete files that nothing names",
    "schema": "rename, drop and widen columns without writing files again",
    "nested": "add a field inside a struct column",
    "overwrite": "replace the partitions that new rows are in",
    "transforms": "partition by the day of a time column",
    "constraints": "CHECK constraints",
    "metadata": "files and states as tables",
    "two_tables": "one commit for two tables",
    "history": "what each commit did, and by which user",
    "observers": "call a function after each commit",
    "metrics": "metrics of commits as text for Prometheus",
    "doctor": "find what is wrong with a table, and the call that mends it",
    "dry_run": "say what a cleaning would delete before it deletes",
    "care": "keep all tables of a warehouse compacted and expired, in one process",
    "command_line": "do these things on the command line",
}
"""What is compared, in the order of the page."""


def absent(thing: Any, *names: str) -> str:
    """The answer where calls of these names, or with a part of them, are not there.

    Raises: AssertionError if one is.
    """
    found = [name for name in dir(thing) if not name.startswith("_") and any(part in name for part in names)]
    assert found == [], found
    return "no"


def seen(programs: Mapping[str, Any]) -> dict[str, str]:
    """Run each program in a directory of its own: what it says, "yes" if it says nothing, else the error."""
    answers = {}
    for name in FEATURES:
        directory, before = tempfile.mkdtemp(), os.getcwd()
        os.chdir(directory)
        try:
            answers[name] = programs[name]() or "yes"
        except Exception as error:
            traceback.print_exc()
            answers[name] = f"failed: {type(error).__name__}: {error}"
        finally:
            os.chdir(before)
            shutil.rmtree(directory)
    return answers


def main(programs: Mapping[str, Any]) -> None:
    """Print the answers of a peer's programs."""
    warnings.simplefilter("ignore")
    sys.stdout.write(json.dumps(seen(programs)))
