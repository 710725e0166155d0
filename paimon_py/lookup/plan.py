"""Selects the files of a snapshot that may contain keys, and the keys to look up in each bucket.

A file without any of the keys can be skipped regardless of the rest of its section: keys are merged one by one.

Source: format.md §7, §17; Java `LocalTableQuery`, `KeyAndBucketExtractor`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paimon_py.codec.binary_row import decode, encode
from paimon_py.codec.buckets import bucket_numbers
from paimon_py.codec.columns import Ints, Mask, from_numpy, numpy_values
from paimon_py.codec.manifest.columns import EntryColumns
from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.errors import UnsupportedError
from paimon_py.lookup.keys import RequestedKeys, key_predicate
from paimon_py.lsm.runs import SortedRun
from paimon_py.lsm.search import search
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.open_table import OpenTable
from paimon_py.scan import prune_entries as prune
from paimon_py.scan.plan import keyed_sections, settled_files
from paimon_py.spec.layout import POSTPONE_BUCKET
from paimon_py.spec.manifest import ManifestFile
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Snapshot
from paimon_py.spec.visibility import clusters_keys, kills_older_rows, skips_level_zero

_KNOWN_MAX = 100_000
"""The maximum number of files, and of partitions, that a plan remembers."""
_CHOICES_MAX = 256

Sections = tuple[tuple[SortedRun, ...], ...]
"""Sorted runs of sections, oldest first."""


class Bucket:
    """The files of one partition and bucket.

    Attributes:
        partition: serialized BinaryRow.
        number: the number of the bucket.
    """

    def __init__(self, schema: TableSchema, entries: EntryColumns, keys: tuple[Sequence[pa.Array], ...]) -> None:
        """`keys`: the columns of the smallest and of the largest keys of the files."""
        self.partition: bytes = entries.distinct("partition").values[0].as_py()
        self.number = int(entries.bucket[0])
        self._kills = kills_older_rows(schema)
        self._entries = entries
        self._lows, self._highs = keys
        self._choices: dict[bytes, Sections] = {}

    def __len__(self) -> int:
        """The number of files."""
        return len(self._entries)

    def names(self) -> list[str]:
        """The names of all files."""
        names: list[str] = self._entries.names().to_pylist()
        return names

    def holding(self, keys: Sequence[pa.Array]) -> Sections:
        """The files whose key range contains one of the given ascending keys."""
        first, last = search(keys, self._lows), search(keys, self._highs)
        kept = last.places + last.equal > first.places
        choice = kept.tobytes()
        sections = self._choices.get(choice)
        if sections is None:
            sections = self._sections(np.flatnonzero(kept))
            if len(self._choices) >= _CHOICES_MAX:
                self._choices = {}
            self._choices[choice] = sections
        return sections

    def _sections(self, kept: Ints) -> Sections:
        if not len(kept):
            return ()
        entries, picked = self._entries.take(kept), from_numpy(kept, pa.int64())
        alone = settled_files(entries) if self._kills else None
        lows, highs = ([column.take(picked) for column in columns] for columns in (self._lows, self._highs))
        grouped = keyed_sections(entries, lows, highs, alone, indexed=True)
        return tuple(
            tuple(SortedRun(tuple(grouped.files[file] for file in run)) for run in section)
            for section in grouped.sections
        )


class BucketKeys(NamedTuple):
    """Sections of a bucket, and the ascending numbers of the requested keys that they may contain."""

    bucket: Bucket
    sections: Sections
    keys: Ints


class _Buckets:
    """The buckets of the partitions that match the partition columns of a key; each is created on first use."""

    def __init__(self, made: Callable[[Ints], Bucket]) -> None:
        """`made`: creates the bucket of some entries."""
        self._made = made
        self._members: dict[int, list[Ints]] = {}
        self._buckets: dict[int, list[Bucket]] = {}
        self.file_count = 0

    def add(self, number: int, rows: Ints) -> None:
        """Add a bucket with some entries; buckets of several partitions may have the same number."""
        self._members.setdefault(number, []).append(rows)
        self.file_count += len(rows)

    def of(self, number: int) -> Sequence[Bucket]:
        """The buckets with a number."""
        buckets = self._buckets.get(number)
        if buckets is None:
            buckets = self._buckets[number] = [self._made(rows) for rows in self._members.get(number, ())]
        return buckets

    def all(self) -> list[Bucket]:
        """Every bucket."""
        return [bucket for number in self._members for bucket in self.of(number)]


_Known = dict[int, _Buckets]
"""The buckets for the partition columns of a key: by bucket count if a key's hash determines its bucket, else −1."""


class LookupPlanner:
    """Plans lookups in one snapshot of a table, and remembers the files of the partitions that were asked for."""

    def __init__(self, table: OpenTable, snapshot: Snapshot, *, every_level: bool = False) -> None:
        """`every_level`: see `skips_level_zero`."""
        if clusters_keys(table.schema):
            raise UnsupportedError(
                f"keys of {table.root.path} cannot be looked up in its files, which pk-clustering-override sorts by"
                " other columns; table.lookup and scans find them",
                feature="lookups in files with pk-clustering-override",
            )
        self._table = table
        self._root = table.root
        self._schema = table.schema
        self._snapshot = snapshot
        self._skips_level_zero = skips_level_zero(table.schema, every_level=every_level)
        keys = table.schema.primary_keys
        self._in_key = tuple(field for field in table.schema.partition_fields if field.name in keys)
        self._known: dict[bytes, _Known] = {}
        self._files = 0

    def plan(self, asked: RequestedKeys) -> Iterator[BucketKeys]:
        """The buckets, sections and keys to read.

        Cost: new partitions cost as much as planning a scan, some µs per file; in addition 0.1 ms per bucket.
        Raises: UnsupportedError for files that need an unsupported feature.
        """
        if not len(asked):
            return
        values, members = self._partitions(asked)
        known = self._load_buckets(values, asked)
        wanted = asked.of(self._schema.key_fields)
        for value, mine in zip(values, members, strict=True):
            for buckets, keys in self._shares(known[value], mine, asked):
                rows = from_numpy(keys, pa.int64())
                columns = wanted if len(keys) == len(asked) else [column.take(rows) for column in wanted]
                for bucket in buckets:
                    sections = bucket.holding(columns)
                    if sections:
                        yield BucketKeys(bucket, sections, keys)

    def _shares(self, known: _Known, mine: Ints, asked: RequestedKeys) -> Iterator[tuple[Sequence[Bucket], Ints]]:
        """The buckets of a partition, each with the keys of the partition that it may contain."""
        for total, buckets in known.items():
            if total < 2:
                yield buckets.all(), mine
                continue
            for number, keys in _by_number(mine, self._bucket_numbers(asked, mine, total)):
                yield buckets.of(number), keys

    def _partitions(self, asked: RequestedKeys) -> tuple[list[bytes], list[Ints]]:
        """The partition values of the keys, and the keys of each value."""
        if not self._in_key:
            return [b""], [np.arange(len(asked))]
        coded = encode(asked.of(self._in_key), [field.type for field in self._in_key]).dictionary_encode()
        return coded.dictionary.to_pylist(), _members(numpy_values(coded.indices), len(coded.dictionary))

    def _load_buckets(self, values: list[bytes], asked: RequestedKeys) -> dict[bytes, _Known]:
        known = {value: self._known.get(value) for value in values}
        missing = {value for value, buckets in known.items() if buckets is None}
        found = self._load(missing, asked) if missing else {}
        if self._files + len(self._known) > _KNOWN_MAX:
            self._known, self._files = {}, 0
        self._known.update(found)
        self._files += sum(buckets.file_count for new in found.values() for buckets in new.values())
        return {value: found[value] if buckets is None else buckets for value, buckets in known.items()}

    def _load(self, missing: set[bytes], asked: RequestedKeys) -> dict[bytes, _Known]:
        """Load the buckets of partitions."""
        found: dict[bytes, _Known] = {value: {} for value in missing}
        entries = self._entries(missing, asked)
        if not len(entries):
            return found
        lows = prune.key_columns(entries, "min_key", self._schema, self._root.schemas.get)
        highs = prune.key_columns(entries, "max_key", self._schema, self._root.schemas.get)
        codes, partitions = entries.distinct("partition")
        said = self._known_keys(partitions)
        totals = self._totals(entries)
        kinds = np.stack([codes, totals, entries.bucket])
        places, groups = np.unique(kinds, axis=1, return_inverse=True)
        members = _members(groups.reshape(-1), places.shape[1])

        def make(rows: Ints) -> Bucket:
            picked = from_numpy(rows, pa.int64())
            bounds = [column.take(picked) for column in lows], [column.take(picked) for column in highs]
            return Bucket(self._schema, entries.take(rows), bounds)

        for (code, total, number), rows in zip(places.T.tolist(), members, strict=True):
            found[said[code]].setdefault(total, _Buckets(make)).add(number, rows)
        return found

    def _known_keys(self, partitions: pa.Array) -> list[bytes]:
        """The part of each partition that keys determine."""
        if not self._in_key:
            return [b""] * len(partitions)
        schema = self._schema
        columns = decode(partitions, [field.type for field in schema.partition_fields])
        by_name = dict(zip(schema.partition_keys, columns, strict=True))
        partition_values = [by_name[field.name] for field in self._in_key]
        rows: list[bytes] = encode(partition_values, [field.type for field in self._in_key]).to_pylist()
        return rows

    def _entries(self, missing: set[bytes], asked: RequestedKeys) -> EntryColumns:
        """The live files of the partitions, without those that readers skip."""
        wanted = None
        if self._in_key:
            wanted = EntryFilter(
                manifests=lambda files: self._manifests(files, asked),
                partitions=lambda values: np.array([said in missing for said in self._known_keys(values)], np.bool_),
            )
        entries = self._root.manifests.live_entries(self._snapshot, wanted)
        visible = entries.bucket != POSTPONE_BUCKET
        if self._skips_level_zero:
            visible = visible & (entries.level > 0)
        if not visible.all():
            entries = entries.take(np.flatnonzero(visible))
        prune.check_entries(entries, self._schema, self._root.schemas.get)
        return entries

    def _manifests(self, files: Sequence[ManifestFile], asked: RequestedKeys) -> Mask:
        partition_values = key_predicate(self._in_key, asked.of(self._in_key))
        return PartitionChoice.where(self._schema, partition_values).of_manifests(files)

    def _totals(self, entries: EntryColumns) -> Ints:
        """The bucket count of each file's partition if the key determines the bucket; else −1."""
        known = prune.hashed_keys(entries, self._schema, self._root.schemas.get)
        totals = entries.total_buckets.astype(np.int64)
        found: Ints = np.where(totals > 0, totals, -1) if known is not None else np.full(len(entries), -1, np.int64)
        return found

    def _bucket_numbers(self, asked: RequestedKeys, mine: Ints, total: int) -> Ints:
        fields = [self._schema.field(name) for name in self._schema.bucket_keys]
        rows = from_numpy(mine, pa.int64())
        columns = [column.take(rows) for column in asked.of(fields)]
        return bucket_numbers(columns, [field.type for field in fields], total).astype(np.int64)


def _members(groups: Ints, count: int) -> list[Ints]:
    """The rows of every group, ascending."""
    if count == 1:
        return [np.arange(len(groups))]
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.searchsorted(groups[order], np.arange(1, count)))


def _by_number(keys: Ints, numbers: Ints) -> Iterator[tuple[int, Ints]]:
    """The keys with each of the numbers."""
    order = np.argsort(numbers, kind="stable")
    found, starts = np.unique(numbers[order], return_index=True)
    yield from zip(found.tolist(), np.split(keys[order], starts[1:]), strict=True)
