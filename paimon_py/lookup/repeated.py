"""Looks up keys with a scan, for files that contain a key twice: a key may then have several rows.

Source: Java `SortMergeReader`, which never merges two rows of one sorted run.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.codec.columns import from_numpy
from paimon_py.expr.predicate import Predicate
from paimon_py.lookup.keys import RequestedKeys, key_predicate

_NUMBER, _ROW = "_LOOKUP_NUMBER", "_LOOKUP_ROW"


def rows_by_scan(read: Callable[[Predicate], pa.Table], asked: RequestedKeys, *, with_missing: bool) -> pa.Table:
    """The rows of keys in the order of the keys, with all columns that `read` returns, which include those of the key.

    Shapes: `with_missing` — a key without a row gets one with NULL in all columns except those of the key.
    Cost: a scan of the files that may contain one of the keys.
    """
    names = [field.name for field in asked.fields]
    found = read(key_predicate(asked.fields, asked.columns))
    numbers = from_numpy(asked.numbers, pa.int64())
    schema = to_arrow_schema(asked.fields)
    keys = pa.Table.from_arrays([column.take(numbers) for column in asked.columns], schema=schema)
    wanted = keys.append_column(_NUMBER, pa.array(range(len(keys)), pa.int64()))
    there = found.select(names).cast(schema).append_column(_ROW, pa.array(range(len(found)), pa.int64()))
    joined = wanted.join(there, names, join_type="left outer" if with_missing else "inner", use_threads=False)
    joined = joined.sort_by([(_NUMBER, "ascending"), (_ROW, "ascending")])
    rows = found.take(joined[_ROW])
    for name in names:
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, rows.schema.field(place), joined[name])
    return rows
