"""The small files of a parcel of splits: those that are read with the same columns are decoded together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from paimon_py.env import is_distant
from paimon_py.files.small_files import (
    TOGETHER_BYTES,
    TOGETHER_FILES,
    TOGETHER_ROWS,
    Decoded,
    SmallFile,
    read_small,
)
from paimon_py.metadata.open_table import BucketFiles
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.types import Field

_Key = tuple[int, tuple[int, ...]]


class SmallFiles:
    """Files that will be read, in the order in which they were announced.

    Memory: at most `TOGETHER_ROWS` rows at once, and those that their readers still hold.
    """

    def __init__(self) -> None:
        self._open: dict[_Key, _Group] = {}
        self._groups: dict[str, _Group] = {}
        self._fields: Sequence[Field] = ()
        self._ids: tuple[int, ...] = ()

    def expect(self, bucket: BucketFiles, file: DataFile, fields: Sequence[Field]) -> bool:
        """Announce a small file that will be read with these columns; whether it is read together with others."""
        one = bucket.small_file(file)
        if is_distant(one.path):
            return False
        if fields is not self._fields:
            self._fields, self._ids = fields, tuple(field.id for field in fields)
        key = file.schema_id, self._ids
        group = self._open.get(key)
        if group is None or not group.has_room(file):
            group = self._open[key] = _Group(bucket, fields)
        group.add(one)
        self._groups[one.path] = group
        return True

    def take(self, path: str) -> pa.RecordBatch | None:
        """All rows of a file, once; None if it was not announced, or has to be read by itself."""
        decoded, place = self._find(self._groups.pop(path, None), path)
        return None if decoded is None or place is None else decoded.rows.slice(*place)

    def has_all(self, paths: Iterable[str]) -> bool:
        """Whether `take` returns the rows of all these files."""
        return all(self._find(self._groups.get(path), path)[1] is not None for path in paths)

    def runs(self, paths: Iterable[str]) -> Iterator[tuple[int, pa.RecordBatch | None]]:
        """The rows of announced files, in order: those of files decoded one after the other, with the number of files.

        None in place of the rows of a file that has to be read by itself.
        """
        count = start = end = 0
        last: Decoded | None = None
        for path in paths:
            decoded, place = self._find(self._groups.pop(path, None), path)
            if count and (decoded is not last or place is None or place[0] != end):
                assert last is not None
                yield count, last.rows.slice(start, end - start)
                count = 0
            if decoded is None or place is None:
                yield 1, None
                continue
            if not count:
                last, start = decoded, place[0]
            count, end = count + 1, place[0] + place[1]
        if count:
            assert last is not None
            yield count, last.rows.slice(start, end - start)

    def _find(self, group: _Group | None, path: str) -> tuple[Decoded | None, tuple[int, int] | None]:
        """The decoded rows of a group, and the place of a file in them."""
        self._open.clear()
        decoded = None if group is None else group.read()
        return decoded, None if decoded is None else decoded.places.get(path)


class _Group:
    """Files that are decoded together, when the first of them is asked for."""

    __slots__ = ("_bucket", "_bytes", "_decoded", "_fields", "_files", "_is_read", "_rows")

    def __init__(self, bucket: BucketFiles, fields: Sequence[Field]) -> None:
        self._bucket = bucket
        self._fields = fields
        self._files: list[SmallFile] = []
        self._rows = self._bytes = 0
        self._is_read = False
        self._decoded: Decoded | None = None

    def has_room(self, file: DataFile) -> bool:
        return (
            len(self._files) < TOGETHER_FILES
            and self._rows + file.row_count <= TOGETHER_ROWS
            and self._bytes + file.size_bytes <= TOGETHER_BYTES
        )

    def add(self, one: SmallFile) -> None:
        self._files.append(one)
        self._rows += one.file.row_count
        self._bytes += one.file.size_bytes

    def read(self) -> Decoded | None:
        if not self._is_read and len(self._files) > 1:
            schema = self._bucket.schema_of(self._files[0].file)
            self._decoded = read_small(self._bucket.table.root.files, self._files, schema, self._fields)
        self._is_read = True
        return self._decoded
