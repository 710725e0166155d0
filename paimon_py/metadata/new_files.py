"""New data files of one bucket: their names, their paths, and their writers.

Source: format.md §1.1; Java `KeyValueFileWriterFactory`, `DataFilePathFactory`.
"""

from __future__ import annotations

from paimon_py.files.blob_writer import BlobFileWriter
from paimon_py.files.naming import DataFileNames, FileNames, NamesAgain
from paimon_py.files.places import bucket_place
from paimon_py.files.writer import FileLayout, RollingWriter
from paimon_py.metadata.open_table import BucketFiles
from paimon_py.spec.types import Field


class NewFiles:
    """Creates the files of one writer of a bucket, under unique names and in the directories that options set."""

    __slots__ = ("_names", "_place", "_root")

    def __init__(self, files: BucketFiles, *, prefix: str | None = None, again: str | None = None) -> None:
        """New files of a bucket, with names as the options of its schema set; `prefix`: the prefix of these names.

        `again`: the name of a file that is rewritten; the new name contains it.

        Raises: OptionError if the options for external paths contradict each other.
        """
        table = files.table
        self._root = root = table.root
        directory = table.partition_directory(files.partition)
        self._place = bucket_place(root.path, table.schema, directory, files.bucket, root.env.ids)
        ids, options = root.env.ids, table.schema.options
        self._names: FileNames = NamesAgain(again, ids) if again else DataFileNames(options, ids, prefix=prefix)

    def begin_blobs(self, field: Field, *, schema_id: int, target_bytes: int) -> BlobFileWriter:
        """A writer of `.blob` files of one column, which starts a new file at a size."""
        return BlobFileWriter(
            self._root.files, self._place, self._names, field, schema_id=schema_id, target_bytes=target_bytes
        )

    def begin(self, layout: FileLayout, first_sequence: int = 0) -> RollingWriter:
        """A writer of new files. `first_sequence`: the number of the first row of an append table."""
        root = self._root
        return RollingWriter(
            root.files, self._place, self._names, layout, root.env.clock, first_sequence=first_sequence
        )
