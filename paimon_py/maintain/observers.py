"""Notifies observers of a table after each commit, change of tags, or move of the history.

Observers of the program (`Catalog.register_observer`) are called first, then the Iceberg metadata is written.

Observers run after the change is final. A failing observer does not undo it: its failure is a warning, and a string in
the result of the operation.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec
import pyarrow as pa

from paimon_py.arguments import UNFORESEEN
from paimon_py.commit.result import CommittedSnapshots
from paimon_py.errors import PaimonError
from paimon_py.logs import warn
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import EventPlace, TableRoot
from paimon_py.spec.events import CommitEvent, RollbackEvent, SchemaEvent, TableEvent, TagEvent
from paimon_py.spec.iceberg import writes_iceberg
from paimon_py.spec.layout import MAIN_BRANCH
from paimon_py.spec.redact import HIDDEN, harmless_options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.schema_changes import SchemaChange, SetOption

if TYPE_CHECKING:
    from paimon_py.iceberg.observer import IcebergObserver

Result = TypeVar("Result", bound=CommittedSnapshots)
_FAILURES = (PaimonError, OSError, struct.error, pa.ArrowException, *UNFORESEEN)


def notify(table: OpenTable, result: Result) -> Result:
    """The result of a commit after observers were notified; it contains their failures.

    Args:
        table: opened under the latest schema.

    Cost: none without observers.
    Raises: PaimonWarning where warnings are errors, if an observer fails; the commit is published nevertheless.
    """
    said = notify_commits(table, result.snapshot_ids)
    return msgspec.structs.replace(result, warnings=result.warnings + said) if said else result


def notify_again(table: OpenTable, result: Result) -> Result:
    """The result of a commit that had happened before; observers are notified again.

    Args:
        table: opened under its original schema.

    Cost, Raises: as `notify`
    """
    return notify(table.newest(), result) if writes_iceberg(table.schema) else result


def notify_commits(table: OpenTable, snapshot_ids: Sequence[int]) -> tuple[str, ...]:
    """Report committed snapshots, in order; returns the failures. Cost, Raises: as `notify`"""
    said = _report_commits(table.root)
    if snapshot_ids and _is_followed(table):
        what = f"snapshot {snapshot_ids[-1]} was committed"
        said += _notify_one(table.root, what, lambda: _observer(table).on_commit(snapshot_ids))
    return said


def notify_tags(table: OpenTable, events: Callable[[], Sequence[TagEvent]]) -> tuple[str, ...]:
    """Report tags that were created, deleted or moved to another snapshot. Cost, Raises: as `notify`

    Args:
        events: builds the events; called only if there are observers.
    """
    said = report_all(table.root, events)
    if _is_followed(table):
        said += _notify_one(table.root, "tags changed", lambda: _observer(table).tags_changed())
    return said


def notify_move(table: OpenTable, event: Callable[[], RollbackEvent]) -> tuple[str, ...]:
    """Report a rollback or a fast-forward. Cost, Raises: as `notify`"""
    said = report(table.root, event)
    if _is_followed(table):
        said += _notify_one(table.root, "the table moved to another snapshot", lambda: _observer(table).on_move())
    return said


def schema_event(place: EventPlace, schema: TableSchema, changes: Sequence[SchemaChange]) -> SchemaEvent:
    """The event of a new schema, without values of options that may be secret."""
    return SchemaEvent(**place, schema_id=schema.id, changes=tuple(map(_change_text, changes)))


def _change_text(change: SchemaChange) -> str:
    if not isinstance(change, SetOption) or harmless_options({change.name: change.value}):
        return repr(change)
    return f"SetOption({change.name!r}, {HIDDEN!r})"


def report(root: TableRoot, event: Callable[[], TableEvent]) -> tuple[str, ...]:
    """Report one event to the observers of the program; returns the failures. Cost: none without observers.

    Raises: PaimonWarning where warnings are errors, if an observer fails.
    """
    return report_all(root, lambda: (event(),))


def report_all(root: TableRoot, events: Callable[[], Sequence[TableEvent]]) -> tuple[str, ...]:
    """Report several events to the observers of the program. Cost, Raises: as `report`"""
    if not root.env.observers:
        return ()
    said = tuple(text for event in events() for text in root.env.observers.report(event))
    for text in said:
        warn(f"{root.path}: {text}")
    return said


def _report_commits(root: TableRoot) -> tuple[str, ...]:
    """Report the commits of this table object that were not reported yet: another one may have failed in between."""
    waiting, events = root.maintenance.events, list[CommitEvent]()
    while waiting:
        try:
            events.append(waiting.pop(0))
        except IndexError:  # another thread took the last one
            break
    return report_all(root, lambda: events) if events else ()


def _is_followed(table: OpenTable) -> bool:
    return table.root.branch == MAIN_BRANCH and writes_iceberg(table.schema)


def _observer(table: OpenTable) -> IcebergObserver:
    from paimon_py.iceberg.observer import IcebergObserver

    return IcebergObserver(table)


def _notify_one(root: TableRoot, what: str, tell: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
    try:
        said = tell()
    except _FAILURES as error:
        shown = str(error) if isinstance(error, PaimonError) else f"{type(error).__name__}: {error}"
        said = (
            f"{what}, but the Iceberg metadata was not published: {shown}; the next commit or"
            " table.publish_iceberg() writes it",
        )
    for text in said:
        warn(f"{root.path}: {text}")
    return said
