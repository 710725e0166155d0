"""The element types of VECTOR.

Source: format.md §8.8; Java `VectorType`.
"""

from __future__ import annotations

from paimon_py.spec.types import Atomic, DataType, Root

ELEMENTS = frozenset(
    (Root.BOOLEAN, Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT, Root.FLOAT, Root.DOUBLE)
)


def is_element(data_type: DataType) -> bool:
    """Whether a type is a valid element type of vectors."""
    return isinstance(data_type, Atomic) and data_type.root in ELEMENTS
