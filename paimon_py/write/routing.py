"""Assigns the rows of a writer to buckets, with the related bookkeeping: a class per bucket mode.

Source: format.md §7.3; Java `BucketMode`, `FileStoreWrite`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from paimon_py.commit.changes import BucketChanges, Changes, KeyBase
from paimon_py.errors import UnsupportedError
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.bucket_mode import UNAWARE
from paimon_py.spec.schema import TableSchema
from paimon_py.write.bucket_writer import OpenBucket, bucket_writers
from paimon_py.write.route import Routed, Router
from paimon_py.write.settings import WriterSettings


class Routing:
    """The interface between a session and the bucket mode of its table; the defaults apply to most modes.

    Attributes:
        route: splits rows and their kinds by partition and bucket.
        total_buckets: the number per partition, as recorded in files.
        memory_bytes: the maximum memory of the routing.
        follows: whether sequence numbers of a bucket continue those in the table.
        compacts: whether buckets have runs that a compaction merges.
        remembers: whether the target of a row depends on earlier rows.
        handed: names of the index files that were handed over last; earlier changes do not refer to them.
    """

    route: Callable[[pa.RecordBatch, pa.Array | None], list[Routed]]
    total_buckets: int = UNAWARE
    memory_bytes: int = 0
    follows: bool = True
    compacts: bool = True
    remembers: bool = True
    handed: frozenset[str] = frozenset()

    def writers(self, table: OpenTable, settings: WriterSettings) -> OpenBucket:
        """The function that opens the bucket writers."""
        return bucket_writers(table, settings)

    @property
    def keys(self) -> KeyBase | None:
        """The base of the keys for the changes that are handed over next, in cross-partition tables."""
        return None

    def with_index(self, changes: Sequence[BucketChanges]) -> list[BucketChanges]:
        """The changes with the index files of their buckets; writes new index files."""
        return list(changes)

    def hand_over(self, changes: Changes) -> None:
        """Everything written so far now belongs to the receiver."""

    def forget(self, changes: Iterable[BucketChanges]) -> None:
        """Changes that were handed over will not be committed."""

    def close(self) -> None:
        """No more rows will be written."""

    def abort(self) -> None:
        """Delete everything that was not handed over."""


class UnawareBuckets(Routing):
    """No buckets: rows are appended to their partition, in any order."""

    follows = compacts = remembers = False

    def __init__(self, schema: TableSchema) -> None:
        self.route = Router(schema).route


class FixedBuckets(Routing):
    """Buckets by a hash of the bucket key."""

    remembers = False

    def __init__(self, schema: TableSchema, buckets: int) -> None:
        """Raises: UnsupportedError for a number below 1."""
        if buckets < 1:
            name = f"bucket={buckets}"
            raise UnsupportedError(f"paimon_py writes tables with fixed buckets, this one has {name}", feature=name)
        self.total_buckets = buckets
        self.route = Router(schema, buckets=buckets).route
