"""Snapshot and tag files: JSON and values, in the layout that Java writes.

Source: format.md §4; Java `Snapshot`, `Tag`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from paimon_py.arguments import decoding_metadata
from paimon_py.codec.json import decode_object, pretty, unknown_items
from paimon_py.codec.lineage_json import lineage_of, together
from paimon_py.errors import CorruptionError, UnsupportedError
from paimon_py.spec.json_values import plain_text, whole_number
from paimon_py.spec.snapshot import CommitKind, Snapshot, TagValue

CURRENT_VERSION = 3
_CREATE_TIME = "tagCreateTime"
_TIME_RETAINED = "tagTimeRetained"
_TIME_PARTS = (3, 7)
_ISO_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?", re.ASCII)
_ISO_SPAN = re.compile(r"P(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?", re.ASCII)


class _Key(msgspec.Struct, frozen=True):
    """A key of the JSON object, its attribute, its type, and whether it is required."""

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
_OLDEST_VERSION = 1


def snapshot_from_json(data: bytes, path: str) -> Snapshot:
    """The snapshot in a snapshot or changelog file. Unknown fields are kept in `extra`.

    Raises:
        CorruptionError: not a snapshot.
        UnsupportedError: a version or kind of snapshot newer than this library.
    """
    with decoding_metadata(path):
        return _snapshot(decode_object(data, path), path)


def snapshot_to_json(snapshot: Snapshot) -> bytes:
    """The bytes of a snapshot file, in the layout of Java 2.x: null and empty properties are omitted."""
    return pretty(_object(snapshot))


def tag_from_json(data: bytes, name: str, path: str) -> TagValue:
    """The tag named `name` in a tag file.

    Raises:
        CorruptionError, UnsupportedError: as `snapshot_from_json`.
    """
    with decoding_metadata(path):
        return _tag(decode_object(data, path), name, path)


def _tag(value: dict[str, Any], name: str, path: str) -> TagValue:
    create_time, retained = value.pop(_CREATE_TIME, None), value.pop(_TIME_RETAINED, None)
    made = _time_parts(create_time)
    if create_time is not None and made is None:
        raise CorruptionError(f"{path}: {_CREATE_TIME!r} is not a time: {create_time!r}", path=path)
    if isinstance(retained, str):
        seconds = _seconds(retained)
        retained = retained if seconds is None else seconds
    if retained is not None and (isinstance(retained, bool) or not isinstance(retained, (int, float))):
        raise CorruptionError(f"{path}: {_TIME_RETAINED!r} is not a number of seconds: {retained!r}", path=path)
    return TagValue(name=name, snapshot=_snapshot(value, path), create_time=made, time_retained_seconds=retained)


def _time_parts(value: Any) -> tuple[int, ...] | None:
    """Year to nanosecond, from a list, as Java writes it, or from a string such as `2026-01-02T03:04:05`."""
    if isinstance(value, str):
        found = _ISO_TIME.fullmatch(value)
        if found is None:
            return None
        *texts, fraction = found.groups()
        parts = tuple(int(part) for part in texts if part is not None)
        return (*parts, int(fraction.ljust(9, "0"))) if fraction else parts
    least, most = _TIME_PARTS
    if not isinstance(value, list) or not least <= len(value) <= most:
        return None
    numbers = tuple(item for item in value if isinstance(item, int) and not isinstance(item, bool))
    return numbers if len(numbers) == len(value) else None


def _seconds(value: str) -> float | None:
    """The seconds of a duration such as `PT36H30M`; None for other strings."""
    found = _ISO_SPAN.fullmatch(value)
    if found is None or not any(found.groups()):
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return days * 86400 + hours * 3600 + minutes * 60 + seconds


def tag_to_json(tag: TagValue) -> bytes:
    """The bytes of a tag file: the fields of its snapshot, followed by creation time and retention if set."""
    value = _object(tag.snapshot)
    if tag.create_time is not None:
        value[_CREATE_TIME] = list(tag.create_time)
    printed = pretty(value)
    if tag.time_retained_seconds is None:
        return printed
    return printed[: -len("\n}")] + f',\n  "{_TIME_RETAINED}" : {tag.time_retained_seconds:.9f}\n}}'.encode()


def _snapshot(value: Mapping[str, Any], path: str) -> Snapshot:
    version = whole_number(value.get("version"))
    if version is not None and version > CURRENT_VERSION:
        feature = f"snapshot version {version}"
        raise UnsupportedError(f"{path}: {feature} is not supported", feature=feature, path=path)
    found: dict[str, Any] = {}
    for key in _KEYS:
        item = value.get(key.key)
        if item is None:
            if key.required:
                raise CorruptionError(f"{path}: {key.key!r} is missing", path=path)
            continue
        found[key.attribute] = _check(key, item, path)
    kind = found["commit_kind"]
    if kind not in CommitKind.__members__:
        raise UnsupportedError(f"{path}: unknown kind of commit {kind!r}", feature=f"commit kind {kind}", path=path)
    found["commit_kind"] = CommitKind(kind)
    found.setdefault("version", _OLDEST_VERSION)
    if "properties" in found:
        found.update(lineage_of(found["properties"], found["id"], path)._asdict())
    return Snapshot(**found, extra=unknown_items(value, _KNOWN, path))


def _check(key: _Key, item: Any, path: str) -> Any:
    if key.kind is int:
        found: Any = whole_number(item)
    elif key.kind is str:
        found = plain_text(item)
    else:
        found = _texts(item) if key.key == "properties" else _numbers(item)
    if found is None:
        raise CorruptionError(f"{path}: {key.key!r} has a wrong value: {item!r}", path=path)
    return found


def _texts(items: Any) -> dict[str, str] | None:
    """The properties without null values. None if a value is not a string."""
    if not isinstance(items, dict):
        return None
    found = {name: plain_text(item) for name, item in items.items() if item is not None}
    known = {name: item for name, item in found.items() if item is not None}
    return known if len(known) == len(found) else None


def _numbers(items: Any) -> dict[str, int] | None:
    """Log offsets, which are not used: values that are not numbers are dropped. None if the item is not a mapping."""
    if not isinstance(items, dict):
        return None
    return {name: number for name, item in items.items() if (number := whole_number(item)) is not None}


def _object(snapshot: Snapshot) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for key in _KEYS:
        item = together(snapshot) or None if key.key == "properties" else getattr(snapshot, key.attribute)
        if item is None:
            continue
        value[key.key] = item.value if isinstance(item, CommitKind) else item
    value.update(snapshot.extra)
    return value
