"""Decides which updates make a table of an Iceberg REST catalog show a version. Pure.

A snapshot of the server is ours if it has the same manifest list, because names of lists are unique. If the server's
main is a snapshot of ours, the table is updated; otherwise it is registered again.

Source: docs/format.md §25.10; Apache Iceberg REST catalog specification, `CommitTableRequest`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Union

import msgspec

from paimon_py.iceberg.catalogs.catalog import CatalogedVersion
from paimon_py.iceberg.metadata import MAIN_REF, IcebergSnapshot, plain_path

Json = Mapping[str, Any]


class NothingToDo(msgspec.Struct, frozen=True, tag=True):
    """The server shows the version, or a later one of the table."""


class OtherTable(msgspec.Struct, frozen=True, tag=True):
    """The server has another table of this name, at `location`."""

    location: str


class Replace(msgspec.Struct, frozen=True, tag=True):
    """The version does not follow the one on the server, so the entry must be dropped and registered again.

    `foreign`: the snapshot that the server shows was not written by Paimon.
    """

    foreign: bool = False


class Update(msgspec.Struct, frozen=True, tag=True):
    """A commit to the server."""

    requirements: tuple[Json, ...]
    updates: tuple[Json, ...]

    @property
    def changes_tags(self) -> bool:
        """Whether the commit sets or removes a ref other than main."""
        return any(one.get("ref-name", MAIN_REF) != MAIN_REF for one in self.updates)


Decision = Union[NothingToDo, OtherTable, Replace, Update]


def decide(
    server: Json, shown: CatalogedVersion, properties: Mapping[str, str], is_there: Callable[[IcebergSnapshot], bool]
) -> Decision:
    """The updates for a server.

    Args:
        server: the metadata of its table.
        properties: the required properties of the table on the server.
        is_there: whether the table has the Paimon snapshot that an Iceberg snapshot was made for.
    """
    theirs = {one["snapshot-id"]: one for one in server.get("snapshots") or ()}
    main = _main_of(server)
    current = None if main is None else theirs.get(main)
    version = shown.version
    is_here = plain_path(str(server.get("location", ""))).rstrip("/") == _plain(version.value["location"])
    is_ours = current is not None and _list_of(current).rpartition("/")[0] == plain_path(shown.directory)
    if not is_here and not is_ours:
        return OtherTable(str(server.get("location")))
    same = server.get("table-uuid") == version.uuid and server.get("format-version") == version.format_version
    if main is None or current is None or not same or not is_ours:
        return Replace(foreign=current is not None and not is_ours)
    if main > version.number and is_there(current):
        return NothingToDo()
    mine = {one["snapshot-id"]: one for one in version.snapshots}
    base = min(main, version.number)
    if base not in mine or base not in theirs or _list_of(mine[base]) != _list_of(theirs[base]):
        return Replace()
    newer = [one for one in version.snapshots if one["snapshot-id"] > base]
    last = int(server.get("last-sequence-number", 0))
    if any(one["snapshot-id"] in theirs or one["sequence-number"] <= last for one in newer):
        return Replace()
    updates = _updates(server, shown, newer, properties)
    if not updates:
        return NothingToDo()
    refs = server.get("refs") or {}
    changed = {one["ref-name"] for one in updates if "ref-name" in one} - {MAIN_REF}
    expected = {MAIN_REF: main, **{name: refs.get(name, {}).get("snapshot-id") for name in sorted(changed)}}
    requirements = (
        {"type": "assert-table-uuid", "uuid": version.uuid},
        *({"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": at} for name, at in expected.items()),
    )
    return Update(requirements, tuple(updates))


def _updates(
    server: Json, shown: CatalogedVersion, newer: Sequence[IcebergSnapshot], properties: Mapping[str, str]
) -> list[Json]:
    version = shown.version
    schemas = _Schemas(server)
    numbers = {one["schema-id"]: schemas.id_of(one) for one in version.schemas}
    current = numbers[version.value["current-schema-id"]]
    updates: list[Json] = list(schemas.added)
    if server.get("current-schema-id") != current:
        updates.append({"action": "set-current-schema", "schema-id": current})
    for one in newer:
        snapshot = {**one, "schema-id": numbers.get(one.get("schema-id"), current)}
        updates.append({"action": "add-snapshot", "snapshot": snapshot})
    updates += _refs(server.get("refs") or {}, version.value["refs"])
    kept = {one["snapshot-id"] for one in version.snapshots}
    gone = [one["snapshot-id"] for one in server["snapshots"] if one["snapshot-id"] not in kept]
    if gone:
        updates.append({"action": "remove-snapshots", "snapshot-ids": gone})
    server_properties = server.get("properties") or {}
    changed = {name: text for name, text in properties.items() if server_properties.get(name) != text}
    if changed:
        updates.append({"action": "set-properties", "updates": changed})
    return updates


def _refs(theirs: Mapping[str, Json], mine: Mapping[str, Json]) -> Iterable[Json]:
    """The changes of refs, main first: no ref may point to a snapshot when the snapshot is removed."""
    for name, ref in sorted(mine.items(), key=lambda one: one[0] != MAIN_REF):
        there = theirs.get(name, {})
        if (there.get("snapshot-id"), there.get("type")) != (ref["snapshot-id"], ref["type"]):
            yield {"action": "set-snapshot-ref", "ref-name": name, **ref}
    for name in theirs:
        if name not in mine and name != MAIN_REF:
            yield {"action": "remove-snapshot-ref", "ref-name": name}


class _Schemas:
    """The ids of schemas on the server, which assigns one id to equal schemas and the next id to a new one."""

    def __init__(self, server: Json) -> None:
        known = server.get("schemas") or ()
        self._ids: dict[bytes, int] = {_schema_key(one): one["schema-id"] for one in known}
        self._next = max((one["schema-id"] for one in known), default=-1) + 1
        self.added: list[Json] = []

    def id_of(self, schema: Json) -> int:
        key = _schema_key(schema)
        if key not in self._ids:
            self._ids[key], self._next = self._next, self._next + 1
            self.added.append({"action": "add-schema", "schema": {**schema, "schema-id": self._ids[key]}})
        return self._ids[key]


def _schema_key(schema: Json) -> bytes:
    return msgspec.json.encode(_plain_type(schema["fields"]), order="sorted")


def _plain_type(value: Any) -> Any:
    """A part of a schema in a normal form: types without spaces, and no keys without a value."""
    if isinstance(value, Mapping):
        named = ("name", "doc")
        return {name: part if name in named else _plain_type(part) for name, part in value.items() if part is not None}
    if isinstance(value, str):
        return value.replace(" ", "")
    return [_plain_type(part) for part in value] if isinstance(value, (list, tuple)) else value


def _main_of(server: Json) -> int | None:
    main = (server.get("refs") or {}).get(MAIN_REF)
    found = server.get("current-snapshot-id") if main is None else main["snapshot-id"]
    return None if found is None or found < 0 else int(found)


def _list_of(snapshot: IcebergSnapshot) -> str:
    return plain_path(str(snapshot.get("manifest-list", "")))


def _plain(location: object) -> str:
    return plain_path(str(location)).rstrip("/")
