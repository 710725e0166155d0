"""How far the times of files that wait for their bucket tell the order of the commits that brought them. Pure.

Source: format.md §4.3, §7.3; docs/reliability.md §3 (c), (i).
"""

from __future__ import annotations

import msgspec


class WaitingOrder(msgspec.Struct, frozen=True):
    """How far the times of waiting files tell their order; wall clock of the writers' zones as if UTC, in milliseconds.

    Attributes:
        since_millis: files with later times are newer than all with earlier ones, and than each other by their times.
            All others have times up to this one, which tell nothing.
        until_millis: the largest time of a waiting file.
    """

    since_millis: int
    until_millis: int
