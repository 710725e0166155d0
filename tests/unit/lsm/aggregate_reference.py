"""Java's aggregate functions over Python values, one row after the other: the plain rules that the kernels must equal."""

from __future__ import annotations

import struct
from decimal import ROUND_HALF_UP, Decimal, DivisionByZero, Inexact, InvalidOperation, localcontext

import numpy as np

SKIP, ADD, ADD_REVERSED, RETRACT, SET, CLEAR = range(6)
RANGES = {"TINYINT": 2**7, "SMALLINT": 2**15, "INT": 2**31, "BIGINT": 2**63}
BLANKS = set("\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a\u2028\u2029\u205f\u3000")


class Refused(Exception):
    """Java throws here."""


def fold(function, rows, actions):
    """The accumulator after all rows."""
    function.seen = False
    value = None
    for row, action in zip(rows, actions, strict=True):
        if action == ADD:
            value = function.agg(value, row)
        elif action == ADD_REVERSED:
            value = function.reversed(value, row)
        elif action == RETRACT:
            value = value if function.ignore_retract else function.retract(value, row)
        elif action == SET:
            value = row
        elif action == CLEAR:
            value = None
    return value


class Function:
    ignore_retract = False
    own_reversed = False
    seen = False

    def reversed(self, value, row):
        return self.agg(row, value)

    def retract(self, value, row):
        raise Refused


class LastValue(Function):
    def agg(self, value, row):
        return row

    def retract(self, value, row):
        return None


class PrimaryKey(LastValue):
    def retract(self, value, row):
        return row


class LastNonNull(Function):
    def agg(self, value, row):
        return value if row is None else row

    def retract(self, value, row):
        return value if row is None else None


class FirstValue(Function):
    def agg(self, value, row):
        if not self.seen:
            self.seen = True
            return row
        return value


class FirstNonNull(Function):
    def agg(self, value, row):
        if not self.seen and row is not None:
            self.seen = True
            return row
        return value


class Binary(Function):
    """Functions that skip nulls."""

    def __init__(self, function, back=None):
        self.function = function
        self.back = back

    def agg(self, value, row):
        if value is None or row is None:
            return row if value is None else value
        return self.function(value, row)


def order_key(value):
    """Java's compare."""
    if isinstance(value, (float, np.floating)):
        bits = struct.unpack(">q", struct.pack(">d", float("nan") if value != value else float(value)))[0]
        return bits if bits >= 0 else -(bits & (2**63 - 1)) - 1
    return value.encode() if isinstance(value, str) else value


class Sum(Function):
    def __init__(self, kind):
        self.kind = kind

    def agg(self, value, row):
        if value is None or row is None:
            return row if value is None else value
        return self.fit(value + row)

    def retract(self, value, row):
        if value is None:
            return None if row is None else self.fit(-row, negated=True)
        return value if row is None else self.fit(value - row)

    def fit(self, value, negated=False):
        if self.kind in RANGES:
            if not -RANGES[self.kind] <= value < RANGES[self.kind]:
                raise Refused
        elif isinstance(self.kind, tuple):
            precision, scale = self.kind
            unscaled = int(value.scaleb(scale))
            compact = precision <= 18 and not negated
            limit = 2**63 if compact else 10**precision
            if not (-limit <= unscaled < limit if compact else abs(unscaled) < limit):
                return None
        return value


class Product(Sum):
    def agg(self, value, row):
        if value is None or row is None:
            return row if value is None else value
        return self.rounded(value * row)

    def retract(self, value, row):
        if value is None or row is None:
            return value
        if self.kind in RANGES:
            if row == 0:
                raise Refused
            return self.fit(abs(value) // abs(row) * (1 if (value < 0) == (row < 0) else -1))
        if isinstance(self.kind, tuple):
            with localcontext() as context:
                context.traps[Inexact] = True
                try:
                    return self.rounded(value / row)
                except (Inexact, DivisionByZero, InvalidOperation):
                    raise Refused from None
        return value / row

    def rounded(self, value):
        if not isinstance(self.kind, tuple):
            return self.fit(value)
        precision, scale = self.kind
        value = value.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP)
        return value if abs(int(value.scaleb(scale))) < 10**precision else None


class Listagg(Function):
    def __init__(self, delimiter, distinct):
        self.delimiter, self.distinct = delimiter, distinct

    def agg(self, value, row):
        if row is None or not set(row) - BLANKS:
            return value
        if value is None or not set(value) - BLANKS:
            return row
        if not self.distinct:
            return value + self.delimiter + row
        there = set(value.split(self.delimiter or " "))
        for token in row.split(self.delimiter or " "):
            if set(token) - BLANKS and token not in there:
                there.add(token)
                value += self.delimiter + token
        return value


class Collect(Function):
    def __init__(self, distinct):
        self.distinct = distinct

    def agg(self, value, row):
        if value is None and row is None:
            return None
        items = [*(value or []), *(row or [])]
        return list(dict.fromkeys(items)) if self.distinct else items

    def reversed(self, value, row):
        return self.agg(row, value) if self.ignore_retract else self.agg(value, row)

    def retract(self, value, row):
        if value is None or not row:
            return value
        gone, left = list(row), []
        for item in value:
            if item in gone:
                gone.remove(item)
            else:
                left.append(item)
        return left


class MergeMap(Function):
    def agg(self, value, row):
        if value is None or row is None:
            return row if value is None else value
        return list({**dict(value), **dict(row)}.items())

    def retract(self, value, row):
        if value is None or not row:
            return value
        return [(key, item) for key, item in value if key not in dict(row)]


class MergeMapTimed(Function):
    """Values are (something, time) or None."""

    def agg(self, value, row):
        if value is None or row is None:
            return row if value is None else value
        table = dict(value)
        for key, item in row:
            if item is None:
                table.pop(key, None)
            elif item[1] is not None:
                old = table.get(key)
                if old is None or old[1] is None or item[1].encode("utf-16-be") > old[1].encode("utf-16-be"):
                    table[key] = item
        return list(table.items())


class NestedUpdate(Function):
    """Rows are tuples; `key` and `sequence` are positions."""

    def __init__(self, key=(), sequence=(), limit=2**31 - 1, null_keys="merge"):
        self.key, self.sequence, self.limit, self.null_keys = key, sequence, limit, null_keys

    def agg(self, value, row):
        if row is None:
            return value
        if not self.key:
            if value is None:
                return [item for item in row if item is not None][: max(self.limit, 0)]
            if len(value) >= self.limit:
                return value
            room = self.limit - len(value)
            return [item for item in value if item is not None] + [item for item in row if item is not None][:room]
        table = {}
        for items, limited in ((value or [], False), (row, True)):
            for item in items:
                if not self.counts(item):
                    continue
                key = self.of(item, self.key)
                if key in table:
                    if not self.sequence or self.rank(item) >= self.rank(table[key]):
                        table[key] = item
                elif not limited or len(table) < self.limit:
                    table[key] = item
        return list(table.values())

    def retract(self, value, row):
        if value is None or row is None:
            return value
        if not self.key:
            return [item for item in value if item is not None and item not in row]
        table = {self.of(item, self.key): item for item in value if self.counts(item)}
        for item in row:
            if self.counts(item):
                table.pop(self.of(item, self.key), None)
        return list(table.values())

    def counts(self, item):
        if item is None:
            return False
        if None not in self.of(item, self.key) or self.null_keys == "merge":
            return True
        if self.null_keys == "error":
            raise Refused
        return False

    def rank(self, item):
        return tuple((part is not None, part if part is not None else 0) for part in self.of(item, self.sequence))

    @staticmethod
    def of(item, positions):
        return tuple(item[position] for position in positions)


class NestedPartialUpdate(NestedUpdate):
    def agg(self, value, row):
        if row is None:
            return value
        table = {}
        for item in [*(value or []), *row]:
            if self.counts(item):
                old = table.setdefault(self.of(item, self.key), [None] * len(item))
                table[self.of(item, self.key)] = [b if b is not None else a for a, b in zip(old, item, strict=True)]
        return [tuple(item) for item in table.values()]

    def retract(self, value, row):
        raise Refused
