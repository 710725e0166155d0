"""A position in a stream as a short text, valid in any process.

The text contains the last snapshot that was read, by id and mark, and the table, so that a rollback, a table that was
created again and another table are noticed.
"""

from __future__ import annotations

import re
import zlib

import msgspec

from paimon_py.errors import UsageError
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import MAIN_BRANCH, schema_path
from paimon_py.spec.snapshot import Base
from paimon_py.storage.store import FileMissingError

PREFIX = "paimon-stream"
_TEXT = re.compile(PREFIX + r"-(\d{1,4}):(\d{1,19}):([0-9a-f]{8}|-):([A-Za-z0-9._=+-]{0,200})")
_EDITION = "1"
_LONG_MAX = 2**63 - 1


class Position(msgspec.Struct, frozen=True):
    """The snapshot after which a stream continues, and the table it belongs to; None if unknown."""

    base: Base
    table: str | None

    def __str__(self) -> str:
        return f"{PREFIX}-{_EDITION}:{self.base.id}:{self.table or '-'}:{self.base.mark or ''}"


def parse_position(text: str) -> Position:
    """Parse the text of a position.

    Raises: UsageError for a text that is not from a step.
    """
    found = _TEXT.fullmatch(text)
    if found is None or int(found[2]) > _LONG_MAX:
        raise UsageError(f"{text!r} is not a position of a stream: pass the value of step.position, unchanged")
    if found[1] != _EDITION:
        raise UsageError(
            f"{text!r} is a position of version {found[1]}, but this paimon_py reads version"
            f" {_EDITION}: use the release that created it"
        )
    table = None if found[3] == "-" else found[3]
    return Position(Base(int(found[2]), found[4] or None), table)


def table_of(root: TableRoot) -> str | None:
    """A checksum that distinguishes a table from others, also from one created again at its path: over its first
    schema and the name of the branch.

    None if there is no first schema (any more). Cost: one get.
    """
    try:
        name = b"" if root.branch == MAIN_BRANCH else root.branch.encode()
        return f"{zlib.crc32(name, zlib.crc32(root.store.get(schema_path(root.branch_path, 0)))):08x}"
    except FileMissingError:
        return None
