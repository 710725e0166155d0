"""The BLOBs of new rows of a primary-key table: written to packs, and replaced by references in the rows.

Source: format.md §26; Java `PrimaryKeyBlobExternalizer`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Sequence

import numpy as np
import pyarrow as pa

from paimon_py.codec.blob_arrays import replace_blobs
from paimon_py.codec.columns import from_numpy, numpy_values
from paimon_py.commit.changes import Bucket
from paimon_py.errors import StorageError
from paimon_py.files.blob_packs import PackWriter
from paimon_py.files.layout import blob_target_bytes
from paimon_py.metadata.new_files import FileRules, NewFiles
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.blobs import packed_fields
from paimon_py.write.route import Routed

_OPEN_MAX = 32
"""The maximum number of open packs: when another one is begun, the oldest are completed."""


class PackedBlobs:
    """The packs of one writer that were not handed over."""

    def __init__(self, table: OpenTable) -> None:
        self._table = table
        self._names = tuple(field.name for field in packed_fields(table.schema))
        self._rules = FileRules.of(table)
        self._target = blob_target_bytes(table.schema)
        self._files: dict[Bucket, NewFiles] = {}
        self._writers: dict[tuple[Bucket, str], PackWriter] = {}

    def store(self, parts: Sequence[Routed], known: Container[str] = ()) -> list[Routed]:
        """The rows with references in place of BLOBs, which are written; rows that retract others get NULL.

        Args:
            known: columns that contain references already, to packs of the table.

        Raises: StorageError
        """
        names = [name for name in self._names if name not in known]
        return [self._with_references(routed, names) for routed in parts]

    def finish(self) -> None:
        """Complete all packs.

        Raises: StorageError
        """
        for writer in self._writers.values():
            writer.finish()

    def names(self, bucket: Bucket) -> tuple[str, ...]:
        """The names of the packs of a bucket."""
        writers = (writer for (place, _), writer in self._writers.items() if place == bucket)
        return tuple(path.rpartition("/")[2] for writer in writers for path in writer.paths)

    def hand_over(self) -> None:
        """The packs now belong to another owner."""
        self._writers, self._files = {}, {}

    def abort(self) -> None:
        """Delete all packs, as far as the store allows."""
        writers = self._writers.values()
        self.hand_over()
        for writer in writers:
            with contextlib.suppress(StorageError):
                writer.abort()
            for path in writer.paths:
                with contextlib.suppress(StorageError):
                    self._table.root.files.delete(path)

    def _with_references(self, routed: Routed, names: Sequence[str]) -> Routed:
        batch = routed.batch
        for name in self._names:
            at = batch.schema.get_field_index(name)
            column = _without_retracted(batch.column(at), routed.kinds)
            if name in names:
                column = replace_blobs(column, self._writer((routed.partition, routed.bucket), name).write)
            batch = batch.set_column(at, batch.schema.field(at), column)
        return routed._replace(batch=batch)

    def _writer(self, bucket: Bucket, name: str) -> PackWriter:
        writer = self._writers.get((bucket, name))
        if writer is None:
            if bucket not in self._files:
                self._files[bucket] = NewFiles(self._table.bucket(*bucket), self._rules)
            writer = self._writers[bucket, name] = self._files[bucket].begin_packs(self._target)
        if not writer.is_open:
            opened = [other for other in self._writers.values() if other.is_open]
            for other in opened[: max(len(opened) - _OPEN_MAX + 1, 0)]:
                other.finish()
        return writer


def _without_retracted(column: pa.Array, kinds: pa.Array | None) -> pa.Array:
    """The values with NULL in rows of the kinds −U and −D."""
    if kinds is None:
        return column
    retracts = (numpy_values(kinds) & 1) == 1
    if not retracts.any():
        return column
    return column.take(from_numpy(np.arange(len(column)), pa.int64(), ~retracts))
