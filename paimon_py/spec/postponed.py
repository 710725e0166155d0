"""Rows of postponed buckets that wait for a compaction: to what extent the times of their files determine the order of
their commits, and whether scans include them. Pure.

Source: format.md §4.3, §7.3, §28.7; docs/reliability.md §3 (c), (i).
"""

from __future__ import annotations

import msgspec

from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema

MERGES_WAITING = "postpone.merge-on-read"
"""The option by which scans include waiting rows."""


class WaitingOrder(msgspec.Struct, frozen=True):
    """To what extent the times of postponed files determine their order; local times of the writers as if UTC, in
    milliseconds.

    Attributes:
        since_millis: files with later times are newer than all others, and ordered by their times. All others have
            times up to this one, which do not determine an order.
        until_millis: the largest time of a postponed file.
    """

    since_millis: int
    until_millis: int


def merges_waiting(schema: TableSchema) -> bool:
    """Whether scans of a table include its waiting rows."""
    return Options(schema.options).get_bool(MERGES_WAITING) and bucket_mode(schema) is BucketMode.POSTPONED
