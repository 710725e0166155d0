"""The newest tag that the oldest snapshot of a table is known to descend from.

Expiry records it while the snapshots in between still exist: afterwards nothing else could tell. Without the record, a
tag may belong to any history.

Source: docs/format.md §4.3; docs/reliability.md §3 (o).
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from paimon_py.spec.layout import tag_ancestor_path
from paimon_py.storage.store import FileMissingError, Get, Put


class TagAncestorStore(Get, Put, Protocol):
    """What this module asks of a store."""


class TagAncestor(msgspec.Struct, frozen=True):
    """The marks of a snapshot, and of the newest tag that it is known to descend from."""

    snapshot: str
    tag: str


def read_tag_ancestor(store: TagAncestorStore, table: str) -> TagAncestor | None:
    """The record of the last expiry; None if there is none, or the file is damaged: nothing is known then.

    `table`: the directory of a table or branch. Cost: a get.
    """
    try:
        marks = store.get(tag_ancestor_path(table)).decode(errors="replace").split()
    except FileMissingError:
        return None
    return TagAncestor(*marks) if len(marks) == 2 else None


def write_tag_ancestor(store: TagAncestorStore, table: str, value: TagAncestor) -> None:
    """Record it. Cost: a put."""
    store.put(tag_ancestor_path(table), f"{value.snapshot} {value.tag}".encode(), within=table)
