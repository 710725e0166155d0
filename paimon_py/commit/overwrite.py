"""Which partitions an overwrite replaces.

Source: format.md §15.5; Java `FileStoreCommitImpl.overwritePartition`, `PartitionPredicate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Union

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.binary_row import decode
from paimon_py.codec.columns import Mask, binary_array, numpy_values
from paimon_py.errors import UnsupportedError, UsageError
from paimon_py.expr.arrow import prepare
from paimon_py.expr.bind import all_of, bind
from paimon_py.expr.predicate import col
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.schema import TableSchema

Matcher = Callable[[pa.Array], Mask]
"""From serialized partitions to which of them are replaced."""


class StaticOverwrite(msgspec.Struct, frozen=True, tag=True):
    """Replace the partitions with these values; a key that is not named may have any value, None is NULL."""

    partition: Mapping[str, object]


class DynamicOverwrite(msgspec.Struct, frozen=True, tag=True):
    """Replace the partitions that occur in the new files."""


class ExactOverwrite(msgspec.Struct, frozen=True, tag=True):
    """Replace these partitions, given as serialized rows."""

    partitions: tuple[bytes, ...]


Overwrite = Union[StaticOverwrite, DynamicOverwrite, ExactOverwrite, tuple[StaticOverwrite, ...]]


def overwrite_of(
    schema: TableSchema, table: str, overwrite: Mapping[str, object] | str | None
) -> StaticOverwrite | DynamicOverwrite | None:
    """What a caller means by `overwrite={"month": 3}`, `{}` or `"dynamic"`.

    Raises:
        UsageError: something else, or what the table has no partitions for.
        UnsupportedError: some partitions of a table whose keys move between partitions.
    """
    if overwrite is None:
        return None
    if overwrite and bucket_mode(schema) is BucketMode.MOVING:
        raise UnsupportedError(
            "paimon_py cannot overwrite some partitions of a table whose keys move between partitions: new rows may "
            "have keys that lie elsewhere. Use overwrite={} for the whole table, or drop_partitions, then write_arrow",
            feature="overwriting partitions between which keys move",
        )
    if isinstance(overwrite, str):
        if overwrite != "dynamic":
            raise UsageError(f'overwrite takes {{"month": 3}}, {{}} or "dynamic", not {overwrite!r}')
        if not schema.partition_keys:
            raise UsageError('overwrite="dynamic" needs a partitioned table; use overwrite={} for the whole table')
        return DynamicOverwrite()
    if not isinstance(overwrite, Mapping):
        raise UsageError(f'overwrite takes {{"month": 3}}, {{}} or "dynamic", not {overwrite!r}')
    return static_overwrite(schema, table, overwrite)


def static_overwrite(schema: TableSchema, table: str, partition: Mapping[str, object]) -> StaticOverwrite:
    """The partitions with these values.

    Raises:
        UsageError: a name is not a partition key.
    """
    unknown = [name for name in partition if name not in schema.partition_keys]
    if unknown:
        keys = ", ".join(schema.partition_keys) or "none"
        names = ", ".join(map(repr, unknown))
        raise UsageError(f"{names} is not a partition key of {table}; its keys: {keys}")
    return StaticOverwrite(partition=dict(partition))


def matcher(schema: TableSchema, overwrite: Overwrite, new_partitions: Sequence[bytes]) -> Matcher:
    """The partitions that an overwrite replaces.

    Raises:
        UsageError: a name is not a partition key, a value does not fit its column, or a new file lies outside.
    """
    if isinstance(overwrite, (DynamicOverwrite, ExactOverwrite)):
        exact = overwrite.partitions if isinstance(overwrite, ExactOverwrite) else new_partitions
        wanted = binary_array(sorted(set(exact)))
        return lambda partitions: numpy_values(pc.is_in(partitions, value_set=wanted))
    choices = overwrite if isinstance(overwrite, tuple) else (overwrite,)
    matches = [_static(schema, choice.partition) for choice in choices]

    def any_of(partitions: pa.Array) -> Mask:
        mask = np.zeros(len(partitions), np.bool_)
        for match in matches:
            mask |= match(partitions)
        return mask

    outside = ~any_of(binary_array(new_partitions)) if new_partitions else np.zeros(0, np.bool_)
    if bool(outside.any()):
        raise UsageError(
            f"{int(outside.sum())} of the new files lie outside the partition to overwrite"
            f" ({', '.join(str(dict(choice.partition)) for choice in choices)})"
        )
    return any_of


def _static(schema: TableSchema, partition: Mapping[str, object]) -> Matcher:
    fields = schema.partition_fields
    unknown = sorted(set(partition) - set(schema.partition_keys), key=str)
    if unknown:
        keys = f"they are {', '.join(schema.partition_keys)}" if schema.partition_keys else "the table has none"
        raise UsageError(f"{', '.join(map(str, unknown))}: not a partition key; {keys}")
    parts = [col(name).is_null() if value is None else col(name) == value for name, value in partition.items()]
    predicate = prepare(all_of(bind(part, fields) for part in parts)) if parts else None
    types = [field.type for field in fields]

    def match(partitions: pa.Array) -> Mask:
        if predicate is None:
            return np.ones(len(partitions), np.bool_)
        columns = dict(zip(schema.partition_keys, decode(partitions, types), strict=True))
        mask: Mask = numpy_values(predicate(columns))
        return mask

    return match
