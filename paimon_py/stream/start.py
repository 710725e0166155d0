"""The start of a stream: the caller's `from_`, or the options `scan.*`, as a value.

Source: Java `CoreOptions.StartupMode`, `AbstractDataTableScan.createStartingScanner`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from numbers import Integral
from typing import Union

import msgspec

from paimon_py.arguments import way_of
from paimon_py.errors import OptionError, UnsupportedError, UsageError
from paimon_py.scan.moments import as_moment, millis_of, moment_of_text
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Base, SnapshotId
from paimon_py.stream.position import PREFIX, Position, parse_position

_PLACES = ("scan.snapshot-id", "scan.timestamp-millis", "scan.timestamp")
_OF_BATCHES = (
    "scan.tag-name", "scan.watermark", "scan.version", "scan.creation-time-millis", "scan.file-creation-time-millis",
    "incremental-between", "incremental-between-timestamp", "incremental-to-auto-tag",
)  # fmt: skip
"""Options that choose a state or a range for batch reads; Java also refuses them for streams, or differs."""

_SCHEDULE = ("changelog-producer", "full-compaction.delta-commits")
"""Options of the table that say which compactions are full ones; they count however a stream chooses its start."""

_NAMES = "'full', 'latest', 'earliest', a snapshot id, a datetime or a position"


class Full(msgspec.Struct, frozen=True):
    """All rows of a snapshot, then later changes: of the snapshot `snapshot_id`, or else of the latest."""

    snapshot_id: int | None = None


class Compacted(msgspec.Struct, frozen=True):
    """All rows of the newest snapshot created by a compaction, then later changes.

    Attributes:
        commits: only compactions with an identifier that is a multiple of this number, as full ones have.
    """

    commits: int | None = None


class Latest(msgspec.Struct, frozen=True):
    """The changes after the current latest snapshot."""


class Earliest(msgspec.Struct, frozen=True):
    """The changes of the oldest remaining snapshot or changelog, and later ones."""


class FromSnapshot(msgspec.Struct, frozen=True):
    """The changes of this snapshot, and later ones. `consumer`: the consumer at it; `after`: the snapshot before it."""

    snapshot_id: int
    consumer: str | None = None
    after: Base | None = None


class FromTime(msgspec.Struct, frozen=True):
    """The changes committed at a time or later."""

    millis: int


Start = Union[Full, Compacted, Latest, Earliest, FromSnapshot, FromTime, Position]


def start_of(from_: object, options: Mapping[str, str], schema: TableSchema) -> Start:
    """The start of a stream: by `from_`; if that is None by the stream's own options, then by the table's.

    Raises:
        UsageError: an unknown start, or both `from_` and an option are given.
        OptionError: an option with a wrong value, or one that the mode requires is missing.
        UnsupportedError: a start that only batch reads support.
    """
    named = [name for name in ("scan.mode", *_PLACES, *_OF_BATCHES) if name in options]
    if from_ is not None:
        if named:
            raise UsageError(f"give either from_ or the option {named[0]}, not both")
        return _parse_start(from_)
    stored = {name: text for name, text in schema.options.items() if not named or name in _SCHEDULE}
    return _by_options(Options({**stored, **options}))


def _parse_start(from_: object) -> Start:
    from_ = as_moment("from_", from_)
    words: dict[str, Start] = {"full": Full(), "latest": Latest(), "earliest": Earliest()}
    if isinstance(from_, str):
        if from_ in words:
            return words[from_]
        if from_.startswith(PREFIX):
            return parse_position(from_)
    if isinstance(from_, datetime):
        return FromTime(millis_of("from_", from_))
    if isinstance(from_, Integral) and not isinstance(from_, bool) and int(from_) >= 1:
        return FromSnapshot(from_ if isinstance(from_, SnapshotId) else int(from_))
    raise UsageError(f"the from_ of a stream must be {_NAMES}, not {from_!r}{way_of(from_)}")


def _by_options(options: Options) -> Start:
    """Raises: OptionError, UnsupportedError"""
    mode = options.get_enum("scan.mode")
    for name in _OF_BATCHES:
        if options.is_set(name):
            message = f"the option {name} is for batch reads: the from_ of a stream is {_NAMES}"
            raise UnsupportedError(message, feature=name)
    if mode == "default":
        if options.is_set("scan.timestamp") or options.is_set("scan.timestamp-millis"):
            mode = "from-timestamp"
        elif options.is_set("scan.snapshot-id"):
            mode = "from-snapshot"
    if mode in ("default", "latest-full", "full"):
        return Full()
    if mode == "latest":
        return Latest()
    if mode == "compacted-full":
        commits = options.find_int("full-compaction.delta-commits")
        by_commits = commits is not None or options.get_enum("changelog-producer") == "full-compaction"
        return Compacted((commits or 1) if by_commits else None)
    if mode == "from-timestamp":
        return FromTime(_time(options))
    if mode == "from-snapshot":
        return FromSnapshot(_snapshot_id(options, mode))
    if mode == "from-snapshot-full":
        return Full(_snapshot_id(options, mode))
    raise UnsupportedError(f"scan.mode={mode} is for batch reads: the from_ of a stream is {_NAMES}", feature=mode)


def _time(options: Options) -> int:
    millis, text = options.find_int("scan.timestamp-millis"), options.find_str("scan.timestamp")
    if millis is not None and text is not None:
        raise UsageError("give only one of scan.timestamp, scan.timestamp-millis")
    if millis is None and text is None:
        message = "scan.mode=from-timestamp needs scan.timestamp or scan.timestamp-millis"
        raise OptionError(message, option="scan.mode", value="from-timestamp")
    return moment_of_text("scan.timestamp", text or "") if millis is None else millis


def _snapshot_id(options: Options, mode: str) -> int:
    number = options.find_int("scan.snapshot-id")
    if number is None:
        raise OptionError(f"scan.mode={mode} needs scan.snapshot-id", option="scan.mode", value=mode)
    if number < 1:
        raise OptionError(
            f"scan.snapshot-id must be the number of a snapshot, from 1, not {number}",
            option="scan.snapshot-id", value=str(number),
        )  # fmt: skip
    return number
