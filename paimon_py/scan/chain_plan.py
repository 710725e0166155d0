"""Plans the partitions of a chain table that only its delta branch has: the nearest older partition of the snapshot
branch, and the partitions of the delta branch since then, merged.

Source: format.md §28.6; Java `ChainGroupReadTable`, `ChainTableUtils`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.binary_row import decode
from paimon_py.codec.columns import Ints, Mask
from paimon_py.codec.manifest.columns import EntryColumns
from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.codec.partition_time import PartitionTime, time_texts
from paimon_py.errors import OptionError, UnsupportedError
from paimon_py.expr.predicate import Predicate
from paimon_py.expr.split import split_conjuncts
from paimon_py.lsm.intervals import runs_of, sections_of
from paimon_py.lsm.order import dense_ranks
from paimon_py.metadata.open_table import OpenTable
from paimon_py.scan import prune_entries as prune
from paimon_py.scan.plan import Deletions, Packing, data_files
from paimon_py.scan.plan_snapshot import SnapshotPlanner, deletions_of
from paimon_py.scan.request import Request
from paimon_py.scan.split import Section, Split
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.options import Options
from paimon_py.spec.packing import pack
from paimon_py.spec.schema import TableSchema

_CHAIN_KEYS = "chain-table.chain-partition-keys"
_PATTERN = "partition.timestamp-pattern"
CHAIN_TABLE = "chain-table.enabled"


class BranchFiles:
    """The visible files of a branch, by partition and bucket.

    Attributes:
        planner: the planner of the branch's snapshot, without a condition.
        entries: the files.
        files: the same as values.
        partitions: the serialized partitions that have files.
    """

    def __init__(self, planner: SnapshotPlanner) -> None:
        """Cost: the manifests of the snapshot; all its entries in memory."""
        self.planner = planner
        self.entries: EntryColumns = planner.candidates()
        self.files: list[DataFile] = data_files(self.entries)
        self._by_bucket = self.entries.by_bucket()
        self._buckets: dict[bytes, list[int]] = {}
        for partition, bucket in self._by_bucket:
            self._buckets.setdefault(partition, []).append(bucket)
        self._deletions: Deletions = deletions_of(OpenTable(planner.root, planner.schema), planner.snapshot)

    @property
    def partitions(self) -> list[bytes]:
        return list(self._buckets)

    def buckets(self, partition: bytes) -> list[int]:
        """The buckets of a partition that have files."""
        return self._buckets[partition]

    def of_bucket(self, partition: bytes, bucket: int) -> Ints:
        """The numbers of the files of a bucket."""
        none: Ints = np.zeros(0, np.int64)
        return self._by_bucket.get((partition, bucket), none)

    def keys(self, rows: str) -> list[pa.Array]:
        """The key columns of the ends of the files' key ranges; `rows`: `min_key` or `max_key`."""
        return prune.key_columns(self.entries, rows, self.planner.schema, self.planner.root.schemas.get)

    def may_match(self, predicate: Predicate | None) -> Mask:
        """A mask of the files that may contain matching keys. `predicate`: on columns of the key within a partition."""
        keep: Mask = np.ones(len(self.entries), np.bool_)
        if predicate is None:
            return keep
        schema, schema_of = self.planner.schema, self.planner.root.schemas.get
        keep &= prune.key_mask(self.entries, predicate, schema, schema_of)
        pinned = prune.bucket_mask(self.entries, predicate, schema, schema_of)
        return keep if pinned is None else keep & pinned

    def part(self, partition: bytes, bucket: int, runs: Sequence[Sequence[int]]) -> Split:
        """The split of some files of a bucket, as sorted runs."""
        found = tuple(tuple(self.files[number] for number in run) for run in runs)
        raw = len(found) == 1 and all(file.delete_row_count == 0 for file in found[0])
        places = self._deletions.get((partition, bucket), {})
        names = [file.name for run in found for file in run if file.name in places]
        return Split(
            snapshot_id=self.planner.snapshot.id, schema_id=self.planner.schema.id, partition=partition, bucket=bucket,
            total_buckets=int(self.entries.total_buckets[runs[0][0]]), sections=(Section(runs=found, raw=raw),),
            deletions={name: places[name] for name in names}, branch=self.planner.root.branch,
        )  # fmt: skip


class Link(msgspec.Struct, frozen=True):
    """A partition of the table, and the partitions that its rows are merged from.

    `anchor`: the partition of the snapshot branch, None if there is no older one. `deltas`: those of the delta branch.
    """

    partition: bytes
    anchor: bytes | None
    deltas: tuple[bytes, ...]


def links_of(
    schema: TableSchema, snapshots: Sequence[bytes], deltas: Sequence[bytes], wanted: Sequence[bytes]
) -> list[Link]:
    """The partitions to merge, in order.

    Args:
        schema: of the snapshot branch, whose options say which partition keys form the chain.
        snapshots, deltas: all partitions of these branches.
        wanted: partitions of the delta branch that no branch before it gives.

    Raises:
        OptionError: the options name no chain.
        UnsupportedError: a partition has no place in the chain.
    """
    # Example: snapshot branch 10, 12; delta branch 11, 12, 13, 14. The partitions 11, 13 and 14 are merged:
    #   11 = 10 + (11).   13 = 12 + (13).   14 = 12 + (13, 14).
    if not wanted:
        return []
    times, chain = _chain_keys(schema)
    known = list(dict.fromkeys([*snapshots, *deltas]))
    columns = decode(known, [field.type for field in schema.partition_fields])
    ranks = [dense_ranks([column]).tolist() for column in columns]
    where = dict(zip(known, zip(*ranks, strict=True), strict=True))
    texts = dict(zip(known, time_texts(schema, known), strict=True))
    group = len(columns) - chain
    places = {partition: number for number, partition in enumerate(known)}
    lacking = {partition for partition in known if any(not column[places[partition]].is_valid for column in columns)}

    def in_order(partitions: Sequence[bytes]) -> dict[tuple[int, ...], list[bytes]]:
        groups: dict[tuple[int, ...], list[bytes]] = {}
        for partition in sorted((one for one in partitions if one not in lacking), key=where.__getitem__):
            groups.setdefault(where[partition][:group], []).append(partition)
        return groups

    anchors, changes = in_order(snapshots), in_order(deltas)
    found = []
    for partition in sorted(wanted, key=where.__getitem__):
        if partition in lacking:
            raise UnsupportedError(
                f"a partition of the delta branch has NULL in a partition key, and no place in a chain:"
                f" {texts[partition]}",
                feature=CHAIN_TABLE,
            )
        own = where[partition]
        older = [one for one in anchors.get(own[:group], ()) if where[one] < own]
        begin = older[-1] if older else None
        between = [one for one in changes[own[:group]] if where[one] <= own]
        if begin is not None:
            between = [one for one in between if where[one] > where[begin]]
            _require_times(times, [texts[one][group:] for one in (begin, *between)])
        found.append(Link(partition, begin, tuple(between)))
    return found


def _chain_keys(schema: TableSchema) -> tuple[PartitionTime, int]:
    """The rule that extracts the times of partitions, and the number of partition keys that form the chain.

    Raises: OptionError
    """
    options, keys = Options(schema.options), schema.partition_keys
    text = options.find_str(_CHAIN_KEYS)
    names = keys if text is None else tuple(name.strip() for name in text.split(","))
    if not keys or names != keys[len(keys) - len(names) :]:
        message = f"{_CHAIN_KEYS} are the last of the partition keys {list(keys)}"
        raise OptionError(message, option=_CHAIN_KEYS, value=text)
    pattern = options.find_str(_PATTERN)
    if pattern is None or any(f"${name}" not in pattern for name in names):
        raise OptionError(
            f"{_PATTERN} of a chain table names every key of the chain, {list(names)}", option=_PATTERN, value=pattern
        )
    return PartitionTime.of(names, pattern, options.find_str("partition.timestamp-formatter")), len(names)


def _require_times(times: PartitionTime, values: Sequence[tuple[str | None, ...]]) -> None:
    """Refuse partitions whose values have another order than their times, by which Java finds them."""
    found = [times.nanos(value) for value in values]
    for number, (value, time) in enumerate(zip(values, found, strict=True)):
        before = found[number - 1] if number else None
        if time is None or (before is not None and before >= time):
            why = "is not a time" if time is None else "has another place in time than in the order of values"
            raise UnsupportedError(f"the partition {value} of a chain {why}", feature=CHAIN_TABLE)


def plan_links(
    links: Sequence[Link], snapshots: BranchFiles | None, deltas: BranchFiles, request: Request, packing: Packing
) -> list[Split]:
    """The splits of merged partitions. `request`: the rows of the table.

    Cost: a rank of the key range of every file in both branches; a few µs per file and partition that it belongs to.
    Raises: UnsupportedError: the partitions of a chain have different numbers of buckets.
    """
    if not links:
        return []
    sources = [deltas] if snapshots is None else [snapshots, deltas]
    ends = [source.keys(rows) for rows in ("min_key", "max_key") for source in sources]
    ranks = dense_ranks([pa.chunked_array(columns) for columns in zip(*ends, strict=True)])
    files = len(ranks) // 2
    lows, highs = ranks[:files], np.maximum(ranks[:files], ranks[files:])
    by_key = keys_within_partitions(request)
    wanted = np.concatenate([source.may_match(by_key) for source in sources])
    offset = files - len(deltas.entries)
    splits = []
    for link in links:
        parts = [(deltas, partition, offset) for partition in link.deltas]
        if link.anchor is not None and snapshots is not None:
            parts.insert(0, (snapshots, link.anchor, 0))
        _require_same_buckets(parts, link)
        for bucket in sorted({bucket for source, partition, _ in parts for bucket in source.buckets(partition)}):
            owner = {
                int(number) + base: place
                for place, (source, partition, base) in enumerate(parts)
                for number in source.of_bucket(partition, bucket)
                if wanted[int(number) + base]
            }
            sections = _sections(parts, bucket, owner, lows, highs)
            for packed in pack(sections, lambda section: _weight(section, packing), packing.target_bytes):
                splits.append(
                    Split(
                        snapshot_id=deltas.planner.snapshot.id, schema_id=request.schema.id, partition=link.partition,
                        bucket=bucket, total_buckets=packed[0][0].total_buckets, sections=(), chained=tuple(packed),
                    )
                )  # fmt: skip
    return splits


def keys_within_partitions(request: Request) -> Predicate | None:
    """The part of a condition on the primary key within a partition, which is the same in all partitions of a chain."""
    if request.predicate is None:
        return None
    return split_conjuncts(request.predicate, request.schema.trimmed_primary_keys)[0]


def chosen_partitions(
    schema: TableSchema, predicate: Predicate | None, partitions: Sequence[bytes]
) -> frozenset[bytes]:
    """The partitions that a condition may leave."""
    by_partition = None if predicate is None else split_conjuncts(predicate, schema.partition_keys)[0]
    if by_partition is None or not partitions:
        return frozenset(partitions)
    mask = PartitionChoice.where(schema, by_partition)(pa.array(partitions, pa.binary()))
    return frozenset(partition for partition, keep in zip(partitions, mask.tolist(), strict=True) if keep)


_Parts = Sequence[tuple[BranchFiles, bytes, int]]


def _sections(
    parts: _Parts, bucket: int, owner: Mapping[int, int], lows: Ints, highs: Ints
) -> Iterator[tuple[Split, ...]]:
    """The files of one bucket of all parts, by key ranges that do not touch. `owner`: the part of every file."""
    numbers = np.array(list(owner), np.int64)
    for section in sections_of(lows[numbers], highs[numbers]):
        by_part: dict[int, list[int]] = {}
        for number in numbers[section].tolist():
            by_part.setdefault(owner[number], []).append(number)
        found = []
        for at, (source, partition, base) in enumerate(parts):
            if at in by_part:
                runs = runs_of(by_part[at], lows, highs)
                found.append(source.part(partition, bucket, [[number - base for number in run] for run in runs]))
        yield tuple(found)


def _weight(section: Sequence[Split], packing: Packing) -> int:
    return max(sum(part.size_bytes for part in section), packing.open_file_bytes)


def _require_same_buckets(parts: _Parts, link: Link) -> None:
    """Refuse partitions in which equal keys may be in different buckets, as Java does."""
    counts = {
        int(source.entries.total_buckets[source.of_bucket(partition, bucket)[0]])
        for source, partition, _ in parts
        for bucket in source.buckets(partition)
    }
    if len(counts) > 1:
        source = parts[-1][0].planner
        name = OpenTable(source.root, source.schema).label(link.partition)
        raise UnsupportedError(
            f"the rows of {name} are merged from partitions with different numbers of buckets, {sorted(counts)}:"
            " rescale one of the branches", feature=CHAIN_TABLE,
        )  # fmt: skip
