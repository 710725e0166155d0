"""Converts statistics of older files to bounds in the requested schema.

Source: format.md §9; Java `SimpleStatsEvolution`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.binary_row import decode_at
from paimon_py.codec.binary_row.encode import ARITY_BYTES
from paimon_py.codec.columns import Ints, from_numpy
from paimon_py.codec.manifest.columns import EntryColumns
from paimon_py.errors import SchemaError
from paimon_py.expr.prune import Bounds
from paimon_py.files.casts.cast import cast
from paimon_py.files.casts.types import keeps_order
from paimon_py.spec.types import Atomic, DataType, Field, Root


def evolved_bounds(
    entries: EntryColumns,
    stats_fields: Sequence[Field],
    file_fields: Sequence[Field],
    read_fields: Sequence[Field],
    *,
    which: Literal["key", "value"] = "value",
) -> dict[str, Bounds]:
    """Bounds of the requested columns, for files that were written with one schema.

    Shapes: out — by name of the requested column, one slot per entry; unknown columns are omitted. A column that the
        files lack is null in every row. Columns whose type change does not preserve order (or may create nulls) are
        unknown.
    Args:
        entries: files with the same schema id and the same `_VALUE_STATS_COLS`.
        stats_fields: the columns that the statistics cover, in order: the file's columns or those in
            `_VALUE_STATS_COLS`; for key statistics, the trimmed primary key.
        file_fields: all columns of the schema that the files were written with.
        read_fields: the requested columns of the current schema.
        which: key or value statistics.
    Cost: only the requested columns are decoded.
    Raises: CorruptionError if the statistics do not match `stats_fields`.
    """
    present = {field.id for field in file_fields}
    slots = {field.id: slot for slot, field in enumerate(stats_fields)}
    found: dict[str, Bounds] = {}
    known: list[tuple[Field, int]] = []
    for field in read_fields:
        if field.id not in present:
            nothing = pa.nulls(len(entries), to_arrow_type(field.type))
            found[field.name] = Bounds(min=nothing, max=nothing, null_count=from_numpy(entries.row_count, pa.int64()))
        elif field.id in slots and keeps_order(stats_fields[slots[field.id]].type, field.type):
            known.append((field, slots[field.id]))
    if known:
        found |= _decode(entries, stats_fields, known, which)
    return found


def bounded_columns(entries: EntryColumns) -> tuple[Ints, list[tuple[str, ...] | None]]:
    """The list of columns that each entry's value statistics cover, and the lists; None: all columns of its schema.

    As `DataFile.bounded_columns`: other writers also store no statistics without an empty list of columns.
    """
    codes, lists = entries.lists("value_stats_columns")
    if entries.knows("write_columns"):
        written_codes, written = entries.lists("write_columns")
        codes = codes * len(written) + written_codes
        lists = [own if own is not None else names for own in lists for names in written]
    data, starts = entries.rows("value_min")
    blank = np.all([data[starts + place] == 0 for place in range(ARITY_BYTES)], axis=0)
    if blank.any():
        codes, lists = np.where(blank, len(lists), codes), [*lists, ()]
    return codes, lists


def _decode(
    entries: EntryColumns, stats_fields: Sequence[Field], known: Sequence[tuple[Field, int]], which: str
) -> dict[str, Bounds]:
    types = [field.type for field in stats_fields]
    ordered = [slot for _, slot in known if isinstance(types[slot], Atomic)]
    lows = dict(zip(ordered, decode_at(*entries.rows(f"{which}_min"), types, ordered), strict=True))
    highs = dict(zip(ordered, decode_at(*entries.rows(f"{which}_max"), types, ordered), strict=True))
    found = {}
    for field, slot in known:
        nothing = pa.nulls(len(entries), to_arrow_type(field.type))
        low, high = nothing, nothing
        if slot in lows:
            try:
                low = cast(_lowest(lows[slot], types[slot]), types[slot], field.type)
                high = cast(highs[slot], types[slot], field.type)
            except SchemaError:  # a bound that the current type cannot hold: the bounds are unknown
                low, high = nothing, nothing
        counts = entries.null_counts(f"{which}_null_counts", slot)
        found[field.name] = Bounds(min=low, max=high, null_count=counts)
    return found


def _lowest(bounds: pa.Array, kind: DataType) -> pa.Array:
    """Lower bounds of the values as readers see them.

    Java's ORC files store CHAR values, and their statistics, padded with blanks, which readers remove. The value `"a"`
    is then less than the stored bound `"a  "`. A lower bound is safe after removing its trailing blanks, and everything
    after a character that sorts before the blank. Upper bounds need no change.
    """
    if not isinstance(kind, Atomic) or kind.root is not Root.CHAR:
        return bounds
    return pc.utf8_rtrim(pc.replace_substring_regex(bounds, r"(?s)[\x00-\x1f].*", ""), " ")
