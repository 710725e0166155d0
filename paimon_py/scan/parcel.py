"""Reads several splits of one state, whose small files are decoded together, and merged together.

To begin a file or a merge takes longer than to decode or merge a few rows. The rows are those of the splits read one
after the other.

Worked example: three partitions have two overlapping runs each. The older runs become one run, and so do the newer
ones, with the number of the partition's section before the key: (0, …), (1, …), (2, …). One merge returns the rows of
the first section, then those of the second and the third.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import from_numpy
from paimon_py.env import is_distant
from paimon_py.errors import CorruptionError
from paimon_py.expr.arrow import Filter
from paimon_py.files.file_index import has_index
from paimon_py.files.small_files import TOGETHER_ROWS, is_small
from paimon_py.lsm.merge import RunSource, merge
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.request import RAW_BATCH_ROWS, Request, keep
from paimon_py.scan.small_splits import SmallFiles
from paimon_py.scan.split import Section, Split
from paimon_py.scan.split_reader import SplitReader
from paimon_py.spec.schema import unused_name
from paimon_py.spec.types import Atomic, Field, Root

_NUMBER_ID = 2_147_483_639
"""The id of the column with the numbers of sections, which no file stores."""


class _Part(msgspec.Struct, frozen=True):
    """A section, its reader, and the columns to decode; `is_small`: all of its files are read together with others."""

    reader: SplitReader
    section: Section
    fields: tuple[Field, ...]
    is_small: bool

    @property
    def row_count(self) -> int:
        return sum(file.row_count for file in self.section.files)


class SplitParcel:
    """Splits of one state, whose rows are rows of the table."""

    def __init__(self, root: TableRoot, request: Request, splits: Sequence[Split]) -> None:
        first = SplitReader(root, request, splits[0])
        self._readers = [first, *(SplitReader(root, request, split, beside=first) for split in splits[1:])]
        self._root = root
        self._request = request
        self._small = SmallFiles()

    def living(self) -> Iterator[pa.RecordBatch]:
        """One live row per key, split by split and section by section; rows that cannot match may be missing."""
        if is_distant(self._root.path) or self._request.first_rows is not None:
            for reader in self._readers:
                yield from reader.living()
            return
        for kind, parts in self._groups():
            if kind == "raw" and len(parts) > 1:
                yield from self._raw(parts)
            elif kind == "merged" and len(parts) > 1:
                yield from self._merge(parts)
            else:
                for part in parts:
                    yield from part.reader.living_of(part.section)

    def _groups(self) -> list[tuple[str, list[_Part]]]:
        """Neighbouring sections that are read alike: several small ones, or one of another kind."""
        groups: list[tuple[str, list[_Part]]] = []
        rows = 0
        for part in self._parts():
            kind = self._kind(part)
            rows += part.row_count
            if groups and kind:
                last, parts = groups[-1]
                if kind == last and parts[0].fields == part.fields and rows <= TOGETHER_ROWS:
                    parts.append(part)
                    continue
            groups.append((kind, [part]))
            rows = part.row_count
        return groups

    def _kind(self, part: _Part) -> str:
        if not part.is_small:
            return ""
        if len(part.section.runs) > 1:
            return "merged"
        dead = part.reader.split.deletions
        has_dead = bool(dead) and any(file.name in dead for file in part.section.files)
        return "raw" if part.section.raw and not has_dead else ""

    def _parts(self) -> Iterator[_Part]:
        """All sections, whose small files are announced."""
        asks = self._request.asks_indexes
        for reader in self._readers:
            reader.small = self._small
            for section in reader.split.sections:
                fields = () if section.aligned else reader.stored_fields(section)
                all_small = bool(fields)
                for file in section.files if fields else ():
                    if not is_small(file) or (asks and has_index(file)):
                        all_small = False
                        continue
                    stored = reader.stamps.stored_fields(file, fields)
                    all_small = self._small.expect(reader.files, file, stored) and all_small
                yield _Part(reader, section, fields, all_small)

    def _raw(self, parts: Sequence[_Part]) -> Iterator[pa.RecordBatch]:
        """The rows of files that are the rows of the table."""
        files = [(part, file) for part in parts for file in part.section.files]
        rest = iter(files)
        for count, batch in self._small.runs(part.reader.files.path(file) for part, file in files):
            found = list(itertools.islice(rest, count))
            if batch is not None:
                yield batch
                continue
            for part, file in found:
                yield from part.reader.run(part.section, part.fields, [file], RAW_BATCH_ROWS)

    def _merge(self, parts: Sequence[_Part]) -> Iterator[pa.RecordBatch]:
        """The merged rows of sections that overlap no others."""
        if not self._small.has_all(part.reader.files.path(file) for part in parts for file in part.section.files):
            for part in parts:
                yield from part.reader.living_of(part.section)
            return
        name = unused_name("_SECTION", [field.name for field in parts[0].fields])
        key = Field(_NUMBER_ID, name, Atomic(Root.INT, nullable=False))
        plan = parts[0].reader.merge_plan()
        plan = msgspec.structs.replace(plan, order=msgspec.structs.replace(plan.order, keys=(key, *plan.order.keys)))
        ages = max(len(part.section.runs) for part in parts)
        try:
            found = list(merge([self._source(parts, age, key.name) for age in range(ages)], plan))
        except CorruptionError:  # each file by itself: the error names the damaged one
            found = [batch for part in parts for batch in part.reader.living_of(part.section)]
        yield from found

    def _source(self, parts: Sequence[_Part], age: int, name: str) -> RunSource:
        """The runs of one age of all sections, as one run; `name`: of the column with the number of the section."""
        having = [(number, part) for number, part in enumerate(parts) if age < len(part.section.runs)]
        files = [file for _, part in having for file in part.section.runs[age]]
        rows, size = sum(file.row_count for file in files), sum(file.size_bytes for file in files)

        def batches(batch_rows: int) -> Iterator[pa.RecordBatch]:
            found = [
                (number, batch)
                for number, part in having
                for batch in part.reader.run(part.section, part.fields, part.section.runs[age], batch_rows)
                if batch.num_rows
            ]
            if found:
                yield from _with_numbers(found, name, self._request.key_mask)

        return RunSource(files[0].name, rows, max(16, 3 * size // max(1, rows)), batches)


def _with_numbers(
    found: Sequence[tuple[int, pa.RecordBatch]], name: str, mask: Filter | None
) -> Iterator[pa.RecordBatch]:
    """Batches with the numbers of their sections as a column, together, without rows whose keys cannot match."""
    table = pa.Table.from_batches([batch for _, batch in found])
    numbers = np.repeat(np.array([number for number, _ in found], np.int32), [batch.num_rows for _, batch in found])
    table = table.append_column(pa.field(name, pa.int32(), nullable=False), from_numpy(numbers, pa.int32()))
    for batch in table.combine_chunks().to_batches():
        yield keep(batch, mask)
