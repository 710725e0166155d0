"""Random conditions on calculated values never skip a group of rows with a match."""

import random
from datetime import datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from paimon_py import PaimonError, col, sql
from paimon_py.expr.arrays import arrow_type
from paimon_py.expr.arrow import evaluate
from paimon_py.expr.bind import bind, predicate_of
from paimon_py.expr.prune import Bounds, may_match
from paimon_py.expr.sql import parse_where
from paimon_py.spec.types import Atomic, Field, Root

INF, NAN = float("inf"), float("nan")
BEGIN = datetime(2024, 1, 28, 11)
TYPES = {
    "i": Atomic(Root.SMALLINT), "n": Atomic(Root.BIGINT), "f": Atomic(Root.FLOAT), "g": Atomic(Root.DOUBLE),
    "p": Atomic(Root.DECIMAL, precision=9, scale=2), "q": Atomic(Root.DECIMAL, precision=38, scale=10), "s": Atomic(Root.VARCHAR, length=99),
    "d": Atomic(Root.DATE), "t": Atomic(Root.TIMESTAMP, precision=3), "u": Atomic(Root.TIMESTAMP, precision=6),
    "z": Atomic(Root.TIMESTAMP_LTZ, precision=9), "b": Atomic(Root.BOOLEAN),
}  # fmt: skip
FIELDS = [Field(number, name, kind) for number, (name, kind) in enumerate(TYPES.items())]
INTERVALS = ("1 day", "-36 hours", "1 month", "-1 month", "13 months 12 hours", "1 month -12 hours", "-2 months 30 hours", "7 microseconds", "1000 years")
UNITS = ("year", "quarter", "month", "week", "day", "hour", "second", "millisecond")


class Draw:
    """Draws rows and condition texts."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.pick = self.random.choice

    def cell(self, name: str) -> object:
        """A value of a column, rarely NULL."""
        if self.random.random() < 0.15:
            return None
        if name == "i":
            return self.pick((self.random.randint(-9, 9), self.random.randint(-32768, 32767)))
        if name == "n":
            return self.pick((self.random.randint(-9, 9), self.random.randint(-9, 9), self.random.randint(-(2**63), 2**63 - 1), 2**62, -(2**62)))
        if name in ("f", "g"):
            return self.pick((0.0, -0.0, NAN, INF, -INF, 1.5, -2.5, self.random.uniform(-9, 9), 3e38, 1e300 if name == "g" else 1e38))
        if name in ("p", "q"):
            return self.pick((Decimal(self.random.randint(-900, 900)) / 100, Decimal(self.random.randint(-9_999_999, 9_999_999))))
        if name == "s":
            return self.pick(("", "a", "Ab", " b ", "zz", "1", "ä"))
        if name == "b":
            return self.pick((True, False))
        moment = BEGIN + timedelta(days=self.random.randint(0, 40), hours=self.random.randint(0, 23))
        if self.random.random() < 0.1:
            moment = moment.replace(year=self.pick((1904, 1968, 2204)))
        return moment.date() if name == "d" else moment

    def time(self, depth: int) -> str:
        """A date or timestamp."""
        if depth <= 0:
            return self.pick(("d", "t", "u", "z", "t", "u", "z", "DATE '2024-02-03'"))
        inner = self.time(depth - 1)
        return self.pick((
            f"({inner} + INTERVAL '{self.pick(INTERVALS)}')", f"({inner} - INTERVAL '{self.pick(INTERVALS)}')", f"date_trunc('{self.pick(UNITS)}', {inner})",
            f"CAST({inner} AS DATE)", f"(CAST({inner} AS DATE) + {self.pick(('3', '-40', 'i', 'n'))})", f"(CAST({inner} AS DATE) - 2)",
            f"coalesce({inner}, {self.time(0)})", f"CASE WHEN {self.condition(depth - 1)} THEN {inner} END", f"greatest({inner}, {inner})",
        ))  # fmt: skip

    def number(self, depth: int) -> str:
        """A number."""
        if depth <= 0:
            return self.pick(("i", "n", "f", "g", "p", "q", "i", "n", "f", "g", "p", "q", self.constant()))
        a, b = self.number(depth - 1), self.number(self.pick((0, depth - 1)))
        c = self.constant()
        return self.pick((
            f"({a} + {c})", f"({c} + {a})", f"({a} - {c})", f"({c} - {a})", f"({a} * {c})", f"({c} * {a})", f"({a} / {c})", f"({c} / {a})", f"(-{a})",
            f"floor({a})", f"ceil({a})", f"round({a})", f"round({a}, 1)", f"abs({a})", f"({a} % {c})", f"({a} + {b})", f"({a} - {b})", f"({a} * {b})",
            f"coalesce({a}, {b})", f"nullif({a}, {c})", f"greatest({a}, {b})", f"least({a}, {c})", f"length({self.text(depth - 1)})", f"(-({a} + {c}))",
            f"CASE WHEN {self.condition(depth - 1)} THEN {a} ELSE {c} END", f"({a} + 1e308 * 10)", f"({a} - 1e308 * 10)", f"({a} * 1e308 * 1e308)",
        ))  # fmt: skip

    def constant(self) -> str:
        """A number without columns, also of odd kinds."""
        return self.pick(("1", "-3", "2", "0.25", "-0.5", "0", "7e-2", "1e300", "9223372036854775807", "-0.0", "1.5", "NULL", "(1 - 3)", "100", "0.0000001"))

    def text(self, depth: int) -> str:
        """A string."""
        if depth <= 0:
            return self.pick(("s", "s", "'a'"))
        inner = self.text(depth - 1)
        return self.pick((f"upper({inner})", f"trim({inner})", f"({inner} || 'x')", f"substring({inner}, 1, 1)", f"replace({inner}, 'a', 'b')", inner))

    def condition(self, depth: int) -> str:
        """A condition."""
        no, sign = self.pick(("", "NOT ")), self.pick(("=", "<>", "<", "<=", ">", ">="))
        kind = self.pick(("number", "number", "number", "time", "time", "text", "both"))
        if kind == "both" and depth > 0:
            a, b = self.condition(depth - 1), self.condition(depth - 1)
            return self.pick((f"({a} AND {b})", f"({a} OR {b})", f"NOT ({a})"))
        if kind == "text":
            return self.pick((f"{self.text(depth)} {sign} 'a'", f"{self.text(depth)} {sign} {self.text(depth)}", f"{self.text(depth)} {no}LIKE 'A%'"))
        if kind == "time":
            a, day = self.time(depth), self.random.randint(1, 28)
            literal = f"DATE '2024-0{self.pick((1, 2, 3))}-{day:02}'"
            return self.pick((f"{a} {sign} {literal}", f"{a} {sign} {literal} + INTERVAL '11 hours'", f"{a} {no}IN ({literal}, DATE '2024-02-29')",
                              f"{a} {no}BETWEEN {literal} AND {literal} + 20", f"{a} IS {no}NULL", f"{a} {sign} {self.time(1)}",
                              f"{a} IS {no}DISTINCT FROM {literal}"))  # fmt: skip
        a, b = self.number(depth), self.pick(("0", "-0.5", "2", "4.5", "1e300", "-9e18", "NAN", "INF"))
        near = {"NAN": "g", "INF": "g"}.get(b, b)
        return self.pick((f"{a} {sign} {near}", f"{a} {sign} {near}", f"{a} {no}IN (0, 3, -1.5)", f"{a} IS {no}NULL", f"{a} IS {no}NAN", f"{a} IS {no}DISTINCT FROM {near}",
                          f"{a} {sign} {self.number(1)}", f"{a} {no}BETWEEN -2 AND 3"))  # fmt: skip


def groups_of(columns: dict[str, pa.Array], cuts: list[int], *, trusted: bool) -> dict[str, Bounds]:
    """The true bounds of the rows between the cuts; NaN is the greatest if trusted, and ignored otherwise."""
    found = {}
    for name, array in columns.items():
        if name == "b":
            continue
        lows, highs, nulls = [], [], []
        for start, end in zip(cuts, cuts[1:], strict=False):
            known = [value for value in array[start:end].to_pylist() if value is not None]
            nulls.append(end - start - len(known))
            numbers = [value for value in known if value == value]
            has_nan = trusted and len(numbers) < len(known)
            lows.append(min(numbers, default=NAN if has_nan else None))
            highs.append(NAN if has_nan else max(numbers, default=None))
        counts = pa.array(nulls, pa.int64())
        low, high = pa.array(lows, array.type), pa.array(highs, array.type)
        found[name] = Bounds(min=low, max=high, null_count=counts, trusted_floats=trusted)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_bounds_of_calculated_values_lose_no_match(seed):
    draw = Draw(seed)
    pruned = 0
    for _ in range(40):
        size = draw.random.randint(1, 6)
        columns = {name: pa.array([draw.cell(name) for _ in range(size)], arrow_type(kind)) for name, kind in TYPES.items()}
        cut = draw.random.randint(0, size)
        cuts = [0, cut, size] if 0 < cut < size else [0, size]
        text = draw.condition(draw.random.randint(1, 3))
        try:
            predicate = bind(parse_where(text), FIELDS)
        except PaimonError:
            continue  # values that have no common type, are always NULL, …
        rows = pa.array([end - start for start, end in zip(cuts, cuts[1:], strict=False)], pa.int64())
        kept = may_match(predicate, groups_of(columns, cuts, trusted=draw.pick((True, False))), rows)
        pruned += int((~kept).sum())
        for group, (start, end) in enumerate(zip(cuts, cuts[1:], strict=False)):
            if not kept[group]:
                for row in range(start, end):
                    one = {name: array[row : row + 1] for name, array in columns.items()}
                    assert not matches(predicate, one), (text, {name: array[row].as_py() for name, array in one.items()})
    assert pruned


INFINITE = {"g": [-INF, -INF, 1.0, INF], "n": [-(2**62), 3, 5, 2**62]}
AT_NIGHT = {"t": [datetime(2023, 1, 30, 12), datetime(2023, 1, 31, 11), datetime(2023, 1, 30, 12), datetime(2023, 1, 31, 11)]}


@pytest.mark.parametrize(("columns", "where"), [
    (INFINITE, sql("g") + INF == NAN), (INFINITE, -(col("g") + INF) == NAN), (INFINITE, col("g") - INF != 3),
    (INFINITE, col("n") * 1e300 * 1e300 - INF == NAN), (INFINITE, "n + NULL IS NULL"),
    (INFINITE, "n - CASE WHEN n > 2 THEN NULL ELSE 1 END IS NULL"),
    (AT_NIGHT, "CAST(t + INTERVAL '1 month 12 hours' AS DATE) + 1 = DATE '2023-03-02'"),
    (AT_NIGHT, "CAST(t + INTERVAL '1 month 12 hours' AS DATE) + 1 = DATE '2023-03-01'"),
])  # fmt: skip
def test_values_beyond_the_ends_are_found(columns, where):
    """∞ − ∞, sums with NULL, and times that change places."""
    arrays = {name: pa.array(values, arrow_type(TYPES[name])) for name, values in columns.items()}
    predicate = bind(predicate_of(where), [FIELDS[list(TYPES).index(name)] for name in columns])
    (kept,) = may_match(predicate, groups_of(arrays, [0, 4], trusted=True), pa.array([4], pa.int64()))
    assert any(evaluate(predicate, arrays).to_pylist())
    assert kept


def matches(predicate, row: dict[str, pa.Array]) -> bool:
    """Whether a row matches; False for a row whose values cannot be calculated."""
    try:
        return evaluate(predicate, row).to_pylist() == [True]
    except PaimonError:
        return False
