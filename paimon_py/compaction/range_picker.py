"""Selects the files of a table with `data-evolution.enabled` to join. Pure.

The files of the same rows become one file, together with those of neighbouring rows while the result is not large.
Row ids stay the same, so that only adjacent ranges are joined.

    rows      0 – 9      10 – 14    20 – 29
    files     f1 c1 c2   f2         f3 c3      c1, c2, c3 contain some columns
    one chain            another one
    joined    f1 c1 c2 f2 → 0 – 14; f3 c3 → 20 – 29, if two files are enough

Source: format.md §24; Java `DataEvolutionCompactCoordinator`.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from paimon_py.compaction.append_picker import AppendSettings, Files
from paimon_py.errors import CorruptionError
from paimon_py.files.physical import DATA_EVOLUTION
from paimon_py.spec.data_file import BLOB_SUFFIX, DataFile


def ranges_of(files: Iterable[DataFile]) -> list[Files]:
    """The files of each row range, oldest first; ranges in the order of row ids."""
    found: dict[tuple[int, int], list[DataFile]] = {}
    for file in sorted(files, key=lambda file: (file.max_sequence, file.name)):
        found.setdefault((first_of(file), file.row_count), []).append(file)
    return [tuple(found[key]) for key in sorted(found)]


def range_bins(files: Sequence[DataFile], settings: AppendSettings, *, full: bool) -> list[Files]:
    """Groups of files, each of which becomes one file, in the order of row ids.

    BLOBs and vectors stay in their files. A group must have at least `compaction.min.file-num` files; a full compaction
    joins any group of more than one file.

    Ranges are joined only if their files with vectors contain the same columns of the same schema: Java 2.0 cannot read
    joined rows if only some have such a file. Ranges that have a vector both in such a file and among the other
    columns stay as they are.

    Raises: CorruptionError for ranges of rows that overlap without being the same.
    """
    plain = [file for file in files if not file.is_apart]
    vectors = sorted((file for file in files if _has_vectors(file)), key=first_of)
    least = 2 if full else max(2, settings.file_count_min)
    found: list[Files] = []
    for shape, ranges in itertools.groupby(_with_shapes(ranges_of(plain), vectors), lambda one: one[0]):
        if shape is not None:
            found += _fill_bins([files for _, files in ranges], settings)
    return [group for group in found if len(group) >= least]


_Shape = frozenset[tuple[int, tuple[str, ...]]]


def _has_vectors(file: DataFile) -> bool:
    return file.is_apart and not file.name.endswith(BLOB_SUFFIX)


def _with_shapes(ranges: Sequence[Files], vectors: Sequence[DataFile]) -> Iterator[tuple[_Shape | None, Files]]:
    """The ranges in order, each with the schemas and columns of its files with vectors; None if another file has these
    columns too.
    """
    starts = [first_of(file) for file in vectors]
    for files in ranges:
        first = first_of(files[0])
        low, high = bisect_left(starts, first), bisect_left(starts, first + files[0].row_count)
        shape = frozenset((file.schema_id, file.write_columns or ()) for file in vectors[low:high])
        names = {name for _, columns in shape for name in columns}
        twice = names and any(file.write_columns is None or names & set(file.write_columns) for file in files)
        yield None if twice else shape, files


def first_of(file: DataFile) -> int:
    """The id of the first row of a file.

    Raises: CorruptionError if the manifest entry of the file has no first row id.
    """
    if file.first_row_id is None:
        raise CorruptionError(f"data file {file.name} of a table with {DATA_EVOLUTION} has no first row id")
    return file.first_row_id


def _fill_bins(ranges: Sequence[Files], settings: AppendSettings) -> Iterator[Files]:
    """Neighbouring ranges that together do not exceed the target."""
    bin_files: list[DataFile] = []
    size, end = 0, -1
    for files in ranges:
        weight = sum(max(file.size_bytes, settings.open_file_bytes) for file in files)
        first = first_of(files[0])
        if bin_files and first < end:
            raise CorruptionError(f"file {files[0].name} contains columns of only some rows of {bin_files[-1].name}")
        if bin_files and (first != end or size + weight > settings.target_bytes):
            yield tuple(bin_files)
            bin_files, size = [], 0
        bin_files += files
        size, end = size + weight, first + files[0].row_count
    if bin_files:
        yield tuple(bin_files)
