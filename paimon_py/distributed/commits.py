"""One commit of what other processes wrote, as bytes that came back from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from paimon_py.commit.changes import Changes
from paimon_py.commit.commit import committed_before
from paimon_py.commit.result import CommitResult
from paimon_py.maintain.auto_maintenance import run_auto_maintenance
from paimon_py.maintain.observers import observed_again
from paimon_py.rows import verbs
from paimon_py.rows.result import RowsResult
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.table.table import Table
from paimon_py.table.writing import discard


def commit_of(table: Table, label: CommitLabel) -> CommitResult | None:
    """The commit that a user made under a number before; None if there is none. Raises: as `committed_before`"""
    return committed_before(table._open_table, label)


def discard_changes(table: Table, written: Iterable[Changes | bytes]) -> None:
    """Delete the files of changes that nobody will commit, whose writers are gone."""
    for one in written:
        discard(table._open_table, Changes.from_bytes(one) if isinstance(one, bytes) else one)


def run_once(table: Table, label: CommitLabel, verb: Callable[[], RowsResult]) -> RowsResult:
    """Carry a verb out, unless its number was committed before; and then the care that the table asks for."""
    done = verbs.once(table._open_table, label, verb)
    if done.already_committed:
        return observed_again(table._open_table, done)
    return run_auto_maintenance(table._open_table, done, of_batch=True)
