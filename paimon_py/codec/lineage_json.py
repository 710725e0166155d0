"""Properties that paimon_py adds to a snapshot: its parent, the creation time of its schema, the users that have
committed with their identifiers, the order of files in postponed buckets, and whether the commit changed no row.

Java and other readers ignore unknown properties. Some of Java's commits copy the properties of an earlier snapshot, so
each value records the snapshot that it describes.

Source: docs/format.md §4.3; docs/decisions/0030-lineage.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

import msgspec

from paimon_py.errors import CorruptionError
from paimon_py.spec.postponed import WaitingOrder
from paimon_py.spec.snapshot import RESERVED_PROPERTIES, Base, Snapshot
from paimon_py.spec.users import Users

T = TypeVar("T")

_PARENT = RESERVED_PROPERTIES + "parent"
_SCHEMA = RESERVED_PROPERTIES + "schema"
_USERS = RESERVED_PROPERTIES + "users"
_WAITING = RESERVED_PROPERTIES + "waiting"
_ROWS = RESERVED_PROPERTIES + "rows"
_SAME = "same"


class Lineage(NamedTuple):
    """The decoded properties of a snapshot: the caller's (None if there are none), the parent, the creation time of the
    schema, the users, and the order of postponed files, each None if not recorded; and whether the writer recorded that
    no row changed.
    """

    properties: dict[str, str] | None
    built_on: Base | None = None
    known_schema_millis: int | None = None
    known_users: Users | None = None
    known_waiting: WaitingOrder | None = None
    known_same_rows: bool = False


def lineage_of(properties: Mapping[str, str], snapshot_id: int, path: str) -> Lineage:
    """Split the properties of a snapshot file.

    If the parent is recorded but the users are not, there are no users.

    Raises: CorruptionError if one cannot be decoded.
    """
    if not any(name.startswith(RESERVED_PROPERTIES) for name in properties):
        return Lineage(dict(properties))
    own = {name: text for name, text in properties.items() if not name.startswith(RESERVED_PROPERTIES)} or None
    number, colon, mark = properties.get(_PARENT, "").partition(":")
    if not colon or number != str(snapshot_id):
        return Lineage(own)
    parent = Base(snapshot_id - 1, mark or None)
    return Lineage(
        own, parent, _decode(properties, _SCHEMA, int, path), _decode(properties, _USERS, Users, path) or Users(),
        _decode(properties, _WAITING, WaitingOrder, path), properties.get(_ROWS) == _SAME,
    )  # fmt: skip


def _decode(properties: Mapping[str, str], name: str, kind: type[T], path: str) -> T | None:
    try:
        return msgspec.json.decode(properties[name], type=kind) if name in properties else None
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise CorruptionError(f"{path}: property {name!r} is damaged: {error}", path=path) from error


def together(snapshot: Snapshot) -> dict[str, str]:
    """All properties of a snapshot, as stored in its file."""
    found = dict(snapshot.properties or {})
    parent = snapshot.parent
    if parent is not None:
        found[_PARENT] = f"{snapshot.id}:{parent.mark or ''}"
        if snapshot.schema_millis is not None:
            found[_SCHEMA] = str(snapshot.schema_millis)
        if snapshot.users is not None and snapshot.users != Users():
            found[_USERS] = msgspec.json.encode(snapshot.users).decode()
        if snapshot.waiting is not None:
            found[_WAITING] = msgspec.json.encode(snapshot.waiting).decode()
        if snapshot.has_same_rows:
            found[_ROWS] = _SAME
    return found
