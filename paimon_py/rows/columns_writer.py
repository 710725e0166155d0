"""Writes new values of columns for all rows of a range: a file with the columns, and one with vectors.

Source: format.md §24, §26; Java `DataEvolutionPartialWriter`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from types import TracebackType

import msgspec
import pyarrow as pa

from paimon_py.errors import PaimonError, UnsupportedError
from paimon_py.files.column_files import ColumnFiles
from paimon_py.files.layout import FileLayout, vector_layout, whole_layout
from paimon_py.metadata.new_files import NewFiles
from paimon_py.spec.data_file import DataFile, FileSource
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Field
from paimon_py.spec.vector_files import vectors_apart


class ColumnParts(msgspec.Struct, frozen=True):
    """Columns to write by the file that contains them.

    Attributes:
        plain: the columns of an ordinary file.
        vectors: vectors in a separate file; those that are not set are written again.
        schema_id: the schema of that file.
    """

    plain: tuple[Field, ...]
    vectors: tuple[Field, ...]
    schema_id: int

    @property
    def fields(self) -> tuple[Field, ...]:
        """All columns."""
        return (*self.plain, *self.vectors)


def column_parts(schema: TableSchema, fields: Sequence[Field], rows: ColumnFiles) -> ColumnParts:
    """The columns to write where some are set. `rows`: the files of the range.

    A file with vectors replaces older ones for Java 2.0 only if it contains the same columns under the same schema:
    Java reads the file with the smallest schema first, whatever its age.

    Raises: UnsupportedError if that is impossible, so that Java would return old values.
    """
    apart = vectors_apart(schema)
    plain = tuple(field for field in fields if field not in apart)
    vectors = tuple(field for field in fields if field in apart)
    older = {file.name: file for files in rows.apart(vectors).values() for file in files} if vectors else {}
    if not older:
        return ColumnParts(plain, vectors, schema.id)
    written = rows.schema_of(min(older.values(), key=lambda file: file.schema_id))
    names = {file.write_columns for file in older.values()}
    stored = tuple(field for field in written.fields if field.name in (next(iter(names)) or ()))
    now = {field.id: field for field in schema.fields}
    if len(names) > 1 or any(now.get(field.id) != field for field in stored):
        raise UnsupportedError(
            f"column {vectors[0].name} cannot be set: a schema change has renamed, changed, added or dropped vectors"
            " since the files of these rows were written, and Java 2.0 would return the old values; delete the rows and"
            " write them again",
            feature="new values of vectors in separate files after a change of vector columns",
        )
    return ColumnParts(plain, stored, written.id)


class ColumnsWriter:
    """Writes columns of the rows of one range. A context manager, which finishes or deletes the files.

    Attributes:
        files: the finished files.
    """

    def __init__(self, place: NewFiles, schema: TableSchema, parts: ColumnParts, rows: ColumnFiles) -> None:
        """`rows`: the files of the range."""
        self._rows = rows
        layouts = _layouts(schema, parts)
        self._schemas = [parts.schema_id if layout.is_vectors else schema.id for layout in layouts]
        self._writers = [place.begin(layout) for layout in layouts]
        self.files: list[DataFile] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Add values of rows, in the order of the range. Shapes: a batch with the columns of all files."""
        for writer in self._writers:
            writer.write(batch)

    def __enter__(self) -> ColumnsWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            made = [] if kind is not None else [writer.close() for writer in self._writers]
        except BaseException:
            self._abort()
            raise
        if kind is not None:
            self._abort()
        for (file,), schema_id in zip(made, self._schemas, strict=False):
            self.files.append(
                msgspec.structs.replace(
                    file, first_row_id=self._rows.first_row_id, min_sequence=0, max_sequence=0, schema_id=schema_id
                )
            )

    def _abort(self) -> None:
        for writer in self._writers:
            with contextlib.suppress(PaimonError):
                writer.abort()


def _layouts(schema: TableSchema, parts: ColumnParts) -> list[FileLayout]:
    found = []
    if parts.plain:
        names = [field.name for field in parts.plain]
        found.append(whole_layout(schema, source=FileSource.APPEND, columns=names))
    if parts.vectors:
        found.append(vector_layout(schema, columns=[field.name for field in parts.vectors]))
    return found
