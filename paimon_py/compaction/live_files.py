"""The live files with which a writer begins."""

from __future__ import annotations

from paimon_py.codec.columns import Ints
from paimon_py.codec.manifest.columns import EntryColumns
from paimon_py.errors import SnapshotExpiredError
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.snapshot import Snapshot


class LiveFiles:
    """The live files of a snapshot, or of the latest one if it expired before they were first read.

    Attributes:
        snapshot: the snapshot of the files, once they were read; None: an empty table.
    """

    def __init__(self, root: TableRoot, snapshot: Snapshot | None) -> None:
        self._root = root
        self.snapshot = snapshot
        self._columns: EntryColumns | None = None
        self._places: dict[bytes, dict[int, Ints]] | None = None

    def columns(self) -> EntryColumns:
        """The entries of the live files. Cost: reads the manifests on the first call, and after `free`."""
        while self._columns is None:
            try:
                self._columns = self._read()
            except SnapshotExpiredError:
                latest = self._root.snapshots.latest()
                if latest == self.snapshot:
                    raise
                self.snapshot = latest
        return self._columns

    def places(self, partition: bytes) -> dict[int, Ints]:
        """The positions in `columns()` of the entries of a partition, by bucket."""
        columns = self.columns()
        if self._places is None:
            self._places = {}
            for (place, bucket), rows in columns.by_bucket().items():
                self._places.setdefault(place, {})[bucket] = rows
        return self._places.get(partition, {})

    def free(self) -> None:
        """Free the memory."""
        self._columns = self._places = None

    def _read(self) -> EntryColumns:
        return EntryColumns.empty() if self.snapshot is None else self._root.manifests.live_entries(self.snapshot)
