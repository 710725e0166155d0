"""Converts expressions of pyarrow to predicates.

pyarrow shows an expression only as text; the pickle of an expression is a schema whose metadata list the steps of the
expression, and a batch with the literals and their types.

Source: Arrow C++ `arrow::compute::Serialize(const Expression&)`; the C data interface, "ArrowSchema.metadata".
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa

from paimon_py.expr.foreign import Claim, ForeignColumns, all_claims, any_claim, constant, no_claim
from paimon_py.expr.predicate import Operator

_OPERATORS: dict[str, Operator] = {
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
}  # fmt: skip
_TURNED: dict[Operator, Operator] = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TEXTS = {"starts_with": "starts_with", "ends_with": "ends_with", "match_substring": "contains"}
_MATCHES_NULL = 0
_DEPTH_MAX = 150


class _CSchema(ctypes.Structure):
    """The beginning of the C struct `ArrowSchema`."""

    _fields_ = (("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p))


class ArrowCondition(msgspec.Struct, frozen=True):
    """The claim of an expression (None if nothing of it is known), and the columns in it."""

    claim: Claim | None = None
    columns: frozenset[str] = frozenset()


def condition_from_arrow(expression: Any, columns: ForeignColumns) -> ArrowCondition:
    """The claim and columns of an expression of pyarrow.

    Cost: linear in the size of the expression.
    """
    batch = pa.ipc.RecordBatchFileReader(expression.__reduce__()[1][0]).get_batch(0)
    reader = _Reader(_metadata(batch.schema), batch, columns)
    claim = reader.condition()
    return ArrowCondition(claim, frozenset(reader.names))


class _Field(tuple[str, ...]):
    """The names along the path to a column."""


class _Call:
    """A function, its arguments and its options."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.arguments: list[Any] = []
        self.options: Any = None

    def option(self, name: str) -> object:
        """An option by name; None if it is not set."""
        return None if self.options is None or name not in self.options else self.options[name].as_py()


class _Reader:
    """One walk over the steps of an expression."""

    def __init__(self, steps: Iterator[tuple[str, str]], literals: pa.RecordBatch, columns: ForeignColumns) -> None:
        self._steps, self._literals, self._columns = steps, literals, columns
        self.names: set[str] = set()

    def condition(self) -> Claim | None:
        """The claim of the expression."""
        return self._claim(self._tree(), 0)

    def _tree(self) -> Any:
        """The expression as calls, columns and literals."""
        whole = _Call("")
        open_calls = [whole]
        for key, value in self._steps:
            if key == "end":
                open_calls.pop()
            elif key == "options":
                open_calls[-1].options = self._literals.column(int(value))[0]
            else:
                node = self._node(key, value)
                open_calls[-1].arguments.append(node)
                if isinstance(node, _Call):
                    open_calls.append(node)
        return whole.arguments[0]

    def _node(self, key: str, value: str) -> Any:
        if key == "call":
            return _Call(value)
        if key == "literal":
            return self._literals.column(int(value))[0]
        nested = key == "nested_field_ref"
        field = _Field(next(self._steps)[1] for _ in range(int(value))) if nested else _Field((value,))
        self.names.add(field[0])
        return field

    def _claim(self, node: Any, depth: int) -> Claim | None:
        if isinstance(node, pa.Scalar):
            return constant(node.as_py())
        if isinstance(node, _Field):
            return self._columns.compare(node, "==", pa.scalar(True))
        if not isinstance(node, _Call) or depth > _DEPTH_MAX:
            return None
        given = node.arguments
        if node.name in ("and_kleene", "and"):
            return _as_kleene(all_claims([self._claim(part, depth + 1) for part in given]), node.name)
        if node.name in ("or_kleene", "or"):
            return _as_kleene(any_claim([self._claim(part, depth + 1) for part in given]), node.name)
        if node.name == "invert":
            return no_claim(self._claim(given[0], depth + 1))
        if node.name == "if_else":
            return self._if_else(given, depth + 1)
        if node.name in _OPERATORS:
            return self._comparison(_OPERATORS[node.name], given)
        return self._test(node, given[0]) if given and isinstance(given[0], _Field) else None

    def _comparison(self, operator: Operator, sides: list[Any]) -> Claim | None:
        left, right = sides
        if isinstance(left, pa.Scalar):
            left, right, operator = right, left, _TURNED[operator]
        if not isinstance(left, _Field) or not isinstance(right, pa.Scalar):
            return None
        return self._columns.compare(left, operator, right)

    def _test(self, call: _Call, field: _Field) -> Claim | None:
        """A test of one column."""
        if call.name == "is_valid":
            return self._columns.is_null(field, negated=True)
        if call.name == "is_null" and not call.option("nan_is_null"):
            return self._columns.is_null(field, negated=False)
        if call.name == "is_in" and call.option("null_matching_behavior") == _MATCHES_NULL:
            return self._columns.isin(field, call.options["value_set"].values)
        if call.name in _TEXTS and not call.option("ignore_case"):
            return self._columns.text(field, _TEXTS[call.name], call.option("pattern"))
        return None

    def _if_else(self, given: list[Any], depth: int) -> Claim | None:
        """`if_else(condition, then, NULL)`, which is true if both are."""
        if not isinstance(given[2], pa.Scalar) or given[2].is_valid:
            return None
        found = all_claims([self._claim(part, depth) for part in given[:2]])
        return None if found is None else Claim(found.predicate, exact=False)


def _as_kleene(claim: Claim | None, name: str) -> Claim | None:
    """Mark a claim as inexact if NULL takes precedence over true and false."""
    return claim if claim is None or name.endswith("_kleene") else Claim(claim.predicate, exact=False)


def _metadata(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """Keys and values of a schema in order; pyarrow's own mapping keeps only one value per key."""
    capsule = schema.__arrow_c_schema__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    at = _CSchema.from_address(pointer(capsule, b"arrow_schema")).metadata
    found = []
    count, at = ctypes.c_int32.from_address(at).value, at + 4
    for _ in range(count):
        pair = []
        for _ in range(2):
            size = ctypes.c_int32.from_address(at).value
            pair.append(ctypes.string_at(at + 4, size).decode())
            at += 4 + size
        found.append((pair[0], pair[1]))
    return iter(found)
