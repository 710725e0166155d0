"""Offsets in a stream of batches, which an engine keeps in its checkpoints. Pure.

Source: Java `PaimonSourceOffset` (which has other names).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from paimon_py.errors import UsageError
from paimon_py.scan.split import Split
from paimon_py.stream.position import Position, parse_position

_EDITION = 1
_ALL = "all"


class Offset(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of a table that was read: everything up to a snapshot, and some splits of the next step.

    Attributes:
        edition: the version of this format.
        began: where the stream began: a position; `all:5`, with all rows of snapshot 5; `all`, with all rows of the
            first snapshot to be committed; None if it is no longer known. An engine asks for the beginning again when
            it repeats the first batch: then the value at the end of that batch counts.
        after: the position after the last step that was read completely, None if the stream is still at its beginning.
        taken: the number of splits read of the step after that.
        step: the snapshot of that step.
        mark: a checksum that shows whether the step still has the same splits.
    """

    edition: int = _EDITION
    began: str | None = None
    after: str | None = None
    taken: int = 0
    step: int | None = None
    mark: int | None = None

    @classmethod
    def of(cls, value: Mapping[str, Any], restart: str) -> Offset:
        """The offset in JSON from an engine.

        Args:
            restart: how a query starts again without its checkpoint, for errors.

        Raises: UsageError for a value that is not an offset, such as one of Java's connector.
        """
        try:
            found = msgspec.convert(dict(value), cls)
        except msgspec.ValidationError as error:
            raise UsageError(f"{value!r} is not an offset of paimon_py: {error}; {restart}") from error
        if value.get("edition") != _EDITION or set(value) - set(cls.__struct_fields__):
            raise UsageError(f"{value!r} is an offset of another paimon_py, or of Java's connector; {restart}")
        return found

    def as_json(self) -> dict[str, Any]:
        """The offset as JSON values."""
        return {"edition": self.edition, **msgspec.to_builtins(self)}

    @property
    def position(self) -> Position | None:
        """The snapshot up to which everything was read; None while the stream still begins with all rows."""
        text = self.after if self.after is not None else self.began
        return None if text is None or text.startswith(_ALL) else parse_position(text)

    @property
    def whole(self) -> int | None:
        """The snapshot whose rows are all read first."""
        text = self.began or ""
        return int(text[len(_ALL) + 1 :]) if self.after is None and text.startswith(f"{_ALL}:") else None

    @property
    def waits(self) -> bool:
        """Whether the stream waits for the first snapshot of a table, to begin with all its rows."""
        return self.began == _ALL and self.after is None

    @property
    def is_beginning(self) -> bool:
        """Whether nothing has been read yet."""
        return self.after is None and not self.taken


def all_of(snapshot_id: int | None) -> Offset:
    """The offset of a stream that begins with all rows of a snapshot; None: of the first one to be committed."""
    return Offset(began=_ALL if snapshot_id is None else f"{_ALL}:{snapshot_id}")


def mark_of(splits: Sequence[Split]) -> int:
    """A checksum over the files of some splits."""
    found = 0
    for split in splits:
        for file in split.files:
            found = zlib.crc32(file.name.encode(), found)
        found = zlib.crc32(b"/", found)
    return found
