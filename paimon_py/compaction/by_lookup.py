"""Compaction by lookup: new rows of level 0 meet the older row of their key in the levels above the output.

The levels above are read along as further sorted runs, in key order, as far as level 0 reaches; only their keys where
the old values do not matter. Their rows never come out as they are. Where one of them is the row that has spoken for
its key so far, its place is noted, to be put into the deletion vector of its file; or its values take part in the
merge; or the new row is left out because the first one counts: that depends on the table. That row is also what a
changelog calls the row before.

Source: format.md §13.5; Java `LookupMergeTreeCompactRewriter`, `LookupChangelogMergeFunctionWrapper`,
`LookupMergeFunction`, `FirstRowMergeFunctionWrapper`, `LookupLevels`, `LookupStrategy`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Union

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.codec.binary_row import decode
from paimon_py.codec.columns import AnyArray, Ints, Mask, from_numpy, numpy_values
from paimon_py.codec.deletion_vectors import DeletionVector
from paimon_py.compaction.rewrite import Merging, guessed_row_bytes
from paimon_py.files.deletion_filter import POSITION
from paimon_py.lazy import lazy_property
from paimon_py.lsm.engines.deduplicate import Deduplicate
from paimon_py.lsm.groups import Groups, Merged
from paimon_py.lsm.merge import Plan, RunSource, merge
from paimon_py.lsm.order import key_ranks
from paimon_py.lsm.probe import Key, KeyProbe
from paimon_py.lsm.runs import SortedRun, oldest_first
from paimon_py.lsm.sort_encoding import combine_chunks
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.options import Options
from paimon_py.spec.schema import LEVEL, TableSchema
from paimon_py.spec.types import Field

FILE = "_FILE"
"""Number of the file above that a row comes from, −1 for rows of the compaction; never stored."""

Bounds = tuple[object, object]
"""Smallest and largest value of the leading key column that matter."""

ReadPositions = Callable[[DataFile, Sequence[Field], int, Union[Bounds, None]], Iterator[pa.RecordBatch]]
"""The rows of a data file that are alive, in file order: the wanted columns and `_POSITION`, at most so many rows at a
time, no batch empty. Rows outside the bounds may be left out."""

_PENDING_MAX = 1 << 18
_NO_LEVEL = np.iinfo(np.int32).max


class _Reach(NamedTuple):
    """How far the keys of level 0 reach: bounds of the leading key column, if they can be told, and the last key."""

    bounds: Bounds | None
    last: Key


class LookupRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a row found above means.

    Attributes:
        marks: it dies; its place goes into the deletion vector of its file.
        merges: it takes part in the merge, so its values are read; otherwise only the keys are.
        first_wins: it stays, and the new rows of its key are left out.
    """

    marks: bool
    merges: bool
    first_wins: bool = False

    @classmethod
    def of(cls, schema: TableSchema, *, tells: bool = False) -> LookupRules:
        """The rules of a table that compacts by lookup. `tells`: a changelog is written, which shows the old values."""
        options = Options(schema.options)
        engine = options.get_enum("merge-engine")
        if engine == "first-row":
            return cls(marks=False, merges=False, first_wins=True)
        newest_wins = engine == "deduplicate" and not options.get_list("sequence.field")
        marks = options.get_bool("deletion-vectors.enabled")
        places_do = marks and newest_wins and not options.get_bool("ignore-delete")
        return cls(marks=marks, merges=tells or not places_do)


class ObsoleteRows:
    """Places of rows that a compaction has made obsolete, by name of file."""

    def __init__(self) -> None:
        self._vectors: dict[str, DeletionVector] = {}
        self._pending: dict[str, list[Ints]] = {}
        self._count = 0

    def add(self, name: str, positions: Ints) -> None:
        """Note rows of a file."""
        self._pending.setdefault(name, []).append(positions)
        self._count += len(positions)
        if self._count > _PENDING_MAX:
            self._settle()

    @property
    def vectors(self) -> Mapping[str, DeletionVector]:
        """All places so far."""
        self._settle()
        return self._vectors

    def _settle(self) -> None:
        for name, parts in self._pending.items():
            vector = DeletionVector.of(np.concatenate(parts))
            before = self._vectors.get(name)
            self._vectors[name] = vector if before is None else before.union(vector)
        self._pending = {}
        self._count = 0


class LevelsAbove:
    """The levels above the output of one compaction, ready to be looked into.

    `files`: what is compacted. `higher`: the live files above its output level, each with its keys.
    """

    def __init__(
        self,
        rules: LookupRules,
        files: Sequence[DataFile],
        higher: Sequence[DataFile],
        read: ReadPositions,
        keys: Sequence[Field],
    ) -> None:
        self.rules = rules
        self.found = ObsoleteRows()
        self._files = tuple(files)
        self._higher = tuple(higher)
        self._read = read
        self._keys = tuple(keys)

    @lazy_property
    def _ranks(self) -> dict[str, list[int]]:
        """The key range of every file, as ranks."""
        every = [*self._files, *self._higher]
        types = [field.type for field in self._keys]
        lows, highs = key_ranks([file.min_key for file in every], [file.max_key for file in every], types)
        return {file.name: pair for file, *pair in zip(every, lows.tolist(), highs.tolist(), strict=True)}

    def rows(self, section: Sequence[SortedRun], merging: Merging) -> Iterator[pa.RecordBatch]:
        """The rows that one section of the compaction leaves; what they replace above is noted in `found`.

        Shapes: out — `merging.file_fields`, ordered by key, each key at most once.
        Cost: besides the section, the key columns (where values are merged, all columns) of the files above as far
            as the keys of level 0 reach; two merge windows in memory.
        """
        yield from self._merge(section, merging, self._above(section))

    def look_up(self, file: DataFile, merging: Merging) -> None:
        """Note and tell what the rows of a file of level 0 replace, where the file itself stays as it is.

        Cost: reads the key columns of the file, and those above as far as it reaches; all columns to tell the changes.
        """
        section = (SortedRun((file,)),)
        above = self._above(section)
        if merging.telling is not None:
            for _ in self._merge(section, merging, above):
                pass
            return
        if not above or not self.rules.marks:
            return
        keys_only = msgspec.structs.replace(merging, fields=self._keys, engine=Deduplicate(), drop_deletes=False)
        for _ in self._merge(section, keys_only, above):
            pass

    def _merge(
        self, section: Sequence[SortedRun], merging: Merging, above: Sequence[tuple[int, SortedRun]]
    ) -> Iterator[pa.RecordBatch]:
        fields = merging.file_fields
        names = [file.name for _, run in above for file in run.files]
        reach = self._reach(section) if above else None
        sources = [
            self._source_above(level, run, merging, names, reach) for level, run in reversed(above) if reach is not None
        ]
        sources += [_source(run, merging, placed=bool(names)) for run in oldest_first(section)]
        plan = Plan(
            order=merging.order,
            engine=_Looking(merging, self.rules, tuple(names), self.found),
            columns=tuple(field.name for field in fields),
            drop_deletes=merging.drop_deletes,
            window_rows=merging.window.rows,
            window_bytes=merging.window.size_bytes,
        )
        yield from merge(sources, plan)

    def _above(self, section: Sequence[SortedRun]) -> list[tuple[int, SortedRun]]:
        """The runs above that may hold keys of the section's level 0, lowest level first."""
        if not self._higher:
            return []
        new = [self._ranks[file.name] for run in section for file in run.files if file.level == 0]
        if not new:
            return []
        first, last = min(low for low, _ in new), max(high for _, high in new)
        levels: dict[int, list[DataFile]] = {}
        for file in self._higher:
            low, high = self._ranks[file.name]
            if low <= last and high >= first:
                levels.setdefault(file.level, []).append(file)
        ordered = (sorted(files, key=lambda file: self._ranks[file.name]) for files in levels.values())
        runs = [SortedRun(tuple(files)) for files in ordered]
        return sorted(((run.files[0].level, run) for run in runs), key=lambda pair: pair[0])

    def _reach(self, section: Sequence[SortedRun]) -> _Reach:
        new = [file for run in section for file in run.files if file.level == 0]
        lowest = min(new, key=lambda file: self._ranks[file.name][0])
        highest = max(new, key=lambda file: self._ranks[file.name][1])
        columns = decode([lowest.min_key, highest.max_key], [field.type for field in self._keys])
        bounds = None
        if not columns[0].null_count and _is_exact(columns[0].type):
            bounds = (columns[0][0].as_py(), columns[0][1].as_py())
        return _Reach(bounds, KeyProbe(columns).key(1))

    def _source_above(
        self, level: int, run: SortedRun, merging: Merging, names: Sequence[str], reach: _Reach
    ) -> RunSource:
        fields = merging.file_fields if self.rules.merges else self._keys
        schema = _schema(merging)
        keys = [field.name for field in self._keys]

        def batches(batch_rows: int) -> Iterator[pa.RecordBatch]:
            for file in run.files:
                number = names.index(file.name)
                for batch in self._read(file, fields, batch_rows, reach.bounds):
                    if KeyProbe([batch.column(name).slice(0, 1) for name in keys]).key(0) > reach.last:
                        return
                    yield _label(batch, schema, level, number, batch.column(POSITION))

        return RunSource(run.files[0].name, run.row_count, guessed_row_bytes(run, len(fields)), batches)


class _Looking(msgspec.Struct, frozen=True):
    """The engine of a compaction by lookup: decides which rows speak, and lets the table's engine merge those."""

    merging: Merging
    rules: LookupRules
    names: tuple[str, ...]
    found: ObsoleteRows

    def inputs(self, wanted: frozenset[str]) -> frozenset[str]:
        """What the table's engine reads."""
        return self.merging.engine.inputs(wanted)

    def __call__(self, groups: Groups, columns: Mapping[str, pa.ChunkedArray]) -> Merged:
        """One row for every key that the compaction holds, and that is not left out.

        Of the levels above 0 only the lowest speaks for a key; rows of the levels above the output come in only as
        that.
        Cost: 20 ns a row.
        """
        order, firsts = groups.order, groups.firsts
        levels = numpy_values(combine_chunks(columns[LEVEL]))[order]
        number: Ints = np.cumsum(groups.starts) - 1
        speaks = _speaking(levels, number, firsts)
        keep: Mask = np.ones(len(order), np.bool_)
        files: Ints = numpy_values(combine_chunks(columns[FILE]))[order] if self.names else np.empty(0, np.int64)
        above = files >= 0
        if above.any():
            is_ours = np.logical_or.reduceat(~above, firsts)[number]
            replaced = speaks & above & is_ours
            if self.rules.marks and replaced.any():
                self._note(files[replaced], numpy_values(combine_chunks(columns[POSITION]))[order[replaced]])
            keep = is_ours if self.rules.merges else ~above
            if self.rules.first_wins:
                keep &= ~np.logical_or.reduceat(replaced, firsts)[number]
        if not self.rules.first_wins:
            keep &= (levels == 0) | speaks
        kept = groups
        keys = np.arange(len(firsts))
        if not keep.all():
            starts = np.diff(number[keep], prepend=-1) > 0
            kept, keys = Groups(order[keep], starts), number[keep][starts]
        if not len(keys):
            return Merged(np.empty(0, np.int64))
        merged = self.merging.engine(Groups(kept.order, kept.starts, merging=np.arange(len(keys))), columns)
        if self.merging.telling is not None:
            places, before = np.flatnonzero(speaks), np.full(len(firsts), -1, np.int64)
            before[number[places]] = order[places]
            before = before[keys]
            told = before < 0 if self.rules.first_wins else kept.ends - kept.firsts > (before >= 0)
            self.merging.telling.on_merge(columns, before, merged, told)
        return merged

    def _note(self, files: Ints, positions: Ints) -> None:
        for number in np.unique(files).tolist():
            self.found.add(self.names[number], positions[files == number])


def _speaking(levels: AnyArray, number: Ints, firsts: Ints) -> Mask:
    """Which rows of levels above 0 speak for their key: those of its lowest such level. `number`: the keys of rows."""
    high: Mask = levels > 0
    found = levels[high]
    if len(found) and found.min() != found.max():
        lowest = np.minimum.reduceat(np.where(high, levels, _NO_LEVEL), firsts)
        high &= levels == lowest[number]
    return high


def _source(run: SortedRun, merging: Merging, *, placed: bool) -> RunSource:
    """A run of the compaction. `placed`: beside runs above, where the rows come from."""
    schema = _schema(merging, placed=placed)
    fields = merging.file_fields

    def batches(batch_rows: int) -> Iterator[pa.RecordBatch]:
        for file in run.files:
            for batch in merging.read(file, fields, batch_rows):
                nowhere = _constant(batch.num_rows, -1, np.int64, pa.int64()) if placed else None
                yield _label(batch, schema, file.level, -1, nowhere)

    return RunSource(run.files[0].name, run.row_count, guessed_row_bytes(run, len(fields)), batches)


def _schema(merging: Merging, *, placed: bool = True) -> pa.Schema:
    schema = to_arrow_schema(merging.file_fields)
    for name, kind in ((LEVEL, pa.int32()), (FILE, pa.int32()), (POSITION, pa.int64()))[: 3 if placed else 1]:
        schema = schema.append(pa.field(name, kind))
    return schema


def _label(
    batch: pa.RecordBatch, schema: pa.Schema, level: int, file: int, positions: pa.Array | None
) -> pa.RecordBatch:
    """The batch with where its rows come from; columns that were not read are null, system columns zero."""
    count = batch.num_rows
    names = set(batch.schema.names)
    arrays = []
    for field in schema:
        if field.name == LEVEL:
            arrays.append(_constant(count, level, np.int32, pa.int32()))
        elif field.name == FILE:
            arrays.append(_constant(count, file, np.int32, pa.int32()))
        elif field.name == POSITION:
            arrays.append(positions)
        elif field.name in names:
            arrays.append(batch.column(field.name))
        elif field.nullable:
            arrays.append(pa.nulls(count, field.type))
        else:
            arrays.append(_blank(count, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _blank(count: int, kind: pa.DataType) -> pa.Array:
    """Values of a column that nobody looks at and that may not be null."""
    if kind == pa.int64():
        return _constant(count, 0, np.int64, kind)
    if kind == pa.int8():
        return _constant(count, 0, np.int8, kind)
    return pa.nulls(count, kind)


def _constant(count: int, value: int, dtype: type[np.signedinteger], kind: pa.DataType) -> pa.Array:
    return from_numpy(np.full(count, value, dtype), kind)


def _is_exact(kind: pa.DataType) -> bool:
    """Whether values of a key column can be compared as Python values without loss."""
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_date(kind) or pa.types.is_string(kind))
