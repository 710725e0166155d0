"""Hash index files: the hashes of the keys in one dynamic bucket, nothing else.

Source: format.md §7.4; Java `HashIndexFile`.
"""

from __future__ import annotations

import numpy as np

from paimon_py.codec.columns import Int32s
from paimon_py.errors import CorruptionError

_WIDTH = 4


def encode_hashes(hashes: Int32s) -> bytes:
    """Four bytes a hash, the highest first."""
    return hashes.astype(">i4").tobytes()


def decode_hashes(data: bytes, count: int, path: str) -> Int32s:
    """The hashes of a file; `count` is the number that its index entry states.

    Raises: CorruptionError if it holds another number of bytes.
    """
    if len(data) != _WIDTH * count:
        raise CorruptionError(
            f"{path} has {len(data)} bytes, not the {_WIDTH * count} of {count} hashes", path=path, offset=len(data)
        )
    hashes: Int32s = np.frombuffer(data, ">i4").astype(np.int32)
    return hashes
