"""Marking partitions as done: a `_SUCCESS` file next to the buckets shows that a partition is complete.

Source: Java `PartitionMarkDoneAction`, `SuccessFileMarkDoneAction`, `SuccessFile`, `PartitionPathUtils`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.partition_choice import choice_of
from paimon_py.codec.partition_text import partition_texts
from paimon_py.codec.python_values import python_array
from paimon_py.errors import OptionError, UnsupportedError, UsageError
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.success_file import mark_success
from paimon_py.spec.layout import join, partition_path
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import CommitKind
from paimon_py.spec.types import Field

_ACTION = "partition.mark-done-action"
_FILE = "success-file"
_SUCCESS = "_SUCCESS"
_ELSEWHERE = {
    "done-partition": "adds a partition to a metastore, and paimon_py works without one",
    "mark-event": "notifies a metastore, and paimon_py works without one",
    "http-report": "calls a web server; call yours when mark_partitions_done returns",
    "custom": "runs a Java class; run your own code when mark_partitions_done returns",
}


def check_actions(options: Mapping[str, str]) -> None:
    """Check that marking partitions as done only writes a file.

    Raises:
        UnsupportedError: the option `partition.mark-done-action` requires more.
        OptionError: it has an invalid value.
    """
    text = Options(options).get_str(_ACTION)
    for action in text.split(","):
        name = action.strip().lower()
        if name in _ELSEWHERE:
            raise UnsupportedError(
                f"{_ACTION} = {text!r}: {name} {_ELSEWHERE[name]}. Set the option to {_FILE}",
                feature=f"{_ACTION} = {name}",
            )
        if name != _FILE:
            known = ", ".join((_FILE, *_ELSEWHERE))
            raise OptionError(f"{_ACTION} lists some of {known}, not {name!r}", option=_ACTION, value=text)


def mark_done(table: OpenTable, partitions: Sequence[Mapping[str, object]]) -> list[str]:
    """Write the success file of each partition; an existing one gets a new time.

    Returns: the paths of the files. Cost: a get and a put per file.
    Raises:
        UsageError: names that are not partition keys, values that do not fit, or a missing key before a given one.
        CorruptionError: an existing file of that name has other content.
        StorageError: earlier files are written; the call may be repeated.
    """
    choice_of(table.schema, "mark_partitions_done", () if partitions is None else partitions)
    paths = [join(table.root.path, _directory(table.schema, partition), _SUCCESS) for partition in partitions]
    for path in paths:
        mark_success(table.root, path)
    return paths


def mark_written(table: OpenTable, snapshot_ids: Sequence[int]) -> None:
    """Mark the partitions that received written files as done, if the table is partitioned; compactions do not count.

    Cost: as `mark_done`, and the delta of each snapshot.
    Raises: UnsupportedError, OptionError as `check_actions`, and CorruptionError, StorageError as `mark_done`.
    """
    if not table.schema.partition_keys:
        return
    check_actions(table.schema.options)
    written: set[bytes] = set()
    for snapshot in map(table.root.snapshots.get, snapshot_ids):
        if snapshot.commit_kind is not CommitKind.COMPACT:
            entries = table.root.manifests.read_entries(table.root.manifests.delta(snapshot))
            written.update(entries.additions().distinct("partition").values.to_pylist())
    for partition in sorted(written):
        mark_success(table.root, join(table.root.path, table.partition_directory(partition), _SUCCESS))


def _directory(schema: TableSchema, partition: Mapping[str, object]) -> str:
    """The directory of a partition, or of a prefix of partition values."""
    fields = [field for field in schema.partition_fields if field.name in partition]
    if fields != list(schema.partition_fields[: len(fields)]):
        raise UsageError(
            f"mark_partitions_done takes values of the first partition keys ({', '.join(schema.partition_keys)}), "
            f"not {dict(partition)}"
        )
    options = Options(schema.options)
    legacy = options.get_bool("partition.legacy-name")
    texts = [_text(field, partition[field.name], legacy=legacy) for field in fields]
    return partition_path([field.name for field in fields], texts, options.get_str("partition.default-name"))


def _text(field: Field, value: object, *, legacy: bool) -> str | None:
    try:
        array = python_array([value], to_arrow_type(field.type))
    except (OverflowError, ValueError, TypeError, pa.ArrowException) as error:
        raise UsageError(f"partition value {field.name}={value!r} does not fit: {error}") from error
    text: str | None = partition_texts(array, field.type, legacy=legacy)[0].as_py()
    return text
