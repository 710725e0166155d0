"""Commits, in one process, the changes that other processes wrote and sent back as bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from paimon_py.commit.changes import Changes
from paimon_py.commit.commit import committed_before
from paimon_py.commit.overwrite import overwrite_of
from paimon_py.commit.result import CommitResult
from paimon_py.maintain.auto_maintenance import run_auto_maintenance
from paimon_py.maintain.observers import notify_again
from paimon_py.rows import verbs
from paimon_py.rows.result import RowsResult
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.table.table import Table
from paimon_py.table.writing import discard


def commit_of(
    table: Table, label: CommitLabel, overwrite: Mapping[str, object] | str | None = None
) -> CommitResult | None:
    """The earlier commit with the user and identifier of a label, or None.

    `overwrite`: what the commit is going to replace, as for `Table.commit`.
    Raises: as `committed_before`
    """
    return committed_before(table._open_table, label, overwrite_of(table.schema, overwrite))


def discard_changes(table: Table, written: Iterable[Changes | bytes]) -> None:
    """Delete the files of changes that will not be committed, and whose writers no longer exist."""
    for one in written:
        discard(table._open_table, Changes.from_bytes(one) if isinstance(one, bytes) else one)


def run_once(table: Table, label: CommitLabel, verb: Callable[[], RowsResult]) -> RowsResult:
    """Run a verb unless its identifier was committed before, and then the automatic maintenance of the table."""
    done = verbs.once(table._open_table, label, verb)
    if done.already_committed:
        return notify_again(table._open_table, done)
    return run_auto_maintenance(table._open_table, done, of_batch=True)
