"""Conditions of scans and streams, interpreted by the session of an engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paimon_py.expr.predicate import Predicate
from paimon_py.scan.scan import Scan
from paimon_py.spec.types import Field
from paimon_py.stream.step import Step


def with_meaning(scan: Scan, meaning: Callable[[Predicate, Sequence[Field]], Predicate]) -> Scan:
    """The scan with its condition reinterpreted by `meaning`, given the columns that the condition may use."""
    return scan._read_as(meaning)


def condition_of(step: Step) -> tuple[Predicate | None, Sequence[Field]]:
    """The condition that selected the rows of a step, and the columns that it may use."""
    return step._reading._where, step._reading._table_schema.fields
