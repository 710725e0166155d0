"""New data files of one bucket: their names, their paths, and their writers.

Source: format.md §1.1; Java `KeyValueFileWriterFactory`, `DataFilePathFactory`.
"""

from __future__ import annotations

from typing import NamedTuple

from paimon_py.files.blob_packs import PackWriter
from paimon_py.files.blob_writer import BlobFileWriter
from paimon_py.files.layout import FileLayout
from paimon_py.files.naming import DataFileNames, FileNames, NameRules, ReplacementNames
from paimon_py.files.places import BucketPlace
from paimon_py.files.writer import RollingWriter
from paimon_py.metadata.open_table import BucketFiles, OpenTable
from paimon_py.spec.external_paths import ExternalPaths, external_paths
from paimon_py.spec.layout import relative_bucket_path
from paimon_py.spec.types import Field


class FileRules(NamedTuple):
    """The common rules for the new files of all buckets of a table: names, and directories outside the table."""

    names: NameRules
    external: ExternalPaths | None

    @classmethod
    def of(cls, table: OpenTable, *, prefix: str | None = None) -> FileRules:
        """The rules that options of the schema set; `prefix`: of the names, in place of the option.

        Raises: OptionError if the options for names or external paths are invalid.
        """
        return cls(NameRules.of(table.options, prefix=prefix), external_paths(table.options))


class NewFiles:
    """Creates the files of one writer of a bucket, under unique names and in the directories that options set."""

    __slots__ = ("_names", "_place", "_root")

    def __init__(self, files: BucketFiles, rules: FileRules | None = None, *, again: str | None = None) -> None:
        """New files of a bucket; `rules`: those of its table, which a writer of many buckets asks for once.

        `again`: the name of a file that is rewritten; the new name contains it.

        Raises: OptionError if the options for names or external paths are invalid.
        """
        table = files.table
        self._root = root = table.root
        rules, ids = rules or FileRules.of(table), root.env.ids
        self._names: FileNames = ReplacementNames(again, ids) if again else DataFileNames(rules.names, ids)
        self._place = BucketPlace(files.directory)
        if rules.external is not None:
            relative = relative_bucket_path(table.schema, table.partition_directory(files.partition), files.bucket)
            self._place = BucketPlace(files.directory, relative=relative, external=rules.external, ids=ids)

    def begin_blobs(self, field: Field, *, schema_id: int, target_bytes: int) -> BlobFileWriter:
        """A writer of `.blob` files of one column, which starts a new file at a size."""
        return BlobFileWriter(
            self._root.files, self._place, self._names, field, schema_id=schema_id, target_bytes=target_bytes
        )

    def begin_packs(self, target_bytes: int) -> PackWriter:
        """A writer of packs of BLOBs, which starts a new pack at a size."""
        return PackWriter(self._root.files, self._place, self._names, target_bytes)

    def begin(self, layout: FileLayout, first_sequence: int = 0) -> RollingWriter:
        """A writer of new files. `first_sequence`: the number of the first row of an append table."""
        root = self._root
        return RollingWriter(
            root.files, self._place, self._names, layout, root.env.clock, first_sequence=first_sequence
        )
