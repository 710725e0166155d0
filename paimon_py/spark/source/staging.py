"""Rows that one writer has to place, from several tasks: they wait in files, as postponed ones do, for the driver.

A data source cannot send rows to tasks. Where a writer has to know all keys (dynamic buckets, keys that move between
partitions) tasks write their rows as they come, and the driver puts them into their buckets, task by task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from paimon_py import Table
from paimon_py.codec.columns import numpy_values
from paimon_py.errors import CommitConflictError
from paimon_py.files.physical import KIND_FIELD
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.layout import POSTPONE_BUCKET
from paimon_py.spec.schema import VALUE_KIND

if TYPE_CHECKING:
    from paimon_py import Changes
    from paimon_py.spark.write import Overwrite
    from paimon_py.types import Writer


def waits(table: Table) -> bool:
    """Whether rows of several tasks have to wait for one writer."""
    return bucket_mode(table.schema) in (BucketMode.DYNAMIC, BucketMode.CROSS_PARTITION)


def stage(table: Table) -> Table:
    """The table as tasks write to it."""
    if not waits(table):
        return table
    options = {**table.schema.options, "bucket": str(POSTPONE_BUCKET)}
    return Table(table._root, msgspec.structs.replace(table.schema, options=options), table.name)


def place(table: Table, written: Sequence[Changes], overwrite: Overwrite) -> Changes:
    """What becomes of rows that wait: written anew, in the order of their tasks.

    Cost: all rows are read and written by this process.
    Raises: CommitConflictError for rows of another schema.
    """
    with table.writer(overwrite=overwrite is not None) as writer:
        if overwrite and isinstance(overwrite, Mapping):
            writer.restrict(overwrite)
        for changes in written:
            if changes.schema_id != table.schema.id:
                raise CommitConflictError(
                    f"the schema of {table.name} changed while rows were written: write them again",
                    table=table._root.path,
                )
            _replay(table, changes, writer)
        return writer.changes()


def _replay(table: Table, changes: Changes, writer: Writer) -> None:
    files, fields = OpenTable(table._root, table.schema), (KIND_FIELD, *table.schema.fields)
    for bucket in changes.buckets:
        of_bucket = files.bucket(bucket.partition, bucket.bucket)
        for file in bucket.written.added:
            for batch in of_bucket.stored_rows(file, fields):
                kinds = batch.column(VALUE_KIND)
                writer.write_rows(batch.drop_columns([VALUE_KIND]), kinds if numpy_values(kinds).any() else None)
