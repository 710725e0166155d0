"""New data files of one bucket: their names, their places, and the writers that fill them.

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
    """Begins the files of one writer of a bucket, under names of their own and at the places that options ask for."""

    __slots__ = ("_names", "_place", "_root")

    def __init__(self, files: BucketFiles, *, prefix: str | None = None, again: str | None = None) -> None:
        """New files of a bucket, in the names that the options of its schema ask for; `prefix`: of these names.

        `again`: the name of a file that is written again; the new name tells whose place the new file takes.

        Raises: OptionError if the options for external paths contradict each other.
        """
        table = files.table
        self._root = root = table.root
        directory = table.partition_directory(files.partition)
        self._place = bucket_place(root.path, table.schema, directory, files.bucket, root.env.ids)
        ids, options = root.env.ids, table.schema.options
        self._names: FileNames = NamesAgain(again, ids) if again else DataFileNames(options, ids, prefix=prefix)

    def begin_blobs(self, field: Field, *, schema_id: int, target_bytes: int) -> BlobFileWriter:
        """A writer of `.blob` files of one column, whose files begin anew at a size."""
        return BlobFileWriter(
            self._root.files, self._place, self._names, field, schema_id=schema_id, target_bytes=target_bytes
        )

    def begin(self, layout: FileLayout, first_sequence: int = 0) -> RollingWriter:
        """A writer of new files. `first_sequence`: of the first row of an append table."""
        root = self._root
        return RollingWriter(
            root.files, self._place, self._names, layout, root.env.clock, first_sequence=first_sequence
        )
