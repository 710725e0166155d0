"""File statistics as stored in manifests, and the options that select them.

Source: format.md §9; Java `StatsCollectorFactories`, `TruncateSimpleColStatsCollector`, `SimpleStatsConverter`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.binary_row import encode, encode_few
from paimon_py.codec.columns import binary_array, text_array
from paimon_py.errors import OptionError
from paimon_py.formats.base import ColumnBounds
from paimon_py.formats.slice_bounds import SliceBounds
from paimon_py.spec.data_file import Stats
from paimon_py.spec.options import Options
from paimon_py.spec.types import Atomic, DataType, Field, Root

_TRUNCATE = re.compile(r"truncate\(([0-9]{1,9})\)", re.IGNORECASE)
_SURROGATES = range(0xD800, 0xE000)
_LAST_CODE_POINT = 0x10FFFF


class StatsMode(msgspec.Struct, frozen=True):
    """The statistics kept for a column: none, null count, full bounds, or bounds truncated to `length` characters."""

    kind: Literal["none", "counts", "full", "truncate"]
    length: int = 0


SYSTEM_MODE = StatsMode("truncate", 128)
"""The mode of key columns and system columns."""


def parse_mode(text: str, option: str) -> StatsMode:
    """Parse the value of a statistics option.

    Raises:
        OptionError: the value is invalid.
    """
    word = text.strip().lower()
    if word == "none":
        return StatsMode("none")
    if word == "counts":
        return StatsMode("counts")
    if word == "full":
        return StatsMode("full")
    match = _TRUNCATE.fullmatch(word)
    if match and int(match[1]) > 0:
        return StatsMode("truncate", int(match[1]))
    allowed = "none, counts, truncate(n) or full"
    raise OptionError(f"option {option} is {text!r}; it must be {allowed}", option=option, value=text)


def value_modes(
    options: Mapping[str, str], fields: Sequence[Field], level: int, mode: str | None = None
) -> tuple[StatsMode, ...]:
    """The modes of a table's columns for files at one level.

    Precedence: the column's own mode, the limit to the first n columns, and the mode of the level or table; `mode`
    replaces the table's.
    """
    typed = Options(options)
    per_level = typed.get_map("metadata.stats-mode.per.level")
    name = "metadata.stats-mode.per.level" if str(level) in per_level else "metadata.stats-mode"
    common = parse_mode(per_level.get(str(level), mode or typed.get_str("metadata.stats-mode")), name)
    return _by_column(options, fields, common)


def changelog_modes(options: Mapping[str, str], fields: Sequence[Field]) -> tuple[StatsMode, ...]:
    """The modes of a table's columns for changelog files at any level, if an option configures them."""
    option = "changelog-file.stats-mode"
    return _by_column(options, fields, parse_mode(Options(options).get_str(option), option))


def _by_column(options: Mapping[str, str], fields: Sequence[Field], common: StatsMode) -> tuple[StatsMode, ...]:
    first = Options(options).get_int("metadata.stats-keep-first-n-columns")
    modes = []
    for position, field in enumerate(fields):
        option = f"fields.{field.name}.stats-mode"
        own = options.get(option)
        if own is not None:
            modes.append(parse_mode(own, option))
        else:
            modes.append(StatsMode("none") if 0 <= first <= position else common)
    return tuple(modes)


def stats_of(bounds: Sequence[ColumnBounds], types: Sequence[DataType], modes: Sequence[StatsMode]) -> Stats:
    """The bounds and null counts of all columns: a slot per column, null if unknown.

    Cost: encodes two rows.
    """
    kept = [
        _keep(column, _safe(mode, kind)) for column, mode, kind in zip(bounds, modes, types, strict=True)
    ]
    columns = [_column(column, kind) for column, kind in zip(kept, types, strict=True)]
    least, greatest = encode_few(columns, types) if columns else (Stats().min_values, Stats().max_values)
    return Stats(least, greatest, tuple(column.null_count for column in kept))


def stats_of_slices(
    bounds: Sequence[SliceBounds], types: Sequence[DataType], modes: Sequence[StatsMode], count: int
) -> list[Stats]:
    """The same for each of `count` slices.

    Cost: encodes two rows for each slice, a column at a time.
    """
    kept = [
        _keep_slices(column, _safe(mode, kind)) for column, mode, kind in zip(bounds, modes, types, strict=True)
    ]
    if not kept:
        return [Stats()] * count
    unknown = [pa.nulls(count, to_arrow_type(kind)) for kind in types]
    least, greatest = (
        encode([known if array is None else array for array, known in zip(side, unknown, strict=True)], types)
        for side in ([column.lows for column in kept], [column.highs for column in kept])
    )
    nulls = [[None] * count if each.null_counts is None else each.null_counts.tolist() for each in kept]
    found = zip(least.to_pylist(), greatest.to_pylist(), zip(*nulls, strict=True), strict=True)
    return [Stats(low, high, counts) for low, high, counts in found]


def needs_bounds(mode: StatsMode, kind: DataType) -> bool:
    """Whether the statistics of a column contain its least and greatest value."""
    return isinstance(kind, Atomic) and _safe(mode, kind).kind in ("full", "truncate")


def _safe(mode: StatsMode, kind: DataType) -> StatsMode:
    """Disables bounds of binaries: Java 1.4 compares them as signed bytes and would skip matching files."""
    is_binary = isinstance(kind, Atomic) and kind.root in (Root.BINARY, Root.VARBINARY, Root.BLOB)
    return StatsMode("counts") if is_binary and mode.kind != "none" else mode


def truncate_text(low: str, high: str, length: int) -> tuple[str, str] | None:
    """Bounds of at most `length` code points that enclose `low` … `high`; None if there is no such upper bound."""
    upper = high
    if len(high) > length:
        for at in range(length - 1, -1, -1):
            code = ord(high[at]) + 1
            code = _SURROGATES.stop if code in _SURROGATES else code
            if code <= _LAST_CODE_POINT:
                upper = high[:at] + chr(code)
                break
        else:
            return None
    return low[:length], upper


def truncate_bytes(low: bytes, high: bytes, length: int) -> tuple[bytes, bytes] | None:
    """Bounds of at most `length` bytes that enclose `low` … `high`; None if there is no such upper bound."""
    if len(high) <= length:
        return low[:length], high
    kept = high[:length].rstrip(b"\xff")
    return (low[:length], kept[:-1] + bytes([kept[-1] + 1])) if kept else None


def _keep(bounds: ColumnBounds, mode: StatsMode) -> ColumnBounds:
    if mode.kind == "none":
        return ColumnBounds()
    if mode.kind == "counts":
        return ColumnBounds(null_count=bounds.null_count)
    if mode.kind == "full" or bounds.ends is None:
        return bounds
    kind = bounds.ends.type
    is_text = pa.types.is_string(kind)
    if not is_text and not pa.types.is_binary(kind):
        return bounds
    whole = bounds.ends[0].as_py(), bounds.ends[1].as_py()
    cut = truncate_text(*whole, mode.length) if is_text else truncate_bytes(*whole, mode.length)
    if cut is None:
        return ColumnBounds(null_count=bounds.null_count)
    if cut == whole:
        return bounds
    ends = binary_array([part.encode() if isinstance(part, str) else part for part in cut], kind)
    return ColumnBounds(ends, bounds.null_count)


def _column(bounds: ColumnBounds, kind: DataType) -> pa.Array:
    return pa.nulls(2, to_arrow_type(kind)) if bounds.ends is None else bounds.ends


def _keep_slices(bounds: SliceBounds, mode: StatsMode) -> SliceBounds:
    if mode.kind == "none":
        return SliceBounds()
    if mode.kind == "counts" or bounds.lows is None or bounds.highs is None:
        return SliceBounds(null_counts=bounds.null_counts)
    if not pa.types.is_string(bounds.lows.type):
        return bounds
    lows, highs = bounds.lows.to_pylist(), bounds.highs.to_pylist()
    if mode.kind == "full" or all(text is None or len(text) <= mode.length for text in (*lows, *highs)):
        return bounds
    ends_of = zip(lows, highs, strict=True)
    cut = [None if low is None else truncate_text(low, high, mode.length) for low, high in ends_of]
    least, greatest = (text_array([None if ends is None else ends[side] for ends in cut]) for side in (0, 1))
    return SliceBounds(least, greatest, bounds.null_counts)
