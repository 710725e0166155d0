"""The aggregation engine over whole windows."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from unit.lsm import aggregate_reference as plain

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.errors import SchemaError
from paimon_py.lsm.engines import engine_of
from paimon_py.lsm.groups import Groups
from paimon_py.spec.new_schema import Schema, TableSpec, new_table_schema

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)
COLUMNS = {
    "id": ("INT NOT NULL", plain.PrimaryKey, lambda rng: 1),
    "q": ("INT NOT NULL", plain.LastValue, lambda rng: rng.randrange(9)),
    "a": ("INT", lambda: plain.Sum("INT"), lambda rng: rng.randrange(9)),
    "b": ("STRING", plain.LastNonNull, lambda rng: rng.choice("xyz")),
    "c": ("ARRAY<INT>", lambda: plain.Collect(False), lambda rng: [rng.randrange(3)]),
    "d": ("STRING", plain.LastValue, lambda rng: rng.choice("xyz")),
    "e": ("DOUBLE", plain.LastNonNull, lambda rng: float(rng.randrange(9))),
}
OPTIONS = {
    "bucket": "1",
    "merge-engine": "aggregation",
    "sequence.field": "q",
    "fields.a.aggregate-function": "sum",
    "fields.c.aggregate-function": "collect",
    "fields.d.aggregate-function": "last_value",
}


def schema_of(**options):
    spec = TableSpec(primary_keys=("id",), options={**OPTIONS, **options})
    return new_table_schema(Schema([(name, kind) for name, (kind, _, _) in COLUMNS.items()]), spec, time_millis=1)


def merged(schema, columns, order, starts):
    """What the engine makes of a window, column by column as Python values, and the rows that stand for the keys."""
    chunks = {name: pa.chunked_array([array.slice(0, 7), array.slice(7)]) for name, array in columns.items()}
    groups = Groups(np.array(order, np.int64), np.array(starts, np.bool_))
    result = engine_of(schema)(groups, chunks)
    rows = result.rows.tolist()
    found = {}
    for name, array in columns.items():
        values = array.to_pylist()
        made = result.columns.get(name)
        assert made is None or made.type == array.type
        found[name] = [values[row] for row in rows] if made is None else made.to_pylist()
    return found, rows


def by_the_rules(columns, kinds, order, starts, remove):
    """Java's AggregateMergeFunction, key by key."""
    begins = [place for place, start in enumerate(starts) if start]
    found = {name: [] for name in columns}
    found["_VALUE_KIND"] = []
    for begin, end in zip(begins, [*begins[1:], len(order)], strict=True):
        rows = order[begin:end]
        for name, values in columns.items():
            actions = [
                plain.SET if remove and kinds[row] == DELETE else plain.RETRACT if kinds[row] & 1 else plain.ADD
                for row in rows
            ]
            single = len(rows) == 1
            found[name].append(
                values[rows[0]] if single else plain.fold(COLUMNS[name][1](), [values[row] for row in rows], actions)
            )
        last = kinds[rows[-1]]
        found["_VALUE_KIND"].append(last if len(rows) == 1 else DELETE if remove and last == DELETE else INSERT)
    return found


@pytest.mark.parametrize("remove", [False, True])
@pytest.mark.parametrize("kinds", [[INSERT], [INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE], None])
@pytest.mark.parametrize("longest", [1, 2, 6])
def test_keys_merge_as_the_rules_define(remove, kinds, longest):
    rng = random.Random(f"{remove} {kinds} {longest}")
    schema = schema_of(**{"aggregation.remove-record-on-delete": str(remove).lower()})
    for _ in range(10):
        count = rng.randrange(1, 60)
        starts = [True]
        while len(starts) < count:
            starts += [True] + [False] * rng.randrange(longest)
        starts = starts[:count]
        order = rng.sample(range(count), count)
        values = {
            name: [None if "NOT" not in kind and rng.random() < 0.3 else make(rng) for _ in range(count)]
            for name, (kind, _, make) in COLUMNS.items()
        }
        columns = {name: pa.array(values[name], to_arrow_type(schema.field(name).type)) for name in COLUMNS}
        row_kinds = [INSERT] * count
        if kinds is not None:
            row_kinds = [rng.choice(kinds) for _ in range(count)]
            columns["_VALUE_KIND"] = pa.array(row_kinds, pa.int8())
        found, rows = merged(schema, columns, order, starts)
        wanted = by_the_rules(values, row_kinds, order, starts, remove)
        assert found == {name: wanted[name] for name in columns}
        assert rows == [row for row, end in zip(order, [*starts[1:], True], strict=True) if end]


def test_columns_that_keep_their_newest_value_are_not_rebuilt():
    schema = schema_of()
    columns = {
        "id": pa.array([1, 1, 2]),
        "b": pa.array(["x", "y", "z"]),
        "d": pa.array(["x", None, "z"]),
        "e": pa.array([1.0, None, 2.0]),
    }
    groups = Groups(np.arange(3), np.array([True, False, True]))
    made = engine_of(schema)(groups, {name: pa.chunked_array([column]) for name, column in columns.items()})
    assert set(made.columns) == {"e"}
    assert made.columns["e"].to_pylist() == [1.0, 2.0]


def test_a_delete_that_becomes_the_record_needs_values_for_not_null_columns():
    schema = schema_of(**{"aggregation.remove-record-on-delete": "true"})
    columns = {
        "q": pa.chunked_array([pa.array([1, None], pa.int32())]),
        "_VALUE_KIND": pa.chunked_array([pa.array([INSERT, DELETE], pa.int8())]),
    }
    with pytest.raises(SchemaError, match="'q' is NOT NULL"):
        engine_of(schema)(Groups(np.arange(2), np.array([True, False])), columns)


def test_only_requested_columns_are_read():
    assert engine_of(schema_of()).inputs(frozenset({"a"})) == {"a"}
