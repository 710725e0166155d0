"""The newest tag that the oldest snapshot of a table is known to descend from.

Expiry records it while the snapshots in between still exist, since it cannot be determined afterwards. Without the
record, a tag may belong to any history.

Source: docs/format.md §4.3; docs/reliability.md §3 (o).
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from paimon_py.spec.layout import tag_ancestor_path
from paimon_py.storage.store import FileMissingError, Get, Put


class TagAncestorStore(Get, Put, Protocol):
    """The store operations that this module uses."""


class TagAncestor(msgspec.Struct, frozen=True):
    """The marks of a snapshot, and of the newest tag that it is known to descend from."""

    snapshot: str
    tag: str


def read_tag_ancestor(store: TagAncestorStore, table: str) -> TagAncestor | None:
    """The record of the last expiry; None if there is none, or if the file is damaged.

    `table`: the directory of a table or branch. Cost: a get.
    """
    try:
        marks = store.get(tag_ancestor_path(table)).decode(errors="replace").split()
    except FileMissingError:
        return None
    return TagAncestor(*marks) if len(marks) == 2 else None


def write_tag_ancestor(store: TagAncestorStore, table: str, value: TagAncestor) -> None:
    """Write the record. Cost: a put."""
    store.put(tag_ancestor_path(table), f"{value.snapshot} {value.tag}".encode(), within=table)
