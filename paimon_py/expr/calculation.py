"""Calculated values: `col("a") + 1`, and the result of `sql("…")`. Pure.

A calculation is a tree of frozen values over columns, literals and Python values; its meaning is defined in
`calculate`.
"""

from __future__ import annotations

from typing import Literal, NoReturn

import msgspec

from paimon_py.errors import UsageError

Sign = Literal["+", "-", "*", "/"]


class Calculable:
    """The operands of + - * /: columns, literals and calculations."""

    __slots__ = ()

    def __add__(self, other: object) -> Calculation:
        return Arithmetic("+", self, other)

    def __radd__(self, other: object) -> Calculation:
        return Arithmetic("+", other, self)

    def __sub__(self, other: object) -> Calculation:
        return Arithmetic("-", self, other)

    def __rsub__(self, other: object) -> Calculation:
        return Arithmetic("-", other, self)

    def __mul__(self, other: object) -> Calculation:
        return Arithmetic("*", self, other)

    def __rmul__(self, other: object) -> Calculation:
        return Arithmetic("*", other, self)

    def __truediv__(self, other: object) -> Calculation:
        return Arithmetic("/", self, other)

    def __rtruediv__(self, other: object) -> Calculation:
        return Arithmetic("/", other, self)

    def __neg__(self) -> Calculation:
        return Negative(self)


class Calculation(Calculable, msgspec.Struct, frozen=True, eq=False):
    """A calculated value, for `update` and `merge`."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> NoReturn:
        self._refuse("==", other)

    def __ne__(self, other: object) -> NoReturn:
        self._refuse("!=", other)

    def __lt__(self, other: object) -> NoReturn:
        self._refuse("<", other)

    def __le__(self, other: object) -> NoReturn:
        self._refuse("<=", other)

    def __gt__(self, other: object) -> NoReturn:
        self._refuse(">", other)

    def __ge__(self, other: object) -> NoReturn:
        self._refuse(">=", other)

    def __bool__(self) -> NoReturn:
        raise UsageError(f"{self!r} has no truth value: a calculation is a value for update and merge")

    def _refuse(self, sign: str, other: object) -> NoReturn:
        raise UsageError(
            f"{self!r} {sign} {other!r}: conditions have no arithmetic; compare the column itself, as in"
            ' col("a") > 2 for col("a") + 1 > 3'
        )


class Arithmetic(Calculation, frozen=True, eq=False):
    """Two numbers and an operator."""

    sign: Sign
    left: object
    right: object

    def __repr__(self) -> str:
        return f"({self.left!r} {self.sign} {self.right!r})"


class Negative(Calculation, frozen=True, eq=False):
    """A negated number."""

    value: object

    def __repr__(self) -> str:
        return f"-{self.value!r}"


class FunctionCall(Calculation, frozen=True, eq=False):
    """A function and its arguments."""

    function: str
    arguments: tuple[object, ...]

    def __repr__(self) -> str:
        return f"{self.function}({', '.join(map(repr, self.arguments))})"


class Case(Calculation, frozen=True, eq=False):
    """The value of the first condition that is true, or `otherwise`."""

    branches: tuple[tuple[object, object], ...]
    otherwise: object

    def __repr__(self) -> str:
        shown = " ".join(f"when {condition!r} then {value!r}" for condition, value in self.branches)
        return f"case {shown} else {self.otherwise!r} end"
