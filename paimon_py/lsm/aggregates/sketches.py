"""Unions of Apache DataSketches. The only importer of `datasketches`, an extra, which is imported on first use.

Source: Java `ThetaSketch.union`, `HllSketchUtil.union`; DataSketches' serialised forms, the same in Java and C++.
"""

from __future__ import annotations

import importlib
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from paimon_py.errors import UnsupportedError

_ALL = struct.pack("<f", 1.0)
"""The share of values that the sketch samples: Java writes it, C++ leaves zeros, both ignore it when reading."""
_FLAGS, _EMPTY = 5, 4
"""The flag of an empty sketch, for which Java writes no hash of the seed."""


def union_theta(parts: Sequence[bytes]) -> bytes:
    """The union of theta sketches with 4096 nominal entries, as an ordered compact sketch.

    Raises: ValueError if one of them is not such a sketch.
    """
    library = _library()
    union = library.theta_union()
    for part in parts:
        union.update(_read(library.compact_theta_sketch, part))
    made: bytes = union.get_result().serialize()
    if made[_FLAGS] & _EMPTY:
        return made[:6] + b"\0\0"
    return made if made[0] & 0x3F < 2 else made[:12] + _ALL + made[16:]


def union_hll(parts: Sequence[bytes]) -> bytes:
    """The union of HLL sketches as a compact HLL_4 sketch: the size of the newer one is applied to the older ones.

    Raises: ValueError if one of them is not such a sketch.
    """
    library = _library()
    made = parts[0]
    for part in parts[1:]:
        newer = _read(library.hll_sketch, part)
        union = library.hll_union(newer.lg_config_k)
        union.update(newer)
        union.update(_read(library.hll_sketch, made))
        made = union.get_result(library.tgt_hll_type.HLL_4).serialize_compact()
    return made


def _read(kind: Any, data: bytes) -> Any:
    try:
        return kind.deserialize(data)
    except RuntimeError as error:
        raise ValueError(str(error)) from error


@lru_cache(maxsize=1)
def _library() -> Any:
    try:
        return importlib.import_module("datasketches")
    except ImportError as error:
        raise UnsupportedError(
            "aggregate functions theta_sketch and hll_sketch need the package datasketches: "
            "pip install 'paimon-py[sketches]'",
            feature="theta_sketch, hll_sketch",
        ) from error
