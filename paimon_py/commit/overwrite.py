"""Selects the partitions that an overwrite replaces.

Source: format.md §15.5; Java `FileStoreCommitImpl.overwritePartition`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Union

import msgspec
import numpy as np

from paimon_py.codec.columns import binary_array
from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.errors import UnsupportedError, UsageError
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.schema import TableSchema


class DynamicOverwrite(msgspec.Struct, frozen=True):
    """Replace the partitions that occur in the new files."""


Overwrite = Union[PartitionChoice, DynamicOverwrite]


def overwrite_of(schema: TableSchema, overwrite: Mapping[str, object] | str | None) -> Overwrite | None:
    """The meaning of `overwrite={"month": 3}`, `{}` or `"dynamic"`.

    Raises:
        UsageError: another value, columns that are not partition columns, or a value that its column cannot hold.
        UnsupportedError: a subset of partitions in a table whose keys move between partitions.
    """
    if overwrite is None:
        return None
    if not isinstance(overwrite, Mapping) and not (isinstance(overwrite, str) and overwrite == "dynamic"):
        raise UsageError(f'overwrite takes {{"month": 3}}, {{}} or "dynamic", not {overwrite!r}')
    if overwrite and bucket_mode(schema) is BucketMode.CROSS_PARTITION:
        raise UnsupportedError(
            "paimon_py cannot overwrite some partitions of a table whose keys move between partitions: new rows may "
            "have keys that are in other partitions. Use overwrite={} for the whole table, or drop_partitions, then "
            "write_arrow",
            feature="overwriting partitions between which keys move",
        )
    if isinstance(overwrite, Mapping):
        return PartitionChoice.of_specs(schema, [overwrite])
    if not schema.partition_keys:
        raise UsageError('overwrite="dynamic" needs a partitioned table; use overwrite={} for the whole table')
    return DynamicOverwrite()


def replaced_partitions(overwrite: Overwrite, new_partitions: Sequence[bytes]) -> PartitionChoice:
    """The partitions that an overwrite with files in `new_partitions` replaces.

    Raises: UsageError if a new file is outside.
    """
    if isinstance(overwrite, DynamicOverwrite):
        return PartitionChoice.of_rows(new_partitions)
    outside = len(new_partitions) - int(np.count_nonzero(overwrite(binary_array(new_partitions))))
    if outside:
        raise UsageError(f"{outside} of the new files are outside the partition to overwrite ({overwrite.text})")
    return overwrite
