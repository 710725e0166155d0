"""Selects the routing for the bucket mode of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paimon_py.compaction.live_files import LiveFiles
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.write.routing import FixedBuckets, Routing, UnawareBuckets

if TYPE_CHECKING:
    from paimon_py.write.cross_partition import KeyShare, ReadKeys
    from paimon_py.write.dynamic import GivenBuckets, Share


def routing_of(
    table: OpenTable,
    live: LiveFiles,
    *,
    buckets: int | None = None,
    share: Share | GivenBuckets | KeyShare | None = None,
    read_keys: ReadKeys | None = None,
) -> Routing:
    """The routing of a writer's rows to buckets.

    Args:
        live: the files that the writer builds on.
        buckets: a fixed number of buckets, overriding the table's option `bucket`.
        share: the writer's share of the rows if several writers fill dynamic buckets, or of the keys that move between
            partitions; or the buckets of the rows, if these were assigned elsewhere.
        read_keys: required for cross-partition tables.

    Raises: OptionError or UnsupportedError for limits that allow no bucket.
    """
    mode = bucket_mode(table.schema) if buckets is None else BucketMode.FIXED
    if mode is BucketMode.NONE:
        return UnawareBuckets(table.schema)
    if mode is BucketMode.FIXED:
        return FixedBuckets(table.schema, table.options.get_int("bucket") if buckets is None else buckets)
    if mode is BucketMode.DYNAMIC:
        from paimon_py.write.dynamic import AssignedBuckets, AssignedKeys, BucketCursor, DynamicBuckets, Share

        if share is None or isinstance(share, Share):
            return DynamicBuckets(table, live, share)
        assert isinstance(share, (BucketCursor, AssignedKeys))
        return AssignedBuckets(table, live, share)
    if mode is BucketMode.CROSS_PARTITION:
        from paimon_py.write.cross_partition import CrossPartitionRouting, KeyShare
        from paimon_py.write.dynamic import BucketCursor, PlacedRows

        if isinstance(share, BucketCursor):
            return PlacedRows(table, share)
        return CrossPartitionRouting(table, live.snapshot, read_keys, share if isinstance(share, KeyShare) else None)
    from paimon_py.write.postponed_writer import PostponedBuckets

    return PostponedBuckets(table.schema)
