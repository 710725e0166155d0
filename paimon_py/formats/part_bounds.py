"""Selects the parts of a file that may contain a match, by bounds in the file that its manifest entry confirms.

Without this check, flipped bits in a footer would go undetected: Parquet and ORC footers have no checksum.

Source: none; Java trusts footers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.arrays import Mask
from paimon_py.expr.predicate import Predicate
from paimon_py.expr.prune import Bounds, may_match

WholeBounds = Callable[[], Mapping[str, Bounds]]
"""The bounds of a whole file's columns from its manifest entry: one slot each, by name."""


def matching_parts(
    predicate: Predicate, bounds: Mapping[str, Bounds], rows: pa.Array, whole: WholeBounds | None
) -> Mask:
    """A mask of the row groups or stripes that may contain a match.

    The bounds of a column are ignored if those of its parts contradict those of the whole file.

    Shapes: `rows` and all arrays of `bounds` have one slot per part.
    Args:
        whole: called only if a part would be skipped.
    """
    found = may_match(predicate, bounds, rows)
    if whole is None or found.all():
        return found
    known = whole()
    agreed = {name: each for name, each in bounds.items() if name not in known or _agree(each, known[name])}
    return found if len(agreed) == len(bounds) else may_match(predicate, agreed, rows)


def _agree(parts: Bounds, whole: Bounds) -> bool:
    return _counts_agree(parts.null_count, whole.null_count) and (
        _agree_at(parts.min, whole.min, pc.min) and _agree_at(parts.max, whole.max, pc.max)
    )


def _counts_agree(parts: pa.Array | None, whole: pa.Array | None) -> bool:
    if parts is None or whole is None or parts.null_count or whole.null_count:
        return True
    return bool(pc.sum(parts).as_py() == whole[0].as_py())


def _agree_at(parts: pa.Array, whole: pa.Array, extreme: Callable[[pa.Array], Any]) -> bool:
    """Whether the extreme of the parts' bounds equals the known one of the whole; True if either is unknown."""
    if whole.null_count or parts.null_count == len(parts):
        return True
    least, known = extreme(parts), whole[0]
    if pa.types.is_string(known.type) and least.type == known.type:
        return _is_cut(least.as_py(), known.as_py())
    return bool(pc.equal(least, known.cast(least.type)).as_py())


def _is_cut(text: str, known: str) -> bool:
    """Whether a bound may be the string, truncated and incremented: manifests keep 16 characters."""
    return text.startswith(known) or (len(text) >= len(known) and text.startswith(known[:-1]))
