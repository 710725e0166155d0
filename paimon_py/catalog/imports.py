"""Import methods of `Catalog`: bring in tables and files of other programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from paimon_py.arguments import NameList, as_mapping, as_names, check_flag, check_progress, with_location
from paimon_py.catalog.verbs import CatalogVerbs
from paimon_py.errors import UsageError
from paimon_py.progress import Progress

if TYPE_CHECKING:
    from paimon_py.imports.foreign import ForeignRequest
    from paimon_py.imports.result import ImportResult


@with_location(lambda catalog: catalog.warehouse)
class CatalogImports(CatalogVerbs):
    """Methods of `Catalog` that import data written by other programs."""

    __slots__ = ()

    def import_files(  # noqa: PLR0913
        self,
        name: str,
        source: str | PurePath,
        *,
        format: str | None = None,
        partition_by: Sequence[str] | Mapping[str, str] | None = None,
        copy: bool = False,
        dry_run: bool = False,
        verify: bool = False,
        primary_key: NameList = (),
        table_options: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> ImportResult:
        """Import the Parquet, ORC and Avro files of a directory into a table, which is created if it does not exist.

        Files stay where they are and become files of the table (`copy=False`), or their rows are rewritten. Another
        call imports the files added since, each file once; an interrupted call can be repeated. paimon_py renames,
        changes or deletes nothing at the source, now or later.

        Args:
            name: `database.table`. A new table gets the columns of the files, all of which may be NULL, followed by the
                partition keys.
            source: a directory or URL; hidden files and `_SUCCESS` are skipped.
            format: `"parquet"`, `"orc"` or `"avro"`; by default the file names determine it.
            partition_by: partition keys, as a list (their values are STRING) or with types; by default taken from
                directories named `key=value`. An existing table's own types take precedence.
            copy: rewrite the rows: into any table, with types converted as `write_arrow` does.
            dry_run: inspect the files and report what would be done, and what does not fit.
            verify: read all values of the files first, and refuse files in which some cannot be read; by default only
                footers are checked. A copy always reads all values.
            primary_key, table_options: for a new table.
            options: settings of the source's store, in addition to those of the catalog.
            progress: called with the number of files imported, the total, and "files".

        Cost: a list for each directory, the footer of each file, and its INT96 columns, which no footer describes; a
            copy reads all rows, in the memory of a writer.
        Raises:
            CorruptionError: a copy met rows that cannot be read; it names the file and the column.
            SchemaError: files that do not fit or are damaged, each with its reason; nothing was imported, and a table
                that the call itself has made is gone.
            UsageError: no files, or directories with other partition keys than the table has.
            UnsupportedError: references into a table with a primary key, with buckets, or that tracks rows.
            CommitConflictError: another import into the table is running.
        """
        from paimon_py.imports.verb import ImportRequest, import_files

        for flag, given in (("copy", copy), ("dry_run", dry_run), ("verify", verify)):
            check_flag(flag, given)
        check_progress(progress)
        if not isinstance(source, (str, PurePath)):
            raise UsageError(f"import_files takes the path or URL of a directory, not {source!r}")
        if primary_key and not copy:
            raise UsageError("a table with a primary key cannot reference files, since it sorts its own: use copy=True")
        asked = ImportRequest(
            source=str(source), format=format, partition_by=partition_by, copy=copy, dry_run=dry_run,
            verify=verify, primary_key=as_names("primary_key is a list of column names", primary_key),
            table_options=as_mapping("table_options", table_options),
            options={**self._metastore.options, **as_mapping("options", options)},
        )  # fmt: skip
        return import_files(self, name, asked, self._env, progress)

    def import_delta(
        self,
        name: str,
        source: object,
        *,
        version: int | None = None,
        copy: bool | None = None,
        dry_run: bool = False,
        primary_key: NameList = (),
        table_options: Mapping[str, str] | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> ImportResult:
        """Import a version of a Delta table into a table, which is created if it does not exist.

        Files stay where they are if the version has no deletion vectors and they fit; otherwise the rows that are not
        deleted are rewritten, as a stream. Another call does nothing, or imports files added since. Nothing at the
        source is changed or deleted, as with `import_files`.

        Args:
            name: `database.table`. A new table has the columns and partition keys of the source.
            source: a `deltalake.DeltaTable`, or the path or URL of one.
            version: for a path; the latest by default.
            copy: True always rewrites rows, False fails if that would be necessary.
            dry_run: report what would be done.
            primary_key, table_options: for a new table; one with a primary key is rewritten.
            storage_options: settings of the store, by the names of deltalake.

        Raises:
            UnsupportedError: deltalake is not installed; or `copy` is False, and files cannot be referenced.
            UsageError: the source cannot be read, or has rewritten files that were imported before.
        """
        from paimon_py.imports.delta import open_delta
        from paimon_py.imports.foreign import import_table

        asked = self._foreign_request(copy, dry_run, primary_key, table_options)
        foreign = open_delta(source, version, as_mapping("storage_options", storage_options))
        return import_table(self, name, foreign, asked, self._env, None)

    def import_iceberg(
        self,
        name: str,
        source: object,
        *,
        snapshot_id: int | None = None,
        copy: bool | None = None,
        dry_run: bool = False,
        primary_key: NameList = (),
        table_options: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> ImportResult:
        """Import a snapshot of an Iceberg table into a table, which is created if it does not exist.

        As `import_delta`: files stay where they are if none of their rows are deleted and they fit, otherwise rows are
        rewritten. Columns that Iceberg partitions by identity become partition keys; other transforms do not.

        Args:
            name: `database.table`.
            source: a `pyiceberg.table.Table`, or the path or URL of a metadata file.
            snapshot_id: the current one by default.
            copy, dry_run, primary_key, table_options: as in `import_delta`.
            properties: settings of the store for a path, by the names of pyiceberg.

        Raises:
            UnsupportedError: pyiceberg is not installed, or does not read the deletes of the snapshot; or `copy` is
                False, and files cannot be referenced.
            UsageError: the source cannot be read, or has rewritten files that were imported before.
        """
        from paimon_py.imports.foreign import import_table
        from paimon_py.imports.iceberg import open_iceberg

        asked = self._foreign_request(copy, dry_run, primary_key, table_options)
        foreign = open_iceberg(source, snapshot_id, as_mapping("properties", properties))
        return import_table(self, name, foreign, asked, self._env, None)

    def _foreign_request(
        self, copy: bool | None, dry_run: bool, primary_key: NameList, table_options: Mapping[str, str] | None
    ) -> ForeignRequest:
        from paimon_py.imports.foreign import ForeignRequest

        if copy is not None:
            check_flag("copy", copy)
        check_flag("dry_run", dry_run)
        return ForeignRequest(
            copy=copy, dry_run=dry_run, primary_key=as_names("primary_key is a list of column names", primary_key),
            table_options=as_mapping("table_options", table_options), options=self._metastore.options,
        )  # fmt: skip
