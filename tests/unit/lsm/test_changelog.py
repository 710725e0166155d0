"""Change rows of one window, compared with Java's rules row by row."""

from __future__ import annotations

import math
import random
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon_py.lsm.changelog import ChangeRules, change_rows, insertions
from paimon_py.lsm.groups import Merged
from paimon_py.spec.types import ArrayType, Atomic, Field, Root

INSERT, BEFORE, AFTER, DELETE = range(4)
SYSTEM = ("_SEQUENCE_NUMBER", "_VALUE_KIND")
FIELDS = (
    Field(0, "i", Atomic(Root.INT)),
    Field(1, "d", Atomic(Root.DOUBLE)),
    Field(2, "t", Atomic(Root.VARCHAR, length=10)),
    Field(3, "a", ArrayType(Atomic(Root.DOUBLE))),
)
NAMES = tuple(field.name for field in FIELDS)
TYPES = (pa.int64(), pa.int8(), pa.int32(), pa.float64(), pa.string(), pa.list_(pa.float64()))

doubles = st.sampled_from([None, 0.0, -0.0, 1.5, math.nan])
versions = st.tuples(
    st.integers(0, 99), st.integers(0, 3), st.sampled_from([None, 0, 1]), doubles, st.sampled_from([None, "", "a"]),
    st.one_of(st.none(), st.lists(doubles, max_size=2)),
)  # fmt: skip


def column(values, kind):
    return pa.chunked_array([pa.array(part, kind) for part in (values[:3], values[3:])], kind)


def window(rows):
    columns = list(zip(*rows, strict=True)) or [()] * len(TYPES)
    return {name: column(values, kind) for name, values, kind in zip(SYSTEM + NAMES, columns, TYPES, strict=True)}


def words(value):
    """A value as something that is equal where Java's comparison says so."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("<d", value)
    return [words(one) for one in value] if isinstance(value, list) else value


def same(one, other, compared):
    places = [2 + NAMES.index(field.name) for field in compared]
    return all(words(one[at]) == words(other[at]) for at in places)


def expected(before, after, rules):
    """Java's `setChangelog`."""
    was, is_now = before is not None and before[1] % 2 == 0, after[1] % 2 == 0
    if was and is_now:
        if rules.compared is not None and same(before, after, rules.compared):
            return []
        return [(before[0], BEFORE, *before[2:]), (after[0], AFTER, *after[2:])]
    if was:
        return [(before[0], DELETE, *before[2:])]
    return [(after[0], after[1] if rules.keeps_kinds else INSERT, *after[2:])] if is_now else []


def drawn_version(rng):
    double = rng.choice([None, 0.0, -0.0, 1.5, math.nan])
    array = None if rng.random() < 0.2 else [rng.choice([None, 0.0, -0.0, math.nan]) for _ in range(rng.randrange(3))]
    return (rng.randrange(100), rng.choice([0, 0, 0, 1, 2, 3]), rng.choice([None, 0, 1]), double, rng.choice([None, "", "a"]), array)


def nearly(rng, row):
    """The row with at most one other value, and perhaps another kind."""
    other, at = drawn_version(rng), rng.choice([0, 1, *range(2, len(TYPES)), None, None])
    return tuple(other[place] if place == at else value for place, value in enumerate(row))


@pytest.mark.parametrize("seed", range(60))
def test_every_key_reports_the_changes_that_java_reports(seed):
    """Half of the rows after differ from the rows before in one value or none."""
    rng = random.Random(seed)
    rows = [drawn_version(rng) for _ in range(rng.choice([1, 3, 30]))]
    rows += [nearly(rng, row) for row in rows]
    keys = [(rng.randrange(-1, len(rows)), rng.randrange(len(rows)), rng.random() < 0.8) for _ in range(rng.choice([0, 1, 40]))]
    keys += [(at, at + len(rows) // 2, True) for at in range(len(rows) // 2)]
    computed = {at for at in range(len(TYPES)) if rng.random() < 0.2}
    merged = []
    for before, row, _ in keys:
        own = nearly(rng, rows[max(before, 0)])
        merged.append(tuple(own[at] if at in computed else rows[row][at] for at in range(len(TYPES))))
    compared = rng.choice([None, FIELDS, tuple(field for field in FIELDS if rng.random() < 0.5)])
    rules = ChangeRules(columns=SYSTEM + NAMES, compared=compared, keeps_kinds=rng.random() < 0.5)
    made = {
        (SYSTEM + NAMES)[at]: pa.array([row[at] for row in merged], TYPES[at]) for at in computed
    }
    result = change_rows(
        window(rows),
        np.array([before for before, _, _ in keys], np.int64),
        Merged(np.array([row for _, row, _ in keys], np.int64), made),
        np.array([told for _, _, told in keys], np.bool_),
        rules,
    )
    want = [
        change
        for (before, _, told), after in zip(keys, merged, strict=True) if told
        for change in expected(None if before < 0 else rows[before], after, rules)
    ]  # fmt: skip
    assert result.column_names == list(rules.columns)
    got = [tuple(row.values()) for row in result.to_pylist()]
    assert [words(list(row)) for row in got] == [words(list(row)) for row in want]


@settings(deadline=None)
@given(st.lists(versions, max_size=9))
def test_rows_that_meet_no_others_are_new_or_nothing(rows):
    batch = pa.table(window(rows)).combine_chunks().to_batches()
    got = [tuple(row.values()) for part in batch for row in insertions(part, ChangeRules(columns=SYSTEM + NAMES)).to_pylist()]
    want = [(row[0], INSERT, *row[2:]) for row in rows if row[1] % 2 == 0]
    assert [words(list(row)) for row in got] == [words(list(row)) for row in want]
