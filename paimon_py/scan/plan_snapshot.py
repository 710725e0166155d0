"""Plans the splits of a snapshot: manifests → live entries → pruned entries → sections → splits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import Mask, from_numpy, numpy_values
from paimon_py.codec.manifest.columns import EntryColumns, compact, concat
from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.expr.predicate import Predicate
from paimon_py.expr.prune import Bounds
from paimon_py.expr.split import split_conjuncts
from paimon_py.files.physical import evolves_columns
from paimon_py.lsm.engines import combines_rows
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.manifests import fits_in_memory, live_parts
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.row_ranges import row_ranges
from paimon_py.scan import prune_entries as prune
from paimon_py.scan.explain import Pushed, Skipped
from paimon_py.scan.plan import (
    Deletions,
    Grouped,
    Packing,
    PlanOrigin,
    aligned_sections,
    append_sections,
    keyed_sections,
    parts_by_bucket,
    settled_files,
    settled_sections,
    splits_of,
    with_bounds,
)
from paimon_py.scan.prune_ranges import RangePruner
from paimon_py.scan.read import exact_rows
from paimon_py.scan.request import Request
from paimon_py.scan.split import Section, Split
from paimon_py.spec.layout import POSTPONE_BUCKET
from paimon_py.spec.manifest import ManifestFile
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.spec.types import Field
from paimon_py.spec.visibility import clusters_keys, kills_older_rows, skips_level_zero
from paimon_py.storage.store import FileMissingError

_FEW = 0.25
"""Selections of less than this share of the entries are copied, so that the others can be released."""


class Planned(msgspec.Struct, frozen=True):
    """The splits of a scan, and the counts of everything that was skipped."""

    splits: tuple[Split, ...]
    pushed: Pushed
    skipped: Skipped

    @classmethod
    def nothing(cls) -> Planned:
        """The plan of an empty table."""
        return cls((), Pushed(), Skipped())

    def up_to(self, limit: int | None) -> Planned:
        """The plan reduced to the first sections that are certain to contain `limit` rows, if all rows match."""
        if limit is None:
            return self
        kept = tuple(first_splits(self.splits, limit))
        later = _file_count(self.splits) - _file_count(kept)
        skipped = msgspec.structs.replace(self.skipped, limit=self.skipped.limit + later)
        return msgspec.structs.replace(self, splits=kept, skipped=skipped)


def first_splits(splits: Iterable[Split], limit: int | None) -> Iterator[Split]:
    """The splits, no further than the first sections that are certain to contain `limit` rows, if all rows match."""
    rest = iter(splits)
    if limit is None:
        yield from rest
        return
    while limit > 0 and (split := next(rest, None)) is not None:
        sections: list[Section] = []
        for section in split.sections:
            if limit <= 0:
                break
            sections.append(section)
            limit -= exact_rows(split, section) or 0
        yield split.only(sections)


def _file_count(splits: Iterable[Split]) -> int:
    return sum(len(split.files) for split in splits)


def plan_snapshot(root: TableRoot, request: Request, snapshot: Snapshot) -> Planned:
    """Plan what to read from a snapshot.

    Cost: reads the manifests that are not cached; about 5 µs per live file.
    Raises: UnsupportedError for files that need an unsupported feature, before any data file is read.
    """
    return SnapshotPlanner(root, request, snapshot).plan()


class Ordered(msgspec.Struct, frozen=True):
    """A plan for the first rows in the order of a column: small splits, and the statistics of their files.

    `bounds`, `rows`: one slot per file. `files[i]`: the slots of split i; empty if statistics do not bound its rows.
    """

    planned: Planned
    bounds: Bounds
    rows: pa.Array
    files: tuple[tuple[int, ...], ...]


def deletions_of(table: OpenTable, snapshot: Snapshot) -> Deletions:
    """The deletion vectors of a snapshot, by partition and bucket, then by data file.

    Raises: SnapshotExpiredError if the snapshot has expired in the meantime.
    """
    if snapshot.index_manifest is None:
        return {}
    try:
        return table.deletion_places(table.root.manifests.read_index(snapshot.index_manifest))
    except FileMissingError as error:
        raise table.root.missing(Base.of(snapshot), error) from error


def packing_of(schema: TableSchema) -> Packing:
    """The packing of the splits of a table."""
    options = Options(schema.options)
    return Packing(
        target_bytes=options.get_memory("source.split.target-size"),
        open_file_bytes=options.get_memory("source.split.open-file-cost"),
    )


class SnapshotPlanner:
    """Decides for one snapshot.

    The steps of `plan` are `candidates` (which calls `sift`), `sections`, `pack` and `count_skipped`, in this order.

    Attributes:
        root: the table.
        schema: the schema of the rows.
        snapshot: the snapshot to read.
        predicate: the wanted rows, None for all.
    """

    def __init__(self, root: TableRoot, request: Request, snapshot: Snapshot, without: pa.Array | None = None) -> None:
        """`without`: serialized partitions that another branch gives."""
        self.root = root
        self.schema = request.schema
        self.snapshot = snapshot
        self.predicate = request.predicate
        self._every_level = request.every_level
        self._files = request.files
        self._bucket = request.bucket
        self._counts: dict[str, int] = {}
        self._total = 0
        self._without = without
        self._visible: list[pa.Array] = []
        self._pinned = self._is_sifted = False
        self._deletions: Deletions | None = None
        enabled = Options(request.schema.options).get_bool("file-index.read.enabled")
        self._asks_indexes = request.predicate is not None and enabled

    def plan(self) -> Planned:
        return self.pack(*self._choose(), packing_of(self.schema))

    def iter_first(self, limit: int | None) -> Iterator[Split]:
        """The splits of `self.plan().up_to(limit)`, in its order, made while they are taken, some buckets at a time."""
        entries, packing = self.candidates(sifts=files_stand_alone(self.schema)), packing_of(self.schema)
        depends = evolves_columns(self.schema) or (kills_older_rows(self.schema) and not settled_files(entries).all())
        parts = (entries,) if depends else parts_by_bucket(entries)
        splits = (split for part in parts for split in self.pack(*self.sections(part), packing).splits)
        return first_splits(splits, limit)

    def plan_ordered(self, field: Field) -> Ordered:
        """A split per section. Engines that combine rows produce values outside the statistics of any file."""
        entries, grouped, wanted = self._choose()
        planned = self.pack(entries, grouped, wanted, Packing(target_bytes=0, open_file_bytes=1))
        combines = self.schema.primary_keys and combines_rows(self.schema)
        most = 1 if combines or grouped.aligned else len(entries)
        sections = [runs for number, runs in enumerate(grouped.sections) if wanted is None or wanted[number]]
        files = tuple(tuple(file for run in runs for file in run) if len(runs) <= most else () for runs in sections)
        bounds = prune.bounds_of(entries, field, self.root.schemas.get)
        return Ordered(planned, bounds, from_numpy(entries.row_count, pa.int64()), files)

    @property
    def pushed_down(self) -> Pushed:
        """The parts of the predicate that apply before rows are merged."""
        by_partition = _only(self.predicate, self.schema.partition_keys)
        by_key = _only(self.predicate, _key_columns(self.schema))
        return Pushed(
            partition=None if by_partition is None else repr(by_partition),
            bucket=self._pinned,
            key=None if by_key is None else repr(by_key),
            stats=None if self.predicate is None else repr(self.predicate),
        )

    def partitions(self) -> pa.Array:
        """The serialized partitions with visible files, after planning, restricted by the predicate."""
        return pa.concat_arrays(self._visible).unique()

    def count_skipped(self) -> Skipped:
        """The counts of everything skipped so far."""
        return Skipped(all_files=self._total, **self._counts)

    def pack(self, entries: EntryColumns, grouped: Grouped, wanted: list[bool] | None, packing: Packing) -> Planned:
        """The splits of the wanted sections."""
        if self._deletions is None:
            self._deletions = deletions_of(OpenTable(self.root, self.schema), self.snapshot)
        deletions = self._deletions
        place = PlanOrigin(
            snapshot_id=self.snapshot.id, schema_id=self.schema.id, deletions=deletions, branch=self.root.branch
        )
        if self.predicate is not None:
            grouped = with_bounds(grouped, entries, wanted)
        splits = splits_of(entries, grouped, wanted, place, packing)
        return Planned(tuple(splits), self.pushed_down, self.count_skipped())

    def _choose(self) -> tuple[EntryColumns, Grouped, list[bool] | None]:
        return self.sections(self.candidates(sifts=files_stand_alone(self.schema)))

    def candidates(self, *, sifts: bool = False) -> EntryColumns:
        """The files that may contain requested keys; with a selective condition, only part of the entries is in memory.

        Args:
            sifts: also skip files that cannot match by their own statistics.
        """
        self._is_sifted = sifts
        manifests, wanted = self.root.manifests, EntryFilter(manifests=self.wanted_manifests)
        if not prunes_files(self.predicate, self.schema, sifts=sifts):
            return self.sift(manifests.live_entries(self.snapshot, wanted))
        found = []
        for part in live_parts(manifests, self.snapshot, wanted):
            chosen = self.by_stats(self.sift(part)) if sifts else self.sift(part)
            found.append(compact(chosen) if len(chosen) < _FEW * len(part) else chosen)
        return concat(found)

    def by_stats(self, entries: EntryColumns) -> EntryColumns:
        """The entries without those that cannot match by their own statistics, if no other file changes their rows."""
        may = self._stats_mask(entries)
        return entries if may is None else self._drop(entries, may, "stats")

    def sift(self, entries: EntryColumns) -> EntryColumns:
        """The entries without those that cannot have wanted keys, by partition, bucket, key range and level."""
        schema = self.schema
        self._total += len(entries)
        entries = self._drop(entries, entries.bucket != POSTPONE_BUCKET, "uncompacted")
        prune.check_entries(entries, schema, self.root.schemas.get)
        if skips_level_zero(schema, every_level=self._every_level):
            entries = self._drop(entries, entries.level > 0, "uncompacted")
        if self._files is not None:
            entries = self._drop(entries, prune.choice_mask(entries, self._files), "choice")
        self._visible.append(entries.distinct("partition").values)
        if self._bucket is not None:
            entries = self._drop(entries, entries.bucket == self._bucket, "choice")
        if self._without is not None and len(entries):
            codes, values = entries.distinct("partition")
            given = numpy_values(pc.is_in(values, value_set=self._without))
            entries = self._drop(entries, ~given[codes], "choice")
        chosen = partition_choice(schema, self.predicate)
        by_key = _only(self.predicate, _key_columns(self.schema))
        if chosen is not None:
            entries = self._drop(entries, entries.in_partitions(chosen), "partition")
        pinned = None
        if self.predicate is not None:
            pinned = prune.bucket_mask(entries, self.predicate, schema, self.root.schemas.get)
        if pinned is not None:
            entries = self._drop(entries, pinned, "bucket")
        if by_key is not None:
            entries = self._drop(entries, prune.key_mask(entries, by_key, schema, self.root.schemas.get), "key")
        self._pinned = self._pinned or pinned is not None
        return entries

    def wanted_manifests(self, files: Sequence[ManifestFile]) -> Mask:
        """The manifests to read."""
        chosen = partition_choice(self.schema, self.predicate)
        keep: Mask = np.ones(len(files), np.bool_) if chosen is None else chosen.of_manifests(files)
        self._counts["all_manifests"] = len(files)
        self._counts["manifests"] = len(files) - int(np.count_nonzero(keep))
        return keep

    def sections(self, entries: EntryColumns) -> tuple[EntryColumns, Grouped, list[bool] | None]:
        """The files, their sections, and which of these are requested (None: all).

        Sections are built after pruning by statistics; in tables with keys, only whole sections are pruned.

        In a section with several runs, a file may contain the newest version of a key; without it, an older version in
        another file would be returned. Therefore such files are skipped only together. If keys are unique, every file
        is a section. Engines that combine rows produce values outside the statistics of any file, so their sections are
        kept.
        """
        if evolves_columns(self.schema):
            return self._align(entries)
        if not self.schema.primary_keys:
            kept = entries if self._is_sifted else self.by_stats(entries)
            kept = self._drop(kept, self._index_mask(kept), "index")
            return kept, append_sections(kept, indexed=self._asks_indexes), None
        may = self._stats_mask(entries)
        grouped = self._group_by_key(entries)
        if may is None:
            return entries, grouped, None
        most = 1 if combines_rows(self.schema) else len(entries)
        wanted = [len(runs) > most or any(may[file] for run in runs for file in run) for runs in grouped.sections]
        gone = sum(len(run) for runs, keep in zip(grouped.sections, wanted, strict=True) if not keep for run in runs)
        self._counts["stats"] = gone
        return entries, self._by_index(entries, grouped, wanted), wanted

    def _align(self, entries: EntryColumns) -> tuple[EntryColumns, Grouped, list[bool] | None]:
        """Group the files of the same rows: either all or none of them are skipped."""
        ranges = row_ranges(entries)
        grouped = aligned_sections(entries, ranges, indexed=self._asks_indexes)
        if self.predicate is None or not len(entries):
            return entries, grouped, None
        pruner = RangePruner(entries, ranges, self.predicate, self.schema, self.root.schemas.get)
        may = pruner.by_statistics()
        self._counts["stats"] = int(ranges.counts[~may].sum())
        if self._asks_indexes:
            found = pruner.by_index(self.root.files)
            self._counts["index"] = int(ranges.counts[may & ~found].sum())
            may &= found
        return entries, grouped, may.tolist()

    def _by_index(self, entries: EntryColumns, grouped: Grouped, wanted: list[bool]) -> Grouped:
        """The requested sections without files that cannot match by index, if no other run has their keys."""
        alone = [
            file
            for runs, keep in zip(grouped.sections, wanted, strict=True)
            if keep and len(runs) == 1
            for file in runs[0]
        ]
        places = np.array(sorted(alone), np.int64)
        gone = set(places[~self._index_mask(entries.take(places))].tolist())
        self._counts["index"] = len(gone)
        if not gone:
            return grouped
        sections = [[[file for file in run if file not in gone] for run in runs] for runs in grouped.sections]
        for number, runs in enumerate(sections):
            wanted[number] = wanted[number] and bool(runs[0])
        return msgspec.structs.replace(grouped, sections=sections)

    def _group_by_key(self, entries: EntryColumns) -> Grouped:
        if clusters_keys(self.schema):
            return settled_sections(entries, indexed=self._asks_indexes)
        alone = settled_files(entries) if kills_older_rows(self.schema) else None
        if alone is not None and alone.all():
            return settled_sections(entries, indexed=self._asks_indexes)
        schema_of = self.root.schemas.get
        lows = prune.key_columns(entries, "min_key", self.schema, schema_of)
        highs = prune.key_columns(entries, "max_key", self.schema, schema_of)
        return keyed_sections(entries, lows, highs, alone, indexed=self._asks_indexes)

    def _stats_mask(self, entries: EntryColumns) -> Mask | None:
        if self.predicate is None or not len(entries):
            return None
        return prune.stats_mask(entries, self.predicate, self.schema, self.root.schemas.get)

    def _index_mask(self, entries: EntryColumns) -> Mask:
        if self.predicate is None or not self._asks_indexes:
            keep: Mask = np.ones(len(entries), np.bool_)
            return keep
        return prune.index_mask(entries, self.predicate, self.root.files, self.root.schemas.get)

    def _drop(self, entries: EntryColumns, keep: Mask, reason: str) -> EntryColumns:
        dropped = len(entries) - int(np.count_nonzero(keep))
        self._counts[reason] = self._counts.get(reason, 0) + dropped
        return entries.take(np.flatnonzero(keep)) if dropped else entries


def files_stand_alone(schema: TableSchema) -> bool:
    """Whether each file of a table has whole rows that no other file changes."""
    return not schema.primary_keys and not evolves_columns(schema)


def prunes_files(predicate: Predicate | None, schema: TableSchema, *, sifts: bool) -> bool:
    """Whether a file can be left out before the others are known: by partition or key, or by statistics (`sifts`)."""
    columns = (*schema.partition_keys, *_key_columns(schema))
    return predicate is not None and (sifts or _only(predicate, columns) is not None)


def partition_choice(schema: TableSchema, predicate: Predicate | None) -> PartitionChoice | None:
    """The partitions that a predicate allows; None for all."""
    by_partition = _only(predicate, schema.partition_keys)
    return None if by_partition is None else PartitionChoice.where(schema, by_partition)


def is_large(planner: SnapshotPlanner) -> bool:
    """Whether a plan of all files would not fit into the memory that manifests are kept in.

    A plan with a condition that leaves files out is not large: only the files that remain are in memory.

    Cost: the manifest lists of the snapshot, unless they were read before.
    Raises: SnapshotExpiredError if the snapshot was expired meanwhile.
    """
    if prunes_files(planner.predicate, planner.schema, sifts=files_stand_alone(planner.schema)):
        return False
    return not fits_in_memory(planner.root.manifests, planner.snapshot)


def _only(predicate: Predicate | None, columns: tuple[str, ...]) -> Predicate | None:
    """The part of the predicate that names these columns alone."""
    return None if predicate is None or not columns else split_conjuncts(predicate, columns)[0]


def _key_columns(schema: TableSchema) -> tuple[str, ...]:
    return schema.trimmed_primary_keys if schema.primary_keys else ()
