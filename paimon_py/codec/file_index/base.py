"""What writers and readers of indexes have in common: the questions that are asked, and how answers read.

An answer is a bitmap of rows that may match, never too few, or None where the index does not know. An empty one says
that no row of the file matches.
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
    """Which rows have a value with `value test key`?

    `==` asks for any of the keys, `!=` for none of them, the others have one key or none. Keys in ascending order.
    """

    test: Test
    keys: tuple[Key, ...] = ()


class IndexWriter(Protocol):
    """Makes the index of one column of one file."""

    def add(self, column: pa.Array) -> None:
        """The next rows."""
        ...

    def finish(self) -> bytes | None:
        """The bytes; None if the column holds a value that this index cannot hold, so that there is none."""
        ...


class IndexReader(Protocol):
    """Answers questions about one column of one file.

    Raises: ValueError, IndexError, struct.error or OverflowError where bytes are damaged.
    """

    @property
    def row_count(self) -> int | None:
        """Rows of the file; None if the index does not say."""
        ...

    def ask(self, question: Question) -> Answer:
        """The rows that may match."""
        ...


def all_rows(count: int) -> BitMap:
    """Every row of a file."""
    return BitMap(range(count))
