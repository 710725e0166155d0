"""Snapshot and tag files: JSON text and values, in the layout that Java writes.

Source: format.md §4; Java `Snapshot`, `Tag`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from paimon_py.codec.json import decode_object, pretty, unknown_items
from paimon_py.codec.lineage_json import lineage_of, together
from paimon_py.doors import decoding_metadata
from paimon_py.errors import CorruptionError, UnsupportedError
from paimon_py.spec.snapshot import CommitKind, Snapshot, Tag

CURRENT_VERSION = 3
_CREATE_TIME = "tagCreateTime"
_TIME_RETAINED = "tagTimeRetained"
_TIME_PARTS = (3, 7)


class _Key(msgspec.Struct, frozen=True):
    """A key of the JSON object, the attribute it fills, its type, and whether it must be there."""

    key: str
    attribute: str
    kind: type
    required: bool = False


_KEYS = (
    _Key("version", "version", int),
    _Key("uuid", "uuid", str),
    _Key("id", "id", int, True),
    _Key("schemaId", "schema_id", int, True),
    _Key("baseManifestList", "base_manifest_list", str, True),
    _Key("baseManifestListSize", "base_manifest_list_size", int),
    _Key("deltaManifestList", "delta_manifest_list", str, True),
    _Key("deltaManifestListSize", "delta_manifest_list_size", int),
    _Key("changelogManifestList", "changelog_manifest_list", str),
    _Key("changelogManifestListSize", "changelog_manifest_list_size", int),
    _Key("indexManifest", "index_manifest", str),
    _Key("commitUser", "commit_user", str, True),
    _Key("writerVersion", "writer_version", str),
    _Key("commitIdentifier", "commit_identifier", int, True),
    _Key("commitKind", "commit_kind", str, True),
    _Key("timeMillis", "time_millis", int, True),
    _Key("logOffsets", "log_offsets", dict),
    _Key("totalRecordCount", "total_record_count", int),
    _Key("deltaRecordCount", "delta_record_count", int),
    _Key("changelogRecordCount", "changelog_record_count", int),
    _Key("watermark", "watermark", int),
    _Key("statistics", "statistics", str),
    _Key("properties", "properties", dict),
    _Key("nextRowId", "next_row_id", int),
    _Key("operation", "operation", str),
)
"""Keys in the order of the file."""

_KNOWN = frozenset(key.key for key in _KEYS)
_ITEMS = {"logOffsets": int, "properties": str}


def snapshot_from_json(data: bytes, path: str) -> Snapshot:
    """The snapshot in a snapshot or changelog file. Fields that are not known are kept in `extra`.

    Raises:
        CorruptionError: not a snapshot.
        UnsupportedError: a version or kind of snapshot newer than this library.
    """
    with decoding_metadata(path):
        return _snapshot(decode_object(data, path), path)


def snapshot_to_json(snapshot: Snapshot) -> bytes:
    """The bytes of a snapshot file, laid out as Java 2.x does: null and empty properties are left out."""
    return pretty(_object(snapshot))


def tag_from_json(data: bytes, name: str, path: str) -> Tag:
    """The tag called `name` in a tag file.

    Raises:
        CorruptionError, UnsupportedError: as `snapshot_from_json`.
    """
    with decoding_metadata(path):
        return _tag(decode_object(data, path), name, path)


def _tag(value: dict[str, Any], name: str, path: str) -> Tag:
    create_time, retained = value.pop(_CREATE_TIME, None), value.pop(_TIME_RETAINED, None)
    if create_time is not None:
        least, most = _TIME_PARTS
        good = isinstance(create_time, list) and least <= len(create_time) <= most and all(map(_is_int, create_time))
        if not good:
            raise CorruptionError(f"{path}: {_CREATE_TIME!r} is not a time: {create_time!r}", path=path)
        create_time = tuple(create_time)
    if retained is not None and (isinstance(retained, bool) or not isinstance(retained, (int, float))):
        raise CorruptionError(f"{path}: {_TIME_RETAINED!r} is not a number of seconds: {retained!r}", path=path)
    return Tag(name=name, snapshot=_snapshot(value, path), create_time=create_time, time_retained_seconds=retained)


def tag_to_json(tag: Tag) -> bytes:
    """The bytes of a tag file: its snapshot's, followed by creation time and retention if one was given."""
    value = _object(tag.snapshot)
    if tag.create_time is not None:
        value[_CREATE_TIME] = list(tag.create_time)
    text = pretty(value)
    if tag.time_retained_seconds is None:
        return text
    return text[: -len("\n}")] + f',\n  "{_TIME_RETAINED}" : {tag.time_retained_seconds:.9f}\n}}'.encode()


def _snapshot(value: Mapping[str, Any], path: str) -> Snapshot:
    version = value.get("version")
    if isinstance(version, int) and version > CURRENT_VERSION:
        feature = f"snapshot version {version}"
        raise UnsupportedError(f"{path}: {feature} is not supported", feature=feature, path=path)
    found: dict[str, Any] = {}
    for key in _KEYS:
        item = value.get(key.key)
        if item is None:
            if key.required:
                raise CorruptionError(f"{path}: {key.key!r} is missing", path=path)
            continue
        found[key.attribute] = _checked(key, item, path)
    kind = found["commit_kind"]
    if kind not in CommitKind.__members__:
        raise UnsupportedError(f"{path}: unknown kind of commit {kind!r}", feature=f"commit kind {kind}", path=path)
    found["commit_kind"] = CommitKind(kind)
    found.setdefault("version", 1)
    if "properties" in found:
        found.update(lineage_of(found["properties"], found["id"], path)._asdict())
    return Snapshot(**found, extra=unknown_items(value, _KNOWN, path))


def _checked(key: _Key, item: Any, path: str) -> Any:
    good = _is_int(item) if key.kind is int else isinstance(item, key.kind)
    if good and key.kind is dict:
        item_kind = _ITEMS[key.key]
        good = all(_is_int(part) if item_kind is int else isinstance(part, item_kind) for part in item.values())
    if not good:
        raise CorruptionError(f"{path}: {key.key!r} has a wrong value: {item!r}", path=path)
    return item


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _object(snapshot: Snapshot) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for key in _KEYS:
        item = together(snapshot) or None if key.key == "properties" else getattr(snapshot, key.attribute)
        if item is None:
            continue
        value[key.key] = item.value if isinstance(item, CommitKind) else item
    value.update(snapshot.extra)
    return value
