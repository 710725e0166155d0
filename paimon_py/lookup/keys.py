"""The keys of a lookup: user input → columns of the primary key, each key once, in key order."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_field, to_arrow_schema
from paimon_py.codec.columns import Ints, Words, combine, from_numpy
from paimon_py.codec.python_values import python_array
from paimon_py.errors import SchemaError, UsageError
from paimon_py.expr.bind import all_of, any_of, bind
from paimon_py.expr.column import col
from paimon_py.expr.predicate import Predicate
from paimon_py.lazy import lazy_property
from paimon_py.lookup.key_index import key_words
from paimon_py.lsm.order import MergeOrder, sort_batch
from paimon_py.lsm.probe import KeyProbe
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Field
from paimon_py.write.convert import plan
from paimon_py.write.misfits import place_of
from paimon_py.write.steps import Refusal
from paimon_py.write.streams import open_stream

_NAMED_MAX = 64
"""The maximum number of values of a column that a predicate lists; for more values it uses their range."""


def check_missing(missing: object) -> None:
    """Refuse values of `missing` that are not supported. Raises: UsageError"""
    if not isinstance(missing, str) or missing not in ("drop", "null"):
        raise UsageError(f'missing must be "drop" or "null", not {missing!r}')


class RequestedKeys:
    """The keys of one lookup.

    Attributes:
        fields: columns of the primary key, in the order in which the distinct keys ascend.
        columns: the distinct keys, ascending.
        numbers: the number of the distinct key of each requested key.
    """

    def __init__(self, schema: TableSchema, keys: object) -> None:
        """Raises: UsageError for input that is not keys, SchemaError for keys of wrong types or with NULL."""
        if not schema.primary_keys:
            raise UsageError("lookup needs a table with a primary key; read this one with scan(where=…)")
        inside = set(schema.trimmed_primary_keys)
        outside = [schema.field(name) for name in schema.primary_keys if name not in inside]
        self.fields: tuple[Field, ...] = (*outside, *schema.key_fields)
        given = _keys(keys, tuple(schema.field(name) for name in schema.primary_keys))
        columns = [_column(given, field) for field in self.fields]
        self._trimmed = schema.key_fields
        if KeyProbe(columns).ascends():
            self.numbers: Ints = np.arange(len(columns[0]))
            self.columns: list[pa.Array] = columns
            return
        named = {field.name: column for field, column in zip(self.fields, columns, strict=True)}
        order, starts = sort_batch(MergeOrder(keys=self.fields), named, runs_sorted=False)
        self.numbers = np.empty(len(order), np.int64)
        self.numbers[order] = np.cumsum(starts) - 1
        firsts = from_numpy(order[starts], pa.int64())
        self.columns = [column.take(firsts) for column in columns]

    def __len__(self) -> int:
        return len(self.columns[0])

    def of(self, fields: Sequence[Field]) -> list[pa.Array]:
        """The given columns."""
        by_name = {field.name: column for field, column in zip(self.fields, self.columns, strict=True)}
        return [by_name[field.name] for field in fields]

    @lazy_property
    def words(self) -> Words:
        """The numbers of the trimmed keys in an index."""
        return key_words(self.of(self._trimmed), self._trimmed)


def key_predicate(fields: Sequence[Field], columns: Sequence[pa.Array]) -> Predicate:
    """A predicate that all rows with one of these keys satisfy: to skip files, row groups and index entries.

    Shapes: the keys ascend.
    """
    parts = []
    for at, (field, column) in enumerate(zip(fields, columns, strict=True)):
        known = column.drop_null() if column.null_count else column
        found: list[Predicate] = []
        if len(column) <= _NAMED_MAX:
            found.append(col(field.name).isin(list(known.unique())))
        elif at == 0:
            found += [col(field.name).between(known[0], known[len(known) - 1])] if len(known) else []
        else:
            continue
        if column.null_count:
            found.append(col(field.name).is_null())
        parts.append(any_of(bind(one, fields) for one in found))
    return all_of(parts)


def _keys(keys: object, fields: tuple[Field, ...]) -> pa.Table:
    """The keys as a table with a column for each field of the primary key, in any type."""
    names = [field.name for field in fields]
    if isinstance(keys, Mapping):
        keys = [keys]
    if _is_column(keys):
        if len(fields) > 1:
            raise UsageError(f"the key is {', '.join(map(repr, names))}: give a column for each, not one array")
        try:
            return pa.table({names[0]: keys if isinstance(keys, (pa.Array, pa.ChunkedArray)) else pa.array(keys)})
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise SchemaError(f"key column {names[0]!r}: {error}", fields=(names[0],)) from error
    if isinstance(keys, (list, tuple)):
        return _to_table(keys, fields)
    if not (hasattr(keys, "__arrow_c_stream__") or hasattr(keys, "__arrow_c_array__") or hasattr(keys, "columns")):
        shown = ", ".join(f"{name!r}: …" for name in names)
        raise UsageError(f"lookup takes keys as {{{shown}}}, as a list of such, or as Arrow data, not {keys!r}")
    table = open_stream(keys).read_all()
    _check_names(table.column_names, names)
    return table


def _is_column(keys: object) -> bool:
    """Whether the input is the values of one column: of Arrow, numpy, pandas or polars."""
    return isinstance(keys, (pa.Array, pa.ChunkedArray, np.ndarray)) or type(keys).__name__ == "Series"


def _to_table(keys: Sequence[object], fields: tuple[Field, ...]) -> pa.Table:
    names = [field.name for field in fields]
    schema = to_arrow_schema(fields)
    columns = _columns(keys, names)
    arrays = []
    for name, values, kind in zip(names, columns, schema.types, strict=True):
        try:
            arrays.append(python_array(values, kind))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise SchemaError(f"key column {name!r}: {error}", fields=(name,)) from error
    return pa.table(dict(zip(names, arrays, strict=True)))


def _columns(keys: Sequence[Any], names: Sequence[str]) -> list[list[object]]:
    """The values of the keys by column."""
    kinds = set(map(type, keys))
    if len(names) == 1 and not any(issubclass(kind, (Mapping, tuple)) for kind in kinds):
        return [list(keys)]
    if kinds in ({dict}, {tuple}) and set(map(len, keys)) == {len(names)}:
        places: Sequence[Any] = names if kinds == {dict} else range(len(names))
        with contextlib.suppress(KeyError):  # the names are wrong: the check below reports them
            return [list(map(itemgetter(place), keys)) for place in places]
    rows = [_by_name(key, names) for key in keys]
    return [[row[name] for row in rows] for name in names]


def _by_name(key: object, names: Sequence[str]) -> Mapping[str, object]:
    """The values of one key by column."""
    if isinstance(key, Mapping):
        _check_names(list(key), names)
        return key
    if isinstance(key, tuple) and len(key) == len(names):
        return dict(zip(names, key, strict=True))
    raise UsageError(f"a key is {{{', '.join(f'{name!r}: …' for name in names)}}}, not {key!r}")


def _check_names(given: Sequence[object], names: Sequence[str]) -> None:
    missing = [name for name in names if name not in given]
    if missing:
        raise UsageError(f"keys lack {', '.join(map(repr, missing))}; the primary key is {', '.join(map(repr, names))}")
    others = [name for name in given if name not in names]
    if others or len(given) != len(names):
        raise UsageError(
            f"keys have {', '.join(map(repr, others)) or 'a column twice'}, the primary key is "
            f"{', '.join(map(repr, names))}: give exactly its columns"
        )


def _column(table: pa.Table, field: Field) -> pa.Array:
    column = combine(table.column(field.name))
    place = place_of(field.name)
    if column.null_count and not field.type.nullable:
        raise SchemaError(f"key column {field.name!r} holds NULL, which keys cannot contain", fields=(field.name,))
    target = to_arrow_field(field).type
    if column.type != target and _is_alike(column.type, target):
        try:
            return column.cast(target)
        except pa.ArrowInvalid as error:
            raise SchemaError(f"key column {field.name!r}: {error}", fields=(field.name,)) from error
    step = plan(column.type, field.type, place)
    if isinstance(step, Refusal):
        raise SchemaError(f"key column {step}", fields=(field.name,))
    return step(column)


def _is_alike(given: pa.DataType, target: pa.DataType) -> bool:
    """Whether values that fit are the same in both types: true for timestamps of any unit."""
    both = pa.types.is_timestamp(given) and pa.types.is_timestamp(target)
    return both and bool(given.tz is None) == bool(target.tz is None)
