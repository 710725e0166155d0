"""Warnings about unsupported behaviour of a table: idle options, keys that are not unique."""

from __future__ import annotations

from collections.abc import Mapping

from paimon_py.logs import warn
from paimon_py.metadata.catalog_entry import SupportsPartitionCounts, SupportsPartitions
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode, is_cross_partition
from paimon_py.spec.iceberg import decimal_partitions, hidden_vectors
from paimon_py.spec.idle_options import OF_METASTORES, PARTITIONED, idle_options
from paimon_py.spec.schema import TableSchema


def warn_of_idle_options(root: TableRoot, options: Mapping[str, str]) -> None:
    """Log and warn, at the line of the caller outside the package, of idle options not yet warned of for this root.

    Raises: PaimonWarning where warnings are errors.
    """
    entry = root.registration
    kept = OF_METASTORES if isinstance(entry, SupportsPartitions) else ()
    if isinstance(entry, SupportsPartitionCounts) and entry.counts_partitions:
        kept = (PARTITIONED,)
    found = {
        name: why
        for name, why in idle_options(options).items()
        if (name, options[name]) not in root.warned_of and name not in kept
    }
    if not found:
        return
    root.warned_of.update((name, options[name]) for name in found)
    shown = "; ".join(f"{name} = {options[name]!r}: {why}" for name, why in found.items())
    warn(f"{root.path}: these options have no effect in paimon_py yet: {shown}")


def warn_of_iceberg(table: OpenTable, before: TableSchema | None = None) -> None:
    """Log and warn of data that readers of the Iceberg metadata see wrongly or not at all, unless it was so before.

    Raises: PaimonWarning where warnings are errors.
    """
    vectors, decimals = hidden_vectors(table.schema), decimal_partitions(table.schema)
    if vectors is not None and (before is None or hidden_vectors(before) != vectors):
        warn(f"{table.root.path}: Iceberg readers will see rows that were deleted: {vectors}")
    if decimals and (before is None or not decimal_partitions(before)):
        shown = ", ".join(decimals)
        warn(f"{table.root.path}: most Iceberg readers cannot read a table that is partitioned by a DECIMAL ({shown})")


def warn_of_keys_of_partitions(table: OpenTable) -> None:
    """Log and warn of a primary key that may occur in several partitions: keys are not looked up in other partitions.

    Raises: PaimonWarning where warnings are errors.
    Source: Java `TableSchema.crossPartitionUpdate`, which accepts such tables silently.
    """
    if not is_cross_partition(table.schema) or bucket_mode(table.schema) is BucketMode.CROSS_PARTITION:
        return
    lacks = ", ".join(repr(name) for name in table.schema.partition_keys if name not in table.schema.primary_keys)
    warn(
        f"{table.root.path}: the primary key ({', '.join(table.schema.primary_keys)}) lacks the partition key {lacks},"
        " and "
        f"'bucket' is {table.schema.options['bucket']!r}: each partition may hold a row of the same key. Set"
        " 'bucket' to "
        f"'-1', and keys are unique in the whole table; or add {lacks} to the primary key"
    )
