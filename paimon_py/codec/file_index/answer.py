"""Evaluates a predicate with the indexes of a file.

Source: Java `FileIndexPredicate`; unlike Java, an answer never omits a matching row: if a key stands for several values
(timestamps finer than a microsecond), comparisons are widened.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec
from pyroaring import BitMap

from paimon_py.codec.file_index.base import Answer, IndexReader, IndexWriter, Question, Test
from paimon_py.codec.file_index.bitmap import BitmapReader, BitmapWriter
from paimon_py.codec.file_index.bloom_filter import BloomFilterReader, BloomFilterWriter
from paimon_py.codec.file_index.bsi import BsiReader, BsiWriter
from paimon_py.codec.file_index.keys import KeyKind
from paimon_py.codec.file_index.range_bitmap import RangeBitmapReader, RangeBitmapWriter
from paimon_py.errors import CorruptionError
from paimon_py.expr.literal import LiteralValue
from paimon_py.expr.predicate import And, Compare, Constant, In, IsNull, Or, Predicate
from paimon_py.spec.file_indexes import allows
from paimon_py.spec.types import Atomic, Field

_Reader = Callable[[KeyKind, bytes], IndexReader]
_READERS: Mapping[str, _Reader] = {
    "bloom-filter": BloomFilterReader,
    "bitmap": BitmapReader,
    "bsi": BsiReader,
    "range-bitmap": RangeBitmapReader,
}
_WRITERS: Mapping[str, Callable[[KeyKind, Mapping[str, str]], IndexWriter]] = {
    "bloom-filter": BloomFilterWriter,
    "bitmap": BitmapWriter,
    "bsi": BsiWriter,
    "range-bitmap": RangeBitmapWriter,
}
_MANY_LITERALS = 10_000
"""The maximum number of values to look up; a longer list would cost more than reading."""

T = TypeVar("T")
_WIDER: Mapping[str, Test] = {"<": "<=", ">": ">=", "!=": "not null"}


class IndexSource(Protocol):
    """The indexes of one file: the `kinds` of a column, and their bytes."""

    @property
    def path(self) -> str:
        """The name of the index in errors."""
        ...

    def kinds(self, column: str) -> Sequence[str]:
        """The types of the indexes of a column."""
        ...

    def load(self, column: str, kind: str) -> bytes:
        """The bytes of an index."""
        ...


class Indexed(msgspec.Struct, frozen=True):
    """A file with indexes: its columns by name, as they were when it was written, and its row count."""

    source: IndexSource
    fields: Mapping[str, Field]
    row_count: int


def writer_of(kind: str, type_: Atomic, options: Mapping[str, str]) -> IndexWriter:
    """The writer of an index of the given kind for a column; the index must support the type."""
    return _WRITERS[kind](KeyKind.of(type_), options)


def matching_rows(predicate: Predicate, file: Indexed) -> Answer:
    """The rows that may match, always including all that do; None if the indexes cannot decide.

    Args:
        predicate: bound to the columns of the file.
    Cost: only indexes of columns in the predicate are loaded.
    Raises: CorruptionError for damaged indexes.
    """
    return _Asking(file).walk(predicate)


class _Asking:
    """Evaluates one predicate over one file; caches its readers."""

    def __init__(self, file: Indexed) -> None:
        self._file = file
        self._readers: dict[str, list[tuple[str, IndexReader]]] = {}

    def walk(self, predicate: Predicate) -> Answer:
        if isinstance(predicate, And):
            return self._all(predicate.parts)
        if isinstance(predicate, Or):
            return self._any(predicate.parts)
        if isinstance(predicate, Constant):
            return None if predicate.value else BitMap()
        if not isinstance(predicate, (Compare, In, IsNull)) or len(predicate.column.path) > 1:
            return None
        field = self._file.fields.get(predicate.column.name)
        if field is None or not isinstance(field.type, Atomic):
            return None
        return self._leaf(predicate, field)

    def _all(self, parts: Sequence[Predicate]) -> Answer:
        found: Answer = None
        for part in parts:
            answer = self.walk(part)
            if answer is not None:
                found = answer if found is None else found & answer
            if found is not None and not found:
                return found
        return found

    def _any(self, parts: Sequence[Predicate]) -> Answer:
        found = BitMap()
        for part in parts:
            answer = self.walk(part)
            if answer is None:
                return None
            found = found | answer
        return found

    def _leaf(self, leaf: Compare | In | IsNull, field: Field) -> Answer:
        question: Question | None = None
        found: Answer = None
        for kind, reader in self._of(field):
            assert isinstance(field.type, Atomic)
            question = question or _question(leaf, KeyKind.of(field.type))
            if question is None:
                return None
            answer = self._guard(field.name, kind, functools.partial(reader.ask, question))
            if answer is not None:
                found = answer if found is None else found & answer
        if found and found.max() >= self._file.row_count:
            raise self._damage(field.name, "index", f"row {found.max()} of {self._file.row_count}")
        return found

    def _of(self, field: Field) -> list[tuple[str, IndexReader]]:
        if field.name not in self._readers:
            kinds = (kind for kind in self._file.source.kinds(field.name) if allows(kind, field.type))
            self._readers[field.name] = [(kind, self._open(field, kind)) for kind in kinds]
        return self._readers[field.name]

    def _open(self, field: Field, kind: str) -> IndexReader:
        assert isinstance(field.type, Atomic)
        key_kind = KeyKind.of(field.type)
        data = self._file.source.load(field.name, kind)
        reader: IndexReader = self._guard(field.name, kind, lambda: _READERS[kind](key_kind, data))
        if reader.row_count not in (None, self._file.row_count):
            reason = f"it covers {reader.row_count} rows, the file has {self._file.row_count}"
            raise self._damage(field.name, kind, reason)
        return reader

    def _guard(self, column: str, kind: str, work: Callable[[], T]) -> T:
        try:
            return work()
        except (ValueError, IndexError, OverflowError, struct.error) as error:
            raise self._damage(column, kind, str(error)) from error

    def _damage(self, column: str, kind: str, reason: str) -> CorruptionError:
        path = self._file.source.path
        return CorruptionError(f"the {kind} of column {column!r} in {path} is damaged: {reason}", path=path)


def _question(leaf: Compare | In | IsNull, kind: KeyKind) -> Question | None:
    if isinstance(leaf, IsNull):
        return Question("not null" if leaf.negated else "null")
    literals: tuple[LiteralValue, ...] = (leaf.literal,) if isinstance(leaf, Compare) else leaf.literals
    test: Test = leaf.operator if isinstance(leaf, Compare) else "!=" if leaf.negated else "=="
    if len(literals) > _MANY_LITERALS:
        return None
    test = test if kind.is_exact else _WIDER.get(test, test)
    if test == "not null":
        return Question(test)
    return Question(test, tuple(sorted({kind.key(literal) for literal in literals})))
