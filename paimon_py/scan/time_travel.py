"""Which state of the table a scan reads: the latest, or one chosen by snapshot, tag, time or watermark.

Source: Java `TimeTravelUtil`, `CoreOptions.StartupMode`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from numbers import Integral

import msgspec

from paimon_py.errors import OptionError, TagNotFoundError, UnsupportedError, UsageError
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.snapshot import Snapshot

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LATEST_MODES = frozenset({"default", "latest", "latest-full", "full"})
_PLACED_MODES = {
    "from-snapshot": {"scan.snapshot-id", "scan.tag-name", "scan.watermark", "scan.version"},
    "from-snapshot-full": {"scan.snapshot-id"},
    "from-timestamp": {"scan.timestamp", "scan.timestamp-millis"},
}
_WATERMARK = "watermark-"
_HARMLESS = {"scan.mode", "scan.manifest.parallelism", "scan.max-splits-per-task", "scan.plan-sort-partition"}
_DECISIVE = (
    "scan.fallback", "scan.primary-branch", "scan.file-creation-time-millis", "scan.creation-time-millis",
    "scan.bucket", "incremental-",
)  # fmt: skip
"""Prefixes of stored options that would change what a batch read returns; other unknown ones serve streams."""
_PLACES = {
    "scan.snapshot-id": "snapshot_id",
    "scan.tag-name": "tag",
    "scan.version": "version",
    "scan.watermark": "watermark",
    "scan.timestamp": "timestamp_millis",
    "scan.timestamp-millis": "timestamp_millis",
}


class Travel(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the table's history; without one, the latest snapshot.

    `version` is a tag's name, `watermark-<n>`, or a snapshot id, tried in this order. Times are epoch milliseconds.
    """

    snapshot_id: int | None = None
    tag: str | None = None
    timestamp_millis: int | None = None
    watermark: int | None = None
    version: str | None = None

    @property
    def is_latest(self) -> bool:
        """Whether nothing was chosen."""
        return self == Travel()


def travel_of(
    *,
    snapshot_id: int | None = None,
    tag: str | None = None,
    timestamp: datetime | int | None = None,
    watermark: int | None = None,
    options: Mapping[str, str] | None = None,
    stored: Mapping[str, str] | None = None,
) -> Travel:
    """The place that arguments and `scan.*` options name together; else the one that the table's stored options name.

    A datetime without zone is local time, as everywhere in Python; milliseconds count from the epoch.

    Raises:
        UsageError: more than one place, or a value of the wrong type.
        UnsupportedError: a `scan.` or `incremental-` option that is not supported.
    """
    given: dict[str, object] = {
        "snapshot_id": _whole("snapshot_id", snapshot_id),
        "tag": tag,
        "timestamp_millis": None if timestamp is None else _millis(timestamp),
        "watermark": _whole("watermark", watermark),
    }
    named = {name: value for name, value in given.items() if value is not None}
    chosen = _from_options(options or {}, placed=bool(named))
    if len(named) + len(chosen) > 1:
        names = ["timestamp" if name == "timestamp_millis" else name for name in named]
        names += [f"the option {name}" for name in options or {} if name in _PLACES]
        raise UsageError(f"a scan reads one state: give only one of {', '.join(names)}")
    kept = {name: text for name, text in (stored or {}).items() if name in _PLACES or name == "scan.mode"}
    _refuse(stored or (), _DECISIVE)
    named |= chosen or ({} if named or not kept else _from_options(kept, placed=False))
    return Travel(**named)  # type: ignore[arg-type]


def find_snapshot(root: TableRoot, travel: Travel) -> Snapshot | None:
    """The snapshot at the place; None if the table is empty and nothing was chosen.

    Raises:
        TableNotFoundError: the table is gone.
        SnapshotNotFoundError, SnapshotExpiredError, TagNotFoundError: there is no such state (any more).
    """
    if travel.snapshot_id is not None:
        return root.snapshots.get(travel.snapshot_id)
    if travel.tag is not None:
        return root.tags.get(travel.tag).snapshot
    if travel.timestamp_millis is not None:
        return root.snapshots.by_time(travel.timestamp_millis)
    if travel.watermark is not None:
        return root.snapshots.by_watermark(travel.watermark)
    if travel.version is not None:
        return _by_version(root, travel.version)
    return root.latest()


def _by_version(root: TableRoot, version: str) -> Snapshot | None:
    try:
        return root.tags.get(version).snapshot
    except (TagNotFoundError, UsageError):
        if version.startswith(_WATERMARK) and version.removeprefix(_WATERMARK).isdigit():
            return root.snapshots.by_watermark(int(version.removeprefix(_WATERMARK)))
        if version.isascii() and version.isdigit():
            return root.snapshots.get(int(version))
        raise


def _from_options(options: Mapping[str, str], *, placed: bool) -> dict[str, object]:
    """What `scan.*` options choose; `placed` says that an argument chose already."""
    given = [name for name in options if name in _PLACES]
    if len(given) > 1:
        raise UsageError(f"a scan reads one state: give only one of {', '.join(given)}")
    _refuse(options.keys() - _HARMLESS - _PLACES.keys(), ("scan.", "incremental-"))
    _check_mode(options, placed=placed or bool(given))
    return {_PLACES[name]: _place(name, options[name]) for name in given}


def _refuse(names: Iterable[str], prefixes: tuple[str, ...]) -> None:
    for name in sorted(names):
        if name.startswith(prefixes):
            raise UnsupportedError(f"the option {name} is not supported in a scan", feature=name)


def _check_mode(options: Mapping[str, str], *, placed: bool) -> None:
    mode = options.get("scan.mode", "default").strip().lower()
    if mode in _LATEST_MODES and (mode == "default" or not placed):
        return
    if mode in _PLACED_MODES and _PLACED_MODES[mode] & set(options):
        return
    if mode in _LATEST_MODES or mode in _PLACED_MODES:
        raise UsageError(f"scan.mode={mode} does not go with the other arguments and options of this scan")
    raise UnsupportedError(f"scan.mode={mode} is not supported in a scan", feature=f"scan.mode={mode}")


def _place(name: str, text: str) -> object:
    if name in ("scan.tag-name", "scan.version"):
        return text
    if name != "scan.timestamp":
        try:
            return int(text)
        except ValueError:
            raise OptionError(f"option {name} must be a whole number, not {text!r}", option=name, value=text) from None
    try:
        return _millis(datetime.fromisoformat(text))
    except ValueError:
        message = f"option {name} must be a time such as 2024-01-31 10:00:00, not {text!r}"
        raise OptionError(message, option=name, value=text) from None


def _whole(name: str, value: int | None) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, Integral)):
        raise UsageError(f"{name} must be a whole number, not {value!r}")
    return None if value is None else int(value)


def _millis(moment: datetime | int) -> int:
    if isinstance(moment, bool) or not isinstance(moment, (datetime, int)):
        raise UsageError(f"timestamp must be a datetime or epoch milliseconds, not {moment!r}")
    if isinstance(moment, int):
        return moment
    try:
        return (moment.astimezone(timezone.utc) - _EPOCH) // timedelta(milliseconds=1)
    except (OverflowError, ValueError) as error:
        raise UsageError(f"timestamp {moment!r} is no time that this machine knows: {error}") from error
