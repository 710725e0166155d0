"""Stages rows of several processes in files, like postponed rows, for one writer that assigns them to buckets.

If a writer has to know all keys (dynamic buckets, cross-partition upserts) and rows cannot be sent to it, each process
writes its rows to staging files, and the committing process assigns them to buckets, process by process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from paimon_py.codec.columns import numpy_values
from paimon_py.commit.changes import Changes
from paimon_py.errors import CommitConflictError
from paimon_py.files.physical import KIND_FIELD
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.layout import POSTPONE_BUCKET
from paimon_py.spec.schema import VALUE_KIND
from paimon_py.table.table import Table
from paimon_py.table.writing import writer as open_writer
from paimon_py.write.dynamic import BucketCursor
from paimon_py.write.session import Writer

if TYPE_CHECKING:
    from paimon_py.write.cross_partition import KeyShare


def is_staged(table: Table) -> bool:
    """Whether rows of several processes must be staged for one writer."""
    return bucket_mode(table.schema) in (BucketMode.DYNAMIC, BucketMode.CROSS_PARTITION)


def stage(table: Table) -> Table:
    """The table with the options for writing staged rows."""
    options = {**table.schema.options, "bucket": str(POSTPONE_BUCKET)}
    return Table(table._root, msgspec.structs.replace(table.schema, options=options), table.name)


@contextmanager
def writing(
    table: Table, overwrite: Mapping[str, object] | str | None,
    share: tuple[int, int] | BucketCursor | KeyShare | None = None,
) -> Iterator[Writer]:  # fmt: skip
    """A writer for the duration of the block; limited to one partition if the overwrite replaces only that one."""
    with open_writer(table._open_table, overwrite=overwrite is not None, share=share) as writer:
        if overwrite and isinstance(overwrite, Mapping):
            writer.restrict(overwrite)
        yield writer


def place_rows(table: Table, written: Sequence[Changes], overwrite: Mapping[str, object] | str | None) -> Changes:
    """Rewrite staged rows into their buckets, in the order of their processes.

    Cost: all rows are read and written by this process.
    Raises: CommitConflictError for rows of another schema.
    """
    with writing(table, overwrite) as writer:
        for changes in written:
            if changes.schema_id != table.schema.id:
                raise CommitConflictError(
                    f"the schema of {table.name} changed while the rows were written: write them again",
                    table=table._root.path,
                )
            _replay(table, changes, writer)
        return writer.changes()


def _replay(table: Table, changes: Changes, writer: Writer) -> None:
    fields = (KIND_FIELD, *table.schema.fields)
    for bucket in changes.buckets:
        of_bucket = table._open_table.bucket(bucket.partition, bucket.bucket)
        for file in bucket.written.added:
            for batch in of_bucket.stored_rows(file, fields):
                kinds = batch.column(VALUE_KIND)
                writer.write_rows(batch.drop_columns([VALUE_KIND]), kinds if numpy_values(kinds).any() else None)
