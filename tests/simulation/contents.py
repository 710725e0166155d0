"""What lies in the files of a run: snapshots as the oracle sees them, decoded once for all runs."""

from __future__ import annotations

import functools
from collections import Counter
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from simulation.kinds import row_key

from paimon_py.codec.deletion_vectors import decode as decode_vector
from paimon_py.codec.manifest.entries import read_manifests
from paimon_py.codec.manifest.lists import read_index_manifest, read_manifest_list
from paimon_py.codec.snapshot_json import snapshot_from_json, tag_from_json
from paimon_py.spec.data_file import DataFile, FileKind, identifier
from paimon_py.spec.manifest import DELETION_VECTORS

DELETES = (1, 3)
"""Row kinds that take a row away: -U and -D."""

snapshot_of = functools.lru_cache(20_000)(lambda data: snapshot_from_json(data, "snapshot"))
tag_of = functools.lru_cache(2_000)(lambda data: tag_from_json(data, "tag", "tag").snapshot)
manifests_of = functools.lru_cache(20_000)(lambda data: tuple(file.name for file in read_manifest_list(data)))
index_of = functools.lru_cache(5_000)(lambda data: tuple(read_index_manifest(data)))


class Entry(NamedTuple):
    """A manifest entry: what it does, the identity of its file, and what the oracle asks of the file."""

    adds: bool
    identity: tuple
    place: tuple
    name: str
    extra: tuple
    file: DataFile


@functools.lru_cache(20_000)
def entries_of(data):
    return tuple(
        Entry(
            entry.kind is FileKind.ADD, identifier(entry), (entry.partition, entry.bucket), entry.file.name,
            entry.file.extra_files, entry.file,
        )
        for entry in read_manifests([("manifest", data)]).entries()
    )  # fmt: skip


@functools.lru_cache(50_000)
def rows_of(data):
    """Rows of a data file: ((p, k, v), sequence number, kind), the last two None in append tables."""
    found = pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False).to_pydict()  # no thread is left at the end
    values = list(zip(found["p"], found["k"], found["v"]))
    nothing = [None] * len(values)
    return tuple(zip(values, found.get("_SEQUENCE_NUMBER", nothing), found.get("_VALUE_KIND", nothing)))


@functools.lru_cache(50_000)
def columns_of(data):
    """The columns of a data file of a table that stores columns apart."""
    return pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False).to_pydict()


class Broken(Exception):
    """What a snapshot names is not as the format says."""


class Files:
    """Every file that there ever was, by its name: names of files are never used twice."""

    def __init__(self, data):
        self.data = data

    def get(self, name):
        if name not in self.data:
            raise Broken(f"{name} was never written")
        return self.data[name]

    def entries(self, list_name):
        return [entry for name in manifests_of(self.get(list_name)) for entry in entries_of(self.get(name))]

    def index(self, snapshot):
        return index_of(self.get(snapshot.index_manifest)) if snapshot.index_manifest else ()

    def named(self, snapshot, live):
        """Names of the files that a snapshot needs; `live`: its entries."""
        lists = [snapshot.base_manifest_list, snapshot.delta_manifest_list, snapshot.changelog_manifest_list]
        names = {name for name in lists if name}
        names |= {name for one in sorted(names) for name in manifests_of(self.get(one))}
        if snapshot.index_manifest:
            names.add(snapshot.index_manifest)
            names |= {entry.name for entry in self.index(snapshot)}
        for entry in live.values():
            names.add(entry.name)
            names.update(entry.extra)
        return names

    def rows(self, kind, keyed, snapshot, live):
        """The rows of a snapshot: keyed ones by key, others counted.

        Raises: Broken if a key lies in two buckets.
        """
        dead = {}
        for entry in self.index(snapshot):
            if entry.index_type == DELETION_VECTORS:
                data = self.get(entry.name)
                for part in entry.deletion_vectors or ():
                    if part.data_file in dead:
                        raise Broken(f"{part.data_file} has two deletion vectors")
                    block = data[part.offset : part.offset + part.length + 8]
                    dead[part.data_file] = set(
                        decode_vector(block, part.length, entry.name, part.offset).positions.tolist()
                    )
        strange = set(dead) - {entry.name for entry in live.values()}
        if strange:
            raise Broken(f"deletion vectors of files that are not there: {sorted(strange)}")
        if kind.startswith("columns"):
            self._require_indexes_of_now(snapshot, live)
            return self._rows_of_columns(dead, live)
        if not keyed:
            found = Counter()
            for entry in live.values():
                gone = dead.get(entry.name, ())
                found.update(row for place, (row, _, _) in enumerate(rows_of(self.get(entry.name))) if place not in gone)
            return found
        newest, places = {}, {}
        for entry in live.values():
            gone = dead.get(entry.name, ())
            for place, (row, sequence, row_kind) in enumerate(rows_of(self.get(entry.name))):
                key = row_key(kind, row)
                if places.setdefault(key, entry.place) != entry.place:
                    raise Broken(f"key {key} lies in two buckets")
                if place in gone:
                    continue
                if key in newest and newest[key][0] == sequence and newest[key][1:] != (row_kind, row):
                    raise Broken(f"key {key} has two rows of sequence number {sequence}")
                if key not in newest or newest[key][0] < sequence:
                    newest[key] = (sequence, row_kind, row)
        return {key: row for key, (_, row_kind, row) in newest.items() if row_kind not in DELETES}


    def _rows_of_columns(self, dead, live):
        """The rows of ranges: each column from its newest file.

        Raises: Broken if ranges overlap, or two files of one number have a column.
        """
        ranges = {}
        for entry in live.values():
            if entry.file.first_row_id is None:
                raise Broken(f"{entry.name} has no row ids")
            ranges.setdefault((entry.file.first_row_id, entry.file.row_count), []).append(entry)
        ends = 0
        for first, count in sorted(ranges):
            if first < ends:
                raise Broken(f"the rows from {first} on lie in two ranges, readers refuse the table")
            ends = first + count
        found = Counter()
        for entries in ranges.values():
            entries.sort(key=lambda entry: (entry.file.max_sequence, entry.name))
            gone = dead.get(entries[0].name, ())
            if any(entry.name in dead for entry in entries[1:]):
                raise Broken(f"deletion vectors of {[entry.name for entry in entries]}, not only of the first")
            columns, ages = {}, {}
            for entry in entries:
                for name, values in columns_of(self.get(entry.name)).items():
                    if ages.get(name) == entry.file.max_sequence:
                        raise Broken(f"column {name} is in two files of number {ages[name]}")
                    columns[name], ages[name] = values, entry.file.max_sequence
            if not columns.keys() >= {"p", "k", "v"}:
                raise Broken(f"{[entry.name for entry in entries]} hold only {sorted(columns)}")
            rows = zip(columns["p"], columns["k"], columns["v"])
            found.update(row for place, row in enumerate(rows) if place not in gone)
        return found

    def _require_indexes_of_now(self, snapshot, live):
        """Whether no file has newer values of a column than the index over its rows, whose name ends with its snapshot.

        Raises: Broken
        """
        for entry in self.index(snapshot):
            if entry.global_index is None:
                continue
            covered, age = entry.global_index, int(entry.name.removesuffix(".index").rsplit("-", 1)[1])
            for other in live.values():
                file = other.file
                written = file.write_columns is None or "v" in file.write_columns
                inside = covered.row_range_start <= file.first_row_id <= covered.row_range_end
                if written and inside and file.min_sequence > age:
                    raise Broken(f"{entry.name} is older than column v in {file.name}")


def folded(entries, live=None):
    """Live entries after some more.

    Raises: Broken if a file is added twice or one is deleted that is not there.
    """
    live = dict(live or {})
    for entry in entries:
        if entry.adds:
            if entry.identity in live:
                raise Broken(f"file {entry.name} is added twice")
            live[entry.identity] = entry
        elif live.pop(entry.identity, None) is None:
            raise Broken(f"file {entry.name} is deleted and not there")
    return live
