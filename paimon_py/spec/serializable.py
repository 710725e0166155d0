"""Values that are sent between processes as bytes with a checksum: changes, splits, compaction tasks.

Each value is preceded by an envelope: its kind and version, its length, and a CRC-32 over all of these and the value.
Long values are compressed if one process collects very many values of their kind.
Accidental damage is detected; forged bytes are not, since a checksum is not a signature.

Source: docs/decisions/0019-travelling-values.md.
"""

from __future__ import annotations

import re
import struct
import zlib
from typing import Any, ClassVar, TypeVar

import msgspec
import zstandard

from paimon_py.errors import CorruptionError, UsageError
from paimon_py.spec.packed import encode_packed

_HEAD = re.compile(rb"paimon-([a-z]{1,20})-(\d{1,9}):")
_SEAL = struct.Struct(">QI")

_COMPRESSED_FROM = 4096
_WHOLE_MAX = 64 << 20
_RATIO_MAX = 1000
_INNER = frozenset(("again", "called", "compresses", "edition", "inner", "kind"))

Value = TypeVar("Value", bound="Serializable")


class Serializable(msgspec.Struct, frozen=True):
    """A serializable value: `bytes(value)` encodes it, `from_bytes` decodes it; pickles contain the same bytes.

    Attributes:
        kind: the word at the beginning of the bytes.
        edition: the version of the encoding; other versions are refused.
        called: the name of such a value in messages.
        again: how to get a new value of this kind, for messages.
        compresses: whether long values are compressed.
        inner: fields and methods that are hidden from completion, since only paimon_py needs them.
    """

    kind: ClassVar[str]
    edition: ClassVar[int]
    called: ClassVar[str]
    again: ClassVar[str]
    compresses: ClassVar[bool] = False
    inner: ClassVar[frozenset[str]] = frozenset()

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if name not in _INNER and name not in self.inner]

    def __bytes__(self) -> bytes:
        head = f"paimon-{self.kind}-{self.edition}:".encode()
        body = msgspec.msgpack.encode(self, enc_hook=encode_packed)
        if self.compresses and len(body) >= _COMPRESSED_FROM:
            body = zstandard.ZstdCompressor(level=1).compress(body)
        return b"".join((head, _SEAL.pack(len(body), _checksum(head, body)), body))

    def __reduce__(self) -> tuple[Any, ...]:
        return _brought_back, (type(self), bytes(self))

    @classmethod
    def from_bytes(cls: type[Value], data: bytes) -> Value:
        """The inverse of `bytes`.

        Cost: decoding, plus one millisecond per MB for the checksum.
        Raises:
            CorruptionError: the bytes are damaged, of another version, or not a serialized value.
            UsageError: `data` is not bytes, or contains another kind of value.
        """
        if not isinstance(data, bytes):
            raise UsageError(f"from_bytes takes bytes, not {type(data).__name__}")
        found = _HEAD.match(data)
        if found is None:
            raise CorruptionError(f"these bytes are not {cls.called}")
        kind, version, start = found[1].decode(), int(found[2]), found.end()
        if kind != cls.kind:
            raise UsageError(f"these bytes are not {cls.called}: they begin with 'paimon-{kind}'")
        if version != cls.edition:
            raise CorruptionError(
                f"these bytes are {cls.called} of version {version}, this paimon_py reads version {cls.edition}: use "
                f"the release of paimon_py that wrote them, or {cls.again} again"
            )
        if len(data) < start + _SEAL.size:
            raise CorruptionError(f"these bytes are not {cls.called}: they were cut off")
        size, checksum = _SEAL.unpack_from(data, start)
        body = data[start + _SEAL.size :]
        if len(body) != size:
            raise CorruptionError(
                f"these bytes are not {cls.called}: they have {len(body)} of the {size} bytes that were written; send "
                f"them again, or {cls.again} again"
            )
        if _checksum(found[0], body) != checksum:
            raise CorruptionError(
                f"these bytes are not {cls.called}: they were damaged on the way (wrong checksum); send them again, or "
                f"{cls.again} again"
            )
        try:
            return msgspec.msgpack.decode(_decompress(body) if cls.compresses else body, type=cls)
        except (zstandard.ZstdError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise CorruptionError(f"these bytes are not {cls.called}: {error}") from error


def _brought_back(kind: type[Value], data: bytes) -> Value:
    """The function that pickles call: a module function, which cloudpickle refers to by name."""
    return kind.from_bytes(data)


def _decompress(body: bytes) -> bytes:
    """The value in its encoding, whether or not it is compressed.

    Raises: ZstdError if it is broken, or longer than any value that compresses to these bytes.
    """
    if not body.startswith(zstandard.FRAME_HEADER):
        return body
    size = zstandard.frame_content_size(body)
    if not 0 <= size <= max(_WHOLE_MAX, _RATIO_MAX * len(body)):
        raise zstandard.ZstdError(f"{len(body)} bytes would become {size}")
    return zstandard.ZstdDecompressor().decompress(body)


def _checksum(head: bytes, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(len(body).to_bytes(8, "big"), zlib.crc32(head)))
