"""How a writer assigns rows to buckets, and what it does for them: a class for each kind of buckets.

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
    """What a session asks of the kind of buckets that its table has; the answers here are those of most kinds.

    Attributes:
        route: rows and their kinds → the rows of each partition and bucket that occurs.
        total_buckets: of each partition, as files record it.
        memory_bytes: what the routing holds in memory at most.
        follows: whether rows of a bucket are numbered after those that the table holds.
        compacts: whether a bucket has runs that a compaction merges.
        remembers: whether the target of a row depends on earlier rows.
        handed: names of the index files that were handed over last; nothing that was handed over before names them.
    """

    route: Callable[[pa.RecordBatch, pa.Array | None], list[Routed]]
    total_buckets: int = UNAWARE
    memory_bytes: int = 0
    follows: bool = True
    compacts: bool = True
    remembers: bool = True
    handed: frozenset[str] = frozenset()

    def writers(self, table: OpenTable, settings: WriterSettings) -> OpenBucket:
        """What opens the writers of the buckets."""
        return bucket_writers(table, settings)

    @property
    def keys(self) -> KeyBase | None:
        """What the changes that are handed over next rely on, where keys move between partitions."""
        return None

    def with_index(self, changes: Sequence[BucketChanges]) -> list[BucketChanges]:
        """The changes with the index files of their buckets; new ones are written."""
        return list(changes)

    def hand_over(self, changes: Changes) -> None:
        """What was made so far is the receiver's from now on."""

    def forget(self, changes: Iterable[BucketChanges]) -> None:
        """Changes that were handed over will never be committed."""

    def close(self) -> None:
        """No more rows come."""

    def abort(self) -> None:
        """Delete what was not handed over."""


class UnawareBuckets(Routing):
    """No buckets: rows are appended to the partition that they name, in any order."""

    follows = compacts = remembers = False

    def __init__(self, schema: TableSchema) -> None:
        self.route = Router(schema).route


class FixedBuckets(Routing):
    """Buckets by a hash of the bucket key."""

    remembers = False

    def __init__(self, schema: TableSchema, buckets: int) -> None:
        """Raises: UnsupportedError for a number that counts nothing."""
        if buckets < 1:
            name = f"bucket={buckets}"
            raise UnsupportedError(f"paimon_py writes tables with fixed buckets, this one has {name}", feature=name)
        self.total_buckets = buckets
        self.route = Router(schema, buckets=buckets).route
