"""Samples: numbers with names and labels, as values; and their text for Prometheus. Pure.

Source: Prometheus, "Exposition formats", version 0.0.4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

Labels = tuple[tuple[str, str], ...]
"""Names and values of labels, in the order of the family."""


class MetricFamily(msgspec.Struct, frozen=True):
    """Numbers of one name.

    Attributes:
        name: such as `paimon_commits_total`.
        kind: `counter` only grows, `gauge` is how something is now, `histogram` counts times by their length.
        text: what the numbers mean.
        labels: names of the labels.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    text: str
    labels: tuple[str, ...] = ("table",)


class Sample(msgspec.Struct, frozen=True):
    """One number.

    Attributes:
        family: what the number is of.
        labels: values of the labels.
        value: the number; of a histogram the sum of all times.
        count: of a histogram: how many there were.
        buckets: of a histogram: how many were at most so long, by upper bound, ascending; the last bound is infinite.
    """

    family: MetricFamily
    labels: Labels
    value: float
    count: int = 0
    buckets: tuple[tuple[float, int], ...] = ()

    @property
    def name(self) -> str:
        """Name of the number."""
        return self.family.name


def prometheus_text(samples: Sequence[Sample]) -> str:
    """Samples as text; those of one family must stand together."""
    lines: list[str] = []
    before: MetricFamily | None = None
    for sample in samples:
        if sample.family is not before:
            before = sample.family
            lines += [f"# HELP {before.name} {_escape(before.text)}", f"# TYPE {before.name} {before.kind}"]
        lines += _histogram(sample) if before.kind == "histogram" else [_line(sample.name, sample.labels, sample.value)]
    return "\n".join([*lines, ""])


def _histogram(sample: Sample) -> Iterable[str]:
    for bound, count in sample.buckets:
        yield _line(f"{sample.name}_bucket", (*sample.labels, ("le", _number(bound))), count)
    yield _line(f"{sample.name}_sum", sample.labels, sample.value)
    yield _line(f"{sample.name}_count", sample.labels, sample.count)


def _line(name: str, labels: Labels, value: float) -> str:
    shown = ",".join(f'{label}="{_quote(text)}"' for label, text in labels)
    return f"{name}{{{shown}}} {_number(value)}" if shown else f"{name} {_number(value)}"


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quote(text: str) -> str:
    return _escape(text).replace('"', '\\"')
