"""Tells those who follow a table what became of it, once it has: commits, changes of tags, moves of the history.

What was done to the table stands by then. An observer that fails changes nothing about that: its failure is a warning,
and a text for the result of the verb.
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
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.iceberg import writes_iceberg
from paimon_py.spec.layout import MAIN_BRANCH
from paimon_py.spec.schema import TableSchema

if TYPE_CHECKING:
    from paimon_py.iceberg.observer import IcebergObserver

Result = TypeVar("Result", bound=CommittedSnapshots)
_FAILURES = (PaimonError, OSError, struct.error, pa.ArrowException, *UNFORESEEN)


def notify(root: TableRoot, schema: TableSchema, result: Result) -> Result:
    """The result of a commit, after those who follow the table were told; it says what they could not do.

    Args:
        schema: the latest one.

    Cost: none where nobody follows the table.
    Raises: PaimonWarning where warnings are errors, if an observer fails; the commit is published nevertheless.
    """
    said = tell_commits(root, schema, result.snapshot_ids)
    return msgspec.structs.replace(result, warnings=result.warnings + said) if said else result


def observed_again(root: TableRoot, schema: TableSchema, result: Result) -> Result:
    """The result of a commit that had happened before; those who follow the table are told again.

    Args:
        schema: the one that the table object was opened with.

    Cost, Raises: as `notify`
    """
    return notify(root, root.newest(schema), result) if writes_iceberg(schema) else result


def tell_commits(root: TableRoot, schema: TableSchema, snapshot_ids: Sequence[int]) -> tuple[str, ...]:
    """Tell of snapshots that were committed, in their order; what could not be done. Cost, Raises: as `notify`"""
    if not snapshot_ids or not _is_followed(root, schema):
        return ()
    what = f"snapshot {snapshot_ids[-1]} was committed"
    return _notify_one(root, what, lambda: _observer(root, schema).on_commit(snapshot_ids))


def tell_tags(root: TableRoot, schema: TableSchema) -> tuple[str, ...]:
    """Tell of tags that came, went or name another snapshot. Cost, Raises: as `notify`"""
    if not _is_followed(root, schema):
        return ()
    return _notify_one(root, "tags changed", lambda: _observer(root, schema).tags_changed())


def tell_moved(root: TableRoot, schema: TableSchema) -> tuple[str, ...]:
    """Tell that the table went back, or on to a branch. Cost, Raises: as `notify`"""
    if not _is_followed(root, schema):
        return ()
    return _notify_one(root, "the table went to another snapshot", lambda: _observer(root, schema).on_move())


def _is_followed(root: TableRoot, schema: TableSchema) -> bool:
    return root.branch == MAIN_BRANCH and writes_iceberg(schema)


def _observer(root: TableRoot, schema: TableSchema) -> IcebergObserver:
    from paimon_py.iceberg.observer import IcebergObserver

    return IcebergObserver(root, schema)


def _notify_one(root: TableRoot, what: str, tell: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
    try:
        said = tell()
    except _FAILURES as error:
        shown = str(error) if isinstance(error, PaimonError) else f"{type(error).__name__}: {error}"
        said = (
            f"{what}, but the Iceberg metadata were not published: {shown}; the next commit or"
            " table.publish_iceberg() makes good for it",
        )
    for text in said:
        warn(f"{root.path}: {text}")
    return said
