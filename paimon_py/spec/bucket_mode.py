"""Bucket modes: rules that assign rows to buckets.

Source: format.md §7.3; Java `BucketMode`.
"""

from __future__ import annotations

import enum

from paimon_py.spec.layout import POSTPONE_BUCKET
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema

UNAWARE = -1
"""The option `bucket` without a fixed number; also the number of buckets in entries of such tables."""


class BucketMode(enum.Enum):
    """The rule that assigns the rows of a table to buckets.

    FIXED: by a hash of the bucket key. DYNAMIC: to the bucket that has the key, else to one with room. CROSS_PARTITION:
    like DYNAMIC, but the key may be in another partition than the row. POSTPONED: by a compaction. NONE: append tables
    without buckets.
    """

    FIXED = enum.auto()
    DYNAMIC = enum.auto()
    CROSS_PARTITION = enum.auto()
    POSTPONED = enum.auto()
    NONE = enum.auto()


def bucket_mode(schema: TableSchema) -> BucketMode:
    """The mode of a table, from its option `bucket` and its keys.

    Raises: OptionError if the option is not a number.
    """
    buckets = Options(schema.options).get_int("bucket")
    if not schema.primary_keys:
        return BucketMode.NONE if buckets == UNAWARE else BucketMode.FIXED
    if buckets == POSTPONE_BUCKET:
        return BucketMode.POSTPONED
    if buckets != UNAWARE:
        return BucketMode.FIXED
    return BucketMode.CROSS_PARTITION if is_cross_partition(schema) else BucketMode.DYNAMIC


def is_cross_partition(schema: TableSchema) -> bool:
    """Whether a key can move from one partition to another: the primary key does not contain all partition keys."""
    return bool(schema.primary_keys) and not set(schema.partition_keys) <= set(schema.primary_keys)


def counts_anew(schema: TableSchema, *, compacts: bool | None = None) -> bool:
    """Whether every writer starts its sequence numbers at 0: row order is not kept, and writers do not compact.

    Args:
        compacts: whether writers compact; None: as the option `write-only` says.

    Source: Java `BucketedAppendFileStoreWrite`.
    """
    options = Options(schema.options)
    compacts = not options.get_bool("write-only") if compacts is None else compacts
    return not compacts and not schema.primary_keys and not options.get_bool("bucket-append-ordered")
