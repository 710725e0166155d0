"""Iceberg methods of `Table`: the Iceberg metadata of a Paimon table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paimon_py.errors import UsageError
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.iceberg import STORAGE, writes_iceberg
from paimon_py.spec.layout import MAIN_BRANCH
from paimon_py.spec.supported import check_writable
from paimon_py.table.verbs import TableVerbs, at_table_door, reads

if TYPE_CHECKING:
    from paimon_py.iceberg.publication import PublishedVersion
    from paimon_py.iceberg.state import IcebergState


@at_table_door
class TableIceberg(TableVerbs):
    """Methods of `Table` for readers that use it as an Iceberg table.

    Commits publish the metadata automatically if the option `metadata.iceberg.storage` is set accordingly.
    """

    def publish_iceberg(self) -> PublishedVersion:
        """Rebuild the Iceberg metadata of the latest snapshot from the table, regardless of existing metadata.

        Commits do this automatically. Call it for a table whose option has just been set, that other programs rolled
        back, or whose last publication failed; it can be repeated. Readers keep the table's uuid; older Iceberg
        snapshots are removed.

        Returns: the version and its path.

        Raises:
            UsageError: the table does not write Iceberg metadata, is empty, or is a branch.
            UnsupportedError: the options ask for a type or an authentication that is not available.
            AlreadyExistsError: the Iceberg catalog has another table of this name.
            StorageError, CorruptionError: the metadata is either unchanged or new; or its catalog cannot be
                notified.
        """
        from paimon_py.iceberg.publication import IcebergPublisher

        root, schema = self._root, self._newest
        check_writable(schema)
        if root.branch != MAIN_BRANCH:
            raise UsageError(f"{root.branch!r} is a branch, and Iceberg readers see main: call it on the table itself")
        if not writes_iceberg(schema):
            raise UsageError(
                f"{root.path} writes no Iceberg metadata: alter(SetOption({STORAGE!r}, 'table-location')) switches"
                " them on"
            )
        latest = root.snapshots.latest()
        if latest is None:
            raise UsageError(f"{root.path} has no snapshot: the first commit publishes the Iceberg metadata")
        publisher = IcebergPublisher(OpenTable(root, schema))
        done = publisher.publish_anew(latest)
        if publisher.catalog_error is not None:
            raise publisher.catalog_error
        return done

    @reads
    def iceberg(self) -> IcebergState:
        """The state of the Iceberg metadata: version, path, snapshot, lag, and what Iceberg readers do not see.

        For a table with a primary key, readers see the result of the last full compaction or, with format version 3 and
        64-bit deletion vectors, everything above level 0.

        Cost: some gets; the manifests of the latest snapshot, and those of the Iceberg snapshot.
        Raises: CorruptionError, StorageError for the table itself; errors in the metadata are reported in `problems`.
        """
        from paimon_py.iceberg.state import iceberg_state

        return iceberg_state(self._open_table.under(self._root.schemas.latest()))
