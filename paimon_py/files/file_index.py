"""The indexes of one data file: built while the file is written, queried before it is read.

Small indexes are stored in the manifest entry, others next to the data file as `<data file>.index`.

Source: format.md §11.1; Java `DataFileIndexWriter`, `FileIndexEvaluator`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from paimon_py.codec.file_index import container
from paimon_py.errors import CorruptionError, UnsupportedError
from paimon_py.expr.literal import TimestampValue
from paimon_py.expr.predicate import And, Compare, Constant, In, Or, Predicate
from paimon_py.expr.split import translate
from paimon_py.formats.base import GREGORIAN_DAYS
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.file_indexes import (
    INDEX_SUFFIX,
    IndexColumn,
    allows,
    check_index_options,
    check_indexed_column,
    indexed_type,
)
from paimon_py.spec.layout import check_file_name
from paimon_py.spec.types import Atomic, Field, Root
from paimon_py.storage.store import OpenRead, join

if TYPE_CHECKING:
    from paimon_py.codec.file_index.base import Answer, IndexWriter

_GREGORIAN_SECONDS = 86_400 * GREGORIAN_DAYS

MAX_ROWS = 2**31 - 1
"""The maximum number of rows of a file with indexes: larger positions do not fit in an index."""


Indexes = dict[str, dict[str, bytes | None]]
"""The indexes of a file by column and type; None for an index without rows."""


class FileIndexWriter:
    """Builds the indexes of one data file."""

    def __init__(self, fields: Sequence[Field], indexes: Sequence[IndexColumn]) -> None:
        """`fields`: the columns of the rows.

        Raises: UnsupportedError for an index that is not supported, OptionError for invalid index options.
        """
        from paimon_py.codec.file_index.answer import writer_of

        by_name = {field.name: field for field in fields}
        self._writers: list[tuple[IndexColumn, IndexWriter]] = []
        for index in indexes:
            check_indexed_column(index, list(by_name))
            type_ = indexed_type(index, by_name[index.column].type)
            if type_ is None or not isinstance(type_, Atomic) or not allows(index.kind, type_):
                raise UnsupportedError(
                    f"paimon_py cannot make a {index.kind} index of {index.name!r}", feature=f"file-index.{index.kind}"
                )
            check_index_options(index)
            self._writers.append((index, writer_of(index.kind, type_, index.options)))

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the next rows of the file."""
        for index, writer in self._writers:
            column = batch.column(index.column)
            if index.key is not None:
                column = _map_values(column, index.key)
            writer.add(column)

    def finish(self) -> Indexes:
        """The indexes by column and type; without those that cannot represent a value of their column."""
        found: Indexes = {}
        for index, writer in self._writers:
            data = writer.finish()
            if data is not None:
                found.setdefault(index.name, {})[index.kind] = data
        return found


def matching(
    store: OpenRead, path: str, file: DataFile, file_fields: Sequence[Field], predicate: Predicate
) -> Answer:
    """The rows of a file that may match according to its indexes, always including all matches; None if unknown.

    Args:
        path: the path of the data file.
        file_fields: columns of the schema that the file was written with.
        predicate: bound to the requested schema.
    Cost: opens the index file, and reads only what the predicate needs.
    Raises:
        FileMissingError: the index file does not exist.
        CorruptionError: the index is damaged.
    """
    if file.row_count > MAX_ROWS or not has_index(file):
        return None
    from paimon_py.codec.file_index.answer import Indexed, matching_rows

    pushed = translate(predicate, file_fields)
    if isinstance(pushed, Constant):
        return None if pushed.value else BitMap()
    with _open(store, path, file) as source:
        fields = {field.name: field for field in file_fields if _reads_as_written(file, field, pushed)}
        found = matching_rows(pushed, Indexed(source, fields, file.row_count))
    return None if found is not None and len(found) == file.row_count else found


def has_index(file: DataFile) -> bool:
    """Whether a file has any index."""
    return file.embedded_index is not None or any(name.endswith(INDEX_SUFFIX) for name in file.extra_files)


def read_indexes(store: OpenRead, path: str, file: DataFile) -> Indexes:
    """All indexes of a file, by column and type.

    Raises: FileMissingError, CorruptionError
    """
    if file.embedded_index is not None:
        return container.decode(file.embedded_index, _embedded_path(file))
    place = index_file(path, file)
    if place is None:
        return {}
    with store.open_read(place) as source:
        return container.decode(source.read(), place)


def read_index_head(store: OpenRead, path: str, file: DataFile) -> container.Head:
    """The locations of a file's indexes in their container, by column and type; reads only the head of an index file.

    Raises: FileMissingError, CorruptionError
    """
    if not has_index(file):
        return {}
    with _open(store, path, file) as source:
        return source.head


def index_file(path: str, file: DataFile) -> str | None:
    """The path of the index file of a data file.

    Raises: CorruptionError if there are several.
    """
    names = [name for name in file.extra_files if name.endswith(INDEX_SUFFIX)]
    if len(names) > 1:
        raise CorruptionError(f"{file.name} has {len(names)} index files: {', '.join(names)}", path=path)
    return join(path.rpartition("/")[0], check_file_name(names[0])) if names else None


def _reads_as_written(file: DataFile, field: Field, predicate: Predicate) -> bool:
    """Whether the values of a column are read exactly as they were indexed.

    ORC files lose trailing blanks of CHAR; Java shifts instants by its time zone, and times before 1582.
    """
    if not file.name.endswith(".orc") or not isinstance(field.type, Atomic):
        return True
    if field.type.root is Root.TIMESTAMP:
        return all(literal.seconds >= _GREGORIAN_SECONDS for literal in _timestamps(predicate, field.name))
    return field.type.root not in (Root.CHAR, Root.TIMESTAMP_LTZ)


def _timestamps(predicate: Predicate, column: str) -> Iterator[TimestampValue]:
    if isinstance(predicate, (And, Or)):
        for part in predicate.parts:
            yield from _timestamps(part, column)
    elif isinstance(predicate, (Compare, In)) and predicate.column.name == column:
        literals = (predicate.literal,) if isinstance(predicate, Compare) else predicate.literals
        yield from (literal for literal in literals if isinstance(literal, TimestampValue))


def _map_values(column: pa.Array, key: str) -> pa.Array:
    return pc.map_lookup(column, pa.scalar(key, column.type.key_type), "first")


def _embedded_path(file: DataFile) -> str:
    return f"the manifest entry of {file.name}"


class _Embedded:
    """Indexes in the manifest entry."""

    def __init__(self, file: DataFile) -> None:
        self.path = _embedded_path(file)
        self._data = file.embedded_index or b""
        self.head = container.decode_head(self._data, self.path)

    def kinds(self, column: str) -> Sequence[str]:
        return _kinds(self.head, column)

    def load(self, column: str, kind: str) -> bytes:
        return container.cut(self._data, self.head[column][kind], self.path)


class _Stored:
    """Indexes in a separate file; only the head and requested indexes are read."""

    def __init__(self, source: BinaryIO, path: str) -> None:
        self.path = path
        self._source = source
        prefix = source.read(container.PREFIX_BYTES)
        head = prefix + source.read(container.head_bytes(prefix, path) - len(prefix))
        self.head = container.decode_head(head, path)

    def kinds(self, column: str) -> Sequence[str]:
        return _kinds(self.head, column)

    def load(self, column: str, kind: str) -> bytes:
        place = self.head[column][kind]
        if place.start < 0 or place.length < 0:
            return container.cut(b"", place, self.path)
        self._source.seek(place.start)
        part = self._source.read(place.length)
        return container.cut(part, container.IndexPlace(0, place.length), self.path)


def _kinds(head: container.Head, column: str) -> list[str]:
    return [kind for kind, place in head.get(column, {}).items() if not place.is_empty]


@contextlib.contextmanager
def _open(store: OpenRead, path: str, file: DataFile) -> Iterator[_Embedded | _Stored]:
    if file.embedded_index is not None:
        yield _Embedded(file)
        return
    place = index_file(path, file)
    assert place is not None
    with store.open_read(place) as source:
        yield _Stored(source, place)
