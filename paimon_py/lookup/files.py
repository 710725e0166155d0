"""Rows of data files by key: key columns first, then only the needed parts of the others; both through a cache.

Source: Java `LookupLevels`, `LookupFile`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from paimon_py.codec.columns import Ints, Mask, from_numpy
from paimon_py.codec.deletion_vectors import DeletionVector
from paimon_py.errors import CorruptionError
from paimon_py.files.constant_columns import ConstantColumns
from paimon_py.files.file_index import has_index
from paimon_py.files.reader import PAGED_ROWS
from paimon_py.lookup.frames import Columns, FrameId, Frames, RowRange, is_whole, join_row_ranges
from paimon_py.lookup.key_index import EncodedKeys, Located, key_words
from paimon_py.lookup.keys import key_predicate
from paimon_py.lsm.probe import KeyProbe
from paimon_py.lsm.search import equal_rows, repeats_rows, search
from paimon_py.metadata.open_table import BucketFiles
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.types import Field

KEY_BATCH_ROWS = 131_072
VALUE_BATCH_BYTES = 64 << 20
VALUE_BATCH_ROWS = 1 << 20
_FEW = 64
_FEW_BATCH_ROWS = 16_384
_DECODED = 4
"""The assumed ratio of the size of decoded rows to the size of their file."""


class RepeatedKeyError(CorruptionError):
    """A file contains a key twice, as files of an old SDK do, so the row of a key is ambiguous."""


class Hits(NamedTuple):
    """Rows of a file: positions, ascending, and the number of the requested key of each."""

    positions: Ints
    keys: Ints


class FileReading(msgspec.Struct, frozen=True, kw_only=True):
    """The settings for reading files of one partition and bucket.

    `files`: the files of the bucket. `keys`: fields of the trimmed primary key. `bucket`: the name of their index.
    `dead_of`: the deletion vector of a file. `asks_indexes`: whether file indexes may be used. `paths`: the paths of
    files, by name.
    """

    files: BucketFiles
    frames: Frames
    keys: tuple[Field, ...]
    stamps: ConstantColumns
    bucket: FrameId
    dead_of: Callable[[DataFile], DeletionVector | None]
    asks_indexes: bool = True
    paths: dict[str, str] = msgspec.field(default_factory=dict)

    def find(self, file: DataFile, wanted: Sequence[pa.Array]) -> Hits:
        """The positions of keys in a file; deleted rows are omitted.

        Shapes: `wanted` — columns of `keys`, ascending.
        Cost: reads what is not cached: the key columns of row groups whose statistics allow one of the keys.
        Raises: FileMissingError, CorruptionError
        """
        path = self._path(file)
        frame = FrameId(path, self.bucket.number)
        held = self.frames.get(frame)
        if is_whole(held, file.row_count) and len(held) == 1:
            found = search(held[0].rows.columns, wanted)
            keys = np.flatnonzero(found.equal)
            return self._live(file, Hits(found.places[keys], keys))
        asked = _Search(wanted, file.row_count)
        for row_range in held:
            asked.search(row_range)
        if len(asked.undecided_keys()):
            # for a few keys of a large file, caching all its keys may not pay off
            by_page = len(wanted[0]) <= _FEW and file.row_count >= PAGED_ROWS and not held
            self._read_keys(file, path, frame, asked, by_page=by_page)
        return self._live(file, asked.hits())

    def proven(self, file: DataFile, located: Located, wanted: Sequence[pa.Array] | None) -> Hits:
        """The rows that an index has found and that really have their key; deleted rows are omitted.

        Shapes: `wanted` — columns of `keys`, to whose rows `located.keys` refers; None if the index is exact.
        Cost: reads what is not cached.
        Raises: FileMissingError, CorruptionError
        """
        if wanted is None or not len(located.keys):
            return self._live(file, Hits(*located))
        rows = self._stored_rows(file, Columns(self.keys, self.bucket.number), located.positions)
        asked = from_numpy(located.keys, pa.int64())
        same = equal_rows(rows.columns, [column.take(asked) for column in wanted])
        hits = Hits(*located) if same.all() else Hits(located.positions[same], located.keys[same])
        return self._live(file, hits)

    def take(self, file: DataFile, columns: Columns, positions: Ints) -> pa.RecordBatch:
        """The columns of the rows at ascending positions.

        Cost: reads what is not cached: row groups with one of the positions, up to the last one.
        Raises: FileMissingError, CorruptionError
        """
        fields = columns.fields
        stored = self.stamps.stored_fields(file, fields)
        if stored and len(positions):
            stored_columns = columns if stored is fields else self.frames.columns(tuple(stored))
            rows = self._stored_rows(file, stored_columns, positions)
        else:
            rows = pa.RecordBatch.from_arrays([pa.nulls(len(positions))], ["rows"]).select([])
        (complete,) = self.stamps.complete(file, fields, [rows])
        return complete

    def gather(
        self, hits: Sequence[tuple[DataFile, Hits]], columns: Columns, living: Callable[[], Collection[str]]
    ) -> Iterator[tuple[pa.RecordBatch, Ints]]:
        """Columns of the rows that were hit in files, all of them stored in the files, and the keys of the rows.

        Files of the bucket that are cached whole are joined, and rows are taken from all of them at once.

        Args:
            living: names of all files of the bucket.

        Raises: FileMissingError, CorruptionError
        """
        frames = {FrameId(self._path(file), columns.number): file.row_count for file, _ in hits}
        name = FrameId(self.bucket.path, columns.number)
        if len(hits) > 1 and columns.fields:
            self.frames.join(name, frames, living)
        block = self.frames.block(name)
        positions: list[Ints] = []
        keys: list[Ints] = []
        for frame, (file, hit) in zip(frames, hits, strict=True):
            place = None if block is None else block.places.get(frame)
            if place is None:
                yield self.take(file, columns, hit.positions), hit.keys
                continue
            positions.append(hit.positions + place[0])
            keys.append(hit.keys)
        if block is not None and positions:
            yield block.rows.take(from_numpy(np.concatenate(positions), pa.int64())), np.concatenate(keys)

    def holds_keys(self, file: DataFile) -> bool:
        """Whether all keys of a file are cached."""
        return is_whole(self.frames.get(FrameId(self._path(file), self.bucket.number)), file.row_count)

    def words(self, file: DataFile) -> EncodedKeys | None:
        """All keys of a file for an index; None if they are no longer cached."""
        held = self.frames.get(FrameId(self._path(file), self.bucket.number))
        if not is_whole(held, file.row_count):
            return None
        return EncodedKeys(file.name, np.concatenate([key_words(part.rows.columns, self.keys) for part in held]))

    def _path(self, file: DataFile) -> str:
        path = self.paths.get(file.name)
        if path is None:
            path = self.paths[file.name] = self.files.path(file)
        return path

    def _live(self, file: DataFile, hits: Hits) -> Hits:
        dead = self.dead_of(file)
        if dead is None or not len(hits.positions):
            return hits
        first, last = int(hits.positions[0]), int(hits.positions[-1])
        live = ~np.isin(hits.positions, dead.within(first, last + 1))
        return hits if live.all() else Hits(hits.positions[live], hits.keys[live])

    def _read_keys(self, file: DataFile, path: str, frame: FrameId, asked: _Search, *, by_page: bool) -> None:
        predicate = key_predicate(self.keys, asked.keys(asked.undecided_keys()))
        rows = None
        if self.asks_indexes and has_index(file):
            rows = self.files.matching(file, predicate)
            if rows is not None and not rows:
                return
        read = self.files.reader(file, self.keys, by_page=by_page).positions(
            batch_rows=KEY_BATCH_ROWS, predicate=predicate, rows=rows
        )
        kept: list[RowRange] = []
        room = self.frames.max_bytes
        for position, batch in read:
            row_range = RowRange(position, batch)
            _check_order(row_range, kept[-1] if kept else None, path)
            asked.search(row_range)
            room -= batch.nbytes
            if room >= 0:
                kept.append(row_range)
            if not asked.may_continue_after(row_range):
                break
        self.frames.add(frame, join_row_ranges(kept))

    def _stored_rows(self, file: DataFile, columns: Columns, positions: Ints) -> pa.RecordBatch:
        path = self._path(file)
        frame = FrameId(path, columns.number)
        held = self.frames.get(frame)
        if is_whole(held, file.row_count) and len(held) == 1:
            return held[0].rows.take(from_numpy(positions, pa.int64()))
        taking = _RowCollector(positions)
        for row_range in held:
            taking.take(row_range)
        missing = taking.missing()
        if len(missing):
            kept = []
            room = self.frames.max_bytes
            for row_range in self._read_row_ranges(file, columns.fields, missing):
                taking.take(row_range)
                room -= row_range.rows.nbytes
                if room >= 0:
                    kept.append(row_range)
            self.frames.add(frame, kept)
        if len(taking.missing()):
            raise CorruptionError(f"{path} has fewer rows than a moment ago", path=path)
        return taking.rows()

    def _read_row_ranges(self, file: DataFile, fields: tuple[Field, ...], positions: Ints) -> Iterator[RowRange]:
        """Row ranges of the file that contain the positions, up to the last one."""
        few = len(positions) <= _FEW
        by_page = few and file.row_count >= PAGED_ROWS
        read = self.files.reader(file, fields, by_page=by_page).positions(
            batch_rows=_FEW_BATCH_ROWS if few else _batch_rows(file),
            predicate=None,
            rows=BitMap(positions.astype(np.uint32)),
        )
        last = int(positions[-1])
        for position, batch in read:
            yield RowRange(position, batch)
            if position + batch.num_rows > last:
                return


def _batch_rows(file: DataFile) -> int:
    """The number of rows of a file to decode at a time so that they fit into memory."""
    fitting = VALUE_BATCH_BYTES * file.row_count // (_DECODED * max(1, file.size_bytes))
    return min(max(fitting, _FEW_BATCH_ROWS), VALUE_BATCH_ROWS)


class _Search:
    """The state of a search for keys in a file: found at a position, known to be absent, or undecided."""

    def __init__(self, wanted: Sequence[pa.Array], row_count: int) -> None:
        self._wanted = wanted
        self._row_count = row_count
        self._places: Ints = np.full(len(wanted[0]), -1, np.int64)
        self._absent: Mask = np.zeros(len(wanted[0]), np.bool_)
        self._floor: Ints = np.zeros(len(wanted[0]), np.int64)

    def search(self, row_range: RowRange) -> None:
        """Decide the keys that rows of the file can decide; row ranges must come by position."""
        rows = [row_range.rows.column(at) for at in range(len(self._wanted))]
        count = row_range.rows.num_rows
        ends = from_numpy(np.array([0, count - 1], np.int64), pa.int64())
        borders = search(self._wanted, [row.take(ends) for row in rows])
        first, last = int(borders.places[0]), int(borders.places[1]) + int(borders.equal[1])
        self._absent[:first] |= self._floor[:first] == row_range.start
        self._floor[last:] = np.maximum(self._floor[last:], row_range.stop)
        if first >= last:
            return
        found = search(rows, [column.slice(first, last - first) for column in self._wanted])
        self._places[first:last] = np.where(found.equal, found.places + row_range.start, self._places[first:last])
        self._absent[first:last] |= ~found.equal

    def undecided_keys(self) -> Ints:
        """The keys that may be in rows that were not searched yet."""
        return np.flatnonzero((self._places < 0) & ~self._absent & (self._floor < self._row_count))

    def may_continue_after(self, row_range: RowRange) -> bool:
        """Whether a key is larger than all rows up to the end of this range."""
        return bool(len(self._floor)) and int(self._floor[-1]) >= row_range.stop

    def keys(self, numbers: Ints) -> list[pa.Array]:
        """The keys with the given numbers."""
        rows = from_numpy(numbers, pa.int64())
        return [column.take(rows) for column in self._wanted]

    def hits(self) -> Hits:
        """The hits by position, which is the order of the keys."""
        keys = np.flatnonzero(self._places >= 0)
        return Hits(self._places[keys], keys)


class _RowCollector:
    """Collects the rows at given positions."""

    def __init__(self, positions: Ints) -> None:
        self._positions = positions
        self._open: Mask = np.ones(len(positions), np.bool_)
        self._taken: list[Ints] = []
        self._parts: list[pa.RecordBatch] = []

    def take(self, row_range: RowRange) -> None:
        """Take the rows of this range that were not taken before."""
        first, last = np.searchsorted(self._positions, [row_range.start, row_range.stop]).tolist()
        places = first + np.flatnonzero(self._open[first:last])
        if len(places):
            self._taken.append(places)
            self._parts.append(row_range.rows.take(from_numpy(self._positions[places] - row_range.start, pa.int64())))
            self._open[places] = False

    def missing(self) -> Ints:
        """The positions that no range contained."""
        missing: Ints = self._positions[self._open]
        return missing

    def rows(self) -> pa.RecordBatch:
        """The rows, in order of their positions."""
        if len(self._parts) == 1:
            return self._parts[0]
        schema = self._parts[0].schema
        columns = [pa.concat_arrays([part.column(at) for part in self._parts]) for at in range(len(schema))]
        firsts = [int(places[0]) for places in self._taken]
        if firsts == sorted(firsts):
            return pa.RecordBatch.from_arrays(columns, schema=schema)
        order = from_numpy(np.argsort(np.concatenate(self._taken), kind="stable"), pa.int64())
        return pa.RecordBatch.from_arrays(columns, schema=schema).take(order)


def _check_order(row_range: RowRange, before: RowRange | None, path: str) -> None:
    """Check that keys grow from row to row, as searching requires.

    Raises: CorruptionError; RepeatedKeyError if keys repeat but do not descend.
    """
    columns = row_range.rows.columns
    probe, repeats = KeyProbe(columns), False
    falls = probe.ascends(strictly=False) is False
    if before is not None and before.rows.num_rows:
        newest = KeyProbe([column.slice(len(column) - 1) for column in before.rows.columns]).key(0)
        falls, repeats = falls or probe.key(0) < newest, probe.key(0) == newest
    if falls:
        raise CorruptionError(f"the keys of {path} are not in ascending order", path=path)
    if repeats or (probe.ascends() is not True and repeats_rows(columns)):
        raise RepeatedKeyError(
            f"{path} contains a key twice, as files of an old SDK do; rewrite the table:"
            " table.write_arrow(table.scan().to_reader(), overwrite={})",
            path=path,
        )
