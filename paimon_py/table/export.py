"""The verb that exports a table: its rows as plain Parquet files."""

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
    """What `Table` offers to hand rows over as files."""

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
        """Write the rows of a snapshot into a new directory, as plain Parquet files that any program reads.

        Partition keys become directories `key=value`, as Hive, Spark and DuckDB name them; `_SUCCESS` is written last.
        `catalog.import_files` makes a table of such a directory.

        Args:
            target: a path or URL of a directory that is not there, or is empty.
            snapshot_id, tag, columns, where: which rows, as in `scan`; the latest snapshot if nothing is said.
            options: of the target's store, beside those that the table was opened with.

        Cost: as reading the rows and writing them, one file at a time.
        Raises:
            AlreadyExistsError: there is something in the directory.
            UsageError: columns without all partition keys.
            PaimonError: as `scan`. What was written is deleted in any case.
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
            raise UsageError(f"export names directories by partition keys, and columns lack {lacking}")
        store, place = open_store(str(target), {**self._root.files.options, **as_mapping("options", options)})
        directory = ParquetDirectory(store, place, self._schema, file_bytes=FILE_BYTES)
        number = snapshot_id if tag is None else self._root.tags.get(tag).snapshot.id
        return directory.write(scan.to_reader(), self._schema.partition_keys, number)
