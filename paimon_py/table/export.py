"""Export method of `Table`: writes rows as plain Parquet files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING

from paimon_py.arguments import NameList, as_mapping
from paimon_py.errors import UsageError
from paimon_py.expr.predicate import Predicate
from paimon_py.table.verbs import TableVerbs, at_table_door, reads

if TYPE_CHECKING:
    from paimon_py.write.exported_files import Exported


@at_table_door
class TableExport(TableVerbs):
    """Method of `Table` that exports rows as files."""

    @reads
    def export(
        self,
        target: str | PurePath,
        *,
        snapshot_id: int | None = None,
        tag: str | None = None,
        columns: NameList | None = None,
        where: Predicate | str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> Exported:
        """Write the rows of a snapshot to a new directory, as plain Parquet files that any program can read.

        Partition keys become directories `key=value`, as Hive, Spark and DuckDB name them; `_SUCCESS` is written last.
        `catalog.import_files` creates a table from such a directory.

        Args:
            target: a path or URL of a directory that does not exist or is empty.
            snapshot_id, tag, columns, where: the rows to export, as in `scan`; the latest snapshot by default.
            options: settings of the target's store, in addition to those that the table was opened with.

        Cost: that of reading the rows and writing them, one file at a time.
        Raises:
            AlreadyExistsError: the directory is not empty.
            UsageError: `columns` lacks a partition key.
            PaimonError: as `scan`. Files already written are deleted in any case.
        """
        from paimon_py.scan.fallback import open_scan
        from paimon_py.spec.supported import check_readable
        from paimon_py.storage.open import open_store
        from paimon_py.write.exported_files import FILE_BYTES, ParquetDirectory

        if not isinstance(target, (str, PurePath)):
            raise UsageError(f"export takes the path or URL of a directory, not {target!r}")
        check_readable(self._schema)
        latest = self._root.latest() if snapshot_id is None and tag is None else None
        snapshot_id = latest.id if latest is not None else snapshot_id
        scan = open_scan(
            self._open_table, snapshot_id=snapshot_id, tag=tag, columns=columns, where=where
        )
        lacking = [key for key in self._schema.partition_keys if key not in scan.schema.names]
        if lacking:
            raise UsageError(f"export names directories after the partition keys, but columns lack {lacking}")
        store, place = open_store(str(target), {**self._root.files.options, **as_mapping("options", options)})
        directory = ParquetDirectory(store, place, self._schema, file_bytes=FILE_BYTES)
        number = snapshot_id if tag is None else self._root.tags.get(tag).snapshot.id
        return directory.write(scan.to_reader(), self._schema.partition_keys, number)
