"""Which files of a snapshot may hold keys: by partition, bucket and key range; and which keys each split is asked for.

A file without any of the keys can be left out whatever else lies in its section: keys are merged one by one.

Source: format.md §7, §17; Java `LocalTableQuery`, `KeyAndBucketExtractor`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paimon_py.codec.binary_row import decode, encode
from paimon_py.codec.buckets import bucket_numbers
from paimon_py.codec.columns import Mask, distinct_integers, from_numpy, numpy_values
from paimon_py.codec.manifest_columns import EntryColumns
from paimon_py.expr.bind import all_of, bind
from paimon_py.expr.predicate import Predicate, col
from paimon_py.lsm.order import dense_ranks
from paimon_py.lsm.words import Ints
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.root import TableRoot
from paimon_py.rows.asked import AskedKeys
from paimon_py.scan import prune_entries as prune
from paimon_py.scan.plan import Deletions, Packing, Place, keyed_sections, settled, splits_of
from paimon_py.scan.split import Split
from paimon_py.spec.manifest import ManifestFile
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Snapshot
from paimon_py.spec.types import Field
from paimon_py.spec.visibility import kills_older_rows, skips_level_zero

_NAMED_MAX = 64
"""So many values of a column are named one by one in a predicate; of more only the range is."""

_WHOLE = Packing(target_bytes=1 << 62, open_file_bytes=0)


class Part(NamedTuple):
    """A split, and the numbers of the asked keys that it may hold, ascending."""

    split: Split
    keys: Ints


class LookupPlanner:
    """Plans lookups in one snapshot of a table."""

    def __init__(self, root: TableRoot, schema: TableSchema, snapshot: Snapshot, deletions: Deletions) -> None:
        self._root = root
        self._schema = schema
        self._place = Place(snapshot_id=snapshot.id, schema_id=schema.id, deletions=deletions)
        self._snapshot = snapshot
        self._told = tuple(field for field in schema.partition_fields if field.name in schema.primary_keys)

    def plan(self, asked: AskedKeys) -> list[Part]:
        """What to read for keys, in any order.

        Cost: as planning a scan; some µs per file of the partitions and 1 µs per key.
        Raises: UnsupportedError for files that need a feature which is not built.
        """
        partitions = self._partitions(asked) if self._told else (np.zeros(len(asked), np.int64), {})
        entries = self._entries(asked, partitions[1])
        if not len(entries) or not len(asked):
            return []
        groups, keys = self._groups(entries, asked, partitions)
        lows = prune.key_columns(entries, "min_key", self._schema, self._root.schemas.get)
        highs = prune.key_columns(entries, "max_key", self._schema, self._root.schemas.get)
        kept = np.flatnonzero(self._holds(groups, keys, asked, (lows, highs)))
        if not len(kept):
            return []
        entries, groups = entries.take(kept), groups[kept]
        picked = from_numpy(kept, pa.int64())
        alone = settled(entries) if kills_older_rows(self._schema) else None
        grouped = keyed_sections(
            entries, [low.take(picked) for low in lows], [high.take(picked) for high in highs], alone, indexed=True
        )
        group_of = {file.name: int(group) for file, group in zip(grouped.files, groups.tolist(), strict=True)}
        splits = splits_of(entries, grouped, None, self._place, _WHOLE)
        return [Part(split, keys[group_of[split.files[0].name]]) for split in splits]

    def _partitions(self, asked: AskedKeys) -> tuple[Ints, dict[bytes, int]]:
        """What the keys say of their partitions: a number for each key, and the number of what is said."""
        fields = self._told
        coded = encode(asked.of(fields), [field.type for field in fields]).dictionary_encode()
        numbers = {value: number for number, value in enumerate(coded.dictionary.to_pylist())}
        return numpy_values(coded.indices).astype(np.int64), numbers

    def _said(self, partitions: pa.Array, numbers: dict[bytes, int]) -> Ints:
        """Of each partition, the number of what keys say of it; −1 if none does."""
        fields = self._schema.partition_fields
        columns = decode(partitions, [field.type for field in fields])
        told = [column for field, column in zip(fields, columns, strict=True) if field in self._told]
        if not told:
            return np.zeros(len(partitions), np.int64)
        rows = encode(told, [field.type for field in self._told]).to_pylist()
        return np.array([numbers.get(row, -1) for row in rows], np.int64)

    def _entries(self, asked: AskedKeys, numbers: dict[bytes, int]) -> EntryColumns:
        """The live files of the partitions, less those that no reader sees."""
        schema = self._schema
        wanted = None
        if self._told:
            wanted = EntryFilter(
                manifests=lambda files: self._manifests(files, asked),
                partitions=lambda values: self._said(values, numbers) >= 0,
            )
        entries = self._root.manifests.live_entries(self._snapshot, wanted)
        visible = entries.bucket != prune.POSTPONE_BUCKET
        if skips_level_zero(schema):
            visible = visible & (entries.level > 0)
        if not visible.all():
            entries = entries.take(np.flatnonzero(visible))
        prune.check_entries(entries)
        return entries

    def _manifests(self, files: Sequence[ManifestFile], asked: AskedKeys) -> Mask:
        return prune.manifest_mask(files, key_predicate(self._told, asked.of(self._told)), self._schema)

    def _groups(
        self, entries: EntryColumns, asked: AskedKeys, partitions: tuple[Ints, dict[bytes, int]]
    ) -> tuple[Ints, dict[int, Ints]]:
        """A number for each partition, count of buckets and bucket; which one each file has; which keys go there."""
        codes, values = entries.distinct("partition")
        totals = self._bucket_counts(entries)
        kinds = np.stack([codes, totals, np.where(totals > 0, entries.bucket, 0)])
        places, groups = np.unique(kinds, axis=1, return_inverse=True)
        numbers = {total: self._buckets(asked, total) for total in distinct_integers(totals).tolist()}
        said = self._said(values, partitions[1])
        keys: dict[int, Ints] = {}
        for group, (code, total, bucket) in enumerate(places.T.tolist()):
            mine, buckets = partitions[0] == said[code], numbers[total]
            keys[group] = np.flatnonzero(mine if buckets is None else mine & (buckets == bucket))
        return groups.reshape(-1).astype(np.int64), keys

    def _bucket_counts(self, entries: EntryColumns) -> Ints:
        """Of how many buckets the file's one is, where the key tells which; else −1."""
        known = prune.hashed_keys(entries, self._schema, self._root.schemas.get)
        totals = entries.total_buckets.astype(np.int64)
        found: Ints = np.where(totals > 0, totals, -1) if known is not None else np.full(len(entries), -1, np.int64)
        return found

    def _buckets(self, asked: AskedKeys, total: int) -> Ints | None:
        if total < 1:
            return None
        fields = [self._schema.field(name) for name in self._schema.bucket_keys]
        return bucket_numbers(asked.of(fields), [field.type for field in fields], total).astype(np.int64)

    def _holds(
        self,
        groups: Ints,
        keys: dict[int, Ints],
        asked: AskedKeys,
        bounds: tuple[Sequence[pa.Array], Sequence[pa.Array]],
    ) -> Mask:
        """Which files have a key range with one of their keys in it."""
        wanted = asked.of(self._schema.key_fields)
        ranks = dense_ranks(
            [pa.chunked_array([key, low, high]) for key, low, high in zip(wanted, *bounds, strict=True)]
        )
        own, lows, highs = np.split(ranks, [len(asked), len(asked) + len(groups)])
        holds = np.zeros(len(groups), np.bool_)
        for group, members in keys.items():
            files = np.flatnonzero(groups == group)
            mine = own[members]
            first = np.searchsorted(mine, lows[files])
            holds[files] = np.searchsorted(mine, highs[files], side="right") > first
        return holds


def key_predicate(fields: Sequence[Field], columns: Sequence[pa.Array]) -> Predicate:
    """What rows with one of these keys fulfil at least: for files, row groups and indexes to be left out.

    Shapes: the keys ascend.
    """
    parts = []
    for at, (field, column) in enumerate(zip(fields, columns, strict=True)):
        if len(column) <= _NAMED_MAX:
            parts.append(bind(col(field.name).isin(list(column.unique())), fields))
        elif at == 0:
            parts.append(bind(col(field.name).between(column[0], column[len(column) - 1]), fields))
    return all_of(parts)
