"""Tables by merge engine, and what Java makes of the versions of one of their keys, row by row.

Source: format.md §12; Java `MergeFunction` and its implementations, release 2.0.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from unit.lsm.engine_models import DELETE, INSERT, PartialUpdate, Refused, Row, Sum, first_row, lookup

KINDS = ("+I", "-U", "+U", "-D")
ADDS = ("+I", "+U")


class Token:
    """When rows were committed: later numbers are newer. Rows of a writer that has not committed are newer than all."""

    def __init__(self, number):
        self.number = number


class Stamp(msgspec.Struct):
    """The sequence number of a row: its commit, and its place there."""

    token: Token
    index: int

    def key(self):
        return self.token.number, self.index


# -- aggregate functions: state starts anew for every merge ---


class Function:
    """An aggregate function; Java's defaults."""

    def agg_reversed(self, acc, value):
        return self.agg(value, acc)

    def retract(self, acc, value):
        raise Refused


class Max(Function):
    def agg(self, acc, value):
        return value if acc is None else acc if value is None else max(acc, value)


class Min(Function):
    def agg(self, acc, value):
        return value if acc is None else acc if value is None else min(acc, value)


class LastValue(Function):
    def agg(self, acc, value):
        return value

    def retract(self, acc, value):
        return None


class LastNonNull(Function):
    def agg(self, acc, value):
        return acc if value is None else value

    def retract(self, acc, value):
        return acc if value is None else None


class Key(LastValue):
    def retract(self, acc, value):
        return value


class FirstValue(Function):
    initialized = False

    def agg(self, acc, value):
        if self.initialized:
            return acc
        self.initialized = True
        return value


class FirstNonNull(Function):
    initialized = False

    def agg(self, acc, value):
        if self.initialized or value is None:
            return acc
        self.initialized = True
        return value


class ListAgg(Function):
    def agg(self, acc, value):
        if value is None or not value.strip():
            return acc
        return value if acc is None or not acc.strip() else f"{acc},{value}"


class BoolOr(Function):
    def agg(self, acc, value):
        return value if acc is None else acc if value is None else acc or value


class BoolAnd(Function):
    def agg(self, acc, value):
        return value if acc is None else acc if value is None else acc and value


FUNCTIONS = {
    "sum": Sum,
    "max": Max,
    "min": Min,
    "last_value": LastValue,
    "last_non_null_value": LastNonNull,
    "first_value": FirstValue,
    "first_non_null_value": FirstNonNull,
    "listagg": ListAgg,
    "bool_or": BoolOr,
    "bool_and": BoolAnd,
    "primary-key": Key,
}

# -- engines: the versions of a key, oldest first, become one row or none ---

Fold = Callable[[list[Row]], "Row | None"]


def deduplicate(rows):
    return rows[-1]


def aggregation(functions, *, remove=False):
    """Java's `AggregateMergeFunction`."""

    functions = {"p": "primary-key", "k": "primary-key", **functions}

    def fold(rows):
        made = {name: FUNCTIONS[functions.get(name, "last_non_null_value")]() for name in rows[-1].values}
        row = dict.fromkeys(made)
        deleted = False
        for version in rows:
            deleted = remove and version.kind == DELETE
            if deleted:
                row = dict(version.values)
                continue
            for name, function in made.items():
                act = function.retract if version.kind & 1 else function.agg
                row[name] = act(row[name], version.values[name])
        return Row(row, DELETE if deleted else INSERT, rows[-1].sequence)

    return fold


def partial_update(**settings):
    """Java's `PartialUpdateMergeFunction`."""

    def fold(rows):
        return PartialUpdate(list(rows[-1].values), **settings)(rows)

    return fold


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A table: how it merges, and what may be written to it.

    `flat`: the rows that a key ever got, merged at once, are what a reader sees, however they were compacted.
    `flat_by_lookup`: so they are where compactions look keys up.
    """

    name: str
    columns: dict
    options: dict
    fold: Fold
    kinds: tuple = ADDS
    flat: bool = False
    flat_by_lookup: bool = True
    sequence: tuple = ()
    descending: bool = False
    ignore_delete: bool = False

    @property
    def first_wins(self):
        return self.options.get("merge-engine") == "first-row"

    @property
    def newest_wins(self):
        return self.options.get("merge-engine", "deduplicate") == "deduplicate" and not self.sequence

    def order(self, row):
        """What a row is sorted by among the versions of its key: nulls are oldest."""
        sign = -1 if self.descending else 1
        given = (row.values[name] for name in self.sequence)
        return tuple((value is not None, sign * (value or 0)) for value in given), row.sequence.key()


def _aggregates(functions, **more):
    options = {f"fields.{name}.aggregate-function": function for name, function in functions.items()}
    return {"merge-engine": "aggregation", **options, **more}


_MANY = {
    "m": "max", "n": "min", "f": "first_value", "h": "first_non_null_value", "l": "listagg", "t": "bool_or", "u": "bool_and",
}  # fmt: skip
_MANY_COLUMNS = {"m": "INT", "n": "INT", "f": "STRING", "h": "INT", "l": "STRING", "t": "BOOLEAN", "u": "BOOLEAN"}
_RETRACTABLE = {"v": "sum", "x": "last_value"}
_GROUPS = {"fields.g.sequence-group": "a,b", "fields.h,i.sequence-group": "c,d", "fields.c.aggregate-function": "sum"}
_GROUP_COLUMNS = {"a": "INT", "g": "INT", "b": "STRING", "c": "INT", "h": "INT", "i": "INT", "d": "INT", "e": "STRING"}
_GROUP_MEMBERS = ((("g",), ("a", "b")), (("h", "i"), ("c", "d")))
_PARTIAL = {"merge-engine": "partial-update"}
_FIRST = {"merge-engine": "first-row"}
_VALUES = {"v": "INT", "w": "STRING"}
_ORDERED = {"v": "INT", "s": "INT", "w": "STRING"}

CASES = (
    Case(name="deduplicate", columns=_VALUES, options={}, fold=deduplicate, kinds=KINDS, flat=True),
    Case(
        name="deduplicate without deletes", columns=_VALUES, options={"ignore-delete": "true"}, fold=deduplicate,
        kinds=KINDS, flat=True, ignore_delete=True,
    ),
    Case(
        name="deduplicate by sequence", columns=_ORDERED, options={"sequence.field": "s"}, fold=deduplicate, kinds=KINDS,
        sequence=("s",),
    ),
    Case(
        name="deduplicate by two descending", columns={**_ORDERED, "r": "INT"},
        options={"sequence.field": "s,r", "sequence.field.sort-order": "descending"}, fold=deduplicate, flat=True,
        sequence=("s", "r"), descending=True,
    ),
    Case(name="partial", columns={**_VALUES, "x": "INT"}, options=_PARTIAL, fold=partial_update(), flat=True),
    Case(
        name="partial without deletes", columns=_VALUES, options={**_PARTIAL, "ignore-delete": "true"},
        fold=partial_update(ignore_delete=True), kinds=KINDS, flat=True, ignore_delete=True,
    ),
    Case(
        name="partial by sequence", columns=_ORDERED, options={**_PARTIAL, "sequence.field": "s"},
        fold=partial_update(), sequence=("s",),
    ),
    Case(
        name="partial removing", columns=_VALUES,
        options={**_PARTIAL, "partial-update.remove-record-on-delete": "true"}, fold=partial_update(remove=True),
        kinds=KINDS,
    ),
    Case(
        name="groups", columns=_GROUP_COLUMNS, options={**_PARTIAL, **_GROUPS, "fields.d.aggregate-function": "max"},
        fold=partial_update(groups=_GROUP_MEMBERS, functions={"c": Sum(), "d": Max()}), flat=True, flat_by_lookup=False,
    ),
    Case(
        name="groups retracting", columns=_GROUP_COLUMNS,
        options={**_PARTIAL, **_GROUPS, "fields.d.aggregate-function": "last_non_null_value"},
        fold=partial_update(groups=_GROUP_MEMBERS, functions={"c": Sum(), "d": LastNonNull()}), kinds=KINDS,
    ),
    Case(
        name="groups removing", columns=_GROUP_COLUMNS,
        options={**_PARTIAL, **_GROUPS, "partial-update.remove-record-on-sequence-group": "g"},
        fold=partial_update(groups=_GROUP_MEMBERS, functions={"c": Sum()}, removing=("g",)), kinds=KINDS,
    ),
    Case(name="aggregates", columns=_MANY_COLUMNS, options=_aggregates(_MANY), fold=aggregation(_MANY), flat=True),
    Case(
        name="aggregates by sequence", columns={**_MANY_COLUMNS, "s": "INT"},
        options=_aggregates(_MANY, **{"sequence.field": "s"}), fold=aggregation({**_MANY, "s": "last_value"}),
        sequence=("s",),
    ),
    Case(
        name="aggregates retracting", columns={**_VALUES, "x": "INT"}, options=_aggregates(_RETRACTABLE),
        fold=aggregation(_RETRACTABLE), kinds=KINDS,
    ),
    Case(
        name="aggregates removing", columns=_VALUES,
        options=_aggregates({"v": "sum"}, **{"aggregation.remove-record-on-delete": "true"}),
        fold=aggregation({"v": "sum"}, remove=True), kinds=KINDS,
    ),
    Case(name="first row", columns=_VALUES, options=_FIRST, fold=first_row, flat=True),
    Case(
        name="first row without deletes", columns=_VALUES, options={**_FIRST, "ignore-delete": "true"}, fold=first_row,
        kinds=KINDS, flat=True, ignore_delete=True,
    ),
)  # fmt: skip


def merged(case, rows, *, looks_up):
    """What a reader or a compaction makes of the rows of one key: a row that is alone stays as it is."""
    rows = sorted(rows, key=case.order)
    if len(rows) == 1:
        return rows[0]
    return lookup(case.fold, rows) if looks_up and not case.first_wins else case.fold(rows)
