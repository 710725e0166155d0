"""The state of the table that a scan reads: the latest, or one selected by snapshot, tag, time or watermark.

Source: Java `TimeTravelUtil`, `CoreOptions.StartupMode`, `AbstractDataTableScan.createStartingScanner`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from numbers import Integral
from typing import Any

import msgspec

from paimon_py.arguments import way_of
from paimon_py.errors import OptionError, TagNotFoundError, UnsupportedError, UsageError
from paimon_py.metadata.history import SnapshotLog
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.incremental import INCREMENTAL, Incremental, incremental_of
from paimon_py.scan.moments import millis_of, moment_of_text, wall_millis
from paimon_py.scan.request import FileChoice
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot, SnapshotId

_LATEST_MODES = frozenset({"default", "latest", "latest-full", "full"})
_PLACED_MODES = {
    "from-snapshot": {"scan.snapshot-id", "scan.tag-name", "scan.watermark", "scan.version"},
    "from-snapshot-full": {"scan.snapshot-id"},
    "from-timestamp": {"scan.timestamp", "scan.timestamp-millis"},
    "from-file-creation-time": {"scan.file-creation-time-millis"},
    "from-creation-timestamp": {"scan.creation-time-millis"},
    "incremental": set(INCREMENTAL),
}
_OWN_MODES = frozenset({"compacted-full", "latest-delta"})
"""Modes that select a state without further options."""
_WATERMARK = "watermark-"
_HARMLESS = {
    "scan.mode", "scan.manifest.parallelism", "scan.max-splits-per-task", "scan.plan-sort-partition",
    "scan.bounded.watermark", "scan.fallback-branch", "scan.fallback-branch.read-fail-fast", "scan.primary-branch",
    "incremental-between-scan-mode", "incremental-between-tag-to-snapshot", "scan.bucket",
    "scan.plan.executor-manifests",
}  # fmt: skip
_PLACES = {
    "scan.snapshot-id": "snapshot_id",
    "scan.tag-name": "tag",
    "scan.version": "version",
    "scan.watermark": "watermark",
    "scan.timestamp": "timestamp_millis",
    "scan.timestamp-millis": "timestamp_millis",
    "scan.file-creation-time-millis": "file_millis",
    "scan.creation-time-millis": "creation_millis",
}
_CHOOSING = frozenset({*_PLACES, *INCREMENTAL, "scan.mode"})


class Travel(msgspec.Struct, frozen=True, kw_only=True):
    """A position in the table's history; by default the latest snapshot.

    `version` is a tag's name, `watermark-<n>`, or a snapshot id, tried in this order. Times are epoch milliseconds.
    `compacted`: the state after the last compaction. `file_millis`: only the files of the latest state that were
    created at this time or later. `creation_millis`: the first state committed at this time or later; if it does not
    exist, or earlier states are unknown, as `file_millis`.
    """

    snapshot_id: int | None = None
    tag: str | None = None
    timestamp_millis: int | None = None
    watermark: int | None = None
    version: str | None = None
    compacted: bool | None = None
    file_millis: int | None = None
    creation_millis: int | None = None

    @property
    def is_latest(self) -> bool:
        """Whether the latest state is selected."""
        return self == Travel()


class FoundState(msgspec.Struct, frozen=True):
    """A state of a table: its snapshot, None for an empty table, and the selected files, None for all."""

    snapshot: Snapshot | None
    files: FileChoice | None = None


def travel_of(
    *,
    snapshot_id: int | None = None,
    tag: str | None = None,
    timestamp: datetime | str | int | None = None,
    watermark: int | None = None,
    options: Mapping[str, str] | None = None,
    stored: Mapping[str, str] | None = None,
) -> Travel | Incremental:
    """The position or range selected by arguments and options; else that of the table's stored options.

    A datetime without a zone is local time, as in Python; milliseconds count from the epoch.

    Raises:
        UsageError: more than one position, or a value of the wrong type.
        UnsupportedError: a `scan.` or `incremental-` option that is not supported.
    """
    given: dict[str, object] = {
        "snapshot_id": _whole("snapshot_id", snapshot_id),
        "tag": _tag(tag),
        "timestamp_millis": None if timestamp is None else millis_of("timestamp", timestamp),
        "watermark": _whole("watermark", watermark),
    }
    named = {name: value for name, value in given.items() if value is not None}
    options, stored = options or {}, stored or {}
    chosen = _from_options(options, {**stored, **options}, placed=bool(named))
    if len(named) + (chosen is not None) > 1:
        names = ["timestamp" if name == "timestamp_millis" else name for name in named]
        names += [f"the option {name}" for name in options if name in _CHOOSING]
        raise UsageError(f"a scan reads one state: give only one of {', '.join(names)}")
    if chosen is None and not named:
        kept = {name: text for name, text in stored.items() if name in _CHOOSING}
        chosen = _from_options(kept, {**stored, **options}, placed=False)
    return Travel(**named) if chosen is None else chosen  # type: ignore[arg-type]


def find_state(root: TableRoot, travel: Travel, schema: TableSchema) -> FoundState:
    """The state at a position.

    Raises:
        TableNotFoundError: the table does not exist any more.
        SnapshotNotFoundError, SnapshotExpiredError, TagNotFoundError: the state does not exist (any more).
    """
    millis = travel.file_millis
    if travel.creation_millis is not None:
        found = root.snapshots.first_since(travel.creation_millis)
        if found is not None:
            return FoundState(found)
        millis = travel.creation_millis
    if millis is None:
        return FoundState(_find(root, travel, schema))
    return FoundState(root.latest(), FileChoice(created_since_millis=wall_millis(millis)))


def _find(root: TableRoot, travel: Travel, schema: TableSchema) -> Snapshot | None:
    if travel.snapshot_id is not None:
        return snapshot_of(root, travel.snapshot_id)
    if travel.tag is not None:
        return root.tags.get(travel.tag).snapshot
    if travel.timestamp_millis is not None:
        return root.snapshots.by_time(travel.timestamp_millis)
    if travel.watermark is not None:
        return root.snapshots.by_watermark(travel.watermark)
    if travel.version is not None:
        return _by_version(root, travel.version)
    latest = root.latest()
    return _last_compaction(root, latest, Options(schema.options)) if travel.compacted else latest


def snapshot_of(root: TableRoot, number: int) -> Snapshot | None:
    """The snapshot with an id; None for the empty table, which only `result.before` of a first commit refers to.

    Raises:
        SnapshotNotFoundError: no snapshot with this id was ever committed, or the one that `result.before` refers to
            was rolled back.
        SnapshotExpiredError: it has expired.
    """
    return None if isinstance(number, SnapshotId) and number == 0 else root.snapshots.get(number)


def _last_compaction(root: TableRoot, latest: Snapshot | None, options: Options) -> Snapshot | None:
    """The last snapshot of a compaction, or the latest one; of a full compaction if the table schedules them."""
    every = None
    if options.get_enum("changelog-producer") == "full-compaction" or options.is_set("full-compaction.delta-commits"):
        every = options.find_int("full-compaction.delta-commits") or 1
    for snapshot in SnapshotLog(root).newest_first(latest):
        if snapshot.commit_kind is CommitKind.COMPACT:
            number = snapshot.commit_identifier
            if every is None or number == BATCH_COMMIT_IDENTIFIER or number % every == 0:
                return snapshot
    return latest


def _by_version(root: TableRoot, version: str) -> Snapshot | None:
    try:
        return root.tags.get(version).snapshot
    except (TagNotFoundError, UsageError):
        if version.startswith(_WATERMARK) and version.removeprefix(_WATERMARK).isdigit():
            return root.snapshots.by_watermark(int(version.removeprefix(_WATERMARK)))
        if version.isascii() and version.isdigit():
            return root.snapshots.get(int(version))
        raise


def _from_options(
    options: Mapping[str, str], together: Mapping[str, str], *, placed: bool
) -> Travel | Incremental | None:
    """The state that options select, None if none. `together`: combined with the table's; `placed`: an argument selects
    one."""
    given = [name for name in options if name in _PLACES or name in INCREMENTAL]
    if len(given) > 1:
        raise UsageError(f"a scan reads one state: give only one of {', '.join(given)}")
    _refuse(options.keys() - _HARMLESS - _PLACES.keys() - set(INCREMENTAL), ("scan.", "incremental-"))
    mode = options.get("scan.mode", "default").strip().lower()
    _check_mode(mode, options, placed=placed or bool(given))
    if given and given[0] in INCREMENTAL:
        return incremental_of(given[0], options[given[0]], together)
    if given:
        return Travel(**{_PLACES[given[0]]: _place(given[0], options[given[0]])})
    if mode == "latest-delta":
        return Incremental(latest=True, mode="delta")
    return Travel(compacted=True) if mode == "compacted-full" else None


def _refuse(names: Iterable[str], prefixes: tuple[str, ...]) -> None:
    for name in sorted(names):
        if name.startswith(prefixes):
            raise UnsupportedError(f"the option {name} is not supported in a scan", feature=name)


def _check_mode(mode: str, options: Mapping[str, str], *, placed: bool) -> None:
    if mode in _LATEST_MODES and (mode == "default" or not placed):
        return
    if mode in _OWN_MODES and not placed:
        return
    if mode in _PLACED_MODES and _PLACED_MODES[mode] & set(options):
        return
    if mode in _LATEST_MODES or mode in _OWN_MODES or mode in _PLACED_MODES:
        raise UsageError(f"scan.mode={mode} cannot be combined with the other arguments and options of this scan")
    raise UnsupportedError(f"scan.mode={mode} is not supported in a scan", feature=f"scan.mode={mode}")


def _place(name: str, text: str) -> Any:
    if name in ("scan.tag-name", "scan.version"):
        return text
    if name == "scan.timestamp":
        return moment_of_text(name, text)
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"option {name} must be a whole number, not {text!r}", option=name, value=text) from None


def _tag(name: object) -> object:
    if name is not None and not isinstance(name, str):
        raise UsageError(f"tag is the name of a tag, not {name!r}{way_of(name)}")
    return name


def _whole(name: str, value: int | None) -> int | None:
    """An integer as a plain int; the id of a snapshot keeps its mark."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, Integral)):
        raise UsageError(f"{name} must be a whole number, not {value!r}{way_of(value)}")
    return value if value is None or isinstance(value, SnapshotId) else int(value)
