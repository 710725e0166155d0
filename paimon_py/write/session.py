"""`Writer` aligns rows with the table, routes them, and keeps one bucket writer per partition and bucket."""

from __future__ import annotations

from collections.abc import Container, Generator, Iterator, Mapping
from contextlib import closing
from types import TracebackType
from typing import TYPE_CHECKING
from weakref import WeakMethod

import msgspec
import pyarrow as pa

from paimon_py.api_hints import ApiHints
from paimon_py.arguments import with_location
from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.codec.partition_time import PartitionTime, time_texts
from paimon_py.codec.row_size import row_bytes
from paimon_py.commit.changes import BucketChanges, Changes
from paimon_py.commit.uncommitted import delete_compaction, delete_handed_index, delete_made
from paimon_py.compaction.live_files import LiveFiles
from paimon_py.compaction.writer_compaction import WriterCompaction
from paimon_py.env import SerialPool
from paimon_py.errors import CorruptionError, SchemaError, UsageError
from paimon_py.metadata.open_table import OpenTable
from paimon_py.parallel import Budget
from paimon_py.progress import ProgressCounter
from paimon_py.spec.blobs import packed_fields
from paimon_py.spec.bounds import SEQUENCE_MAX, is_long
from paimon_py.spec.bucket_mode import counts_anew
from paimon_py.spec.clustering import is_incremental
from paimon_py.spec.sequence_property import number_after
from paimon_py.spec.snapshot import Base
from paimon_py.write.align import Alignment
from paimon_py.write.bucket_kinds import routing_of
from paimon_py.write.bucket_writer import BucketWriter
from paimon_py.write.existing import NOTHING, LiveFileSummary, summarise
from paimon_py.write.open_buckets import Begin, OpenBuckets
from paimon_py.write.packed_blobs import PackedBlobs
from paimon_py.write.route import Routed
from paimon_py.write.settings import WriterSettings
from paimon_py.write.streams import Piece, number_pieces, open_stream, with_blob_bytes
from paimon_py.write.uncommitted_output import UncommittedOutput

if TYPE_CHECKING:
    from paimon_py.write.cross_partition import KeyShare, ReadKeys
    from paimon_py.write.dynamic import GivenBuckets, Share


_INNER = frozenset(("base", "keep_to", "write_again", "write_rows"))
"""Methods for other modules, hidden from completion."""


@with_location(lambda writer: writer._root.path)
class Writer(ApiHints):
    """Writes rows to files that stay invisible until their changes are committed.

    Use it in a `with` block: if an exception leaves the block, output that `changes()` has not handed over is deleted.
    A writer that is garbage-collected with output that was never handed over also deletes its files, and warns
    (`ResourceWarning`). Not thread-safe; open one writer for each thread.
    """

    def __init__(
        self, table: OpenTable, settings: WriterSettings | None = None, *,
        ignore_existing: bool = False, share: Share | GivenBuckets | KeyShare | None = None,
        read_keys: ReadKeys | None = None,
    ) -> None:  # fmt: skip
        """Open a writer for the table's current state.

        `settings`: overrides the table's options; `ignore_existing`: the existing rows will be replaced, so sequence
        numbers restart; `share` and `read_keys`: see `routing_of`.
        """
        settings = settings or WriterSettings.of(table.schema, memory=table.root.env.memory)
        table.root.store.require_new(table.root.path)
        self._root = table.root
        self._schema = table.schema
        self._table = table
        self._snapshot = table.root.latest()
        base = None if ignore_existing else self._snapshot
        self._live = LiveFiles(table.root, base)
        self._routing = routing_of(table, self._live, buckets=settings.buckets, share=share, read_keys=read_keys)
        self._begin = self._routing.writers(self._table, settings)
        self._counts_anew = counts_anew(table.schema, compacts=settings.compacts)
        self._begins_at = 0 if self._counts_anew else number_after(table.options, self._snapshot)
        self._existing: LiveFileSummary | None = None if self._routing.follows and base is not None else NOTHING
        self._compaction = self._compacting(settings, replaces=ignore_existing) if settings.compacts else None
        relieve = None if self._compaction is None else self._compaction.relieve
        limit = settings.buffer_bytes - self._routing.memory_bytes
        self._buckets = OpenBuckets(_weakly(self._open), limit, table.root.env.pool, relieve)
        self._packs = PackedBlobs(table) if packed_fields(table.schema) else None
        self._unhanded = UncommittedOutput(table.root, self._buckets, self._compaction, self._routing, self._packs)
        self._chosen = PartitionChoice()
        self._times = PartitionTime.required_by(table.schema)
        self._checked: set[bytes] = set()
        self._aligned: dict[bool, tuple[pa.Schema, Alignment]] = {}
        self._tally = ProgressCounter(None, 0, "rows")
        self._end: str | None = None
        self._unhanded.watch(self)

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if name not in _INNER]

    def __reduce__(self) -> tuple[object, ...]:
        raise UsageError(
            "a writer cannot be pickled or copied: send the table to the other process, open table.writer() where the"
            " rows are, and send back the changes, which can be sent: bytes(writer.changes())"
        )

    # -- what a user calls ------------------------------------------------------------------------------------------

    def write_arrow(self, data: object) -> None:
        """Add rows: data as `Table.write_arrow` takes; columns match by name.

        In a table with a primary key the column `_row_kind` may contain '+I', '-U', '+U' or '-D'. Rows may be kept in
        memory without a copy until `changes()`: do not change the underlying arrays before then. After an error, except
        one about the columns alone, the writer fails and its files are deleted.

        Cost: at most the option `write-buffer-size` in memory (256 MB) in addition to the current batch; the rest goes
            to local disk (`write-buffer-spillable`), and is finally merged into one sorted run.

        Raises:
            SchemaError: the columns do not fit (all are listed, nothing was written), or a value does not.
            UsageError: other bad input: a wrong row kind, rows outside a static overwrite, not Arrow; or the writer was
                opened in another process.
        """
        self._add(data, fills_nulls=True)

    def write_again(self, batch: pa.RecordBatch, known_blobs: Container[str] = ()) -> None:
        """Add rows that were read from the table: as `write_arrow`, but a NULL stays NULL where new rows get a default.

        `known_blobs`: BLOB columns that contain references to packs of the table in place of bytes.

        Raises: as `write_arrow`.
        """
        self._add(batch, fills_nulls=False, known_blobs=known_blobs)

    def write_rows(self, batch: pa.RecordBatch, kinds: pa.Array | None) -> None:
        """Add rows as files store them: with the table's columns and types, references to packs in place of BLOBs, and
        their kinds as int8 (None: all +I).

        Raises: as `write_arrow`.
        """
        self._require_open()
        try:
            self._spread_batch(batch, kinds)
        except BaseException:
            self._give_up("failed")
            raise

    def _count_by(self, tally: ProgressCounter) -> None:
        """Report subsequent rows to `tally` once they are written to files or dropped.

        `changes` counts the remaining rows, and then the rows that are compacted, under another unit.
        """
        self._tally = tally
        self._buckets.tell = tally.add

    @property
    def base(self) -> Base:
        """The latest snapshot when the writer opened, or a later one if that expired before the first write."""
        return Base.of(self._snapshot)

    def changes(self, *, watermark: int | None = None, is_new: bool = False) -> Changes:
        """Flush, and hand over what was written since the last call; the files then belong to the receiver.

        Works inside the `with` block and after it. Unless the table is `write-only`, buckets with enough sorted runs
        are compacted first, as Java's writers do; committing then creates a second snapshot. If another commit changes
        a bucket first, the commit drops the compaction of this bucket and keeps the rows.

        Args:
            watermark: event time that the rows have reached, in epoch milliseconds; the snapshot gets the largest one
                of all changes that are committed together.
            is_new: the caller commits the changes immediately, and passes them to no other process.

        Raises:
            StorageError: the store failed; the writer fails and its files are deleted.
            CorruptionError: a file to compact is damaged; likewise.
            UsageError: the writer has failed or was aborted, or was opened in another process.
        """
        self._require_process()
        if watermark is not None and not is_long(watermark):
            raise UsageError(f"watermark must be a whole number of epoch milliseconds, not {watermark!r}")
        if self._end not in (None, "closed"):
            raise UsageError(f"this writer has {self._end}, its files are deleted; open a new one and write again")
        made_after = self.base if is_new else self._latest()
        self._flush_all()
        buckets = self._finish()
        self._buckets.hand_over()
        if self._packs is not None:
            buckets = [msgspec.structs.replace(each, packs=self._packs.names(each.place)) for each in buckets]
            self._packs.hand_over()
        self._live.free()
        changes = Changes(
            schema_id=self._schema.id,
            base=self.base,
            made_after=made_after,
            buckets=tuple(buckets),
            keys=self._routing.keys,
            watermark=watermark,
            branch=self._root.branch,
        )
        self._routing.hand_over(changes)
        return changes

    def restrict(self, partition: Mapping[str, object]) -> None:
        """Reject rows outside a partition, given as `{"month": 3}` (some or all of the partition keys).

        Raises:
            UsageError: a name is not a partition key, or a value does not have its type.
        """
        if not isinstance(partition, Mapping):
            raise UsageError(f'restrict takes a partition such as {{"month": 3}}, not {partition!r}')
        self.keep_to(PartitionChoice.of_specs(self._schema, [partition]))

    def keep_to(self, chosen: PartitionChoice) -> None:
        """Reject rows outside some partitions."""
        self._chosen = chosen
        self._checked.clear()

    def discard(self, changes: Changes) -> None:
        """Delete the files of changes that were handed over and will not be committed; as many as the store allows.

        Raises: UsageError if the argument is not `Changes`.
        """
        if not isinstance(changes, Changes):
            raise UsageError(f"discard takes what writer.changes() returned, not {changes!r}")
        if self._compaction is not None:
            self._compaction.forget(changes.buckets)
        handed = self._routing.handed
        self._routing.forget(changes.buckets)
        delete_handed_index(self._table, changes, handed)
        delete_made(self._table, changes.buckets)

    def close(self) -> None:
        """Stop accepting rows. Written rows stay available to `changes()`; closing again does nothing."""
        if self._end is None and self._unhanded.is_of_this_process:
            self._flush_all()
            self._end = "closed"
            self._routing.close()

    def abort(self) -> None:
        """Delete what was not handed over, and stop accepting rows; deletes as many files as the store allows.

        In a process that was forked after the writer was opened, nothing is deleted: everything belongs to the parent.
        """
        if self._end in (None, "closed"):
            self._give_up("been aborted")

    def __enter__(self) -> Writer:
        self._require_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def __repr__(self) -> str:
        buckets = self._buckets
        return f"Writer({self._root.path!r}, buckets={len(buckets)}, buffered_bytes={buckets.buffered_bytes})"

    # -- inside -----------------------------------------------------------------------------------------------------

    def _compacting(self, settings: WriterSettings, *, replaces: bool) -> WriterCompaction | None:
        """The compaction of the buckets being written, if any."""
        if not self._routing.compacts or is_incremental(self._schema):
            return None
        total = self._routing.total_buckets
        return WriterCompaction(
            self._table, self._live, total_buckets=total, replaces=replaces,
            writes_changelog=settings.keeps_changelog,
        )

    def _require_process(self) -> None:
        if not self._unhanded.is_of_this_process:
            raise UsageError("this writer was opened in another process; open one in each process")

    def _require_open(self) -> None:
        self._require_process()
        if self._end is not None:
            raise UsageError(f"this writer has {'been ' if self._end == 'closed' else ''}{self._end}; open a new one")

    def _add(self, data: object, *, fills_nulls: bool, known_blobs: Container[str] = ()) -> None:
        self._require_open()
        data = with_blob_bytes(OpenTable(self._table.root, self._schema), data)
        reader = open_stream(data, self._schema.fields)
        alignment = self._alignment(reader.schema, fills_nulls)
        try:
            with closing(self._route(alignment, number_pieces(reader))) as found:
                for parts in found:
                    self._buckets.write(parts if self._packs is None else self._packs.store(parts, known_blobs))
        except BaseException as error:
            self._give_up("failed")
            _explain(error)
            raise

    def _alignment(self, given: pa.Schema, fills_nulls: bool) -> Alignment:
        known = self._aligned.get(fills_nulls)
        if known is None or not known[0].equals(given):
            known = self._aligned[fills_nulls] = (given, Alignment(self._schema, given, fills_nulls=fills_nulls))
        return known[1]

    def _route(self, alignment: Alignment, given: Iterator[Piece]) -> Generator[list[Routed], None, None]:
        """The rows of each piece by partition and bucket; routes several pieces in parallel if possible."""

        def route(piece: Piece) -> Iterator[list[Routed]]:
            aligned = alignment.apply(piece.rows, piece.first)
            self._tally.add(piece.rows.num_rows - aligned.batch.num_rows)
            yield self._routing.route(aligned.batch, aligned.kinds)

        pool = SerialPool() if self._routing.remembers else self._root.env.pool
        return pool.streams(route, given, _ROUTING)

    def _spread_batch(self, batch: pa.RecordBatch, kinds: pa.Array | None) -> None:
        self._buckets.write(self._routing.route(batch, kinds))

    def _open(self, partition: bytes, bucket: int, next_sequence: int | None) -> BucketWriter:
        if partition not in self._checked:
            self._check_partition(partition)
            self._checked.add(partition)
        existing = self._existing_files()
        if next_sequence is None:
            next_sequence = 0 if self._counts_anew else existing.next_sequence(partition, bucket)
            next_sequence = max(next_sequence, self._begins_at)
            if next_sequence > SEQUENCE_MAX:
                message = f"bucket {bucket} has used up its sequence numbers: the last one is {next_sequence - 1}"
                raise CorruptionError(message)
        return self._begin(partition, bucket, next_sequence)

    def _check_partition(self, partition: bytes) -> None:
        if not self._chosen.includes(partition):
            place = self._table.partition_directory(partition)
            raise UsageError(f"rows of partition {place} are outside the partition to overwrite, {self._chosen.text}")
        if self._times is not None and self._times.nanos(time_texts(self._schema, [partition])[0]) is None:
            raise UsageError(
                f"the values of {self._table.label(partition)} say no time that partition.timestamp-pattern and "
                "partition.timestamp-formatter read, and partition.timestamp-format.strict asks for one"
            )
        found = self._existing_files().total_buckets.get(partition)
        wanted = self._routing.total_buckets
        if found is not None and found != wanted:
            place = self._table.label(partition)
            raise UsageError(
                f"{place} has {found} buckets, but the option 'bucket' says {wanted}: rows would be found in the wrong "
                f"bucket; rewrite {place} with table.rescale({wanted}), or set the option back to '{found}'"
            )

    def _existing_files(self) -> LiveFileSummary:
        if self._existing is None:
            self._existing = summarise(self._live.columns())
            if self._compaction is None:
                self._live.free()
        return self._existing

    def _finish(self) -> list[BucketChanges]:
        """The written files, the compaction of them, and the index files of both."""
        written = self._buckets.finished_files
        try:
            self._tally.end()
            if self._compaction is not None:
                return self._with_index(self._compaction.finish(written, self._tally))
            count = self._routing.total_buckets
            return self._with_index([
                BucketChanges(partition=partition, bucket=bucket, total_buckets=count, written=new)
                for (partition, bucket), new in written.items()
                if not new.is_empty
            ])  # fmt: skip
        except BaseException:
            self._give_up("failed")
            raise

    def _with_index(self, buckets: list[BucketChanges]) -> list[BucketChanges]:
        try:
            return self._routing.with_index(buckets)
        except BaseException:  # nothing owns the compacted files yet
            for bucket in buckets:
                delete_compaction(self._table, bucket)
            raise

    def _latest(self) -> Base:
        try:
            return Base.of(self._root.latest())
        except BaseException:
            self._give_up("failed")
            raise

    def _flush_all(self) -> None:
        try:
            self._buckets.flush()
            if self._packs is not None:
                self._packs.finish()
        except BaseException as error:
            self._give_up("failed")
            _explain(error)
            raise

    def _give_up(self, end: str) -> None:
        """Delete what can be deleted; the original error takes precedence over an error during cleanup."""
        self._end = end
        self._unhanded.delete()


def _weakly(opens: Begin) -> Begin:
    """Wrap a method without keeping its writer alive, so that an unused writer is collected immediately."""
    method = WeakMethod(opens)

    def begin(partition: bytes, bucket: int, next_sequence: int | None) -> BucketWriter:
        found = method()
        assert found is not None, "rows come by way of the writer"
        return found(partition, bucket, next_sequence)

    return begin


def _piece_cost(piece: Piece) -> int:
    """Memory for routing a piece: the aligned rows, and a copy ordered by bucket."""
    return 2 * row_bytes(piece.rows)


def _parts_bytes(parts: list[Routed]) -> int:
    return sum(row_bytes(part.batch) for part in parts)


_ROUTING = Budget(64 << 20, _piece_cost, _parts_bytes)
"""Memory for rows being routed to their buckets."""


def _explain(error: BaseException) -> None:
    """Explain a Python error in terms of the rows. Arrow does not validate strings built by other libraries."""
    if isinstance(error, UnicodeDecodeError):
        raise SchemaError(f"a string column contains bytes that are not UTF-8 ({error}); decode them first") from error
