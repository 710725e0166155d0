"""Texts as Java's `DataOutput.writeUTF` stores them: a length of two bytes, then modified UTF-8.

Source: Java `DataOutput.writeUTF`.
"""

from __future__ import annotations

import struct


def encode_utf(text: str) -> bytes:
    """The bytes of a text: characters of at most three bytes, surrogates one by one.

    Raises: struct.error for more than 65,535 bytes.
    """
    units = text.encode("utf-16-be", "surrogatepass")
    chars = "".join(chr((units[at] << 8) | units[at + 1]) for at in range(0, len(units), 2))
    data = chars.encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")
    return struct.pack(">H", len(data)) + data


def decode_utf(data: bytes, at: int) -> tuple[str, int]:
    """The text at a position, and the position after it.

    Raises: struct.error or ValueError if there is none.
    """
    length = struct.unpack_from(">H", data, at)[0]
    end = at + 2 + length
    if end > len(data):
        raise struct.error("a name goes beyond its end")
    chars = data[at + 2 : end].replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    return chars.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass"), end
