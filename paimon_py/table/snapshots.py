"""Public `Snapshot`, `Tag` and `Manifest`: the format's values together with the table they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone

from paimon_py.arguments import with_location
from paimon_py.errors import CorruptionError
from paimon_py.metadata.root import TableRoot
from paimon_py.notebook import manifest_page, snapshot_page, tag_page
from paimon_py.spec.data_file import ManifestEntry
from paimon_py.spec.layout import snapshot_path
from paimon_py.spec.manifest import ManifestFile
from paimon_py.spec.snapshot import Base, CommitKind, SnapshotId, TagValue
from paimon_py.spec.snapshot import Snapshot as SnapshotValue
from paimon_py.storage.store import FileMissingError

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@with_location(lambda view: view._root.path)
class Manifest:
    """One manifest of a snapshot. Two are equal when their list records are.

    Attributes:
        value: the record of the manifest list.
    """

    __slots__ = ("_root", "_snapshot", "value")

    def __init__(self, root: TableRoot, value: ManifestFile, snapshot: SnapshotValue) -> None:
        self._root = root
        self._snapshot = snapshot
        self.value = value

    @property
    def name(self) -> str:
        """File name below `manifest/`."""
        return self.value.name

    @property
    def size_bytes(self) -> int:
        """Size of the manifest file."""
        return self.value.size_bytes

    @property
    def added_files(self) -> int:
        """Number of ADD entries."""
        return self.value.added_files

    @property
    def deleted_files(self) -> int:
        """Number of DELETE entries."""
        return self.value.deleted_files

    def entries(self) -> list[ManifestEntry]:
        """The file changes in the manifest, in file order.

        Raises:
            SnapshotExpiredError: the manifest was deleted with its snapshot.
            CorruptionError: the file does not match the format.
        """
        try:
            return self._root.manifests.read_entries([self.value]).entries()
        except FileMissingError as error:
            raise self._root.missing(Base.of(self._snapshot), error) from error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Manifest) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def _repr_html_(self) -> str:
        return manifest_page(self.value)

    def __repr__(self) -> str:
        return f"Manifest({self.name!r}, added={self.added_files}, deleted={self.deleted_files})"


@with_location(lambda view: view._root.path)
class Snapshot:
    """One committed state of a table. Two are equal when their stored values are.

    Attributes:
        value: the content of the snapshot file.
    """

    __slots__ = ("_root", "value")

    def __init__(self, root: TableRoot, value: SnapshotValue) -> None:
        self._root = root
        self.value = value

    @property
    def id(self) -> SnapshotId:
        """Number of the snapshot, from 1 without gaps.

        It carries the mark of the snapshot: calls refuse it where another snapshot has the number after a rollback.
        """
        return SnapshotId.of(self.value)

    @property
    def schema_id(self) -> int:
        """Id of the table's schema at commit time."""
        return self.value.schema_id

    @property
    def time_millis(self) -> int:
        """Commit time in milliseconds since the epoch."""
        return self.value.time_millis

    @property
    def time(self) -> datetime:
        """Commit time in UTC.

        Raises: CorruptionError if the snapshot contains a time before the year 1 or after 9999.
        """
        try:
            return _EPOCH + timedelta(milliseconds=self.value.time_millis)
        except OverflowError as error:
            path = snapshot_path(self._root.branch_path, self.id)
            message = f"{path} contains an invalid commit time: {self.value.time_millis} milliseconds after 1970"
            raise CorruptionError(message, path=path) from error

    @property
    def commit_user(self) -> str:
        """The user that committed."""
        return self.value.commit_user

    @property
    def commit_identifier(self) -> int:
        """The committer's own identifier; 2⁶³−1 for batch commits."""
        return self.value.commit_identifier

    @property
    def commit_kind(self) -> CommitKind:
        """The kind of the commit."""
        return self.value.commit_kind

    @property
    def total_record_count(self) -> int | None:
        """Rows in all files, deleted ones and old versions too; with data evolution, once for each file of a row."""
        return self.value.total_record_count

    @property
    def delta_record_count(self) -> int | None:
        """Rows in files added by this commit minus rows in files it removed."""
        return self.value.delta_record_count

    @property
    def watermark(self) -> int | None:
        """Watermark of the table, if any."""
        return self.value.watermark

    @property
    def properties(self) -> Mapping[str, str]:
        """Properties of the commit."""
        return self.value.properties or {}

    def manifests(self) -> list[Manifest]:
        """The manifests that make up the state: base first, then this commit's own.

        Raises:
            SnapshotExpiredError: the snapshot's manifest lists have been deleted.
            CorruptionError: a list does not match the format.
        """
        return [Manifest(self._root, value, self.value) for value in self._root.manifests.base_and_delta(self.value)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and self.value == other.value

    def __hash__(self) -> int:
        return hash((self.value.id, self.value.uuid, self.value.delta_manifest_list))

    def _repr_html_(self) -> str:
        return snapshot_page(self.value)

    def __repr__(self) -> str:
        value = self.value
        return (
            f"Snapshot(id={value.id}, kind={value.commit_kind.value}, schema_id={value.schema_id}, "
            f"time={self.time.isoformat(timespec='milliseconds')}, rows_in_files={value.total_record_count}, "
            f"user={value.commit_user!r})"
        )


class Tag:
    """A named snapshot. Two are equal when their stored values are."""

    __slots__ = ("_root", "value")

    def __init__(self, root: TableRoot, value: TagValue) -> None:
        self._root = root
        self.value = value

    @property
    def name(self) -> str:
        """Name of the tag."""
        return self.value.name

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that the tag retains."""
        return Snapshot(self._root, self.value.snapshot)

    @property
    def snapshot_id(self) -> SnapshotId:
        """Id of the snapshot that the tag retains."""
        return SnapshotId.of(self.value.snapshot)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tag) and self.value == other.value

    def __hash__(self) -> int:
        return hash((self.value.name, self.value.snapshot.id))

    def _repr_html_(self) -> str:
        return tag_page(self.value)

    def __repr__(self) -> str:
        return f"Tag({self.name!r}, snapshot_id={self.snapshot_id})"
