"""The writer of one partition and bucket."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from paimon_py.files.layout import changelog_layout, file_layout
from paimon_py.lsm.buffer import MergeBuffer
from paimon_py.lsm.engines import engine_of
from paimon_py.lsm.order import merge_order
from paimon_py.lsm.spill import SpilledRuns
from paimon_py.lsm.writer import LSMWriter
from paimon_py.metadata.new_files import FileRules, NewFiles
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.data_file import DataFile
from paimon_py.write.append import AppendWriter
from paimon_py.write.settings import WriterSettings

Tell = Callable[[int], None]
"""Called with the number of additional rows that were written to files or dropped."""


class BucketWriter(Protocol):
    """The writer of one partition and bucket, as a session uses it. `tell` receives row counts; None: no reports."""

    partition: bytes
    bucket: int
    tell: Tell | None

    @property
    def buffered_bytes(self) -> int: ...

    @property
    def has_open_file(self) -> bool: ...

    @property
    def has_spilled(self) -> bool: ...

    @property
    def files(self) -> tuple[DataFile, ...]: ...

    @property
    def changelog(self) -> tuple[DataFile, ...]: ...

    @property
    def next_sequence(self) -> int: ...

    @property
    def waiting_bytes(self) -> int: ...

    @property
    def is_small(self) -> bool: ...

    @property
    def flush_bytes(self) -> int: ...

    def work(self) -> None: ...

    def free_memory(self) -> None: ...

    def write(self, batch: pa.RecordBatch, kinds: pa.Array | None = None) -> None: ...

    def flush(self) -> None: ...

    @classmethod
    def flush_together(cls, writers: Sequence[Any]) -> None: ...

    def take(self) -> tuple[DataFile, ...]: ...

    def abort(self) -> None: ...


OpenBucket = Callable[[bytes, int, int], BucketWriter]
"""Opens a writer of a bucket, from partition, bucket and first sequence number."""


def bucket_writers(table: OpenTable, settings: WriterSettings) -> OpenBucket:
    """The function that opens the bucket writers of a table: rows are sorted by key, if there is one."""
    schema, layout = table.schema, file_layout(table.schema)
    keeps_input = settings.keeps_changelog and table.options.get_enum("changelog-producer") == "input"
    changes_layout = changelog_layout(schema) if keeps_input else None
    merge = (merge_order(schema), engine_of(schema)) if schema.primary_keys else None
    rules = FileRules.of(table)

    def open_bucket(partition: bytes, bucket: int, first_sequence: int) -> BucketWriter:
        files = NewFiles(table.bucket(partition, bucket), rules)
        begin = partial(files.begin, layout)
        if merge is None:
            return AppendWriter(partition, bucket, first_sequence, begin, layout)
        spilled = None if settings.spills is None else SpilledRuns(table.root.env.spill, settings.spills)
        buffer = MergeBuffer(*merge, first_sequence, spilled, keeps_versions=keeps_input)
        begin_changelog = None if changes_layout is None else partial(files.begin, changes_layout)
        together = layout if begin_changelog is None else None
        return LSMWriter(partition, bucket, buffer, begin, begin_changelog, together)

    return open_bucket
