"""Resolves BLOB views: values of a column of another table in the same warehouse, by row id.

Source: format.md §26; Java `BlobViewResolver`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from paimon_py.codec.blob_refs import BlobRef, BlobViewRef
from paimon_py.codec.columns import numpy_values
from paimon_py.errors import CorruptionError, NotFoundError, UnsupportedError
from paimon_py.expr.bind import bind
from paimon_py.files.physical import ROW_ID_FIELD, evolves_columns
from paimon_py.metadata.blob_access import BlobAccess
from paimon_py.metadata.deletion_files import read_deletions
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.row_ranges import row_ranges
from paimon_py.scan.aligned_rows import AlignedRows
from paimon_py.scan.plan import aligned_sections
from paimon_py.scan.prune_entries import check_entries
from paimon_py.scan.request import Request
from paimon_py.scan.row_ids import with_row_id
from paimon_py.scan.split import Section
from paimon_py.spec.blobs import BlobPlace, blob_place, is_blob
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.schema import ROW_ID, TableSchema
from paimon_py.spec.snapshot import Snapshot
from paimon_py.spec.supported import check_readable
from paimon_py.spec.types import Field

_BATCH_ROWS = 65_536


class _Place(msgspec.Struct, frozen=True):
    """Rows of another table: their section and bucket, the first row id, and the id after the last one."""

    section: Section
    partition: bytes
    bucket: int
    first: int
    end: int


class BlobViews:
    """Reads the values that views of one table refer to."""

    def __init__(self, root: TableRoot) -> None:
        self._root = root
        self._others: dict[str, _Other] = {}

    def values(self, refs: Sequence[BlobViewRef | None]) -> list[bytes | None]:
        """The bytes that views refer to, as of the latest snapshot of the other tables.

        Raises:
            UnsupportedError: the other table cannot be the target of views.
            NotFoundError: the table, column or row does not exist (any more).
        """
        wanted: dict[tuple[str, int], set[int]] = {}
        for ref in refs:
            if ref is not None:
                wanted.setdefault((ref.table, ref.field_id), set()).add(ref.row_id)
        found = {key: self._other(key[0]).values(key[1], sorted(ids)) for key, ids in wanted.items()}
        return [None if ref is None else found[ref.table, ref.field_id].get(ref.row_id) for ref in refs]

    def _other(self, name: str) -> _Other:
        if name not in self._others:
            self._others[name] = _Other(self._open(name), name)
        return self._others[name]

    def _open(self, name: str) -> TableRoot:
        database, _, table = name.partition(".")
        parent = self._root.path.rstrip("/").rpartition("/")[0]
        warehouse, _, own = parent.rpartition("/")
        if self._root.registration is not None or not own.endswith(".db"):
            raise UnsupportedError(
                f"a view leads to the table {name}, and views are followed only in warehouses of a file system",
                feature="views of BLOBs",
            )
        if not database or not table or {"/", "$", "\0"} & set(name) or name.startswith("."):
            raise CorruptionError(f"a view names {name!r}, which is not a table")
        root = self._root
        return TableRoot(root.store, f"{warehouse}/{database}.db/{table}", root.env, root.files.options)


class _Other:
    """Another table as of its latest snapshot."""

    def __init__(self, root: TableRoot, name: str) -> None:
        self._root = root
        self._name = name
        self._schema = root.schemas.latest()
        check_readable(self._schema)
        if not evolves_columns(self._schema):
            raise UnsupportedError(
                f"a view leads to the table {name}, which lacks data-evolution.enabled", feature="views of BLOBs"
            )
        self._files = OpenTable(root, self._schema)
        self._snapshot = root.latest()
        self._places = [] if self._snapshot is None else list(self._sections(self._snapshot))

    def values(self, field_id: int, ids: Sequence[int]) -> dict[int, bytes | None]:
        """The values of a column for rows, by row id."""
        field = self._field(field_id)
        found: dict[int, bytes | None] = {}
        for place in self._places:
            own = [number for number in ids if place.first <= number < place.end]
            if own:
                found |= self._read(place, field, own)
        lost = next((number for number in ids if number not in found), None)
        if lost is not None:
            raise NotFoundError(f"a view leads to row {lost} of {self._name}, which no longer exists")
        if blob_place(self._schema, field) is BlobPlace.REFERENCE:
            access = BlobAccess(self._root)
            try:
                return {
                    number: None if value is None else access.read(BlobRef.from_bytes(value))
                    for number, value in found.items()
                }
            finally:
                access.close()
        return found

    def _field(self, field_id: int) -> Field:
        field = next((field for field in self._schema.fields if field.id == field_id), None)
        if field is None or not is_blob(field.type):
            raise NotFoundError(f"a view leads to column {field_id} of {self._name}, not one of its BLOB columns")
        if blob_place(self._schema, field) is BlobPlace.VIEW:
            message = f"a view leads to column {field.name} of {self._name}, which itself contains views"
            raise UnsupportedError(message, feature="views of views")
        return field

    def _read(self, place: _Place, field: Field, ids: Sequence[int]) -> dict[int, bytes | None]:
        schema = _with_ids(self._schema)
        predicate = bind(with_row_id(None, np.array(ids, np.int64)), schema.fields)
        request = Request(schema=schema, columns=(field.name,), predicate=predicate)
        rows = AlignedRows(self._files.bucket(place.partition, place.bucket), request, None)
        assert self._snapshot is not None
        dead = read_deletions(self._root.files, self._deletions.get((place.partition, place.bucket), {}))
        found: dict[int, bytes | None] = {}
        for batch in rows.read(place.section, (field, ROW_ID_FIELD), dead, _BATCH_ROWS):
            numbers = numpy_values(batch.column(ROW_ID)).tolist()
            found |= dict(zip(numbers, batch.column(field.name).to_pylist(), strict=True))
        return {number: found[number] for number in ids if number in found}

    def _sections(self, snapshot: Snapshot) -> Iterator[_Place]:
        entries = self._root.manifests.live_entries(snapshot, EntryFilter())
        check_entries(entries, self._schema, self._root.schemas.get)
        index = [] if snapshot.index_manifest is None else self._root.manifests.read_index(snapshot.index_manifest)
        self._deletions = self._files.deletion_places(index)
        grouped = aligned_sections(entries, row_ranges(entries))
        partitions = entries.partitions().to_pylist()
        for runs in grouped.sections:
            numbers = [number for run in runs for number in run]
            files = [grouped.files[number] for number in numbers]
            section = Section(runs=tuple((file,) for file in files), raw=True, aligned=True)
            first, count = _span(section.counted_files[0])
            at = numbers[0]
            yield _Place(section, partitions[at], int(entries.bucket[at]), first, first + count)


def _span(file: DataFile) -> tuple[int, int]:
    assert file.first_row_id is not None
    return file.first_row_id, file.row_count


def _with_ids(schema: TableSchema) -> TableSchema:
    return msgspec.structs.replace(schema, fields=(*schema.fields, ROW_ID_FIELD))
