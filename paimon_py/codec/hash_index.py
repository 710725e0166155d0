"""Hash index files: the hashes of the keys in one dynamic bucket.

Source: format.md §7.4; Java `HashIndexFile`.
"""

from __future__ import annotations

import re
import zlib

import numpy as np

from paimon_py.codec.columns import Int32s
from paimon_py.errors import CorruptionError

_WIDTH = 4
_RANDOM = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}-)4([0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12})")
_CHECKED = re.compile("index-([0-9a-f]{8})-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}-0")


def encode_hashes(hashes: Int32s) -> bytes:
    """Four bytes per hash, big-endian."""
    return hashes.astype(">i4").tobytes()


def name_for(uuid: str, data: bytes) -> str:
    """The name of a file with these bytes: contains their CRC-32, marked by version 8 in the UUID.

    The file itself has no room for a checksum, since readers interpret all of its bytes as hashes. A `uuid` that is not
    random (version 4) is kept.
    """
    parts = _RANDOM.fullmatch(uuid)
    return f"index-{zlib.crc32(data):08x}{parts[1]}8{parts[2]}-0" if parts else f"index-{uuid}-0"


def decode_hashes(data: bytes, count: int, path: str) -> Int32s:
    """The hashes of a file; `count` is the number that its index entry states.

    Raises: CorruptionError if the size does not match `count`, or the checksum does not match the name.
    """
    checked = _CHECKED.fullmatch(path.rpartition("/")[2])
    if checked and int(checked[1], 16) != zlib.crc32(data):
        raise CorruptionError(f"{path} is damaged: its checksum is {zlib.crc32(data):08x}", path=path)
    if len(data) != _WIDTH * count:
        raise CorruptionError(
            f"{path} has {len(data)} bytes, not the {_WIDTH * count} of {count} hashes", path=path, offset=len(data)
        )
    hashes: Int32s = np.frombuffer(data, ">i4").astype(np.int32)
    return hashes
