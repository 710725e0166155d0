"""Compresses the descriptions of files, possibly millions, that the driver sends to tasks."""

from __future__ import annotations

import zstandard

_LEVEL = 1


def compress(data: bytes) -> bytes:
    """The bytes in fewer bytes."""
    return bytes(memoryview(zstandard.ZstdCompressor(level=_LEVEL).compress(data)))  # zstandard leaves a hole behind


def decompress(data: bytes) -> bytes:
    """The inverse of `compress`."""
    return zstandard.ZstdDecompressor().decompress(data)
