"""Metrics for OpenTelemetry: instruments that are asked for their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from paimon_py.errors import UsageError
from paimon_py.metrics.families import FAMILIES
from paimon_py.metrics.samples import MetricFamily, Sample

try:
    from opentelemetry.metrics import Observation
except ImportError:
    Observation = None

if TYPE_CHECKING:
    from paimon_py.metrics.registry import Metrics, OpenTelemetryMeter


def export(metrics: Metrics, meter: OpenTelemetryMeter) -> None:
    """See `Metrics.export_to`."""
    if Observation is None:
        raise UsageError('OpenTelemetry is not installed: pip install "paimon-py[opentelemetry]"')
    for family in FAMILIES:
        if family.kind == "gauge":
            asked = _callback(metrics, family, lambda sample: sample.value)
            meter.create_observable_gauge(family.name, [asked], _unit(family), family.text)
        elif family.kind == "counter":
            asked = _callback(metrics, family, lambda sample: sample.value)
            meter.create_observable_counter(family.name, [asked], _unit(family), family.text)
        else:
            counted = _callback(metrics, family, lambda sample: sample.count)
            asked = _callback(metrics, family, lambda sample: sample.value)
            meter.create_observable_counter(f"{family.name}_count", [counted], "1", family.text)
            meter.create_observable_counter(f"{family.name}_sum", [asked], "s", family.text)


def _callback(
    metrics: Metrics, family: MetricFamily, number: Callable[[Sample], float]
) -> Callable[[Any], Iterable[Observation]]:
    def observe(_: object) -> Iterable[Observation]:
        return [Observation(number(one), dict(one.labels)) for one in metrics.samples() if one.family is family]

    return observe


def _unit(family: MetricFamily) -> str:
    if "_bytes" in family.name:
        return "By"
    return "s" if family.name.endswith("_seconds") else "1"
