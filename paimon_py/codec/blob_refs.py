"""References to bytes that are stored elsewhere: descriptors (`BlobRef`), and views of BLOB columns of other tables.

    descriptor    version 2 (byte) · magic (int64) · length of the URI (int32) · URI · offset, length (int64)
    view          version 1 (byte) · magic (int64) · length of the name (int32) · `db.table` · field id (int32)
                  · row id (int64)

Descriptors of version 1 have no magic.

Source: format.md §26; Java `BlobDescriptor`, `BlobViewStruct`.
"""

from __future__ import annotations

import struct
from numbers import Integral

import msgspec

from paimon_py.arguments import value_repr
from paimon_py.errors import CorruptionError, UsageError

_REF_MAGIC = 0x424C4F4244455343
_VIEW_MAGIC = 0x424C4F4256494557
_TO_THE_END = -1
_REF_VERSION, _VIEW_VERSION, _OLD_VERSION = 2, 1, 1


class BlobRef(msgspec.Struct, frozen=True):
    """A range of a file: `length` bytes from `offset` (None: to the end of the file).

    A table stores `bytes(ref)`; `BlobRef.from_bytes` is the inverse.

    Raises: UsageError for values that cannot be stored.
    """

    uri: str
    offset: int = 0
    length: int | None = None

    def __post_init__(self) -> None:
        _check_text("uri", self.uri)
        for name, given in (("offset", self.offset), ("length", self.length)):
            is_whole = isinstance(given, Integral) and not isinstance(given, bool) and 0 <= given < 1 << 63
            if not is_whole and not (given is None and name == "length"):
                raise UsageError(f"the {name} of a BlobRef is a whole number of bytes from 0, not {value_repr(given)}")

    def __bytes__(self) -> bytes:
        text = self.uri.encode()
        length = _TO_THE_END if self.length is None else self.length
        return struct.pack("<Bqi", _REF_VERSION, _REF_MAGIC, len(text)) + text + struct.pack("<qq", self.offset, length)

    @classmethod
    def from_bytes(cls, data: bytes) -> BlobRef:
        """Decode a serialized reference.

        Raises: CorruptionError if the bytes are not a reference.
        """
        text, rest = _parts(data, _REF_MAGIC, _REF_VERSION, 16, "a reference to a blob")
        offset, length = struct.unpack("<qq", rest)
        if offset < 0 or length < _TO_THE_END:
            raise CorruptionError(f"a reference to a blob names {length} bytes from {offset} on")
        return cls(text, offset, None if length == _TO_THE_END else length)


class BlobViewRef(msgspec.Struct, frozen=True):
    """A BLOB value of another table: the table's name `db.table`, the id of the column, and the id of the row.

    A table stores `bytes(ref)`; `BlobViewRef.from_bytes` is the inverse.

    Raises: UsageError for values that cannot be stored.
    """

    table: str
    field_id: int
    row_id: int

    def __post_init__(self) -> None:
        _check_text("table", self.table)
        for name, given, bits in (("field_id", self.field_id, 31), ("row_id", self.row_id, 63)):
            if not isinstance(given, Integral) or isinstance(given, bool) or not 0 <= given < 1 << bits:
                raise UsageError(f"the {name} of a BlobViewRef is a whole number from 0, not {value_repr(given)}")

    def __bytes__(self) -> bytes:
        text = self.table.encode()
        head = struct.pack("<Bqi", _VIEW_VERSION, _VIEW_MAGIC, len(text))
        return head + text + struct.pack("<iq", self.field_id, self.row_id)

    @classmethod
    def from_bytes(cls, data: bytes) -> BlobViewRef:
        """Decode a serialized reference.

        Raises: CorruptionError if the bytes are not a reference.
        """
        text, rest = _parts(data, _VIEW_MAGIC, _VIEW_VERSION, 12, "a view of a blob")
        field_id, row_id = struct.unpack("<iq", rest)
        if field_id < 0 or row_id < 0:
            raise CorruptionError(f"a view of a blob leads to row {row_id} of column {field_id}")
        return cls(text, field_id, row_id)


def _check_text(name: str, text: str) -> None:
    if not isinstance(text, str) or (not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text)):
        raise UsageError(f"the {name} of a reference to a BLOB is a string, not {text!r:.200}")


def _parts(data: bytes, magic: int, version: int, rest_bytes: int, what: str) -> tuple[str, bytes]:
    """The string, and the bytes after it."""
    data = bytes(data)
    head = 9
    if len(data) >= head and data[0] == version and struct.unpack_from("<q", data, 1)[0] == magic:
        start = head
    elif magic == _REF_MAGIC and data[:1] == bytes([_OLD_VERSION]):
        start = 1
    else:
        raise CorruptionError(f"{what} begins with {data[:head].hex()}")
    if len(data) < start + 4:
        raise CorruptionError(f"{what} ends early")
    (length,) = struct.unpack_from("<i", data, start)
    if length < 0 or len(data) != start + 4 + length + rest_bytes:
        raise CorruptionError(f"{what} has {len(data)} bytes, and a text of {length}")
    try:
        text = data[start + 4 : start + 4 + length].decode()
    except UnicodeDecodeError as error:
        raise CorruptionError(f"{what} is not text") from error
    return text, data[start + 4 + length :]
