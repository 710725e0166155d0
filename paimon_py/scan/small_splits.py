"""The small files of a parcel of splits: those that are read with the same columns are decoded together."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from paimon_py.env import is_distant
from paimon_py.files.small_files import (
    TOGETHER_BYTES,
    TOGETHER_FILES,
    TOGETHER_ROWS,
    SmallFile,
    is_small,
    read_small,
)
from paimon_py.metadata.open_table import BucketFiles
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.types import Field

_Key = tuple[int, tuple[int, ...]]


class SmallFiles:
    """Files that will be read, in the order in which they were announced.

    Memory: the rows of at most `TOGETHER_ROWS` rows for each list of columns.
    """

    def __init__(self) -> None:
        self._open: dict[_Key, _Group] = {}
        self._groups: dict[str, _Group] = {}

    def expect(self, bucket: BucketFiles, files: Sequence[DataFile], fields: Sequence[Field]) -> None:
        """Announce files that will be read with these columns."""
        ids = tuple(field.id for field in fields)
        for file in files:
            if not is_small(file):
                continue
            one = bucket.small_file(file)
            if is_distant(one.path):
                continue
            key = file.schema_id, ids
            group = self._open.get(key)
            if group is None or not group.has_room(file):
                group = self._open[key] = _Group(bucket, fields)
            group.add(one)
            self._groups[one.path] = group

    def take(self, path: str) -> pa.RecordBatch | None:
        """All rows of a file, once; None if it was not announced, or has to be read by itself."""
        group = self._groups.pop(path, None)
        return None if group is None else group.take(path)


class _Group:
    """Files that are decoded together, when the first of them is asked for."""

    __slots__ = ("_bucket", "_bytes", "_fields", "_files", "_found", "_rows")

    def __init__(self, bucket: BucketFiles, fields: Sequence[Field]) -> None:
        self._bucket = bucket
        self._fields = fields
        self._files: list[SmallFile] = []
        self._rows = self._bytes = 0
        self._found: dict[str, pa.RecordBatch] | None = None

    def has_room(self, file: DataFile) -> bool:
        return (
            self._found is None
            and len(self._files) < TOGETHER_FILES
            and self._rows + file.row_count <= TOGETHER_ROWS
            and self._bytes + file.size_bytes <= TOGETHER_BYTES
        )

    def add(self, one: SmallFile) -> None:
        self._files.append(one)
        self._rows += one.file.row_count
        self._bytes += one.file.size_bytes

    def take(self, path: str) -> pa.RecordBatch | None:
        if self._found is None:
            first = self._files[0].file
            many = len(self._files) > 1
            table = self._bucket.table
            self._found = (
                read_small(table.root.files, self._files, self._bucket.schema_of(first), self._fields) if many else {}
            )
            self._files.clear()
        return self._found.pop(path, None)
