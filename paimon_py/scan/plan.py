"""Builds splits from live entries.

Source: format.md §17; Java `MergeTreeSplitGenerator`, `AppendOnlySplitGenerator`, `BinPacking`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Ints, Mask
from paimon_py.codec.manifest.columns import ABSENT, EntryColumns, file_source
from paimon_py.lsm.intervals import runs_of, section_edges
from paimon_py.lsm.order import dense_ranks
from paimon_py.lsm.runs import age_of
from paimon_py.metadata.row_ranges import RowRanges
from paimon_py.scan.split import Section, Split
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.layout import MAIN_BRANCH
from paimon_py.spec.manifest import DeletionPlace
from paimon_py.spec.packing import pack

_BOUNDS_BYTES = 1_024
"""The maximum size of a file's statistics in a split; readers use them to check footers."""

Deletions = Mapping[tuple[bytes, int], Mapping[str, DeletionPlace]]


class Packing(msgspec.Struct, frozen=True, kw_only=True):
    """The packing of splits: their target size, and the minimum size counted per file. Units: bytes."""

    target_bytes: int
    open_file_bytes: int


class PlanOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """The common properties of all splits of a plan. `deletions`: deletion vectors by partition and bucket, then by
    data file.

    `since`: rows are the changes after this snapshot; None for rows of the table. `branch`: the branch of the table.
    """

    snapshot_id: int
    schema_id: int
    deletions: Deletions = {}
    since: int | None = None
    branch: str = MAIN_BRANCH


class Grouped(msgspec.Struct, frozen=True):
    """Files grouped into sections.

    `files[i]` belongs to entry i. `sections`: file numbers per run, oldest run first, per section; sections are ordered
    by partition, bucket and then key (append tables: by time of writing). `groups[i]`: the bucket of section i.
    `keyed`: whether rows have keys, so that a run may contain deletes. `aligned`: the files of a section store columns
    of the same rows.
    """

    files: list[DataFile]
    sections: list[list[list[int]]]
    groups: list[int]
    keyed: bool
    aligned: bool = False


def append_sections(entries: EntryColumns, *, indexed: bool = False) -> Grouped:
    """Sections of an append table: one per file, in the order in which files were written.

    Source: Java `AppendOnlySplitGenerator`: ordered by smallest sequence number.
    """
    group = _groups(entries)
    order = np.lexsort((entries.min_sequence, group))
    files = data_files(entries, indexed=indexed)
    return Grouped(files, [[[file]] for file in order.tolist()], group[order].tolist(), False)


def aligned_sections(entries: EntryColumns, ranges: RowRanges, *, indexed: bool = False) -> Grouped:
    """Sections of a table that may store columns in several files: the files of the same rows."""
    group = _groups(entries)[ranges.first_entries].tolist() if len(ranges) else []
    sections = [[[file] for file in files] for files in ranges.files()]
    return Grouped(data_files(entries, indexed=indexed), sections, group, False, aligned=True)


def settled_files(entries: EntryColumns) -> Mask:
    """A mask of files in buckets with unique keys, for tables in which a newer row of a key marks the older one dead.

    Keys are unique once compaction has processed all files and their deletes: no file is at level 0 or contains
        deletes.

    Source: Java `MergeTreeSplitGenerator`.
    """
    group = _groups(entries)
    is_open = (entries.level == 0) | (entries.delete_row_count > 0)
    found: Mask = ~np.isin(group, group[is_open])
    return found


def settled_sections(entries: EntryColumns, *, indexed: bool = False) -> Grouped:
    """Sections of files with unique keys: one per file."""
    return _alone(entries, True, indexed)


def change_sections(entries: EntryColumns, *, indexed: bool = False) -> Grouped:
    """Sections of files whose rows are changes, which are read as stored: one per file, in the order of entries.

    Source: Java `MergeFileSplitRead.createNoMergeReader`.
    """
    return _alone(entries, False, indexed)


def _alone(entries: EntryColumns, keyed: bool, indexed: bool) -> Grouped:
    group = _groups(entries)
    order = np.argsort(group, kind="stable")
    files = data_files(entries, indexed=indexed)
    return Grouped(files, [[[file]] for file in order.tolist()], group[order].tolist(), keyed)


def keyed_sections(
    entries: EntryColumns,
    min_keys: Sequence[pa.Array],
    max_keys: Sequence[pa.Array],
    alone: Mask | None = None,
    *,
    indexed: bool = False,
) -> Grouped:
    """Sections and runs of a primary-key table.

    Shapes: `min_keys`, `max_keys`: the key columns of the files' key ranges, one slot per entry. `alone`: files that
      form separate sections, whatever their keys.
    Cost: one sort of all keys; a few µs per file.
    """
    files = data_files(entries, indexed=indexed)
    if not files:
        return Grouped([], [], [], True)
    group = _groups(entries)
    ranks = dense_ranks([pa.chunked_array([low, high]) for low, high in zip(min_keys, max_keys, strict=True)])
    apart = group * (int(ranks.max()) + 1)
    lows, highs = ranks[: len(files)] + apart, ranks[len(files) :] + apart
    order, edges = section_edges(lows, np.maximum(lows, highs))
    by_age, is_plain = _ages_in_sections(entries, lows, highs, order, edges)
    ordered, aged, plain = order.tolist(), by_age.tolist(), is_plain.tolist()
    low, high = lows.tolist(), highs.tolist()
    sections: list[list[list[int]]] = []
    groups: list[int] = []
    heads = order[edges[:-1]]
    settled = [False] * len(heads) if alone is None else alone[heads].tolist()
    bounds = zip(itertools.pairwise(edges.tolist()), group[heads].tolist(), settled, plain, strict=True)
    for (start, end), number, is_settled, ages_are_known in bounds:
        if is_settled:
            sections += [[[file]] for file in ordered[start:end]]
            groups += [number] * (end - start)
            continue
        if ages_are_known:
            sections.append([[file] for file in aged[start:end]])
        else:
            sections.append(_by_age(runs_of(ordered[start:end], low, high), files))
        groups.append(number)
    return Grouped(files, sections, groups, True)


def _ages_in_sections(entries: EntryColumns, lows: Ints, highs: Ints, order: Ints, edges: Ints) -> tuple[Ints, Mask]:
    """The files of each section, oldest first, and the sections for which these are its runs, by age.

    Those are the sections whose files all overlap each other, so that each is a run, and differ in age.

    Shapes: `order`, `edges`: of `section_edges` → as many files, and a slot per section.
    """
    first, number = edges[:-1], np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    age = (-entries.level[order], entries.min_sequence[order], entries.max_sequence[order], number)
    places = np.lexsort(age)
    same = np.logical_and.reduce([column[places][1:] == column[places][:-1] for column in age])
    plain: Mask = np.minimum.reduceat(highs[order], first) >= np.maximum.reduceat(lows[order], first)
    plain[number[1:][same]] = False
    return order[places], plain


def _by_age(runs: list[list[int]], files: list[DataFile]) -> list[list[int]]:
    return sorted(runs, key=lambda run: age_of([files[file] for file in run])) if len(runs) > 1 else runs


def splits_of(
    entries: EntryColumns, grouped: Grouped, wanted: Sequence[bool] | None, place: PlanOrigin, packing: Packing
) -> list[Split]:
    """Pack the requested sections of every bucket into splits, in order; sections are never divided.

    Source: Java `BinPacking.packForOrdered`.
    """
    partitions = entries.distinct("partition")
    values = partitions[1].to_pylist()
    codes, buckets, counts = partitions[0].tolist(), entries.bucket.tolist(), entries.total_buckets.tolist()
    splits: list[Split] = []
    for members in _by_group(grouped, wanted):
        sections = [_section(grouped, number) for number in members]
        first = grouped.sections[members[0]][0][0]
        partition, bucket = values[codes[first]], buckets[first]
        deletions = place.deletions.get((partition, bucket), {}) if place.deletions else {}
        for packed in _pack(sections, packing) if len(sections) > 1 else (sections,):
            names = [file.name for section in packed for file in section.files] if deletions else ()
            splits.append(
                Split(
                    snapshot_id=place.snapshot_id,
                    schema_id=place.schema_id,
                    partition=partition,
                    bucket=bucket,
                    total_buckets=counts[first],
                    sections=tuple(packed),
                    deletions={name: deletions[name] for name in names if name in deletions},
                    since=place.since,
                    branch=place.branch,
                )
            )
    return splits


def with_bounds(grouped: Grouped, entries: EntryColumns, wanted: Sequence[bool] | None) -> Grouped:
    """The same sections, with column statistics in the requested files, unless they are large.

    Shapes: `entries[i]` belongs to `grouped.files[i]`.
    """
    keeps = itertools.repeat(True) if wanted is None else wanted
    sections = [section for section, keep in zip(grouped.sections, keeps, strict=False) if keep]
    chosen = [number for section in sections for run in section for number in run]
    files = list(grouped.files)
    for number, (stats, names) in zip(chosen, entries.take(np.array(chosen, np.int64)).value_stats(), strict=True):
        if len(stats.min_values) + len(stats.max_values) <= _BOUNDS_BYTES:
            files[number] = msgspec.structs.replace(files[number], value_stats=stats, value_stats_columns=names)
    return msgspec.structs.replace(grouped, files=files)


def data_files(entries: EntryColumns, *, indexed: bool = False) -> list[DataFile]:
    """The files of entries, without keys and statistics; `indexed`: with references to their file indexes.

    Cost: 3 µs per file.
    """
    rows = zip(
        entries.names().to_pylist(),
        entries.size_bytes.tolist(),
        entries.row_count.tolist(),
        entries.min_sequence.tolist(),
        entries.max_sequence.tolist(),
        entries.schema_id.tolist(),
        entries.level.tolist(),
        [None if count == ABSENT else count for count in entries.delete_row_count.tolist()],
        map(file_source, entries.source.tolist()),
        strict=True,
    )
    files = [
        DataFile(
            name=name,
            size_bytes=size,
            row_count=count,
            min_sequence=low,
            max_sequence=high,
            schema_id=schema_id,
            level=level,
            delete_row_count=deleted,
            source=source,
        )
        for name, size, count, low, high, schema_id, level, deleted, source in rows
    ]
    if entries.knows("external_path"):
        codes, paths = entries.distinct("external_path")
        external = paths.cast(pa.string()).to_pylist()
        files = [
            msgspec.structs.replace(file, external_path=external[code])
            for file, code in zip(files, codes.tolist(), strict=True)
        ]
    if indexed:
        files = [
            msgspec.structs.replace(file, extra_files=names, embedded_index=index)
            if names or index is not None
            else file
            for file, names, index in zip(files, *_indexes(entries), strict=True)
        ]
    return _with_row_ids(files, entries) if _tracks_rows(entries) else files


def _tracks_rows(entries: EntryColumns) -> bool:
    """Whether any entry records the row ids or the columns of its file."""
    return bool((entries.first_row_id != ABSENT).any() or entries.knows("write_columns"))


def _with_row_ids(files: list[DataFile], entries: EntryColumns) -> list[DataFile]:
    codes, lists = entries.lists("write_columns")
    firsts = (None if first == ABSENT else first for first in entries.first_row_id.tolist())
    return [
        msgspec.structs.replace(file, first_row_id=first, write_columns=lists[code])
        for file, first, code in zip(files, firsts, codes.tolist(), strict=True)
    ]


def _indexes(entries: EntryColumns) -> tuple[Iterable[tuple[str, ...]], Iterable[bytes | None]]:
    """The extra files of entries, and their embedded indexes."""
    codes, lists = entries.lists("extra_files")
    places, values = entries.distinct("embedded_index")
    indexes = values.to_pylist()
    return [lists[code] or () for code in codes.tolist()], [indexes[place] for place in places.tolist()]


def _groups(entries: EntryColumns) -> Ints:
    """A number per (partition, bucket), ordered by first appearance of the partition, then by bucket."""
    codes, _ = entries.distinct("partition")
    buckets = entries.bucket
    width = int(buckets.max()) + 1 if len(buckets) else 1
    return codes * width + buckets


def parts_by_bucket(entries: EntryColumns) -> Iterator[EntryColumns]:
    """The entries, those of a bucket together, in the order of splits: one bucket, then more and more buckets together.

    Sections are the same, and in the same order, as those of all entries together.
    """
    group = _groups(entries)
    order = np.argsort(group, kind="stable")
    edges = np.append(np.flatnonzero(np.diff(group[order], prepend=-1)), len(order)).tolist()
    start, step = 0, 1
    while start < len(edges) - 1:
        end = min(start + step, len(edges) - 1)
        yield entries.take(order[edges[start] : edges[end]])
        start, step = end, 4 * step


def _by_group(grouped: Grouped, wanted: Sequence[bool] | None) -> Iterator[list[int]]:
    members: list[int] = []
    for number, group in enumerate(grouped.groups):
        if wanted is not None and not wanted[number]:
            continue
        if members and grouped.groups[members[-1]] != group:
            yield members
            members = []
        members.append(number)
    if members:
        yield members


def _section(grouped: Grouped, number: int) -> Section:
    files = grouped.files
    numbers = grouped.sections[number]
    runs = tuple([(files[run[0]],) if len(run) == 1 else tuple([files[file] for file in run]) for run in numbers])
    raw = not grouped.keyed or (len(runs) == 1 and all(file.delete_row_count == 0 for file in runs[0]))
    return Section(runs=runs, raw=raw, aligned=grouped.aligned)


def _pack(sections: Iterable[Section], packing: Packing) -> Iterator[list[Section]]:
    def weight(section: Section) -> int:
        return max(sum([file.size_bytes for run in section.runs for file in run]), packing.open_file_bytes)

    return pack(sections, weight, packing.target_bytes)
