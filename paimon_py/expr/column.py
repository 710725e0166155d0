"""Conditions and values in Python: `col("price") * 2 > 10`, `sql("lower(name)") == "x"`, `lit("a")`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, NoReturn

import msgspec

from paimon_py.api_hints import ApiHints
from paimon_py.arguments import as_list, value_repr
from paimon_py.errors import UsageError
from paimon_py.expr.literal import BinaryValue, LiteralValue, to_literal
from paimon_py.expr.predicate import (
    CALCULATED,
    And,
    Arithmetic,
    ColumnValue,
    FunctionCall,
    In,
    IsNull,
    IsTrue,
    Negative,
    Not,
    Operator,
    Predicate,
    Ref,
    Sign,
    TextMatch,
    TextTest,
    ValueTree,
    compare,
    distinct,
    is_predicate,
    on_values,
    value_text,
)
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import DataType
from paimon_py.spec.variant_paths import part_of


class Calculable(ApiHints):
    """A column, a calculation or a literal: the operands of + - * / % and of comparisons."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    @property
    def _tree(self) -> ValueTree:
        raise NotImplementedError

    # -- calculations -------------------------------------------------------------------------------------------------

    def __add__(self, other: object) -> Calculation:
        return _calculate(self, "+", other)

    def __radd__(self, other: object) -> Calculation:
        return _calculate(other, "+", self)

    def __sub__(self, other: object) -> Calculation:
        return _calculate(self, "-", other)

    def __rsub__(self, other: object) -> Calculation:
        return _calculate(other, "-", self)

    def __mul__(self, other: object) -> Calculation:
        return _calculate(self, "*", other)

    def __rmul__(self, other: object) -> Calculation:
        return _calculate(other, "*", self)

    def __truediv__(self, other: object) -> Calculation:
        return _calculate(self, "/", other)

    def __rtruediv__(self, other: object) -> Calculation:
        return _calculate(other, "/", self)

    def __mod__(self, other: object) -> Calculation:
        return _calculate(self, "%", other)

    def __rmod__(self, other: object) -> Calculation:
        return _calculate(other, "%", self)

    def __neg__(self) -> Calculation:
        return Calculation(Negative(self._tree))

    # -- conditions ---------------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> Predicate:  # type: ignore[override]
        return self._compare("==", other)

    def __ne__(self, other: object) -> Predicate:  # type: ignore[override]
        return self._compare("!=", other)

    def __lt__(self, other: object) -> Predicate:
        return self._compare("<", other)

    def __le__(self, other: object) -> Predicate:
        return self._compare("<=", other)

    def __gt__(self, other: object) -> Predicate:
        return self._compare(">", other)

    def __ge__(self, other: object) -> Predicate:
        return self._compare(">=", other)

    def is_null(self) -> Predicate:
        """Rows where the value is NULL."""
        return on_values([self._tree], IsNull)

    def is_not_null(self) -> Predicate:
        """Rows where the value is not NULL."""
        return on_values([self._tree], lambda ref: IsNull(ref, negated=True))

    def isin(self, values: Iterable[object]) -> Predicate:
        """Rows whose value is one of `values`."""
        return self._in(values, negated=False)

    def not_in(self, values: Iterable[object]) -> Predicate:
        """Rows whose value is none of `values`; as in SQL, no rows if a None is among them."""
        return self._in(values, negated=True)

    def between(self, low: object, high: object) -> Predicate:
        """Rows with low <= value <= high."""
        return And((self._compare(">=", low), self._compare("<=", high)))

    def is_distinct_from(self, value: object) -> Predicate:
        """Rows whose value differs from `value`; NULL counts as a value, so never unknown."""
        return distinct(self._tree, tree_of(value))

    def starts_with(self, prefix: str | bytes) -> Predicate:
        """Rows whose string or bytes begin with `prefix`."""
        return self._text("starts_with", prefix)

    def ends_with(self, suffix: str | bytes) -> Predicate:
        """Rows whose string or bytes end with `suffix`."""
        return self._text("ends_with", suffix)

    def contains(self, part: str | bytes) -> Predicate:
        """Rows whose string or bytes contain `part`."""
        return self._text("contains", part)

    def like(self, pattern: str) -> Predicate:
        """Rows whose string matches SQL's LIKE: `%` is any string, `_` one character, a backslash escapes the next."""
        return self._text("like", pattern)

    def ilike(self, pattern: str) -> Predicate:
        """Rows whose text fits the pattern of `like` if upper and lower case count as equal.

        No file is skipped by its bounds: they are in the order of the bytes.
        """
        return self._text("ilike", pattern)

    def _compare(self, operator: Operator, value: object) -> Predicate:
        if isinstance(value, Calculable) and isinstance(value._tree, CALCULATED):
            return compare(self._tree, operator, value._tree)
        if is_predicate(value):
            raise UsageError(
                f"{self!r} {operator} {value!r}: a column is compared with a literal or a column; when combining with "
                "& and |, put each comparison in parentheses"
            )
        literal = _literal(value)
        if literal is None:
            hint = "is_not_null()" if operator == "!=" else "is_null()"
            raise UsageError(f"{self!r} {operator} {value!r}: nothing compares with NULL; write {self!r}.{hint}")
        return compare(self._tree, operator, literal)

    def _in(self, values: Iterable[object], *, negated: bool) -> Predicate:
        literals = [_literal(value) for value in as_list(f"{self!r}: isin and not_in take a list of values", values)]
        known = tuple(literal for literal in literals if literal is not None)
        has_null = len(known) < len(literals)
        return on_values([self._tree], lambda ref: In(ref, known, has_null=has_null, negated=negated))

    def _text(self, test: TextTest, pattern: object) -> Predicate:
        literal = _literal(pattern)
        if not isinstance(literal, (str, BinaryValue)):
            raise UsageError(f"{self!r}.{test} takes text, not {pattern!r}")
        return on_values([self._tree], lambda ref: TextMatch(ref, test, literal))

    def __and__(self, other: object) -> NoReturn:
        self._refuse("&", other)

    def __or__(self, other: object) -> NoReturn:
        self._refuse("|", other)

    __rand__ = __and__
    __ror__ = __or__

    def __invert__(self) -> Predicate:
        return Not(on_values([self._tree], IsTrue))

    def _refuse(self, sign: str, other: object) -> NoReturn:
        raise UsageError(
            f"`{sign}` binds tighter than comparisons: put each comparison in parentheses, as in "
            f'(col("a") == 1) {sign} (col("b") == 2); for a BOOLEAN column write {self!r} == True '
            f"(the other side was: {other!r})"
        )

    def __bool__(self) -> bool:
        raise UsageError(f"{self!r} has no truth value; compare it, as in {self!r} == 1, or test it with .isin([…])")


class Column(Calculable):
    """A column by name, for writing predicates: `col("a") > 1`, `col("a") < col("b")`."""

    __slots__ = ("_ref",)

    def __init__(self, path: tuple[str, ...]) -> None:
        self._ref = Ref(path)

    @property
    def _tree(self) -> ColumnValue:
        return ColumnValue(self._ref)

    def variant(self, path: str, type: str | DataType = "VARIANT", *, or_null: bool = False) -> VariantColumn:
        """A part of a VARIANT column, as column, condition or value: `col("payload").variant("$.user.id", "BIGINT")`.

        Files that store the part as a separate column are read without the rest. NULL if the path does not exist.

        Args:
            path: `$`, then `.key`, `['key']` or `[number]`.
            type: the type to cast to, by the rules of `Variant.get`; a variant by default.
                or_null: NULL for a value that the type cannot hold, which otherwise fails.
            Raises: UsageError for an invalid path, SchemaError for an invalid type.
        """
        if self._ref.part is not None:
            raise UsageError(f"{self!r} is already a part: write the whole path in one string")
        return VariantColumn(msgspec.structs.replace(self._ref, part=part_of(path, parse_type(type), or_null)))

    def __repr__(self) -> str:
        return str(self._ref)


class VariantColumn(Column):
    """A part of a VARIANT column: `col("payload").variant("$.user.id", "BIGINT")`."""

    __slots__ = ()

    def __init__(self, ref: Ref) -> None:
        self._ref = ref


class Calculation(Calculable):
    """A calculated value: `col("a") + 1`, or the result of `sql("…")`."""

    __slots__ = ("_made",)

    def __init__(self, tree: ValueTree) -> None:
        self._made = tree

    @property
    def _tree(self) -> ValueTree:
        return self._made

    def __repr__(self) -> str:
        return value_text(self._made)


class Lit(Calculable):
    """A literal value, never interpreted as a column."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    @property
    def _tree(self) -> ValueTree:
        return to_literal(self.value)

    def __eq__(self, other: object) -> Any:
        """Equality with another literal is that of their values; with a column, it is a condition."""
        if isinstance(other, Calculable) and not isinstance(other, Lit):
            return super().__eq__(other)
        return isinstance(other, Lit) and self.value == other.value

    def __ne__(self, other: object) -> Any:
        if isinstance(other, Calculable) and not isinstance(other, Lit):
            return super().__ne__(other)
        return not isinstance(other, Lit) or self.value != other.value

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(self.value)

    def __repr__(self) -> str:
        return f"lit({value_repr(self.value)})"


def lit(value: object) -> Lit:
    """The value itself: `lit("source.a")` is this string where `"source.a"` would be taken for a column."""
    return value if isinstance(value, Lit) else Lit(value)


def col(name: str | Sequence[str], *inner: str) -> Column:
    """The column `name`, or a field inside ROW columns: `col("pos", "x")` or `col(["pos", "x"])`.

    A name is taken literally: `col("a.b")` is a column whose name contains a dot.

    Raises: UsageError for an empty path or one that is not a string.
    """
    path = (*(tuple(name) if isinstance(name, (list, tuple)) else (name,)), *inner)
    if not path or not all(isinstance(step, str) and step for step in path):
        raise UsageError(f"col() takes a column name, or the names along a nested path, not {name!r}")
    return Column(path)


def tree_of(value: object) -> ValueTree:
    """A value as data: that of a column, a calculation, or any Python value that a column can be compared with.

    Raises: UsageError for values that no column can hold.
    """
    return value._tree if isinstance(value, Calculable) else to_literal(value)


def ref_of(column: Column) -> Ref:
    """A column as data."""
    return column._ref


def calculable(tree: ValueTree) -> Calculable:
    """A value for conditions, `update` and `merge`."""
    if isinstance(tree, ColumnValue):
        return VariantColumn(tree.column) if tree.column.part is not None else Column(tree.column.path)
    return Calculation(tree) if isinstance(tree, CALCULATED) else Lit(tree)


def _literal(value: object) -> LiteralValue | None:
    return to_literal(value.value if isinstance(value, Lit) else value)


def _calculate(left: object, sign: Sign, right: object) -> Calculation:
    if isinstance(right, timedelta) and sign in ("+", "-"):
        from paimon_py.expr.sql_intervals import Interval, interval_text

        nanos = (right.seconds * 1_000_000 + right.microseconds) * 1_000
        interval = interval_text(Interval(days=right.days, nanos=nanos), 1 if sign == "+" else -1)
        return Calculation(FunctionCall("add_interval", (tree_of(left), interval)))
    if isinstance(left, timedelta) and sign == "+":
        return _calculate(right, sign, left)
    return Calculation(Arithmetic(sign, tree_of(left), tree_of(right)))
