"""Checks that the files of a snapshot exist and are undamaged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from paimon_py.codec.manifest.columns import EntryColumns
from paimon_py.doctor.facts import Broken
from paimon_py.errors import CorruptionError
from paimon_py.lsm.search import repeats_rows
from paimon_py.metadata.open_table import BucketFiles, OpenTable
from paimon_py.progress import Progress, ProgressCounter
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.manifest import IndexEntry
from paimon_py.spec.types import Field
from paimon_py.storage.store import FileMissingError

Expected = tuple[str, int | None]
"""The path of a file and its expected size; None: any size."""


def broken_files(
    files: OpenTable,
    entries: EntryColumns,
    index: list[IndexEntry],
    repeated: list[str],
    progress: Progress | None = None,
    *,
    deep: bool,
) -> Iterator[Broken]:
    """The files of a snapshot that are missing, differ in size from the metadata, or (`deep`) cannot be read.

    Args:
        repeated: receives the paths of files that contain a key twice, if `deep`.
        progress: called for data files.

    Cost: one list per directory; `deep` also reads the key, or the first column of the table, of all files.
    """
    tally = ProgressCounter(progress, len(entries), "files", steps=2 if deep else 1)
    yield from _missing(files, [(files.index_path(entry), entry.size_bytes) for entry in index])
    for (partition, number), places in entries.by_bucket().items():
        bucket = files.bucket(partition, number)
        found = [entry.file for entry in entries.take(places).entries()]
        broken = list(_missing(files, _expected_files(bucket, found)))
        yield from broken
        tally.add(len(found))
        if deep:
            known = {one.path for one in broken}
            yield from _unreadable(bucket, [file for file in found if bucket.path(file) not in known], repeated, tally)
    tally.end()


def _expected_files(bucket: BucketFiles, found: Iterable[DataFile]) -> Iterator[Expected]:
    for file in found:
        path, *beside = bucket.paths(file)
        yield path, file.size_bytes
        yield from ((other, None) for other in beside)


def _missing(files: OpenTable, expected: Iterable[Expected]) -> Iterator[Broken]:
    by_directory: dict[str, list[Expected]] = {}
    for path, size in expected:
        by_directory.setdefault(path.rpartition("/")[0], []).append((path, size))
    for wanted in by_directory.values():
        store, place = files.root.files.resolve(wanted[0][0])
        there = {status.name: status.size_bytes for status in store.list(place.rpartition("/")[0])}
        for path, size in wanted:
            found = there.get(path.rpartition("/")[2])
            if found is None:
                yield Broken(path)
            elif size is not None and found != size:
                yield Broken(path, f"it has {found:,} bytes, but {size:,} in the metadata")


def _unreadable(
    bucket: BucketFiles, found: Iterable[DataFile], repeated: list[str], tally: ProgressCounter
) -> Iterator[Broken]:
    schema = bucket.table.schema
    fields = schema.key_fields or [field for field in schema.fields if field.name not in schema.partition_keys][:1]
    for file in found:
        try:
            if _repeats_key(bucket, file, fields):
                repeated.append(bucket.path(file))
        except CorruptionError as error:
            yield Broken(bucket.path(file), str(error))
        except FileMissingError:
            yield Broken(bucket.path(file))
        tally.add(1)


def _repeats_key(bucket: BucketFiles, file: DataFile, fields: Sequence[Field]) -> bool:
    """Whether a row of a file has the key of the row before it; reads the whole file."""
    repeats, last = False, None
    for _, batch in bucket.reader(file, fields).positions():
        columns = batch.columns
        if batch.num_rows and bucket.table.schema.primary_keys:
            if last is not None:
                firsts = [column[:1] for column in columns]
                repeats = repeats or repeats_rows([pa.concat_arrays(ends) for ends in zip(last, firsts, strict=True)])
            repeats = repeats or repeats_rows(columns)
            last = [column[-1:] for column in columns]
    return repeats
