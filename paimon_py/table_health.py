"""The verbs that look at how a table does, and change nothing."""

from __future__ import annotations

import pyarrow as pa

from paimon_py.doors import names_place
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.schema import TableSchema


@names_place(lambda table: table._root.path)
class TableHealth:
    """What `Table` offers to see how a table does."""

    _root: TableRoot
    _schema: TableSchema

    def levels(self) -> pa.Table:
        """The levels of every bucket of the latest snapshot that have files, in the order of buckets and levels.

        Returns: `partition` (such as `month=3`; empty without partition keys), `bucket`, `level`, `file_count`,
            `record_count` (rows of files, those included that later rows replace), `delete_count` (rows that delete, as
            far as files say), `file_size_in_bytes`.

        Cost: all manifests of the snapshot that were not read before; no data file.
        Raises: CorruptionError, StorageError
        """
        from paimon_py.metadata.level_files import levels_of

        return levels_of(self._root, self._schema, self._root.latest())
