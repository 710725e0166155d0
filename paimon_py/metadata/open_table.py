"""A table under a schema, and the files of its buckets: the only place that locates, reads and deletes them.

New data files are created by `metadata.new_files`, which plain reading does not load.

Source: format.md §1.1, §1.2, §10; Java `FileStorePathFactory`, `DataFilePathFactory`, `IndexPathFactory`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from paimon_py.codec.binary_row import decode_one
from paimon_py.codec.partition_text import partition_directory
from paimon_py.errors import CorruptionError, StorageError
from paimon_py.expr.predicate import Predicate
from paimon_py.files.places import path_in, paths_in
from paimon_py.lazy import lazy_property
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.layout import bucket_path, data_file_path, index_directory
from paimon_py.spec.manifest import DELETION_VECTORS, DeletionPlace, IndexEntry
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Field
from paimon_py.storage.store import FileStatus, OpenRead

if TYPE_CHECKING:
    from paimon_py.codec.file_index.base import Answer
    from paimon_py.files.blob_columns import BlobColumn
    from paimon_py.files.reader import FileReader
    from paimon_py.files.small_files import SmallFile


class OpenTable:
    """A table under a schema: its location, its row type, its options, and the paths of its files.

    Attributes:
        root: the table as a place.
        schema: the schema in which rows are read and new files are written.
        options: the options of this schema.
    """

    __slots__ = ("_beside_data", "_directories", "_store", "options", "root", "schema")

    def __init__(self, root: TableRoot, schema: TableSchema, store: OpenRead | None = None) -> None:
        """`store`: used for reading in place of the table's own store, for example to count requests."""
        self.root = root
        self.schema = schema
        self.options = Options(schema.options)
        self._store = store
        self._beside_data = self.options.get_bool("index-file-in-data-file-dir")
        self._directories: dict[bytes, str] = {}

    @property
    def store(self) -> OpenRead:
        """The store for reading data files."""
        return self._store or self.root.files

    def __reduce__(self) -> tuple[type[OpenTable], tuple[TableRoot, TableSchema]]:
        """Pickles contain the root without secrets, and the schema; another process reads through its own store."""
        return OpenTable, (self.root, self.schema)

    def under(self, schema: TableSchema) -> OpenTable:
        """The same table under another schema, for example the latest one."""
        return self if schema is self.schema else OpenTable(self.root, schema)

    def newest(self) -> OpenTable:
        """The same table under its latest schema. Cost: as `TableRoot.newest`"""
        return self.under(self.root.newest(self.schema))

    def bucket(self, partition: bytes, bucket: int) -> BucketFiles:
        """The files of one bucket. `partition`: serialized BinaryRow."""
        return BucketFiles(self, partition, bucket)

    def partition_directory(self, partition: bytes) -> str:
        """The directory of a partition below the table; "" without partition keys."""
        directory = self._directories.get(partition)
        if directory is None:
            directory = self._directories[partition] = partition_directory(self.schema, partition)
        return directory

    def label(self, partition: bytes) -> str:
        """The name of a partition in messages."""
        return self.partition_directory(partition) or "the table"

    def index_path(self, entry: IndexEntry) -> str:
        """The path of an index file: outside the table, next to its data files, or below `index/`."""
        if entry.external_path is not None:
            return entry.external_path
        return data_file_path(self.index_directory(entry.partition, entry.bucket), entry.name)

    def index_directory(self, partition: bytes, bucket: int) -> str:
        """The directory for new index files of a bucket."""
        if self._beside_data:
            return bucket_path(self.root.path, self.schema, self.partition_directory(partition), bucket)
        return index_directory(self.root.path)

    def delete_index(self, entries: Iterable[IndexEntry]) -> None:
        """Delete index files that no snapshot references; files that cannot be deleted stay."""
        for entry in entries:
            with contextlib.suppress(StorageError):
                self.root.files.delete(self.index_path(entry))

    def deletion_places(self, entries: Iterable[IndexEntry]) -> dict[tuple[bytes, int], dict[str, DeletionPlace]]:
        """The places of the deletion vectors in an index manifest, per partition and bucket by name of data file.

        Cost: 1 µs per vector; nothing is read.
        Raises: CorruptionError if a data file has two deletion vectors.
        """
        places: dict[tuple[bytes, int], dict[str, DeletionPlace]] = {}
        for entry in entries:
            if entry.index_type != DELETION_VECTORS or not entry.deletion_vectors:
                continue
            path = self.index_path(entry)
            bucket = places.setdefault((entry.partition, entry.bucket), {})
            for part in entry.deletion_vectors:
                if part.data_file in bucket:
                    raise CorruptionError(f"{part.data_file} has two deletion vectors", path=path)
                bucket[part.data_file] = DeletionPlace(
                    path=path, offset=part.offset, length=part.length, cardinality=part.cardinality
                )
        return places


class BucketFiles:
    """The data files of one partition and bucket: locates, reads and deletes them.

    Attributes:
        table: the table.
        partition, bucket: serialized BinaryRow and number.
        directory: the directory of files of the bucket, unless their entries contain another path.
    """


    def __init__(self, table: OpenTable, partition: bytes, bucket: int) -> None:
        """Created by `OpenTable.bucket`.

        Raises: CorruptionError if the table's options name a directory outside the table.
        """
        self.table = table
        self.partition = partition
        self.bucket = bucket
        self.directory = bucket_path(table.root.path, table.schema, table.partition_directory(partition), bucket)

    @lazy_property
    def _partition_values(self) -> pa.RecordBatch | None:
        """The values of the partition columns, one row; files imported from other systems lack them."""
        fields = self.table.schema.partition_fields
        if not fields:
            return None
        columns = decode_one(self.partition, [field.type for field in fields])
        return pa.RecordBatch.from_arrays(columns, names=[field.name for field in fields])

    # -- where ------------------------------------------------------------------------------------------------------

    def path(self, file: DataFile) -> str:
        """The location of a data file: a path in the table's store, or a URL."""
        return path_in(self.directory, file)

    def paths(self, file: DataFile) -> tuple[str, ...]:
        """The locations of a data file and its extra files."""
        return paths_in(self.directory, file)

    def stat(self, file: DataFile) -> FileStatus | None:
        """The store's status of a data file; None if it does not exist."""
        return self.table.root.files.stat(self.path(file))

    def delete(self, files: Iterable[DataFile]) -> None:
        """Delete files that no snapshot references, with their extra files; files that cannot be deleted stay."""
        for file in files:
            for path in self.paths(file):
                with contextlib.suppress(StorageError):
                    self.table.root.files.delete(path)

    def delete_packs(self, names: Iterable[str]) -> None:
        """Delete packs of BLOBs that no row refers to; those that cannot be deleted stay."""
        for name in names:
            with contextlib.suppress(StorageError):
                self.table.root.files.delete(data_file_path(self.directory, name))

    # -- reading ----------------------------------------------------------------------------------------------------

    def schema_of(self, file: DataFile) -> TableSchema:
        """The schema that a data file was written with.

        Raises: SchemaError if it is a later one that gave a column another type.
        """
        return self.table.root.schemas.of_file(file.schema_id, self.table.schema)

    def reader(self, file: DataFile, fields: Sequence[Field], *, by_page: bool = False) -> FileReader:
        """A reader of the given columns of a data file; nothing is opened before first use. See `FileReader`.

        Raises: as `schema_of`
        """
        from paimon_py.files.reader import FileReader

        schema = self.schema_of(file)
        return FileReader(
            self.table.store, self.path(file), file, schema, fields, known=self._partition_values, by_page=by_page,
            spill=self.table.root.env.spill,
        )  # fmt: skip

    def small_file(self, file: DataFile) -> SmallFile:
        """A data file to read together with others."""
        from paimon_py.files.small_files import SmallFile

        return SmallFile(self.path(file), file, self._partition_values)

    def blob_column(self, field: Field, files: Sequence[DataFile], first_row_id: int, row_count: int) -> BlobColumn:
        """A column of the rows with ids from `first_row_id` on, stored in `.blob` files, newest first."""
        from paimon_py.files.blob_columns import BlobColumn, BlobFiles

        opened = BlobFiles(tuple(files), lambda file: self.table.store.open_read(self.path(file)), self.path)
        return BlobColumn(field, opened, first_row_id, row_count)

    def stored_rows(self, file: DataFile, fields: Sequence[Field]) -> Iterator[pa.RecordBatch]:
        """The stored rows of a data file: without merging or filtering.

        The types of columns may have changed since: callers that read keys may read files of any schema.

        Raises: as `FileReader.positions`
        """
        from paimon_py.files.reader import FileReader

        written = self.table.root.schemas.get(file.schema_id)
        reader = FileReader(
            self.table.store, self.path(file), file, written, fields, known=self._partition_values,
            spill=self.table.root.env.spill,
        )  # fmt: skip
        return (batch for _, batch in reader.positions())

    def matching(self, file: DataFile, predicate: Predicate, read: Sequence[Field] | None = None) -> Answer:
        """The rows of a data file that may match by its file indexes. See `files.file_index.matching`.

        `read`: the columns that are read from this file; None: all.
        """
        from paimon_py.files.file_index import matching

        fields = self.schema_of(file).fields
        if read is not None:
            ids = {field.id for field in read}
            fields = tuple(field for field in fields if field.id in ids)
        return matching(self.table.store, self.path(file), file, fields, predicate)
