"""The kind of buckets that a writer's table has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paimon_py.compaction.live_files import LiveFiles
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.write.routing import FixedBuckets, Routing, UnawareBuckets

if TYPE_CHECKING:
    from paimon_py.write.cross_partition import ReadKeys
    from paimon_py.write.dynamic import Share


def routing_of(
    table: OpenTable,
    live: LiveFiles,
    *,
    buckets: int | None = None,
    share: Share | None = None,
    read_keys: ReadKeys | None = None,
) -> Routing:
    """How the rows of a writer find their buckets.

    Args:
        live: what the writer builds on.
        buckets: so many fixed ones, whatever the table's option `bucket` says.
        share: of the rows, where several writers fill dynamic buckets.
        read_keys: needed where keys move between partitions.

    Raises: OptionError or UnsupportedError for numbers that leave no bucket to fill.
    """
    mode = bucket_mode(table.schema) if buckets is None else BucketMode.FIXED
    if mode is BucketMode.NONE:
        return UnawareBuckets(table.schema)
    if mode is BucketMode.FIXED:
        return FixedBuckets(table.schema, table.options.get_int("bucket") if buckets is None else buckets)
    if mode is BucketMode.DYNAMIC:
        from paimon_py.write.dynamic import DynamicBuckets

        return DynamicBuckets(table, live, share)
    if mode is BucketMode.CROSS_PARTITION:
        from paimon_py.write.cross_partition import CrossPartitionRouting

        return CrossPartitionRouting(table, live.snapshot, read_keys)
    from paimon_py.write.postponed_writer import PostponedBuckets

    return PostponedBuckets(table.schema)
