"""Orders tables by their need for maintenance: the order of the doctor's findings, from measures alone. Pure."""

from __future__ import annotations

import enum

import msgspec

from paimon_py.doctor.thresholds import RunLimits
from paimon_py.metrics.measures import TableMeasures
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema


class Need(enum.IntEnum):
    """The urgency of a table's compaction, by the doctor's criteria."""

    NOTHING = 0
    SMALL_FILES = 1
    READ_AMPLIFICATION = 2
    LEVEL_0_PILE_UP = 3


class Urgency(msgspec.Struct, frozen=True, order=True):
    """The position of a table in a round; larger ones come first. `ratio`: how far a trigger is exceeded."""

    need: Need
    ratio: float
    backlog_bytes: int
    backlog_files: int = 0


def urgency(found: TableMeasures, schema: TableSchema) -> Urgency:
    """The urgency of compacting a table; none if it cannot be compacted here."""
    files, size = found.backlog_files or 0, found.backlog_bytes or 0
    if not files:
        return Urgency(Need.NOTHING, 0.0, 0)
    need, ratio = Need.SMALL_FILES, 0.0
    if schema.primary_keys:
        limits = RunLimits.of_any(Options(schema.options))
        ratio = found.sorted_runs_max / limits.trigger
        if limits.is_piled_up(found.level0_files_max):
            need = Need.LEVEL_0_PILE_UP
        elif limits.is_amplified(found.sorted_runs_max):
            need = Need.READ_AMPLIFICATION
    return Urgency(need, ratio, size, files)
