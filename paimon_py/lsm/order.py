"""The key order of the format on Arrow columns: sorting rows, finding where keys begin, ranking metadata keys.

Rows are ordered by key, then by the user's sequence fields, then by `_SEQUENCE_NUMBER`; rows that are still equal keep
their order of arrival. Leading key bits are packed into one uint64 and sorted; neighbours that agree in it are compared
by the rest of the key.

Source: format.md §8.2, §12.2; Java `KeyComparatorSupplier`, `UserDefinedSeqComparator`, `SortMergeReader`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.binary_row import decode
from paimon_py.codec.columns import Ints, Mask, Slices, Words, from_numpy, gather_bytes, numpy_values, word_view
from paimon_py.lsm.sort_encoding import (
    WORD_BITS,
    Fixed,
    KeyPart,
    Text,
    combine_chunks,
    invert,
    leading_words,
    parts_of,
    words_at,
)
from paimon_py.spec.options import Options
from paimon_py.spec.schema import SEQUENCE_NUMBER, VALUE_KIND, TableSchema
from paimon_py.spec.types import DataType, Field

_PAIRS = 8192
"""The number of pairs of strings that are compared at once: their bytes stay in the cache over all words."""


class MergeOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The order of the rows of a bucket.

    `keys`: the trimmed primary key. `sequence`: the fields of option `sequence.field`; with `sequence_descending`
    a smaller value is newer (nulls are older either way).
    """

    keys: tuple[Field, ...]
    sequence: tuple[Field, ...] = ()
    sequence_descending: bool = False


def merge_order(schema: TableSchema) -> MergeOrder:
    """The order of rows and of versions in a primary-key table."""
    options = Options(schema.options)
    return MergeOrder(
        keys=schema.key_fields,
        sequence=tuple(schema.field(name) for name in options.get_list("sequence.field")),
        sequence_descending=options.get_enum("sequence.field.sort-order") == "descending",
    )


def sort_batch(
    order: MergeOrder, columns: Mapping[str, pa.Array | pa.ChunkedArray], *, runs_sorted: bool
) -> tuple[Ints, Mask]:
    """Row numbers in merge order, and a mask that is True where a new key begins in it.

    Shapes: `columns` contains the key columns, the sequence fields, and `_SEQUENCE_NUMBER` unless rows already arrive
        in the order of their sequence numbers. If `_VALUE_KIND` is included, −U and −D come before +I and +U with the
        same sequence number.
    Cost: if `runs_sorted` says that the rows are a few sorted runs one after the other, 10-40 ns a row for integer
        keys, 20-90 for strings; 60-170 ns a row without any order.
    Source: format.md §12.2.
    """
    parts = [part for field in order.keys for part in parts_of(columns[field.name])]
    count = len(columns[order.keys[0].name])
    rows, starts = sort_parts(parts, count, runs_sorted=runs_sorted)
    return _order_versions(order, columns, rows, starts), starts


def key_ranks(
    min_keys: pa.Array | Sequence[bytes], max_keys: pa.Array | Sequence[bytes], types: Sequence[DataType]
) -> tuple[Ints, Ints]:
    """Dense ranks of the min and max keys of files, so that key ranges compare as integers.

    Shapes: two sequences of serialized BinaryRows of the trimmed primary key → two int64 arrays; equal keys have
        equal ranks across both.
    """
    lows = decode(min_keys, types)
    highs = decode(max_keys, types)
    ranks = dense_ranks([pa.chunked_array([low, high]) for low, high in zip(lows, highs, strict=True)])
    return ranks[: len(min_keys)], ranks[len(min_keys) :]


def dense_ranks(columns: Sequence[pa.Array | pa.ChunkedArray]) -> Ints:
    """The rank of every row among the distinct rows, in key order, starting at 0."""
    parts = [part for column in columns for part in parts_of(column)]
    rows, starts = sort_parts(parts, len(columns[0]), runs_sorted=False)
    ranks = np.empty(len(rows), np.int64)
    ranks[rows] = np.cumsum(starts) - 1
    return ranks


def comparable(columns: Sequence[pa.Array | pa.ChunkedArray], bits: int) -> tuple[Ints, int]:
    """Numbers ≥ 0 that compare like rows of the columns, nulls smallest, and the number of bits that they take.

    `bits`: the bits that they may take before ranks are computed instead.
    Cost: 5 ns a row if the columns fit, otherwise one sort.
    """
    packed = _pack([part for column in columns for part in parts_of(column)], len(columns[0]))
    if not packed.rest and packed.bits <= bits:
        return packed.prefix.view(np.int64), packed.bits
    ranks = dense_ranks(columns)
    return ranks, int(ranks.max()).bit_length()


class _Packed(msgspec.Struct, frozen=True):
    prefix: Words
    bits: int
    rest: list[KeyPart]


def sort_parts(parts: list[KeyPart], count: int, *, runs_sorted: bool) -> tuple[Ints, Mask]:
    """The stable order of rows by their parts, and a mask of where a new value begins in it."""
    starts = np.ones(count, np.bool_)
    if count < 2:
        return np.arange(count, dtype=np.int64), starts
    packed = _pack(parts, count)
    row_bits = (count - 1).bit_length()
    if packed.bits + row_bits <= WORD_BITS:
        keyed = packed.prefix << np.uint64(row_bits)
        keyed |= np.arange(count, dtype=np.uint64)
        keyed.sort(kind="stable" if runs_sorted else None)
        rows = (keyed & np.uint64((1 << row_bits) - 1)).view(np.int64)
        keyed >>= np.uint64(row_bits)
        ordered = keyed
    else:
        rows = np.argsort(packed.prefix, kind="stable" if runs_sorted else None)
        ordered = packed.prefix[rows]
    np.not_equal(ordered[1:], ordered[:-1], out=starts[1:])
    if packed.bits + row_bits > WORD_BITS and not runs_sorted:
        _stabilise(rows, starts, row_bits)
    if packed.rest:
        _settle(packed.rest, rows, starts)
    return rows, starts


def _stabilise(rows: Ints, starts: Mask, row_bits: int) -> None:
    """Restore the order of arrival of equal rows, in place (numpy's fast argsort is not stable)."""
    members = _in_company(starts)
    group = np.cumsum(starts[members])
    keyed = (group.astype(np.uint64) << np.uint64(row_bits)) | rows[members].astype(np.uint64)
    keyed.sort()
    rows[members] = (keyed & np.uint64((1 << row_bits) - 1)).astype(np.int64)


def _in_company(starts: Mask) -> Ints:
    """Positions of the rows whose group has more than one row."""
    touched = ~starts
    touched[:-1] |= ~starts[1:]
    return np.flatnonzero(touched)


def _pack(parts: list[KeyPart], count: int) -> _Packed:
    """Pack the leading bits of the parts into one word; `rest`: the parts that the word does not decide."""
    prefix = np.zeros(count, np.uint64)
    bits = 0
    for index, part in enumerate(parts):
        words, width = _exact(part)
        room = WORD_BITS - bits
        if width > room:
            if room:
                prefix = (prefix << np.uint64(room) if bits else prefix) | _top(part, room)
            return _Packed(prefix, WORD_BITS, [_below(part, room), *parts[index + 1 :]])
        if width:
            prefix = words if not bits else (prefix << np.uint64(width)) | words
            bits += width
    return _Packed(prefix, bits, [])


def _exact(part: KeyPart) -> tuple[Words, int]:
    """Words that hold the whole part, and their width (more than 64 if one word is not enough)."""
    if isinstance(part, Fixed):
        return part.values, part.bits
    left = part.longest - part.cut
    if left == 0:
        return part.starts.view(np.uint64), 0
    length_bits = left.bit_length()
    width = 8 * left + length_bits
    if width > WORD_BITS:
        return part.starts.view(np.uint64), WORD_BITS + 1
    lengths = (part.lengths - part.cut).astype(np.uint64)
    return (leading_words(part) >> np.uint64(WORD_BITS - 8 * left) << np.uint64(length_bits)) | lengths, width


def _top(part: KeyPart, room: int) -> Words:
    words, width = (part.values, part.bits) if isinstance(part, Fixed) else (leading_words(part), WORD_BITS)
    top: Words = words >> np.uint64(width - room)
    return top


def _below(part: KeyPart, room: int) -> KeyPart:
    """The part with the whole bytes that `_top` took counted as shared."""
    return part if isinstance(part, Fixed) else msgspec.structs.replace(part, cut=part.cut + room // 8)


def _settle(rest: list[KeyPart], rows: Ints, starts: Mask) -> None:
    """Compare neighbours that agree so far by the rest of their parts, in place."""
    tied = np.flatnonzero(~starts)
    if not len(tied):
        return
    equal = _equal(rest, rows[tied - 1], rows[tied])
    if equal.all():
        return
    group = np.cumsum(starts) - 1
    broken = np.zeros(int(group[-1]) + 1, np.bool_)
    broken[group[tied[~equal]]] = True
    members = np.flatnonzero(broken[group])
    rows[members] = rows[members][_sorted_by(rest, rows[members], group[members])]
    again = tied[broken[group[tied]]]
    starts[again] = ~_equal(rest, rows[again - 1], rows[again])


def _equal(parts: list[KeyPart], left: Ints, right: Ints) -> Mask:
    """A mask of the pairs of rows that agree in all parts."""
    same: Mask = np.ones(len(left), np.bool_)
    for part in parts:
        if isinstance(part, Fixed):
            same &= part.values[left] == part.values[right]
        else:
            for at in range(0, len(left), _PAIRS):
                near = slice(at, at + _PAIRS)
                same[near] &= _equal_texts(part, left[near], right[near])
    return same


def _equal_texts(text: Text, left: Ints, right: Ints) -> Mask:
    lengths = text.lengths[left]
    same: Mask = lengths == text.lengths[right]
    lanes = np.flatnonzero(same)
    if len(lanes) == len(same):
        first, second = text.starts[left], text.starts[right]
    else:
        first, second, lengths = text.starts[left[lanes]], text.starts[right[lanes]], lengths[lanes]
    view = word_view(text.data)
    skip = text.cut
    while len(lanes):
        shortest = int(lengths.min())
        if shortest >= skip + 8:
            agree = view[first + skip] == view[second + skip]
        elif shortest >= 8:
            last = np.minimum(lengths - 8, skip)
            agree = view[first + last] == view[second + last]
        else:
            agree = words_at(text, first, lengths, skip) == words_at(text, second, lengths, skip)
        skip += 8
        going = agree & (lengths > skip) if shortest <= skip else agree
        if not going.all():
            same[lanes[~agree]] = False
            lanes, first, second, lengths = lanes[going], first[going], second[going], lengths[going]
    return same


def _sorted_by(parts: list[KeyPart], rows: Ints, group: Ints) -> Ints:
    """The stable order of rows inside their groups by all parts, with Arrow's multi-key sort."""
    columns = {"group": from_numpy(group, pa.int64())}
    for index, part in enumerate(parts):
        if isinstance(part, Fixed):
            columns[str(index)] = from_numpy(part.values[rows], pa.uint64())
        else:
            columns[str(index)] = _gather(part, rows)
    keys = [(name, "ascending") for name in columns]
    order = pc.sort_indices(pa.table(columns), sort_keys=keys)
    return numpy_values(order).astype(np.int64)


def _gather(text: Text, rows: Ints) -> pa.Array:
    """The strings of the given rows as one binary column."""
    slices = Slices(text.data, text.starts[rows], text.lengths[rows])
    offsets = np.append(np.zeros(1, np.int64), np.cumsum(slices.lengths))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(gather_bytes(slices))]
    return pa.Array.from_buffers(pa.large_binary(), len(rows), buffers)


def _order_versions(
    order: MergeOrder, columns: Mapping[str, pa.Array | pa.ChunkedArray], rows: Ints, starts: Mask
) -> Ints:
    """Put the rows of every key into the order of their versions; touches only keys that are out of order."""
    names = [field.name for field in order.sequence]
    names += [name for name in (SEQUENCE_NUMBER,) if name in columns]
    if not names or starts.all() or (not order.sequence and _numbers_ascend(columns, rows, starts)):
        return rows
    members = _in_company(starts)
    picked = rows[members]
    words = [word for field in order.sequence for word in _version_words(columns[field.name], picked, order)]
    if SEQUENCE_NUMBER in columns:
        words += _picked_words(columns[SEQUENCE_NUMBER], picked)
        if VALUE_KIND in columns:
            words += _add_words(columns[VALUE_KIND], picked)
    group: Ints = np.cumsum(starts[members])
    falls = _falls(words, group)
    if not falls.any():
        return rows
    unordered = np.zeros(int(group[-1]) + 1, np.bool_)
    unordered[group[1:][falls]] = True
    at = np.flatnonzero(unordered[group])
    rows[members[at]] = picked[at[np.lexsort([*(word[at] for word in reversed(words)), group[at]])]]
    return rows


def _numbers_ascend(columns: Mapping[str, pa.Array | pa.ChunkedArray], rows: Ints, starts: Mask) -> bool:
    """Whether sequence numbers ascend within every key; equal ones are allowed if there are no row kinds."""
    numbers = numpy_values(combine_chunks(columns[SEQUENCE_NUMBER]))[rows]
    back = numbers[1:] <= numbers[:-1] if VALUE_KIND in columns else numbers[1:] < numbers[:-1]
    return not bool((back & ~starts[1:]).any())


def _falls(words: list[Words], group: Ints) -> Mask:
    """The places, from the second row on, where a row of a group follows a larger one."""
    tied: Mask = group[1:] == group[:-1]
    falls = np.zeros(len(tied), np.bool_)
    for word in words:
        falls |= tied & (word[1:] < word[:-1])
        tied = tied & (word[1:] == word[:-1])
    return falls


def _picked_words(column: pa.Array | pa.ChunkedArray, rows: Ints) -> list[Words]:
    picked = combine_chunks(column).take(from_numpy(rows, pa.int64()))
    return [part.values for part in parts_of(picked) if isinstance(part, Fixed)]


def _version_words(column: pa.Array | pa.ChunkedArray, rows: Ints, order: MergeOrder) -> list[Words]:
    """The words of one sequence field: null is the oldest, also when smaller values are newer."""
    picked = combine_chunks(column).take(from_numpy(rows, pa.int64()))
    parts = parts_of(picked)
    nullable = picked.null_count > 0
    if any(isinstance(part, Text) for part in parts):
        ranks = dense_ranks([picked]).astype(np.uint64)
        parts = [Fixed(ranks, int(ranks.max()).bit_length())]
        if nullable:
            parts = [Fixed((ranks > 0).astype(np.uint64), 1), *parts]
    if order.sequence_descending:
        head = parts[:1] if nullable else []
        parts = head + invert(parts[len(head) :])
    return [part.values for part in parts if isinstance(part, Fixed)]


def _add_words(kinds: pa.Array | pa.ChunkedArray, rows: Ints) -> list[Words]:
    values = numpy_values(combine_chunks(kinds))[rows]
    return [(values & 1 == 0).astype(np.uint64)]
