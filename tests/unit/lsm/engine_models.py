"""Merge engines row by row, written from Java's rules: what the engines on columns are compared with."""

from __future__ import annotations

import msgspec

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)


class Row(msgspec.Struct):
    """One version of a key: `values` by column name."""

    values: dict
    kind: int = INSERT
    sequence: int = 0
    level: int = 0


class Refused(Exception):
    """Java throws here."""


def reduce(engine, rows):
    """What Java's `ReducerMergeFunctionWrapper` does: a row that is alone is returned as it is."""
    return rows[0] if len(rows) == 1 else engine(rows)


def first_row(rows, *, ignore_delete=False):
    """Java's `FirstRowMergeFunction`; None if nothing is left."""
    first = None
    for row in rows:
        if row.kind in (UPDATE_BEFORE, DELETE):
            if not ignore_delete:
                raise Refused
            continue
        first = first or row
    return first


def lookup(engine, rows):
    """Java's `LookupMergeFunction` around an engine."""
    high = None
    for row in rows:
        if row.level > 0 and (high is None or row.level < high.level):
            high = row
    return engine([row for row in rows if row.level <= 0 or row is high])


def smaller(left, right):
    """Whether a tuple comes before another, nulls smallest."""
    for one, other in zip(left, right, strict=True):
        if one != other:
            return one is None or (other is not None and one < other)
    return False


class Sum:
    """The function sum of whole numbers."""

    def agg(self, acc, value):
        return value if acc is None else acc if value is None else acc + value

    agg_reversed = agg

    def retract(self, acc, value):
        return acc if value is None else -value if acc is None else acc - value


class LastNonNull:
    """The function last_non_null_value."""

    def agg(self, acc, value):
        return acc if value is None else value

    def agg_reversed(self, acc, value):
        return self.agg(value, acc)

    def retract(self, acc, value):
        return acc if value is None else None


class PartialUpdate:
    """Java's `PartialUpdateMergeFunction` of release 2.0.

    `groups`: pairs of sequence fields and protected columns. `removing`: sequence fields in whose groups −D removes
    the row.
    """

    def __init__(
        self, names, *, groups=(), removing=(), functions=None, required=(), ignore_delete=False, remove=False
    ):
        self.names = names
        self.fields_of = {name: fields for fields, columns in groups for name in (*fields, *columns)}
        self.removing = set(removing)
        self.functions = functions or {}
        self.required = set(required)
        self.ignore_delete = ignore_delete
        self.remove = remove

    def __call__(self, rows):
        self.row = dict.fromkeys(self.names)
        self.filled = self.met_insert = self.deleted = False
        sequence = None
        for row in rows:
            self.deleted = False
            if row.kind in (UPDATE_BEFORE, DELETE):
                if not self.filled:
                    self.fill(row.values)
                self.filled = True
                if self.ignore_delete:
                    continue
                sequence = row.sequence
                self.retract(row)
                continue
            sequence = row.sequence
            self.add(row.values)
            self.met_insert = self.filled = True
        kind = DELETE if self.deleted or not self.met_insert else INSERT
        return Row(self.row, kind, sequence)

    def fill(self, values):
        if any(values[name] is None for name in self.required):
            raise Refused
        self.row = dict(values)

    def retract(self, row):
        if self.fields_of:
            self.retract_groups(row)
        elif self.remove:
            if row.kind == DELETE:
                self.deleted = True
                self.fill(row.values)
        else:
            raise Refused

    def key_of(self, values, fields):
        return tuple(values[field] for field in fields)

    def add(self, values):
        if not self.fields_of and any(values[name] is None for name in self.required):
            raise Refused
        done = set()
        for name in self.names:
            function = self.functions.get(name)
            fields = self.fields_of.get(name)
            if fields is None:
                if values[name] is not None:
                    self.row[name] = values[name]
                continue
            if name in done:
                continue
            given = self.key_of(values, fields)
            if all(value is None for value in given):
                done.update(fields)
            elif not smaller(given, self.key_of(self.row, fields)):
                if name in fields:
                    for field in fields:
                        self.row[field] = values[field]
                    done.update(fields)
                else:
                    self.row[name] = values[name] if function is None else function.agg(self.row[name], values[name])
            elif function is not None:
                self.row[name] = function.agg_reversed(self.row[name], values[name])

    def retract_groups(self, row):
        values, done = row.values, set()
        for name in self.names:
            function = self.functions.get(name)
            fields = self.fields_of.get(name)
            if fields is None or name in done:
                continue
            given = self.key_of(values, fields)
            if all(value is None for value in given):
                done.update(fields)
            elif not smaller(given, self.key_of(self.row, fields)):
                if name in fields:
                    if row.kind == DELETE and self.removing & set(fields):
                        self.deleted = True
                        self.fill(values)
                        return
                    for field in fields:
                        self.row[field] = values[field]
                    done.update(fields)
                elif function is None:
                    self.row[name] = None
                else:
                    self.row[name] = function.retract(self.row[name], values[name])
            elif function is not None:
                self.row[name] = function.retract(self.row[name], values[name])
