"""The interface of index writers and readers: questions and answers.

An answer is a bitmap of rows that may match, always including all that do, or None if the index cannot decide. An empty
bitmap means that no row of the file matches.
"""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec
import pyarrow as pa
from pyroaring import BitMap

from paimon_py.codec.file_index.keys import Key

Test = Literal["==", "!=", "<", "<=", ">", ">=", "null", "not null"]
Answer = BitMap | None


class Question(msgspec.Struct, frozen=True):
    """Asks which rows have a value with `value test key`.

    `==` matches any of the keys, `!=` none of them; the other tests have one key or none. Keys are in ascending order.
    """

    test: Test
    keys: tuple[Key, ...] = ()


class IndexWriter(Protocol):
    """Builds the index of one column of one file."""

    def add(self, column: pa.Array) -> None:
        """Add the next rows."""
        ...

    def finish(self) -> bytes | None:
        """The bytes; None if the column contains a value that the index cannot hold, so that no index is written."""
        ...


class IndexReader(Protocol):
    """Answers questions about one column of one file.

    Raises: ValueError, IndexError, struct.error or OverflowError if the bytes are damaged.
    """

    @property
    def row_count(self) -> int | None:
        """The row count of the file; None if the index does not store it."""
        ...

    def ask(self, question: Question) -> Answer:
        """The rows that may match."""
        ...


def all_rows(count: int) -> BitMap:
    """Every row of a file."""
    return BitMap(range(count))
