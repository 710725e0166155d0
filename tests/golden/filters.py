"""Filters of a golden case as predicates of paimon_py."""

from __future__ import annotations

import datetime
import decimal
import struct

import golden
import pyarrow as pa

from paimon_py import col

_COMPARE = {
    "=": lambda c, v: c == v,
    "!=": lambda c, v: c != v,
    "<": lambda c, v: c < v,
    "<=": lambda c, v: c <= v,
    ">": lambda c, v: c > v,
    ">=": lambda c, v: c >= v,
}


def predicate(tree: list, types: dict[str, tuple], side: str | None = None):
    """The predicate of a filter tree; `types` maps columns to `golden.parse_type` tuples.

    `side`: "source" or "target", where the columns are those of a side of a merge.
    """
    op, *rest = tree
    if op in ("and", "or"):
        parts = [predicate(part, types, side) for part in rest]
        result = parts[0]
        for part in parts[1:]:
            result = result & part if op == "and" else result | part
        return result
    if op == "not":
        return ~predicate(rest[0], types, side)
    name, *arguments = rest
    column = col(name) if side is None else col(side, name)
    if op == "isNull":
        return column.is_null()
    if op == "isNotNull":
        return column.is_not_null()
    if op in ("startsWith", "endsWith", "contains", "like"):
        method = {"startsWith": "starts_with", "endsWith": "ends_with"}.get(op, op)
        return getattr(column, method)(literal(arguments[0], types[name]))
    if op in ("in", "notIn"):
        listed = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], list) else arguments
        values = [literal(v, types[name]) for v in listed]
        return column.isin(values) if op == "in" else ~column.isin(values)
    if op == "between":
        return column.between(*(literal(v, types[name]) for v in arguments))
    return _COMPARE[op](column, literal(arguments[0], types[name]))


def literal(value, kind: tuple):
    """A value in the notation of case.json as a Python value or a pyarrow scalar."""
    root = kind[0]
    if value is None or root in ("BOOLEAN", "STRING"):
        return value
    if root in ("FLOAT", "DOUBLE"):
        number = float(value.replace("Infinity", "inf")) if isinstance(value, str) else float(value)
        return struct.unpack("<f", struct.pack("<f", number))[0] if root == "FLOAT" else number
    if root == "DECIMAL":
        return decimal.Decimal(str(value))
    if root == "DATE":
        return datetime.date.fromisoformat(value)
    if root == "TIME":
        return datetime.time.fromisoformat(golden._clock(value))
    if root in ("TIMESTAMP", "LTZ"):
        return _timestamp(value, "UTC" if root == "LTZ" else None)
    if root == "BYTES":
        return bytes.fromhex(value)
    return int(value)


def _timestamp(text: str, zone: str | None):
    """A scalar of nanoseconds, or of microseconds where there are no finer digits (they reach further)."""
    nanos = _nanos(text)
    if nanos % 1000 == 0:
        return pa.scalar(nanos // 1000, pa.timestamp("us", zone))
    return pa.scalar(nanos, pa.timestamp("ns", zone))


def _nanos(text: str) -> int:
    day, clock = golden.canonical(text, ("TIMESTAMP", 9)).split("T")
    seconds, _, fraction = clock.partition(".")
    moment = datetime.datetime.fromisoformat(f"{day}T{seconds}") - datetime.datetime(1970, 1, 1)
    return (moment.days * 86400 + moment.seconds) * 10**9 + int((fraction or "0").ljust(9, "0"))
