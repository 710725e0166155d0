"""Interprets conditions and values as a Spark session does: its time zone, case sensitivity and comparison of floats.

A condition is rewritten so that the core evaluates it as Spark would: a time without zone compared with an instant is
a local time of the session, a date or a time without zone compared with a TIMESTAMP literal becomes an instant, −0.0 is
0.0, and FLOAT columns are compared as DOUBLE.

Source: Spark `TypeCoercion`, `AnsiTypeCoercion`, `Cast`, `OrderingUtil`.
"""

from __future__ import annotations

import operator as operators
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Union, cast, get_args

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py import Predicate
from paimon_py.distributed import (
    MergeClauses,
    calculable,
    from_arrow_type,
    map_values,
    parse_timestamp,
    predicate_of,
    ref_of,
    refs_of,
    to_literal,
    tree_of,
)
from paimon_py.errors import SchemaError, UsageError
from paimon_py.spark.case_rule import CaseRule
from paimon_py.spark.clocks import Clocks
from paimon_py.types import (
    And,
    Arithmetic,
    Atomic,
    Calculation,
    Case,
    Column,
    ColumnValue,
    Compare,
    CompareColumns,
    Constant,
    DataType,
    DateValue,
    DecimalValue,
    Field,
    FunctionCall,
    In,
    IsNull,
    IsTrue,
    Lit,
    LiteralValue,
    Negative,
    Not,
    Operator,
    Or,
    Ref,
    Root,
    RowType,
    TextMatch,
    TimestampValue,
    ValueTest,
    ValueTree,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ZONE = "spark.sql.session.timeZone"
_LITERALS = "spark.sql.timestampType"
_ANSI = "spark.sql.ansi.enabled"

_TIMES = frozenset((Root.DATE, Root.TIMESTAMP, Root.TIMESTAMP_LTZ))
SOURCE, TARGET = "source", "target"
"""The names of the two sides of a merge in its conditions and values."""
_DAY_OF_TEXT = re.compile(r"\s*(\d{4}-\d{2}-\d{2})[ T]", re.ASCII)
Kinds = Mapping[tuple[str, ...], Union[DataType, None]]


class Meaning(msgspec.Struct, frozen=True):
    """The rules by which a session interprets conditions.

    Attributes:
        zone: its time zone; None: unknown.
        names: how it resolves column names.
        unwraps: whether a column of local times is compared with the local time of an instant, as in Spark 4 (whose
            optimizer removes the cast), instead of comparing instants.
        walls: whether a literal `TIMESTAMP '…'` is a local time and not an instant.
        ansi: whether it is in ANSI mode. Otherwise IN compares times as strings, and integers with FLOAT as FLOAT.
    """

    zone: str | None
    names: CaseRule = CaseRule()
    unwraps: bool = True
    walls: bool = False
    ansi: bool = True

    @staticmethod
    def of(spark: SparkSession) -> Meaning:
        """The current settings of a session."""
        return Meaning(
            zone=spark.conf.get(ZONE),
            names=CaseRule.of(spark),
            unwraps=int(str(spark.version).partition(".")[0]) >= 4,
            walls=str(spark.conf.get(_LITERALS)).upper() == "TIMESTAMP_NTZ",
            ansi=str(spark.conf.get(_ANSI)).lower() == "true",
        )

    def condition(self, where: object, fields: Sequence[Field]) -> Predicate:
        """A condition on rows of these columns.

        Raises: UsageError for a string that is not a condition, or that the session cannot interpret.
        """
        return self._reader({(field.name,): field.type for field in fields}).condition(predicate_of(where))

    def condition_on(self, where: object, schema: pa.Schema) -> Predicate:
        """A condition on rows of these columns of Arrow.

        Raises: as `condition`.
        """
        return self._reader({(field.name,): _kind(field) for field in schema}).condition(predicate_of(where))

    def values(self, values: object, fields: Sequence[Field]) -> object:
        """The values of an update, by column.

        Raises: UsageError
        """
        return self._reader({(field.name,): field.type for field in fields}).assign(values, fields)

    def clauses(self, asked: MergeClauses, fields: Sequence[Field], source: pa.Schema) -> MergeClauses:
        """The clauses of a merge.

        Raises: UsageError
        """
        kinds: dict[tuple[str, ...], DataType | None] = {(TARGET, field.name): field.type for field in fields}
        kinds.update({(SOURCE, field.name): _kind(field) for field in source})
        reader = self._reader(kinds)
        given = {name: reader.clause(getattr(asked, name), fields) for name in asked.__struct_fields__}
        return MergeClauses(**given)

    def keys(self, on: object, known: Sequence[str], source: Sequence[str]) -> object:
        """The names in `on`, as in the table and the source of a merge; unknown names are left unchanged.

        Raises: UsageError if a name refers to two columns.
        """
        names = self.names
        if isinstance(on, Mapping) and all(isinstance(one, str) for pair in on.items() for one in pair):
            return {names.one_of(name, known): names.one_of(other, source) for name, other in on.items()}
        given = [on] if isinstance(on, str) else on
        if not isinstance(given, Sequence) or not all(isinstance(one, str) for one in given):
            return on
        return [names.one_of(one, known) for one in given]

    def _reader(self, kinds: Kinds) -> _Reader:
        return _Reader(self, kinds)


class _Reader:
    """Rewrites conditions and values over given columns."""

    def __init__(self, meaning: Meaning, kinds: Kinds) -> None:
        self._meaning = meaning
        self._kinds = kinds
        self._clocks = None if meaning.zone is None else _clocks(meaning.zone)

    # -- clauses and values -------------------------------------------------------------------------------------------

    def clause(self, asked: object, fields: Sequence[Field]) -> object:
        """A clause of a merge, or several."""
        if isinstance(asked, list):
            return [self.clause(each, fields) for each in asked]
        if isinstance(asked, tuple) and len(asked) == 2:
            return self.condition(predicate_of(asked[0])), self.assign(asked[1], fields)
        if isinstance(asked, (str, *get_args(Predicate), Column)):
            return self.condition(predicate_of(asked))
        return self.assign(asked, fields)

    def assign(self, values: object, fields: Sequence[Field]) -> object:
        """Values by column; anything else is left unchanged, and refused later."""
        if not isinstance(values, Mapping):
            return values
        kinds = {field.name: field.type for field in fields}
        found: dict[object, object] = {}
        for given, value in values.items():
            name = self._meaning.names.one_of(given, kinds) if isinstance(given, str) else given
            if name in found:
                raise UsageError(f"{given!r} is set twice: names in another case are the same name in this session")
            found[name] = self._value(value, kinds.get(cast(str, name)))
        return found

    def _value(self, value: object, kind: DataType | None) -> object:
        if isinstance(value, Column):
            return self._column(value)
        is_instant = isinstance(kind, Atomic) and kind.root is Root.TIMESTAMP_LTZ
        if isinstance(value, str):
            sided = self._side_text(value)
            if sided is not None:
                return sided
            moment = self._moment(value) if is_instant else None
            return value if moment is None else Lit(moment)
        if isinstance(value, Calculation):
            return calculable(self._calculation(tree_of(value), is_instant))
        if not is_instant or callable(value) or value is None:
            return value
        return self._literal(value)

    def _literal(self, value: object) -> object:
        """A value for a column of instants."""
        plain = value.value if isinstance(value, Lit) else value
        try:
            literal = to_literal(plain)
        except UsageError:  # not a literal: refused when the column is set
            return value
        moment = self._moment(literal)
        return value if moment is None else Lit(moment)

    def _calculation(self, value: ValueTree, is_instant: bool) -> ValueTree:
        if isinstance(value, ColumnValue):
            return ColumnValue(self._ref(value.column))
        if isinstance(value, Arithmetic):
            left, right = (self._calculation(side, is_instant) for side in (value.left, value.right))
            return Arithmetic(value.sign, left, right)
        if isinstance(value, Negative):
            return Negative(self._calculation(value.value, is_instant))
        if isinstance(value, FunctionCall):
            if not value.arguments or value.function in ("add_interval", "date", "date_trunc"):
                raise UsageError(
                    f"{value!r}: values of Spark's verbs do not calculate with times, for which Spark uses its time "
                    "zone; let Spark calculate a column of the source, and merge it"
                )
            return FunctionCall(value.function, tuple(self._calculation(one, is_instant) for one in value.arguments))
        if isinstance(value, Case):
            branches = [
                (self.condition(condition), self._calculation(one, is_instant)) for condition, one in value.branches
            ]
            return Case(tuple(branches), self._calculation(value.otherwise, is_instant))
        moment = self._moment(value) if is_instant and not isinstance(value, str) else None
        return value if moment is None else moment

    def _side_text(self, text: str) -> str | None:
        """The string `source.A` with the actual name of the column; None for any other string."""
        side, dot, name = text.partition(".")
        path = (side.lower(), name)
        if not dot or path[0] not in (SOURCE, TARGET):
            return None
        found = self._meaning.names.path_of(path, self._kinds)
        return None if found is None or side != side.lower() else ".".join(found)

    # -- conditions ---------------------------------------------------------------------------------------------------

    def condition(self, predicate: Predicate) -> Predicate:
        """The condition with its meaning in this session, for the core."""
        if isinstance(predicate, (And, Or)):
            return type(predicate)(tuple(map(self.condition, predicate.parts)))
        if isinstance(predicate, Not):
            return Not(self.condition(predicate.part))
        if isinstance(predicate, Constant):
            return predicate
        if isinstance(predicate, CompareColumns):
            return self._pair(predicate)
        if isinstance(predicate, ValueTest):
            return self._values(predicate)
        column = self._ref(predicate.column)
        if isinstance(predicate, (IsNull, IsTrue, TextMatch)):
            return msgspec.structs.replace(predicate, column=column)
        kind = self._kind_of(column)
        if isinstance(predicate, In):
            return self._in(predicate, column, kind)
        return self._compare(column, kind, predicate.operator, predicate.literal)

    def _values(self, test: ValueTest) -> Predicate:
        """A condition on calculated values, in which −0.0 is 0.0 and FLOAT is calculated as DOUBLE, as in Spark.

        Raises: UsageError if it calculates with times, which Spark would cast by its time zone.
        """
        for ref in refs_of(test):
            kind = self._kind_of(self._ref(ref))
            if isinstance(kind, Atomic) and kind.root in _TIMES:
                raise UsageError(
                    f"{test!r}: conditions of a Spark session calculate with numbers, strings and booleans, not with "
                    f"times such as {ref}; compare the column itself"
                )
        return map_values(test, lambda ref: ColumnValue(self._ref(ref)), self.condition)

    def _pair(self, pair: CompareColumns) -> Predicate:
        left, right = self._ref(pair.left), self._ref(pair.right)
        kinds = [self._kind_of(each) for each in (left, right)]
        plain = CompareColumns(left, pair.operator, right)
        if not any(isinstance(kind, Atomic) and kind.root in (Root.FLOAT, Root.DOUBLE) for kind in kinds):
            return plain
        zeros = And((self._compare(left, kinds[0], "==", 0), self._compare(right, kinds[1], "==", 0)))
        return Or((plain, zeros)) if pair.operator in ("==", "<=", ">=") else And((plain, Not(zeros)))

    def _in(self, found: In, column: Ref, kind: DataType | None) -> Predicate:
        is_time = isinstance(kind, Atomic) and kind.root in _TIMES
        if is_time and not self._meaning.ansi and any(isinstance(literal, str) for literal in found.literals):
            raise UsageError(
                f"{column} is compared with texts by IN, which outside of ANSI mode compares what Spark prints of "
                "times: write DATE '…' or TIMESTAMP '…'"
            )
        one = len({*found.literals, *([None] if found.has_null else [])}) == 1
        parts = [self._compare(column, kind, "==", literal, unwraps=one) for literal in found.literals]
        if all(isinstance(part, Compare) and part.operator == "==" for part in parts):
            literals = tuple(part.literal for part in parts if isinstance(part, Compare))
            return msgspec.structs.replace(found, column=column, literals=literals)
        rest = [In(column, (), has_null=True)] if found.has_null else []
        either: Predicate = reduce(operators.or_, [*parts, *rest])
        return Not(either) if found.negated else either

    def _compare(
        self, column: Ref, kind: DataType | None, operator: Operator, literal: LiteralValue, *, unwraps: bool = True
    ) -> Predicate:
        """A comparison; `unwraps`: it is not one of several in IN, which Spark's optimizer does not change."""
        plain = Compare(column, operator, literal)
        if not isinstance(kind, Atomic):
            return plain
        if kind.root is Root.TIMESTAMP_LTZ:
            moment = self._moment(literal)
            return plain if moment is None else Compare(column, operator, _cut(moment, kind))
        if kind.root in (Root.FLOAT, Root.DOUBLE):
            return _of_floats(column, kind, operator, literal, ansi=self._meaning.ansi)
        if kind.root is Root.DATE and isinstance(literal, str):
            day = _DAY_OF_TEXT.match(literal)
            return plain if day is None else Compare(column, operator, day[1])
        if kind.root in _TIMES and isinstance(literal, TimestampValue):
            return self._beside_instant(column, kind, operator, literal, unwraps and self._meaning.unwraps)
        return plain

    def _beside_instant(
        self, column: Ref, kind: Atomic, operator: Operator, literal: TimestampValue, unwraps: bool
    ) -> Predicate:
        """A date or a local time compared with a TIMESTAMP literal: both are compared as instants."""
        is_wall = self._meaning.walls and not literal.zoned
        if self._clocks is None or is_wall:
            return Compare(column, operator, literal)
        instant = _cut(literal if literal.zoned else self._clocks.instant(literal), kind)
        if kind.root is Root.DATE:
            return _days(self._clocks, column, operator, instant)
        if unwraps:
            return Compare(column, operator, self._clocks.wall(instant, self._clocks.ahead(instant.seconds)))
        return _walls(self._clocks, column, operator, instant)

    def _moment(self, literal: LiteralValue | None) -> TimestampValue | None:
        """The instant of a literal that is a time without zone; None for any other literal."""
        value: LiteralValue | None = parse_timestamp(literal) if isinstance(literal, str) else literal
        if isinstance(value, DateValue):
            if self._clocks is not None:
                return TimestampValue(self._clocks.start(value.days), 0, zoned=True)
        elif not isinstance(value, TimestampValue) or value.zoned:
            return None
        elif self._clocks is not None:
            return self._clocks.instant(value)
        raise UsageError(
            f"{literal!r} has no time zone, and the column is TIMESTAMP WITH LOCAL TIME ZONE: Spark does not give its "
            "data sources the zone of the session; give .option('timeZone', spark.conf.get("
            "'spark.sql.session.timeZone')), or write the zone, as in TIMESTAMP '2024-07-01 00:00:00Z'"
        )

    # -- columns ------------------------------------------------------------------------------------------------------

    def _ref(self, ref: Ref) -> Ref:
        """A column, or a part of a VARIANT, with the actual name of the column."""
        return Ref(self._path(ref.path), part=ref.part)

    def _kind_of(self, ref: Ref) -> DataType | None:
        return self._kind(ref.path) if ref.part is None else ref.part.type

    def _column(self, value: Column) -> Column:
        return cast(Column, calculable(ColumnValue(self._ref(ref_of(value)))))

    def _path(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """A path with the actual names of the columns; unchanged if there is no such column, and refused later."""
        side, dot, name = path[0].partition(".")
        if dot and side in (SOURCE, TARGET) and (path[0],) not in self._kinds:
            path = (side, name, *path[1:])
        known, taken = self._find(path)
        if known is None:
            return path
        kind = self._kinds[known]
        steps = list(known if taken == len(known) else known[1:])
        for step in path[taken:]:
            inner = {field.name: field.type for field in kind.fields} if isinstance(kind, RowType) else {}
            steps.append(self._meaning.names.one_of(step, inner))
            kind = inner.get(steps[-1])
        return tuple(steps)

    def _kind(self, path: tuple[str, ...]) -> DataType | None:
        """The type of a column, given its path from `_path`."""
        known, taken = self._find(path)
        if known is None:
            return None
        kind = self._kinds[known]
        for step in path[taken:]:
            fields = kind.fields if isinstance(kind, RowType) else ()
            kind = next((field.type for field in fields if field.name == step), None)
        return kind

    def _find(self, path: tuple[str, ...]) -> tuple[tuple[str, ...] | None, int]:
        """The column at the beginning of a path, None if there is none or two, and the number of its path elements."""
        names = self._meaning.names
        for taken in (2, 1):
            known = names.path_of(path[:taken], self._kinds) if len(path) >= taken else None
            if known is not None:
                return known, taken
        sides = [names.path_of((side, path[0]), self._kinds) for side in (SOURCE, TARGET)]
        either = [known for known in sides if known is not None]
        return (either[0] if len(either) == 1 else None), 1


@lru_cache(maxsize=16)
def _clocks(zone: str) -> Clocks:
    return Clocks(zone)


def _kind(field: pa.Field) -> DataType | None:
    try:
        return from_arrow_type(field.type)
    except SchemaError:  # no column of a table has this type: conditions on it are refused elsewhere
        return None


def _cut(moment: TimestampValue, kind: Atomic) -> TimestampValue:
    """A timestamp with Spark's precision: without digits below the microsecond, which only finer columns have."""
    if (kind.precision or 6) > 6:
        return moment
    return msgspec.structs.replace(moment, nanos=moment.nanos - moment.nanos % 1_000)


def _never(column: Ref, literal: LiteralValue) -> Predicate:
    """A condition that is false for every value, and unknown for NULL."""
    return And((Compare(column, "<", literal), Compare(column, ">", literal)))


def _by_operator(operator: Operator, less: Predicate, up_to: Predicate, equal: Predicate) -> Predicate:
    """The condition for an operator, given those for less, less or equal, and equal."""
    found: dict[Operator, Callable[[], Predicate]] = {
        "<": lambda: less, "<=": lambda: up_to, "==": lambda: equal,
        ">=": lambda: Not(less), ">": lambda: Not(up_to), "!=": lambda: Not(equal),
    }  # fmt: skip
    return found[operator]()


def _days(clocks: Clocks, column: Ref, operator: Operator, instant: TimestampValue) -> Predicate:
    """A date compared with an instant: by the first instant of the day."""
    first, later = clocks.days_from(instant)
    less, up_to = Compare(column, "<", first), Compare(column, "<", later)
    return _by_operator(operator, less, up_to, And((Not(less), up_to)))


def _walls(clocks: Clocks, column: Ref, operator: Operator, instant: TimestampValue) -> Predicate:
    """A local time compared with an instant: by the instant of the local time.

    Example: clocks go from 2 to 3 o'clock, and 2:15 is the same instant as 3:15. Before that instant are the times up
    to 2:15, and those from 3 to 3:15.
    """
    jump = clocks.jump_before(instant.seconds)
    if jump is None:
        return Compare(column, operator, clocks.wall(instant, clocks.ahead(instant.seconds)))
    end = TimestampValue(jump.at + max(jump.before, jump.after), 0)
    if jump.after < jump.before:  # occurs twice: no local time stands for the second occurrence
        less = Compare(column, "<", end)
        return _by_operator(operator, less, less, _never(column, end))
    skipped, shown = clocks.wall(instant, jump.before), clocks.wall(instant, jump.after)

    def before(sign: Operator) -> Predicate:
        return Or((Compare(column, sign, skipped), And((Compare(column, ">=", end), Compare(column, sign, shown)))))

    equal = Or((Compare(column, "==", skipped), Compare(column, "==", shown)))
    return _by_operator(operator, before("<"), before("<="), equal)


def _of_floats(column: Ref, kind: Atomic, operator: Operator, literal: LiteralValue, *, ansi: bool) -> Predicate:
    """A FLOAT or DOUBLE compared with a number: as DOUBLE, where −0.0 is 0.0."""
    if isinstance(literal, bool) or not isinstance(literal, (int, float, DecimalValue)):
        return Compare(column, operator, literal)
    number = float(Decimal(literal.text)) if isinstance(literal, DecimalValue) else float(literal)
    if number == 0:
        equal = Or((Compare(column, "==", -0.0), Compare(column, "==", 0.0)))
        return _by_operator(operator, Compare(column, "<", -0.0), Compare(column, "<=", 0.0), equal)
    if kind.root is Root.DOUBLE or number != number:
        return Compare(column, operator, number)
    with np.errstate(over="ignore"):
        near = np.float32(number)
    if float(near) == number or (isinstance(literal, int) and not ansi):
        return Compare(column, operator, float(near))
    below = float(near if float(near) < number else np.nextafter(near, np.float32("-inf")))
    up_to = Compare(column, "<=", below)
    return _by_operator(operator, up_to, up_to, _never(column, below))

