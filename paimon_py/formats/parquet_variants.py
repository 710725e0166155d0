"""Groups of Parquet files that hold variants, plain or shredded, as columns of variants.

Source: format.md §8.9; Java `PaimonShreddingUtils`.
"""

from __future__ import annotations

import pyarrow as pa

from paimon_py.codec.variant.unshred import unshredded


def variants_of(array: pa.Array) -> pa.Array:
    """The variants of a group, whose parts are found by name.

    Raises: CorruptionError for bytes that are no variants.
    """
    return unshredded(array)
