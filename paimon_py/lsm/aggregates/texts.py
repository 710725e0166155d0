"""listagg: texts joined by a delimiter, blank ones left out.

Source: format.md §12.5; Java `FieldListaggAgg`, `StringUtils.isBlank`, `splitByWholeSeparatorPreserveAllTokens`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import (
    Ints,
    Mask,
    child_range,
    combine,
    from_numpy,
    numpy_values,
    text_array,
    validity_mask,
)
from paimon_py.lsm.aggregates.base import ADD_REVERSED, SET, Fold, Steps, take_or_null
from paimon_py.spec.aggregate_rules import Aggregate

WHITESPACE = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a"
    "\u2028\u2029\u205f\u3000"
)
"""What Java's `Character.isWhitespace` says yes to: no-break spaces are none."""


def listagg(made: Aggregate, values: pa.Array, fold: Fold) -> pa.Array:
    """Texts in the order of the versions, older ones in front; with `distinct`, tokens that are there already are not
    added again.

    A group without any text that is not blank keeps what a SET or an older version left.
    Cost: 60 ns a row; with `distinct` also one dictionary of all tokens, or with a delimiter that texts can grow
        together with a loop over texts.
    """
    steps = fold.steps
    solid = validity_mask(values) & ~_blank(values)
    pieces = steps.only(steps.of(solid))
    in_turn = made.distinct and _grows_together(made.delimiter)
    if not in_turn:
        pieces = in_rank(pieces)
    rows = np.arange(pieces.total) if pieces.rows is None else pieces.rows
    texts = values.take(from_numpy(rows, pa.int64()))
    if in_turn:
        joined = _distinct_in_turn(texts, pieces, made.delimiter)
    elif made.distinct:
        joined = _join(*_distinct(texts, pieces, made.delimiter), made.delimiter)
    else:
        joined = _join(texts, pieces.ends - pieces.starts, made.delimiter)
    empty = pieces.ends == pieces.starts
    if not empty.any():
        return joined
    fallback = take_or_null(values, np.where(empty, _left_behind(steps), -1))
    return pc.if_else(from_numpy(empty, pa.bool_()), fallback, joined)


def in_rank(steps: Steps) -> Steps:
    """The steps in the order of age: older values that came later go to the front, the last of them first."""
    if steps.actions is None or not (steps.actions == ADD_REVERSED).any():
        return steps
    place = np.arange(steps.total)
    rank = np.where(steps.actions == ADD_REVERSED, -1 - place, place)
    order = np.lexsort((rank, steps.groups()))
    return Steps(order if steps.rows is None else steps.rows[order], steps.actions[order], steps.starts, steps.ends)


def _left_behind(steps: Steps) -> Ints:
    """The row of every group's last SET or older value, -1 if there is none."""
    found = np.full(len(steps.starts), -1, np.int64)
    if steps.actions is None:
        return found
    left = steps.only((steps.actions == SET) | (steps.actions == ADD_REVERSED))
    some = left.ends > left.starts
    rows = np.arange(left.total) if left.rows is None else left.rows
    found[some] = rows[left.ends[some] - 1]
    return found


def _distinct(texts: pa.Array, pieces: Steps, delimiter: str) -> tuple[pa.Array, Ints]:
    """Every group's first text as it is, then each further token once; and how many items every group has."""
    first = np.zeros(pieces.total, np.bool_)
    filled = pieces.ends > pieces.starts
    first[pieces.starts[filled]] = True
    tokens, owner = _tokens(texts, delimiter)
    groups = pieces.groups()
    owners = groups[owner]
    codes = numpy_values(pc.dictionary_encode(tokens).indices).astype(np.int64)
    order = np.lexsort((codes, owners))
    new = np.ones(len(order), np.bool_)
    new[1:] = (owners[order][1:] != owners[order][:-1]) | (codes[order][1:] != codes[order][:-1])
    once = np.zeros(len(order), np.bool_)
    once[order] = new
    kept = np.flatnonzero(once & ~first[owner] & ~_blank(tokens))
    items = pa.concat_arrays(
        [texts.filter(from_numpy(first, pa.bool_())), tokens.take(from_numpy(kept, pa.int64()))]
    )
    item_groups = np.concatenate((groups[first], owners[kept]))
    arranged = np.argsort(item_groups, kind="stable")
    counts = np.bincount(item_groups, minlength=len(pieces.starts))
    return items.take(from_numpy(arranged, pa.int64())), counts


def _grows_together(delimiter: str) -> bool:
    """Whether joined texts can fall apart in other places than where they were joined: nothing, or 'aa' after 'xa'."""
    return not delimiter or any(delimiter.endswith(delimiter[:size]) for size in range(1, len(delimiter)))


def _distinct_in_turn(texts: pa.Array, pieces: Steps, delimiter: str) -> pa.Array:
    """Join distinct texts as `_distinct` and `_join` do; what is there is found by splitting the joined text."""
    parts = texts.to_pylist()
    reverse = [False] * len(parts) if pieces.actions is None else (pieces.actions == ADD_REVERSED).tolist()
    results = []
    for start, end in zip(pieces.starts.tolist(), pieces.ends.tolist(), strict=True):
        joined = parts[start] if end > start else ""
        for part, older in zip(parts[start + 1 : end], reverse[start + 1 : end], strict=True):
            joined, added = (part, joined) if older else (joined, part)
            there = set(joined.split(delimiter or " "))
            for token in added.split(delimiter or " "):
                if token.strip(WHITESPACE) and token not in there:
                    there.add(token)
                    joined += delimiter + token
        results.append(joined)
    return text_array(results)


def _tokens(texts: pa.Array, delimiter: str) -> tuple[pa.Array, Ints]:
    """All tokens, and the number of the text each comes from."""
    lists = combine(pc.split_pattern(texts, delimiter or " "))
    sizes, _, first, last = child_range(lists)
    return lists.values.slice(first, last - first), np.repeat(np.arange(len(texts)), sizes)


def _join(items: pa.Array, counts: Ints, delimiter: str) -> pa.Array:
    """The items of every group, which follow each other, as one text."""
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    lists = pa.ListArray.from_arrays(from_numpy(offsets.astype(np.int32), pa.int32()), items)
    return pc.binary_join(lists, text_array([delimiter])[0])


def _blank(texts: pa.Array) -> Mask:
    """Which texts are nothing but white space."""
    trimmed = pc.utf8_ltrim(texts, characters=WHITESPACE)
    found: Mask = numpy_values(pc.binary_length(trimmed)) == 0
    return found
