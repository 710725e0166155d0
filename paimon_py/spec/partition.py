"""A partition and what its files hold, as a value.

Source: Java `PartitionEntry`.
"""

from __future__ import annotations

from datetime import datetime

import msgspec


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition that has files.

    Attributes:
        partition: its values by key, as `drop_partitions` takes them; None is NULL.
        record_count: rows of its files, those included that later rows replace or delete.
        file_size_in_bytes, file_count: of its data files.
        last_file_creation_time: when its newest file was made, by the clock on the wall of whoever made it; None if no
            file says.
        total_buckets: how many buckets its newest file was written for, −1 if buckets are not fixed.
    """

    partition: dict[str, object]
    record_count: int
    file_size_in_bytes: int
    file_count: int
    last_file_creation_time: datetime | None
    total_buckets: int
