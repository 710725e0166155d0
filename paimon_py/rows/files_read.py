"""The files that an operation has read, each with its dead rows, and the differences to a later state."""

from __future__ import annotations

from collections.abc import Iterable

from paimon_py.commit.changes import Bucket
from paimon_py.scan.split import Split
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.manifest import DeletionPlace

File = tuple[bytes, int, int, str, DeletionPlace | None]
"""Partition, bucket, level and name of a file, and the location of its deletion vector."""
Files = frozenset[File]


def files_of(splits: Iterable[Split]) -> Files:
    """The files of splits."""
    return frozenset(_file(split, file) for split in splits for file in split.files)


def with_new_files(splits: Iterable[Split], known: Files) -> list[Split]:
    """The sections of splits with files that are not in `known`."""
    found = (
        split.only([part for part in split.sections if any(_file(split, file) not in known for file in part.files)])
        for split in splits
    )
    return [split for split in found if split.sections]


def changed_buckets(splits: Iterable[Split], known: Files) -> set[Bucket]:
    """The buckets whose files differ from `known`."""
    return {(file[0], file[1]) for file in files_of(splits) ^ known}


def _file(split: Split, file: DataFile) -> File:
    return split.partition, split.bucket, file.level, file.name, split.deletions.get(file.name)
