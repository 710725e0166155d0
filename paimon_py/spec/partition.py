"""A partition and a summary of its files, as a value.

Source: Java `PartitionEntry`.
"""

from __future__ import annotations

from datetime import datetime

import msgspec


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition that has files.

    Attributes:
        partition: the values by key, as `drop_partitions` takes them; None is NULL.
        record_count: rows of its files, including those that later rows replace or delete. Rows whose columns are in
            several files (data evolution) count once for each of them, as in Java.
        file_size_in_bytes, file_count: size and number of its data files.
        last_file_creation_time: the creation time of its newest file, in the local time of the writer; None if no file
            records it.
        total_buckets: the number of buckets that its newest file was written for, −1 if buckets are not fixed.
    """

    partition: dict[str, object]
    record_count: int
    file_size_in_bytes: int
    file_count: int
    last_file_creation_time: datetime | None
    total_buckets: int
