"""Compaction by lookup: combines new rows of level 0 with the older row of their key in the levels above the output.

The levels above are read as further sorted runs, in key order, within the key range of level 0; only their keys if the
old values are not needed. Their rows are never part of the output unchanged. If one of them is the current row of its
key, then, depending on the table, its position is recorded for the deletion vector of its file, or its values take part
in the merge, or the new row is dropped because the first row wins. In a changelog it is the row before the change.

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
from paimon_py.compaction.rewrite import Merging, estimate_row_bytes
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
"""The number of the higher file that a row comes from, −1 for rows of the compaction; never stored."""

Bounds = tuple[object, object]
"""The smallest and largest relevant values of the leading key column."""

ReadPositions = Callable[[DataFile, Sequence[Field], int, Union[Bounds, None]], Iterator[pa.RecordBatch]]
"""Reads the live rows of a data file, in file order: the given columns and `_POSITION`, in non-empty batches of at most
the given number of rows. Rows outside the bounds may be omitted."""

_PENDING_MAX = 1 << 18
_NO_LEVEL = np.iinfo(np.int32).max


class _KeyRange(NamedTuple):
    """The key range of level 0: bounds of the leading key column, if they can be determined, and the last key."""

    bounds: Bounds | None
    last: Key


class LookupRules(msgspec.Struct, frozen=True, kw_only=True):
    """The treatment of a row that is found in a level above.

    Attributes:
        marks: the row is deleted; its position is added to the deletion vector of its file.
        merges: the row takes part in the merge, so its values are read; otherwise only the keys are.
        first_wins: the row stays, and the new rows of its key are dropped.
    """

    marks: bool
    merges: bool
    first_wins: bool = False

    @classmethod
    def of(cls, schema: TableSchema, *, emits_changelog: bool = False) -> LookupRules:
        """The rules of a table that compacts by lookup. `emits_changelog`: a changelog needs the old values."""
        options = Options(schema.options)
        engine = options.get_enum("merge-engine")
        if engine == "first-row":
            return cls(marks=False, merges=False, first_wins=True)
        newest_wins = engine == "deduplicate" and not options.get_list("sequence.field")
        marks = options.get_bool("deletion-vectors.enabled")
        places_do = marks and newest_wins and not options.get_bool("ignore-delete")
        return cls(marks=marks, merges=emits_changelog or not places_do)


class ObsoleteRows:
    """Positions of the rows that a compaction has made obsolete, by file name."""

    def __init__(self) -> None:
        self._vectors: dict[str, DeletionVector] = {}
        self._pending: dict[str, list[Ints]] = {}
        self._count = 0

    def add(self, name: str, positions: Ints) -> None:
        """Record rows of a file."""
        self._pending.setdefault(name, []).append(positions)
        self._count += len(positions)
        if self._count > _PENDING_MAX:
            self._settle()

    @property
    def vectors(self) -> Mapping[str, DeletionVector]:
        """The positions recorded so far, as deletion vectors by file name."""
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
    """The levels above the output of one compaction, prepared for lookups.

    `files`: the files to compact. `higher`: the live files above the output level, each with its keys.
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
        """The key range of each file, as ranks."""
        every = [*self._files, *self._higher]
        types = [field.type for field in self._keys]
        lows, highs = key_ranks([file.min_key for file in every], [file.max_key for file in every], types)
        return {file.name: pair for file, *pair in zip(every, lows.tolist(), highs.tolist(), strict=True)}

    def rows(self, section: Sequence[SortedRun], merging: Merging) -> Iterator[pa.RecordBatch]:
        """The output rows of one section of the compaction; the rows they replace above are recorded in `found`.

        Shapes: out — `merging.file_fields`, ordered by key, each key at most once.
        Cost: besides the section, reads the key columns (all columns if values are merged) of the higher files within
            the key range of level 0; two merge windows in memory.
        """
        yield from self._merge(section, merging, self._above(section))

    def look_up(self, file: DataFile, merging: Merging) -> None:
        """Record the rows above that a level 0 file replaces, and emit its changes; the file itself stays unchanged.

        Cost: reads the key columns of the file, and those above within its key range; all columns for a changelog.
        """
        section = (SortedRun((file,)),)
        above = self._above(section)
        if merging.emitter is not None:
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
        key_range = self._key_range(section) if above else None
        sources = [
            self._source_above(level, run, merging, names, key_range)
            for level, run in reversed(above)
            if key_range is not None
        ]
        sources += [_source(run, merging, with_origin=bool(names)) for run in oldest_first(section)]
        plan = Plan(
            order=merging.order,
            engine=_LookupEngine(merging, self.rules, tuple(names), self.found),
            columns=tuple(field.name for field in fields),
            drop_deletes=merging.drop_deletes,
            window_rows=merging.window.rows,
            window_bytes=merging.window.size_bytes,
        )
        yield from merge(sources, plan)

    def _above(self, section: Sequence[SortedRun]) -> list[tuple[int, SortedRun]]:
        """The runs above that may contain keys of the section's level 0, lowest level first."""
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

    def _key_range(self, section: Sequence[SortedRun]) -> _KeyRange:
        new = [file for run in section for file in run.files if file.level == 0]
        lowest = min(new, key=lambda file: self._ranks[file.name][0])
        highest = max(new, key=lambda file: self._ranks[file.name][1])
        columns = decode([lowest.min_key, highest.max_key], [field.type for field in self._keys])
        bounds = None
        if not columns[0].null_count and _is_exact(columns[0].type):
            bounds = (columns[0][0].as_py(), columns[0][1].as_py())
        return _KeyRange(bounds, KeyProbe(columns).key(1))

    def _source_above(
        self, level: int, run: SortedRun, merging: Merging, names: Sequence[str], key_range: _KeyRange
    ) -> RunSource:
        fields = merging.file_fields if self.rules.merges else self._keys
        schema = _schema(merging)
        keys = [field.name for field in self._keys]

        def batches(batch_rows: int) -> Iterator[pa.RecordBatch]:
            for file in run.files:
                number = names.index(file.name)
                for batch in self._read(file, fields, batch_rows, key_range.bounds):
                    if KeyProbe([batch.column(name).slice(0, 1) for name in keys]).key(0) > key_range.last:
                        return
                    yield _with_origin(batch, schema, level, number, batch.column(POSITION))

        return RunSource(run.files[0].name, run.row_count, estimate_row_bytes(run, len(fields)), batches)


class _LookupEngine(msgspec.Struct, frozen=True):
    """The merge engine of a compaction by lookup: selects the rows to merge, and has the table's engine merge them."""

    merging: Merging
    rules: LookupRules
    names: tuple[str, ...]
    found: ObsoleteRows

    def inputs(self, wanted: frozenset[str]) -> frozenset[str]:
        """The columns that the table's engine reads."""
        return self.merging.engine.inputs(wanted)

    def __call__(self, groups: Groups, columns: Mapping[str, pa.ChunkedArray]) -> Merged:
        """Merge to one row for each key that the compaction contains and that is not dropped.

        Of the levels above 0 only the lowest one holds the current row of a key; a row from above the output level is
        used only if it is that row.
        Cost: 20 ns a row.
        """
        order, firsts = groups.order, groups.firsts
        levels = numpy_values(combine_chunks(columns[LEVEL]))[order]
        number: Ints = np.cumsum(groups.starts) - 1
        is_current = _find_current(levels, number, firsts)
        keep: Mask = np.ones(len(order), np.bool_)
        files: Ints = numpy_values(combine_chunks(columns[FILE]))[order] if self.names else np.empty(0, np.int64)
        above = files >= 0
        if above.any():
            is_ours = np.logical_or.reduceat(~above, firsts)[number]
            replaced = is_current & above & is_ours
            if self.rules.marks and replaced.any():
                self._record(files[replaced], numpy_values(combine_chunks(columns[POSITION]))[order[replaced]])
            keep = is_ours if self.rules.merges else ~above
            if self.rules.first_wins:
                keep &= ~np.logical_or.reduceat(replaced, firsts)[number]
        if not self.rules.first_wins:
            keep &= (levels == 0) | is_current
        kept = groups
        keys = np.arange(len(firsts))
        if not keep.all():
            starts = np.diff(number[keep], prepend=-1) > 0
            kept, keys = Groups(order[keep], starts), number[keep][starts]
        if not len(keys):
            return Merged(np.empty(0, np.int64))
        merged = self.merging.engine(Groups(kept.order, kept.starts, merging=np.arange(len(keys))), columns)
        if self.merging.emitter is not None:
            places, before = np.flatnonzero(is_current), np.full(len(firsts), -1, np.int64)
            before[number[places]] = order[places]
            before = before[keys]
            reported = before < 0 if self.rules.first_wins else kept.ends - kept.firsts > (before >= 0)
            self.merging.emitter.on_merge(columns, before, merged, reported)
        return merged

    def _record(self, files: Ints, positions: Ints) -> None:
        for number in np.unique(files).tolist():
            self.found.add(self.names[number], positions[files == number])


def _find_current(levels: AnyArray, number: Ints, firsts: Ints) -> Mask:
    """Whether each row is the current one of its key: in the lowest level above 0. `number`: the keys of the rows."""
    high: Mask = levels > 0
    found = levels[high]
    if len(found) and found.min() != found.max():
        lowest = np.minimum.reduceat(np.where(high, levels, _NO_LEVEL), firsts)
        high &= levels == lowest[number]
    return high


def _source(run: SortedRun, merging: Merging, *, with_origin: bool) -> RunSource:
    """A run of the compaction. `with_origin`: with the columns for the origin of a row, as in the runs above."""
    schema = _schema(merging, with_origin=with_origin)
    fields = merging.file_fields

    def batches(batch_rows: int) -> Iterator[pa.RecordBatch]:
        for file in run.files:
            for batch in merging.read(file, fields, batch_rows):
                no_positions = _constant(batch.num_rows, -1, np.int64, pa.int64()) if with_origin else None
                yield _with_origin(batch, schema, file.level, -1, no_positions)

    return RunSource(run.files[0].name, run.row_count, estimate_row_bytes(run, len(fields)), batches)


def _schema(merging: Merging, *, with_origin: bool = True) -> pa.Schema:
    schema = to_arrow_schema(merging.file_fields)
    for name, kind in ((LEVEL, pa.int32()), (FILE, pa.int32()), (POSITION, pa.int64()))[: 3 if with_origin else 1]:
        schema = schema.append(pa.field(name, kind))
    return schema


def _with_origin(
    batch: pa.RecordBatch, schema: pa.Schema, level: int, file: int, positions: pa.Array | None
) -> pa.RecordBatch:
    """The batch with columns for the origin of its rows; columns that were not read are null, system columns zero."""
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
    """Placeholder values of an unused column that may be required."""
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
