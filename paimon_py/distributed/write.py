"""Writes of rows that several processes hold: each writes its share, and one commit contains all of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Union

import pyarrow as pa

from paimon_py.commit.changes import Changes
from paimon_py.commit.overwrite import overwrite_of
from paimon_py.commit.result import CommitResult
from paimon_py.commit.uncommitted import discarding_on_failure
from paimon_py.distributed.assigned_write import AssignedPart, AssignPart
from paimon_py.distributed.commits import discard_changes
from paimon_py.distributed.moving_keys import KeySteps, key_steps
from paimon_py.distributed.routing import writers_of
from paimon_py.distributed.staging import is_staged, place_rows, stage, writing
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.spec.supported import check_writable
from paimon_py.spec.visibility import waits_for_writers
from paimon_py.table.table import Table
from paimon_py.write.align import Alignment
from paimon_py.write.session import Writer

Overwrite = Union[Mapping[str, object], str, None]
"""The part of the table that a write replaces, as in `Table.write_arrow`."""


class DistributedWrite:
    """A write of rows that several processes hold.

    Args:
        overwrite: as in `Table.write_arrow`.
        sends: whether the engine sends rows to the process that writes their bucket. If it does not, and one writer
            has to know all keys (dynamic buckets, cross-partition upserts), rows are staged in files for the process
            that commits.
    """

    def __init__(self, table: Table, overwrite: Overwrite = None, *, sends: bool = True) -> None:
        self._table = table
        self._overwrite = overwrite
        self._is_staged = not sends and is_staged(table)

    def check(self) -> None:
        """Check everything that does not depend on the rows. Raises: UsageError, UnsupportedError"""
        check_writable(self._table.schema)
        overwrite_of(self._table.schema, self._overwrite)

    def writers(self, wanted: int) -> int:
        """The number of processes to which rows are sent, at most `wanted`; 0: rows are not sent."""
        return writers_of(self._table.schema, wanted)

    def part(self, target: pa.Schema, writers: int = 0) -> WritePart:
        """The part that each process runs.

        Args:
            target: the columns of the rows.
            writers: the number of processes to which `RowRouting` sends rows; 0: rows are not sent.

        Raises: SchemaError that lists the columns that do not fit.
        """
        Alignment(self._table.schema, target)
        table = stage(self._table) if self._is_staged else self._table
        return WritePart(table, target, self._overwrite, writers)

    def takes_two_steps(self, writers: int) -> bool:
        """Whether rows are assigned to buckets in one step, and written in another: `steps` instead of `part`.

        In tables with dynamic buckets whose readers wait for the compaction of writers, a bucket needs one writer.
        """
        schema = self._table.schema
        return writers > 1 and bucket_mode(schema) is BucketMode.DYNAMIC and waits_for_writers(schema)

    def steps(self, target: pa.Schema, writers: int) -> tuple[AssignPart, AssignedPart]:
        """The parts that each process runs, one after the other; `assigned_changes` takes the results.

        Args, Raises: as for `part`
        """
        Alignment(self._table.schema, target)
        first = AssignPart(self._table, target, self._overwrite, writers)
        return first, AssignedPart(self._table, self._overwrite, writers)

    def shares_keys(self, wanted: int) -> bool:
        """Whether `wanted` processes can each write the keys of a share: `key_steps` instead of `part`.

        In tables whose keys move between partitions, unless readers wait for the compaction of writers.
        """
        schema = self._table.schema
        moves = bucket_mode(schema) is BucketMode.CROSS_PARTITION
        return wanted > 1 and moves and not waits_for_writers(schema) and not self._is_staged

    def key_steps(self, target: pa.Schema, writers: int) -> KeySteps:
        """The parts that each process runs, one after the other, and the work of the first one.

        Args, Raises: as for `part`
        """
        Alignment(self._table.schema, target)
        return key_steps(self._table, self._overwrite, writers)

    def commit(self, written: Sequence[Changes | bytes], label: CommitLabel) -> CommitResult:
        """Commit the changes of all processes, once; their files are deleted if the commit certainly failed.

        Raises: as `Table.commit`; CommitConflictError for staged rows of another schema.
        """
        changes = self._changes(written)
        with discarding_on_failure(lambda: self.discard([changes])):
            return self._table.commit(
                changes, user=label.user, identifier=label.identifier, overwrite=self._overwrite
            )

    def discard(self, written: Iterable[Changes | bytes]) -> None:
        """Delete the files of changes that will not be committed."""
        discard_changes(self._table, written)

    def _changes(self, written: Sequence[Changes | bytes]) -> Changes:
        if self._is_staged:
            found = [Changes.from_bytes(one) if isinstance(one, bytes) else one for one in written]
            try:
                return place_rows(self._table, found, self._overwrite)
            finally:
                self.discard(found)
        if written:
            return Changes.concat(Changes.from_bytes(one) if isinstance(one, bytes) else one for one in written)
        with self._table.writer(overwrite=self._overwrite is not None) as writer:
            return writer.changes()


class WritePart:
    """Runs in another process: takes rows, returns its changes as bytes. Can be pickled.

    Attributes:
        target: the columns of the rows.
        writers: the number of processes to which rows were sent, 0 if they were not sent.
    """

    def __init__(self, table: Table, target: pa.Schema, overwrite: Overwrite, writers: int) -> None:
        self.target = target
        self.writers = writers
        self._table = table
        self._overwrite = overwrite

    @property
    def has_shares(self) -> bool:
        """Whether several processes write dynamic buckets, so that each has to know its own buckets."""
        return self.writers > 1 and bucket_mode(self._table.schema) is BucketMode.DYNAMIC

    def __call__(self, rows: Iterable[tuple[int | None, pa.RecordBatch]]) -> Iterator[bytes]:
        """Write batches of rows, each with the number that `RowRouting` assigned; None if rows are not sent."""
        with contextlib.ExitStack() as used:
            writers: dict[int | None, Writer] = {}
            for number, batch in rows:
                share = number if self.has_shares else None
                if share not in writers:
                    writers[share] = used.enter_context(self._writer(share))
                writers[share].write_arrow(batch)
            for writer in writers.values():
                yield bytes(writer.changes())

    def _writer(self, share: int | None) -> contextlib.AbstractContextManager[Writer]:
        return writing(self._table, self._overwrite, share=None if share is None else (share, self.writers))
