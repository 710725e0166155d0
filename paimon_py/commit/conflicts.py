"""Decides whether changes still fit a table that others have changed. Pure: returns a conflict or None.

Source: format.md §15.4; Java `ConflictDetection`, `PrimaryKeyConflictDetection`; reliability.md §3 (c), (j).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from paimon_py.commit.entry_lists import bucket_counts
from paimon_py.spec.data_file import EntryIdentifier, FileKind, ManifestEntry, identifier
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import ArrayType, DataType, Field, MapType, MultisetType, RowType, VectorType


class Conflict(msgspec.Struct, frozen=True):
    """The reason why changes cannot be committed; the message is shown to the caller."""

    reason: str


class LevelFile(msgspec.Struct, frozen=True):
    """A file of a merge tree with the ranks of its smallest and largest key among all compared files."""

    partition: bytes
    bucket: int
    level: int
    name: str
    min_rank: int
    max_rank: int


def apply(
    alive: Iterable[ManifestEntry], delta: Iterable[ManifestEntry]
) -> dict[EntryIdentifier, ManifestEntry] | Conflict:
    """The files after an edit, by identifier.

    Returns: a conflict if a file to delete is not alive or differs from the edit, or a file is added twice.
    """
    after = {identifier(entry): entry for entry in alive}
    for entry in delta:
        key = identifier(entry)
        if entry.kind is FileKind.ADD:
            if key in after:
                return Conflict(f"file {entry.file.name} is in the table already")
            after[key] = entry
            continue
        before = after.pop(key, None)
        if before is None:
            return Conflict(
                f"file {entry.file.name} (level {entry.file.level}, bucket {entry.bucket}) was deleted or moved by"
                " another commit"
            )
        if before.file != entry.file:
            return Conflict(f"file {entry.file.name} differs from the changes: the table describes it differently")
    return after


def bucket_count_conflict(adds: Sequence[ManifestEntry], known: Mapping[bytes, int]) -> Conflict | None:
    """A conflict if files of a partition disagree on its number of buckets.

    `known`: the number of buckets of partitions that have files, if it is fixed.
    """
    counts = dict(known)
    for (partition, _), totals in bucket_counts(adds).items():
        for total in totals:
            if total > 0 and counts.setdefault(partition, total) != total:
                return Conflict(
                    f"the changes were written for {total} buckets, but the partition has {counts[partition]};"
                    " overwrite the partition to change its number of buckets"
                )
    return None


def level_conflict(files: Iterable[LevelFile]) -> Conflict | None:
    """A conflict if the key ranges of the files of a level from 1 up overlap."""
    runs: dict[tuple[bytes, int, int], list[LevelFile]] = {}
    for file in files:
        if file.level >= 1:
            runs.setdefault((file.partition, file.bucket, file.level), []).append(file)
    for (_, bucket, level), run in runs.items():
        run.sort(key=lambda file: file.min_rank)
        for before, after in itertools.pairwise(run):
            if before.max_rank >= after.min_rank:
                return Conflict(
                    f"files {before.name} and {after.name} of level {level}, bucket {bucket} would overlap: another"
                    " commit compacted the same bucket"
                )
    return None


def schema_conflict(written: TableSchema, latest: TableSchema) -> Conflict | None:
    """A conflict if rows written under one schema cannot be committed under a later one.

    Added, renamed, moved and commented columns are fine: files are read by field id. A dropped column or another type
    would change the meaning of the written rows.
    """
    if written.id == latest.id:
        return None
    problem = _fields_problem(written.fields, latest.fields, "")
    if problem is None and _ids(written, written.primary_keys) != _ids(latest, latest.primary_keys):
        problem = "the primary key changed"
    if problem is None:
        return None
    return Conflict(
        f"schema {written.id}, under which the rows were written, became schema {latest.id}: {problem}; call"
        " table.refresh() and write the rows again"
    )


def narrower(written: TableSchema, known: TableSchema) -> str | None:
    """The reason why rows of a schema would lose values if rewritten under an earlier one; None if they would not."""
    problem = _fields_problem(written.fields, known.fields, "")
    if problem is None:
        return None
    there = {field.id for field in known.fields}
    missing = [field.name for field in written.fields if field.id not in there]
    what = f"column {missing[0]} is missing there" if missing else problem
    return f"others wrote files under schema {written.id}, but only schema {known.id} is known here: {what}"


def _ids(schema: TableSchema, names: Sequence[str]) -> list[int]:
    return [schema.field(name).id for name in names]


def _fields_problem(written: Sequence[Field], latest: Sequence[Field], where: str) -> str | None:
    by_id = {field.id: field for field in latest}
    for field in written:
        now = by_id.get(field.id)
        if now is None:
            return f"column {where}{field.name} was dropped"
        problem = _type_problem(field.type, now.type, f"{where}{field.name}")
        if problem is not None:
            return problem
    return None


def _type_problem(written: DataType, latest: DataType, where: str) -> str | None:
    if written == latest:
        return None
    if written.nullable and not latest.nullable:
        return f"column {where} became NOT NULL"
    if isinstance(written, RowType) and isinstance(latest, RowType):
        return _fields_problem(written.fields, latest.fields, f"{where}.")
    for one, other in _parts(written, latest):
        problem = _type_problem(one, other, where)
        if problem is not None:
            return problem
    if _hollow(written) != _hollow(latest):
        return f"the type of column {where} changed"
    return None


def _parts(written: DataType, latest: DataType) -> list[tuple[DataType, DataType]]:
    """The inner types of two collections of the same kind, paired."""
    if isinstance(written, MapType) and isinstance(latest, MapType):
        return [(written.key, latest.key), (written.value, latest.value)]
    for kind in (ArrayType, MultisetType, VectorType):
        if isinstance(written, kind) and isinstance(latest, kind):
            return [(written.element, latest.element)]
    return []


def _hollow(data_type: DataType) -> object:
    """A type without its nullability and inner types, which are compared elsewhere."""
    if isinstance(data_type, VectorType):
        return VectorType, data_type.length
    if isinstance(data_type, (ArrayType, MultisetType, MapType, RowType)):
        return type(data_type)
    return msgspec.structs.replace(data_type, nullable=True)
