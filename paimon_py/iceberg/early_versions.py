"""Makes a version while its base is still being read, if the same table object published the base.

The object remembers the version that it published last, and its manifests. After its next commit it
writes manifests and list for the new version at once, in parallel with the calls that read the base again. The new
version is used only if the base in the store is the remembered one, byte for byte; otherwise its files are deleted.

Source: docs/format.md §25.9.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import msgspec

from paimon_py.errors import PaimonError
from paimon_py.iceberg.directory import IcebergDirectory, MetadataWriter
from paimon_py.iceberg.expiry import find_expired
from paimon_py.iceberg.metadata import IcebergVersion, KnownVersion, encode
from paimon_py.iceberg.values import IcebergManifest
from paimon_py.iceberg.versions import VersionMaker
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.data_file import ManifestEntry
from paimon_py.spec.iceberg import IcebergOptions
from paimon_py.spec.snapshot import Base, Snapshot, SnapshotId


class OwnVersion(msgspec.Struct, frozen=True):
    """A version that a table object published, with its snapshot and the manifests in its list."""

    known: KnownVersion
    snapshot: Snapshot
    manifests: tuple[IcebergManifest, ...]


class EarlyVersion:
    """A version that is not published yet, and the version that it continues."""

    def __init__(self, maker: VersionMaker, value: dict[str, Any], base: OwnVersion) -> None:
        self.maker = maker
        self.value = value
        self._base = base
        self._is_taken = False

    def take(self, version: IcebergVersion | None, before: Snapshot | None, names: Collection[str]) -> bool:
        """Whether the version continues what a publication found in the store; then its files are kept.

        Args:
            version, before: the previous version, and its snapshot; the version is the known one if its file has the
                same bytes.
            names: the names of all files in the directory.
        """
        base = self._base
        is_same = version is base.known.version and before is not None and Base.of(base.snapshot).is_of(before)
        self._is_taken = is_same and base.known.version.list_names().issubset(names)
        return self._is_taken

    def discard(self) -> None:
        """Delete the files of the version, unless it was taken."""
        if not self._is_taken:
            self.maker.writer.discard()


class EarlyVersions:
    """Makes early versions for one table object, and remembers what it published last."""

    def __init__(self, table: OpenTable, directory: IcebergDirectory, options: IcebergOptions) -> None:
        self._table = table
        self._directory = directory
        self._options = options
        self._upkeep = table.root.maintenance

    @property
    def base(self) -> KnownVersion | None:
        """The version that was published last."""
        base = self._upkeep.published
        return base.known if isinstance(base, OwnVersion) else None

    def remember(self, known: KnownVersion, snapshot: Snapshot, writer: MetadataWriter) -> None:
        """Remember a version that was published with the files of a writer."""
        if writer.listed is not None:
            self._upkeep.published = OwnVersion(known, snapshot, writer.listed)

    def remember_renewed(self, version: IcebergVersion) -> None:
        """Remember that the version that was published last has other refs now."""
        base = self._upkeep.published
        if isinstance(base, OwnVersion) and base.known.version.list_names() == version.list_names():
            known = KnownVersion(version, encode(version.value))
            self._upkeep.published = msgspec.structs.replace(base, known=known)

    def start(self, number: int) -> Callable[[], EarlyVersion | None] | None:
        """A call that makes the version of a snapshot; None unless this table object just committed the snapshot, and
        published the version before it under the same schema.

        The call returns None if it fails.

        Cost of the call: a put for each manifest and one for the list, in parallel with a list of the tags.
        """
        snapshot, base = self._upkeep.committed, self._upkeep.published
        mark = number.mark if isinstance(number, SnapshotId) else None
        if snapshot is None or mark is None or not Base(number, mark).is_of(snapshot):
            return None
        delta, self._upkeep.committed_delta = self._upkeep.committed_delta, None
        if not isinstance(base, OwnVersion) or not snapshot.follows(base.snapshot):
            return None
        version = base.known.version
        newest = max(int(one["schema-id"]) for one in version.schemas)
        fits = version.format_version == self._options.format_version and version.lies_at(self._table.root.path)
        return partial(self._make, snapshot, base, delta) if fits and newest == self._table.schema.id else None

    def _make(
        self, snapshot: Snapshot, base: OwnVersion, delta: Sequence[ManifestEntry] | None
    ) -> EarlyVersion | None:
        root = self._table.root
        maker = VersionMaker(root, self._directory, self._table.schema, self._options, snapshot)
        version = base.known.version
        gone = find_expired(version.snapshots, snapshot.id, root.env.clock.millis(), self._options)
        try:
            value = maker.on(version, base.snapshot, len(gone), listed=base.manifests, delta=delta)
        except PaimonError:  # the publication reads everything again, and reports what fails then
            value = None
        if value is None:
            maker.writer.discard()
            return None
        return EarlyVersion(maker, value, base)
