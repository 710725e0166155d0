"""To what extent the times of files in postponed buckets determine the order of their commits. Pure.

Source: format.md §4.3, §7.3; docs/reliability.md §3 (c), (i).
"""

from __future__ import annotations

import msgspec


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
