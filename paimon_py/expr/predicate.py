"""Predicates as values, and the values that they compare.

A predicate is a tree of frozen values over columns, literals and calculations. It is compared by value and can be
pickled or sent as msgpack. It is independent of a table until `bind` has resolved its columns.

Meaning: SQL's three-valued logic; a row matches where the whole predicate is true. Comparisons follow Paimon: strings
and binaries by unsigned bytes, floats by Java's `compare` (−0.0 < 0.0, NaN equal to itself and largest).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Union

import msgspec

from paimon_py.errors import UsageError
from paimon_py.expr.literal import (
    BinaryValue,
    DateValue,
    DecimalValue,
    LiteralValue,
    TimestampValue,
    TimeValue,
)
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import DataType, VariantPart

Sign = Literal["+", "-", "*", "/", "%"]
Operator = Literal["==", "!=", "<", "<=", ">", ">="]
TextTest = Literal["starts_with", "ends_with", "contains", "like", "ilike"]

INVERSE: dict[Operator, Operator] = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", "<=": ">", ">": "<="}
MIRROR: dict[Operator, Operator] = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_SHOWN = 20


class Ref(msgspec.Struct, frozen=True):
    """A column, or a field inside ROW columns, by path.

    `ids` (field ids along the path) and `type` are set once bound. `part`: the reference is to a part of the VARIANT
    column; once bound its name is the last of the path. `calculated`: the name is that of a value in a `ValueTest`.
    """

    path: tuple[str, ...]
    ids: tuple[int, ...] = ()
    type: DataType | None = None
    part: VariantPart | None = None
    calculated: bool = False

    @property
    def name(self) -> str:
        """The top-level column."""
        return self.path[0]

    @property
    def column_path(self) -> tuple[str, ...]:
        """The path without the name of a part."""
        is_bound = self.part is not None and self.path[-1] == self.part.name
        return self.path[:-1] if is_bound else self.path

    def __str__(self) -> str:
        if self.calculated:
            return self.name
        text = f"col({', '.join(_quote(step) for step in self.column_path)})"
        if self.part is None:
            return text
        end = ", or_null=True" if self.part.or_null else ""
        return f"{text}.variant({_quote(self.part.path)}, {_quote(sql_type(self.part.type))}{end})"


class _Base(msgspec.Struct, frozen=True):
    """The common operators of predicates: `&`, `|`, `~`, and a truth value that is refused."""

    def __and__(self, other: Predicate) -> Predicate:
        return join_predicates(And, (self, other))

    def __or__(self, other: Predicate) -> Predicate:
        return join_predicates(Or, (self, other))

    def __invert__(self) -> Predicate:
        return self.part if isinstance(self, Not) else Not(_check(self))

    def __bool__(self) -> bool:
        raise UsageError(
            "a predicate has no truth value: combine with `&`, `|` and `~` instead of `and`, `or` and `not`, and write "
            f'col("a").between(1, 5) instead of the chain 1 <= col("a") <= 5 (the predicate was: {self!r})'
        )


class Compare(_Base, frozen=True, tag="compare", repr_omit_defaults=True):
    """column operator literal."""

    column: Ref
    operator: Operator
    literal: LiteralValue

    def __repr__(self) -> str:
        return f"{self.column} {self.operator} {_literal_text(self.literal)}"


class CompareColumns(_Base, frozen=True, tag="compare_columns"):
    """column operator column."""

    left: Ref
    operator: Operator
    right: Ref

    def __repr__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


class In(_Base, frozen=True, tag="in"):
    """column [NOT] IN (literals …); `has_null`: NULL was among them."""

    column: Ref
    literals: tuple[LiteralValue, ...]
    has_null: bool = False
    negated: bool = False

    def __repr__(self) -> str:
        shown = [_literal_text(literal) for literal in self.literals[:_SHOWN]]
        if len(self.literals) > _SHOWN:
            shown.append(f"… {len(self.literals) - _SHOWN} more")
        if self.has_null:
            shown.append("None")
        return f"{self.column}.{'not_in' if self.negated else 'isin'}([{', '.join(shown)}])"


class IsNull(_Base, frozen=True, tag="is_null"):
    """column IS [NOT] NULL."""

    column: Ref
    negated: bool = False

    def __repr__(self) -> str:
        return f"{self.column}.{'is_not_null' if self.negated else 'is_null'}()"


class TextMatch(_Base, frozen=True, tag="text"):
    """column starts with, ends with, contains, or is LIKE a pattern (`%` any text, `_` one character, `\\` escapes).

    `ilike` is LIKE without regard to case.
    """

    column: Ref
    test: TextTest
    pattern: str | BinaryValue
    negated: bool = False

    def __repr__(self) -> str:
        return f"{'~' if self.negated else ''}{self.column}.{self.test}({_literal_text(self.pattern)})"


class IsTrue(_Base, frozen=True, tag="is_true"):
    """A BOOLEAN column by itself; becomes a comparison when bound."""

    column: Ref

    def __repr__(self) -> str:
        return str(self.column)


class Constant(_Base, frozen=True, tag="constant"):
    """Always true or never true."""

    value: bool

    def __repr__(self) -> str:
        return "TRUE" if self.value else "FALSE"


class And(_Base, frozen=True, tag="and"):
    """All parts hold."""

    parts: tuple[Predicate, ...]

    def __repr__(self) -> str:
        return " & ".join(_inner(part) for part in self.parts)


class Or(_Base, frozen=True, tag="or"):
    """At least one part holds."""

    parts: tuple[Predicate, ...]

    def __repr__(self) -> str:
        return " | ".join(_inner(part) for part in self.parts)


class Not(_Base, frozen=True, tag="not"):
    """The part does not hold (unknown stays unknown)."""

    part: Predicate

    def __repr__(self) -> str:
        return f"~{_inner(self.part)}"


class ValueTest(_Base, frozen=True, tag="values"):
    """A condition on calculated values: `price * 2 > 10`, `lower(name) = 'x'`.

    Attributes:
        values: the values under their names.
        test: the condition on these names.
        keeps_failing: whether the condition is true for all rows if the values of some cannot be calculated, as those
            of `a / 0`; only in conditions that may keep more rows than match. Otherwise such rows are an error.
    """

    values: tuple[tuple[str, ValueTree], ...]
    test: Predicate
    keeps_failing: bool = False

    def __repr__(self) -> str:
        return repr(self.test)


_PREDICATES = (Compare, CompareColumns, In, IsNull, TextMatch, IsTrue, Constant, And, Or, Not, ValueTest)
Predicate = Union[Compare, CompareColumns, In, IsNull, TextMatch, IsTrue, Constant, And, Or, Not, ValueTest]


class ColumnValue(msgspec.Struct, frozen=True, tag="column"):
    """The value of a column."""

    column: Ref

    def __repr__(self) -> str:
        return str(self.column)


class Arithmetic(msgspec.Struct, frozen=True, tag="arithmetic"):
    """Two numbers and an operator."""

    sign: Sign
    left: ValueTree
    right: ValueTree

    def __repr__(self) -> str:
        return f"({value_text(self.left)} {self.sign} {value_text(self.right)})"


class Negative(msgspec.Struct, frozen=True, tag="negative"):
    """A negated number."""

    value: ValueTree

    def __repr__(self) -> str:
        return f"(-{value_text(self.value)})"


class FunctionCall(msgspec.Struct, frozen=True, tag="call"):
    """A function and its arguments."""

    function: str
    arguments: tuple[ValueTree, ...]

    def __repr__(self) -> str:
        if self.function == "add_interval":
            return f"({value_text(self.arguments[0])} + INTERVAL '{self.arguments[1]}')"
        return f"{self.function}({', '.join(map(value_text, self.arguments))})"


class Case(msgspec.Struct, frozen=True, tag="case"):
    """The value of the first condition that is true, or `otherwise`."""

    branches: tuple[tuple[Predicate, ValueTree], ...]
    otherwise: ValueTree

    def __repr__(self) -> str:
        shown = " ".join(f"when {condition!r} then {value_text(value)}" for condition, value in self.branches)
        return f"(case {shown} else {value_text(self.otherwise)} end)"


ValueTree = Union[
    None, bool, int, float, str, BinaryValue, DecimalValue, DateValue, TimeValue, TimestampValue,
    ColumnValue, Arithmetic, Negative, FunctionCall, Case,
]  # fmt: skip
Calculated = Union[ColumnValue, Arithmetic, Negative, FunctionCall, Case]
CALCULATED = (ColumnValue, Arithmetic, Negative, FunctionCall, Case)


def value_text(value: ValueTree) -> str:
    """A value as it is shown: `(col("a") + 1)`."""
    return repr(value) if value is None or isinstance(value, CALCULATED) else _literal_text(value)


def join_predicates(kind: type[And] | type[Or], sides: Iterable[object]) -> Predicate:
    """Predicates joined by AND or OR; a side that is joined the same way is merged.

    Raises: UsageError if a side is not a predicate.
    """
    parts: list[Predicate] = []
    for side in sides:
        checked = _check(side)
        if isinstance(checked, kind):
            parts.extend(checked.parts)
        else:
            parts.append(checked)
    return parts[0] if len(parts) == 1 else kind(tuple(parts))


def on_values(values: Sequence[ValueTree], make: Callable[..., Predicate]) -> Predicate:
    """The condition that `make` returns for columns, on values."""
    if all(isinstance(value, ColumnValue) for value in values):
        return make(*(value.column for value in values if isinstance(value, ColumnValue)))
    named: list[tuple[str, ValueTree]] = []
    for value in values:
        name = value_text(value)
        while any(name == known and value != other for known, other in named):
            name += "′"  # the text leaves out the ends of long literals and lists
        named.append((name, value))
    test = make(*(Ref((name,), calculated=True) for name, _ in named))
    return ValueTest(tuple(dict(named).items()), test)


def compare(left: ValueTree, operator: Operator, right: LiteralValue | Calculated) -> Predicate:
    """left operator right, with columns compared as columns."""
    if not isinstance(right, CALCULATED):
        return on_values([left], lambda ref: Compare(ref, operator, right))
    if left is None or isinstance(left, CALCULATED):
        return on_values([left, right], lambda one, other: CompareColumns(one, operator, other))
    return on_values([right], lambda ref: Compare(ref, MIRROR[operator], left))


def distinct(left: ValueTree, right: ValueTree) -> Predicate:
    """SQL's `left IS DISTINCT FROM right`, as comparisons and tests for NULL that are never all unknown."""
    if right is None:
        return on_values([left], lambda ref: IsNull(ref, negated=True))
    if not isinstance(right, CALCULATED):
        return on_values([left], lambda ref: Or((IsNull(ref), Compare(ref, "!=", right))))
    return on_values([left, right], _distinct)


def _distinct(left: Ref, right: Ref) -> Predicate:
    differ = Or((IsNull(left), IsNull(right), CompareColumns(left, "!=", right)))
    return And((differ, Or((IsNull(left, negated=True), IsNull(right, negated=True)))))


def is_predicate(value: object) -> bool:
    """Whether a value is a predicate."""
    return isinstance(value, _PREDICATES)


def as_predicate(value: object) -> Predicate:
    """The argument of `where`, if it is a predicate.

    Raises: UsageError for anything else, a column alone included.
    """
    if isinstance(value, _PREDICATES):
        return value
    raise UsageError(f'where takes a predicate such as col("a") > 3, or SQL text such as "a = 3", not {value!r}')


def _check(value: object) -> Predicate:
    if isinstance(value, _PREDICATES):
        return value
    raise UsageError(f"{value!r} is not a predicate; put each comparison in parentheses when combining with & and |")


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _literal_text(literal: LiteralValue) -> str:
    text = _quote(literal) if isinstance(literal, str) else repr(literal)
    return text if len(text) <= 200 else text[:200] + "…"


def _inner(part: Predicate) -> str:
    bare = isinstance(part, (In, IsNull, TextMatch, IsTrue, Constant, Not))
    return repr(part) if bare else f"({part!r})"
