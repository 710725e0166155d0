"""Predicates as values, and `col`, the way to write them in Python.

A predicate is a tree of frozen values over columns and literals. It is compared by value and can be pickled or sent as
msgpack. It is independent of a table until `bind` has resolved its columns.

Meaning: SQL's three-valued logic; a row matches where the whole predicate is true. Comparisons follow Paimon: strings
and binaries by unsigned bytes, floats by Java's `compare` (−0.0 < 0.0, NaN equal to itself and largest).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NoReturn, Union

import msgspec

from paimon_py.api_hints import ApiHints
from paimon_py.arguments import as_list
from paimon_py.errors import UsageError
from paimon_py.expr.calculation import Calculable, Calculation
from paimon_py.expr.literal import BinaryValue, LiteralValue, to_literal
from paimon_py.spec.type_text import parse_type, sql_type
from paimon_py.spec.types import DataType, VariantPart
from paimon_py.spec.variant_paths import part_of

Operator = Literal["==", "!=", "<", "<=", ">", ">="]
TextTest = Literal["starts_with", "ends_with", "contains", "like", "ilike"]

INVERSE: dict[Operator, Operator] = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", "<=": ">", ">": "<="}
_SHOWN = 20


class Ref(msgspec.Struct, frozen=True):
    """A column, or a field inside ROW columns, by path.

    `ids` (field ids along the path) and `type` are set once bound. `part`: the reference is to a part of the VARIANT
    column; once bound its name is the last of the path.
    """

    path: tuple[str, ...]
    ids: tuple[int, ...] = ()
    type: DataType | None = None
    part: VariantPart | None = None

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


_PREDICATES = (Compare, CompareColumns, In, IsNull, TextMatch, IsTrue, Constant, And, Or, Not)
Predicate = Union[Compare, CompareColumns, In, IsNull, TextMatch, IsTrue, Constant, And, Or, Not]
Comparison = Union[Compare, CompareColumns]


class Column(Calculable, ApiHints):
    """A column by name, for writing predicates: `col("a") > 1`, `col("a") < col("b")`."""

    __slots__ = ("_ref",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, path: tuple[str, ...]) -> None:
        self._ref = Ref(path)

    def __eq__(self, other: object) -> Comparison:  # type: ignore[override]
        return self._compare("==", other)

    def __ne__(self, other: object) -> Comparison:  # type: ignore[override]
        return self._compare("!=", other)

    def __lt__(self, other: object) -> Comparison:
        return self._compare("<", other)

    def __le__(self, other: object) -> Comparison:
        return self._compare("<=", other)

    def __gt__(self, other: object) -> Comparison:
        return self._compare(">", other)

    def __ge__(self, other: object) -> Comparison:
        return self._compare(">=", other)

    def is_null(self) -> IsNull:
        """Rows where the column is NULL."""
        return IsNull(self._ref)

    def is_not_null(self) -> IsNull:
        """Rows where the column is not NULL."""
        return IsNull(self._ref, negated=True)

    def isin(self, values: Iterable[object]) -> In:
        """Rows whose value is one of `values`."""
        return self._in(values, negated=False)

    def not_in(self, values: Iterable[object]) -> In:
        """Rows whose value is none of `values`; as in SQL, no rows if a None is among them."""
        return self._in(values, negated=True)

    def between(self, low: object, high: object) -> Predicate:
        """Rows with low <= value <= high."""
        return And((self._compare(">=", low), self._compare("<=", high)))

    def is_distinct_from(self, value: object) -> Predicate:
        """Rows whose value differs from `value`, a literal or column; NULL counts as a value, so never unknown."""
        if isinstance(value, Column):
            return distinct(self._ref, value._ref)
        return distinct(self._ref, to_literal(value))

    def starts_with(self, prefix: str | bytes) -> TextMatch:
        """Rows whose string or bytes begin with `prefix`."""
        return self._text("starts_with", prefix)

    def ends_with(self, suffix: str | bytes) -> TextMatch:
        """Rows whose string or bytes end with `suffix`."""
        return self._text("ends_with", suffix)

    def contains(self, part: str | bytes) -> TextMatch:
        """Rows whose string or bytes contain `part`."""
        return self._text("contains", part)

    def like(self, pattern: str) -> TextMatch:
        """Rows whose string matches SQL's LIKE: `%` is any string, `_` one character, a backslash escapes the next."""
        return self._text("like", pattern)

    def ilike(self, pattern: str) -> TextMatch:
        """Rows whose text fits the pattern of `like` if upper and lower case count as equal.

        No file is skipped by its bounds: they are in the order of the bytes.
        """
        return self._text("ilike", pattern)

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
            raise UsageError(f"{self!r} is already a part: write the whole path at once")
        return VariantColumn(msgspec.structs.replace(self._ref, part=part_of(path, parse_type(type), or_null)))

    def _compare(self, operator: Operator, value: object) -> Comparison:
        if isinstance(value, Column):
            return CompareColumns(self._ref, operator, value._ref)
        if isinstance(value, _Base):
            raise UsageError(
                f"{self!r} {operator} {value!r}: a column is compared with a literal or a column; when combining with "
                "& and |, put each comparison in parentheses"
            )
        if isinstance(value, Calculation):
            raise UsageError(
                f"{self!r} {operator} {value!r}: conditions have no arithmetic; compare with a literal or a column"
            )
        literal = to_literal(value)
        if literal is None:
            hint = "is_not_null()" if operator == "!=" else "is_null()"
            raise UsageError(f"{self!r} {operator} {value!r}: nothing compares with NULL; write {self!r}.{hint}")
        return Compare(self._ref, operator, literal)

    def _in(self, values: Iterable[object], *, negated: bool) -> In:
        literals = [to_literal(value) for value in as_list(f"{self!r}: isin and not_in take a list of values", values)]
        known = tuple(literal for literal in literals if literal is not None)
        return In(self._ref, known, has_null=len(known) < len(literals), negated=negated)

    def _text(self, test: TextTest, pattern: object) -> TextMatch:
        literal = to_literal(pattern)
        if not isinstance(literal, (str, BinaryValue)):
            raise UsageError(f"{self!r}.{test} takes text, not {pattern!r}")
        return TextMatch(self._ref, test, literal)

    def __and__(self, other: object) -> NoReturn:
        self._refuse("&", other)

    def __or__(self, other: object) -> NoReturn:
        self._refuse("|", other)

    __rand__ = __and__
    __ror__ = __or__

    def __invert__(self) -> Predicate:
        return Not(IsTrue(self._ref))

    def _refuse(self, sign: str, other: object) -> NoReturn:
        raise UsageError(
            f"`{sign}` binds tighter than comparisons: put each comparison in parentheses, as in "
            f'(col("a") == 1) {sign} (col("b") == 2); for a BOOLEAN column write {self!r} == True '
            f"(the other side was: {other!r})"
        )

    def __bool__(self) -> bool:
        raise UsageError(f"{self!r} has no truth value; compare it, as in {self!r} == 1, or test it with .isin([…])")

    def __repr__(self) -> str:
        return str(self._ref)


class VariantColumn(Column):
    """A part of a VARIANT column: `col("payload").variant("$.user.id", "BIGINT")`."""

    __slots__ = ()

    def __init__(self, ref: Ref) -> None:
        self._ref = ref


def col(name: str | Sequence[str], *inner: str) -> Column:
    """The column `name`, or a field inside ROW columns: `col("pos", "x")` or `col(["pos", "x"])`.

    A name is taken literally: `col("a.b")` is a column whose name contains a dot.

    Raises: UsageError for an empty path or one that is not a string.
    """
    path = (*(tuple(name) if isinstance(name, (list, tuple)) else (name,)), *inner)
    if not path or not all(isinstance(step, str) and step for step in path):
        raise UsageError(f"col() takes a column name, or the names along a nested path, not {name!r}")
    return Column(path)


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


def distinct(column: Ref, value: Ref | LiteralValue | None) -> Predicate:
    """SQL's `column IS DISTINCT FROM value`, as comparisons and tests for NULL that are never all unknown."""
    if value is None:
        return IsNull(column, negated=True)
    if not isinstance(value, Ref):
        return Or((IsNull(column), Compare(column, "!=", value)))
    differ = Or((IsNull(column), IsNull(value), CompareColumns(column, "!=", value)))
    return And((differ, Or((IsNull(column, negated=True), IsNull(value, negated=True)))))


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
