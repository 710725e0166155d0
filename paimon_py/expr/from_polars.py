"""Converts expressions of polars to predicates.

polars serialises an expression as JSON in an internal form: unknown nodes have no claim. polars itself evaluates
literals.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import polars
import pyarrow as pa

from paimon_py.expr.foreign import Claim, ForeignColumns, all_claims, any_claim, no_claim
from paimon_py.expr.predicate import Operator

_OPERATORS: dict[str, Operator] = {"Eq": "==", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_TURNED: dict[Operator, Operator] = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_BETWEEN: dict[str, tuple[Operator, Operator]] = {
    "Both": (">=", "<="), "Left": (">=", "<"), "Right": (">", "<="), "None": (">", "<"),
}  # fmt: skip
_DEPTH_MAX = 150


def claim_of(expression: polars.Expr, columns: ForeignColumns) -> Claim | None:
    """The claim of an expression of polars; None if nothing of it is known."""
    return _claim(json.loads(expression.meta.serialize(format="json")), columns, 0)


def _claim(node: Any, columns: ForeignColumns, depth: int) -> Claim | None:
    name, inner = _split_node(node)
    if depth > _DEPTH_MAX or not isinstance(inner, (Mapping, str)):
        return None
    if name == "Column" and isinstance(inner, str):
        return columns.compare((inner,), "==", pa.scalar(True))
    if name == "BinaryExpr" and isinstance(inner, Mapping):
        return _binary(inner, columns, depth)
    if name == "Function" and isinstance(inner, Mapping):
        return _function(inner.get("function"), inner.get("input"), columns, depth)
    return None


def _binary(node: Mapping[str, Any], columns: ForeignColumns, depth: int) -> Claim | None:
    operator, sides = node.get("op"), [node.get("left"), node.get("right")]
    if operator in ("And", "LogicalAnd"):
        return all_claims([_claim(side, columns, depth + 1) for side in sides])
    if operator in ("Or", "LogicalOr"):
        return any_claim([_claim(side, columns, depth + 1) for side in sides])
    known = _OPERATORS.get(str(operator))
    if known is None:
        return None
    if _column(sides[0]) is None:
        sides, known = sides[::-1], _TURNED[known]
    return _compare(sides[0], known, sides[1], columns)


def _compare(side: Any, operator: Operator, other: Any, columns: ForeignColumns) -> Claim | None:
    names, value = _column(side), _literal(other)
    return None if names is None or value is None else columns.compare(names, operator, value[0])


def _function(function: Any, inputs: Any, columns: ForeignColumns, depth: int) -> Claim | None:
    kind, which = _split_node(function)
    test, given = _split_node(which) if isinstance(which, Mapping) else (str(which), {})
    if not isinstance(inputs, list) or not inputs:
        return None
    if (kind, test) == ("Boolean", "Not"):
        return no_claim(_claim(inputs[0], columns, depth + 1))
    names = _column(inputs[0])
    if names is None:
        return None
    if kind == "Boolean" and test in ("IsNull", "IsNotNull"):
        return columns.is_null(names, negated=test == "IsNotNull")
    if kind == "Boolean" and test == "IsBetween" and given.get("closed") in _BETWEEN:
        both = zip(_BETWEEN[given["closed"]], inputs[1:], strict=True)
        return all_claims([_compare(inputs[0], operator, value, columns) for operator, value in both])
    if kind == "Boolean" and test == "IsIn":
        listed = _literal(inputs[1])
        return None if listed is None else columns.isin(names, _items(listed))
    if kind == "StringExpr" and (test in ("StartsWith", "EndsWith") or (test == "Contains" and given.get("literal"))):
        pattern = _literal(inputs[1])
        wanted = {"StartsWith": "starts_with", "EndsWith": "ends_with", "Contains": "contains"}[test]
        return None if pattern is None else columns.text(names, wanted, pattern[0].as_py())
    return None


def _column(node: Any) -> tuple[str, ...] | None:
    """The column of a node, possibly a field inside a struct."""
    name, inner = _split_node(node)
    if name == "Column" and isinstance(inner, str):
        return (inner,)
    if name != "Function" or not isinstance(inner, Mapping):
        return None
    kind, which = _split_node(inner.get("function"))
    field = which.get("FieldByName") if kind == "StructExpr" and isinstance(which, Mapping) else None
    inputs = inner.get("input")
    outer = _column(inputs[0]) if isinstance(field, str) and isinstance(inputs, list) and len(inputs) == 1 else None
    return None if outer is None or not isinstance(field, str) else (*outer, field)


def _literal(node: Any) -> pa.Array | None:
    """The value of a node that is a literal; None for other nodes."""
    if _split_node(node)[0] != "Literal":
        return None
    try:
        literal = polars.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")
    except polars.exceptions.ComputeError:  # for NaN as polars writes it
        return None
    found = polars.select(literal).to_series().to_arrow()
    return found if len(found) == 1 or not pa.types.is_list(found.type) else None


def _items(found: pa.Array) -> pa.Array:
    """The items of a literal that is a list; a series already is one."""
    nested = pa.types.is_list(found.type) or pa.types.is_large_list(found.type)
    return found.flatten() if nested else found


def _split_node(node: Any) -> tuple[str, Any]:
    """The name and the contents of a node."""
    if isinstance(node, Mapping) and len(node) == 1:
        name, inner = next(iter(node.items()))
        return str(name), inner
    return "", node
