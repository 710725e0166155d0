"""The rows of the keys that are looked up in one bucket: through the index of the bucket or file by file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.codec.columns import Mask, from_numpy
from paimon_py.compaction.rewrite import additions
from paimon_py.files.physical import KIND_FIELD
from paimon_py.lazy import lazy_property
from paimon_py.lookup.files import FileReading, Hits
from paimon_py.lookup.key_index import ROW_BYTES, KeyIndex, Located, can_index, extend
from paimon_py.lookup.keys import RequestedKeys
from paimon_py.lookup.plan import BucketKeys
from paimon_py.lsm.runs import SortedRun
from paimon_py.progress import ProgressShare
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.types import Atomic, Field, Root

NUMBER = "_LOOKUP_NUMBER"
NUMBER_FIELD = Field(2_147_483_639, NUMBER, Atomic(Root.BIGINT, nullable=False))
"""The number of the requested key of a row; never stored."""

_WORTH = 32
"""An index is built once the number of single searches exceeds its number of rows divided by this: reading and decoding
the rows for these searches took several times as long as indexing them."""


class KeyRows:
    """Finds the rows of the keys of one part of a lookup."""

    def __init__(self, reading: FileReading, asked: RequestedKeys, part: BucketKeys, searching: ProgressShare) -> None:
        """`searching` counts the keys, file by file."""
        self._searching = searching
        self._files = sum(len(run.files) for section in part.sections for run in section)
        self._searched = 0
        self._reading = reading
        self._asked = asked
        self._part = part
        self._open: Mask = np.ones(len(part.keys), np.bool_)
        self._columns = asked.of(reading.keys)
        if len(part.keys) < len(asked):
            rows = from_numpy(part.keys, pa.int64())
            self._columns = [column.take(rows) for column in self._columns]

    def __len__(self) -> int:
        return len(self._open)

    def newest(self, runs: Sequence[SortedRun], fields: Sequence[Field]) -> Iterator[pa.RecordBatch]:
        """The newest row of every key; no row if it is −U or −D. Runs are ordered oldest first.

        Shapes: out — `fields`, none of them part of the key, and `_LOOKUP_NUMBER`.
        """
        schema = to_arrow_schema((*fields, NUMBER_FIELD))
        with_kinds = to_arrow_schema((*fields, KIND_FIELD, NUMBER_FIELD))
        kept: list[tuple[DataFile, Hits]] = []
        marked: list[tuple[DataFile, Hits]] = []
        for run in reversed(runs):
            found = marked if run.may_delete else kept
            for file in run.files:
                hits = self._hits(file, once=True)
                if len(hits.keys):
                    found.append((file, hits))
        for taken, numbers in self._gather(kept, fields):
            yield pa.RecordBatch.from_arrays([*taken, numbers], schema=schema)
        for taken, numbers in self._gather(marked, (*fields, KIND_FIELD)):
            yield additions(pa.RecordBatch.from_arrays([*taken, numbers], schema=with_kinds)).select(schema.names)

    def _gather(
        self, hits: Sequence[tuple[DataFile, Hits]], fields: Sequence[Field]
    ) -> Iterator[tuple[list[pa.Array], pa.Array]]:
        if not hits:
            return
        columns = self._reading.frames.columns(tuple(fields))
        for rows, keys in self._reading.gather(hits, columns, self._part.bucket.names):
            yield rows.columns, from_numpy(self._part.keys[keys], pa.int64())

    def opener(self, files: Sequence[DataFile], fields: Sequence[Field]) -> Callable[[int], Iterator[pa.RecordBatch]]:
        """The rows of the keys in files of one run, in key order: `fields` and `_LOOKUP_NUMBER`; for a merge."""
        return lambda _: self._every(files, fields)

    def _every(self, files: Sequence[DataFile], fields: Sequence[Field]) -> Iterator[pa.RecordBatch]:
        stored = self._reading.frames.columns(tuple(field for field in fields if field not in self._reading.keys))
        schema = to_arrow_schema((*fields, NUMBER_FIELD))
        for file in files:
            hits = self._hits(file, once=False)
            if not len(hits.keys):
                continue
            taken = self._reading.take(file, stored, hits.positions)
            rows = from_numpy(hits.keys, pa.int64())
            keys = {field: column.take(rows) for field, column in zip(self._reading.keys, self._columns, strict=True)}
            columns = [keys[field] if field in keys else taken.column(field.name) for field in fields]
            numbers = from_numpy(self._part.keys[hits.keys], pa.int64())
            yield pa.RecordBatch.from_arrays([*columns, numbers], schema=schema)

    def _hits(self, file: DataFile, *, once: bool) -> Hits:
        """The positions of keys in a file. `once`: only keys not found yet; found ones are not searched again."""
        locations, is_sure = self._locate
        located = locations.get(file.name)
        if located is None:
            left = np.flatnonzero(self._open)
            rows = from_numpy(left, pa.int64())
            keys = self._columns if len(left) == len(self) else [column.take(rows) for column in self._columns]
            hits = self._reading.find(file, keys) if len(left) else Hits(left, left)
            self._reading.frames.note_searches(self._reading.bucket, len(left))
            hits = Hits(hits.positions, left[hits.keys])
        else:
            wanted = self._open[located.keys]
            if not wanted.all():
                located = Located(located.positions[wanted], located.keys[wanted])
            hits = self._reading.proven(file, located, None if is_sure else self._columns)
        if once:
            self._open[hits.keys] = False
        self._searched += 1
        self._searching.reach(len(self) * self._searched // self._files)
        return hits

    @lazy_property
    def _locate(self) -> tuple[dict[str, Located], bool]:
        """The locations from the index of the bucket, and whether they are certain."""
        index = self._index()
        return ({}, True) if index is None else (index.locate(self._asked.words[self._part.keys]), index.is_sure)

    def _index(self) -> KeyIndex | None:
        """The index, built or extended first if that is worthwhile."""
        frames, bucket = self._reading.frames, self._reading.bucket
        index = frames.index(bucket)
        rows = 0 if index is None else index.row_count
        searches = frames.searches(bucket) * _WORTH
        if searches <= rows or not can_index(self._reading.keys):
            return index
        names = frozenset(() if index is None else index.names)
        files = [file for section in self._part.sections for run in section for file in run.files]
        whole = [file for file in files if file.name not in names and self._reading.holds_keys(file)]
        rows += sum(file.row_count for file in whole)
        if not whole or searches < rows or rows * ROW_BYTES > frames.room(bucket):
            return index
        worded = [each for each in map(self._reading.words, whole) if each is not None]
        index = extend(index, worded, self._part.bucket.names(), self._reading.keys)
        frames.hold_index(bucket, index)
        return index
