"""The directory of Iceberg metadata: names, reading, writing, deleting.

Source: docs/format.md §25.2; Java `IcebergPathFactory`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from paimon_py.env import Env, Ids
from paimon_py.errors import CorruptionError, StorageError
from paimon_py.iceberg.avro_files import (
    read_list_bytes,
    read_manifest_bytes,
    write_list_bytes,
    write_manifest_bytes,
)
from paimon_py.iceberg.bounds import partition_ranges
from paimon_py.iceberg.metadata import IcebergVersion, KnownVersion, parse_version
from paimon_py.iceberg.puffin import VectorBlob, puffin_bytes
from paimon_py.iceberg.values import DELETES, IcebergEntry, IcebergManifest, describe
from paimon_py.spec.iceberg import IcebergOptions
from paimon_py.spec.layout import join
from paimon_py.spec.schema import TableSchema
from paimon_py.storage.store import FileMissingError, Store, name_lister

HINT = "version-hint.text"
RETIRE_MARK = "retire-pending"
_VERSION = re.compile(r"v([0-9]{1,19})\.metadata\.json")
_ENTRY_BYTES = 400
"""The approximate size of an entry in a manifest, without its path and bounds."""

_HELD_BYTES = 32 << 20
"""The maximum total size of files that are held back to be written in parallel."""

T = TypeVar("T")


class IcebergDirectory:
    """The directory of the Iceberg metadata of one table.

    `.path` is the directory. Manifests, lists and Puffin files are found in it by their file names, regardless of the
    scheme of the paths in the metadata.
    """

    def __init__(self, store: Store, path: str, env: Env, within: str | None = None) -> None:
        """`within`: a directory that must exist for anything to be written, such as that of the table."""
        self.store = store
        self._env = env
        self.path = path
        self.within = within

    # -- reading ------------------------------------------------------------------------------------------------------

    def list_names(self) -> list[str]:
        """The names of all files. Cost: one list."""
        return name_lister(self.store)(self.path)

    def version_path(self, number: int) -> str:
        """The path of a version."""
        return join(self.path, f"v{number}.metadata.json")

    def version(self, number: int, known: KnownVersion | None = None) -> IcebergVersion | None:
        """A version, which is not decoded again if it is a known one; None if it does not exist.

        Raises: CorruptionError
        """
        path = self.version_path(number)
        try:
            data = self.store.get(path)
        except FileMissingError:
            return None
        if known is not None and known.version.number == number and known.data == data:
            return known.version
        return parse_version(data, path, number)

    def hint(self) -> int | None:
        """The version that the hint names; None without a hint, or if it is not a number."""
        try:
            text = self.store.get(join(self.path, HINT)).strip()
        except FileMissingError:
            return None
        return int(text) if text.isdigit() and len(text) < 20 else None

    def manifests(self, list_path: str) -> list[IcebergManifest]:
        """The manifests of a list. Raises: FileMissingError, CorruptionError"""
        path = self._own(list_path)
        return read_list_bytes(self.store.get(path), path)

    def at_once(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        """The results of independent calls to the store, in order; see `Env.at_once`."""
        return self._env.at_once(self.path, calls)

    def entries(self, manifest: IcebergManifest, schema: TableSchema) -> list[IcebergEntry]:
        """The entries of a manifest. Raises: FileMissingError, CorruptionError"""
        path = self._own(manifest.path)
        return read_manifest_bytes(self.store.get(path), path, schema)

    def _own(self, path: str) -> str:
        name = path.rpartition("/")[2]
        if not name or name in (".", ".."):
            raise CorruptionError(f"the Iceberg metadata in {self.path} references a file {path!r}", path=self.path)
        return join(self.path, name)

    # -- writing ------------------------------------------------------------------------------------------------------

    def put_version(
        self, number: int, data: bytes, *, replace: bool, discard: Callable[[], None] | None = None
    ) -> bool:
        """Write the bytes of a version. Returns: False if it exists and must not be replaced.

        After a failure the file is read back: if it contains the same bytes, the version was written.

        Args:
            discard: called before a failure is raised, if the version certainly was not written.

        Raises: StorageError
        """
        path = self.version_path(number)
        try:
            if not replace:
                return self.store.put_new(path, data, within=self.within)
            self.store.put(path, data, within=self.within)
        except StorageError:
            if self._holds(path, data):
                return True
            if discard is not None:
                discard()
            raise
        return True

    def _holds(self, path: str, data: bytes) -> bool:
        """Whether a file contains these bytes. Raises: StorageError if that cannot be determined."""
        try:
            return self.store.get(path) == data
        except FileMissingError:
            return False

    def put_hint(self, number: int) -> None:
        """Let readers find a version."""
        self.store.put(join(self.path, HINT), str(number).encode(), within=self.within)

    def delete_version(self, number: int) -> None:
        """Delete a version. Raises: StorageError"""
        self.store.delete(self.version_path(number))

    def delete(self, names: Iterable[str]) -> None:
        """Delete files by name or path; a file that cannot be deleted remains as an orphan."""
        self.at_once([partial(self._delete, self._own(name)) for name in names])

    def _delete(self, path: str) -> None:
        with suppress(StorageError):
            self.store.delete(path)


def version_numbers(names: Iterable[str]) -> list[int]:
    """The numbers of the versions among file names, ascending."""
    return sorted(int(match.group(1)) for name in names if (match := _VERSION.fullmatch(name)))


class MetadataWriter:
    """Writes the manifests, the list and the vectors of one snapshot, under unique names.

    `.written` contains the paths of the new files, so that a caller can delete them; `.listed`: those in the list.
    """

    def __init__(
        self, directory: IcebergDirectory, schema: TableSchema, options: IcebergOptions, number: int, ids: Ids
    ) -> None:
        self._directory = directory
        self._schema = schema
        self._options = options
        self._number = number
        self._uuid = ids.uuid()
        self._count = 0
        self._held: list[tuple[str, bytes]] = []
        self.written: list[str] = []
        self.listed: tuple[IcebergManifest, ...] | None = None

    def manifests(self, entries: Sequence[IcebergEntry], content: int) -> list[IcebergManifest]:
        """New manifests with these entries, in order, each about as large as the options set; none without entries."""
        return [self._manifest(part, content) for part in _roll(entries, self._options.target_bytes)]

    def manifest_list(self, manifests: Sequence[IcebergManifest], parent: int | None) -> str:
        """The path of a new list. The list and the manifests are written by `flush` at the latest."""
        data, self.listed = write_list_bytes(manifests, self._number, parent, self._options), tuple(manifests)
        return self._put(f"snap-1-{self._uuid}.avro", data)

    def vectors(self, blobs: Sequence[VectorBlob]) -> tuple[str, int, list[int]]:
        """A new Puffin file: its path, its size, and the offset of each vector."""
        data, offsets = puffin_bytes(blobs)
        return self._put(f"{self._uuid}-deletes.puffin", data), len(data), offsets

    def flush(self) -> None:
        """Write the files that are held back, in parallel. Raises: StorageError"""
        held, self._held = self._held, []
        put, within = self._directory.store.put, self._directory.within
        self._directory.at_once([partial(put, path, data, within=within) for path, data in held])

    def discard(self) -> None:
        """Delete all new files: no version references them."""
        self._held.clear()
        self._directory.delete(self.written)
        self.written.clear()

    def _manifest(self, entries: Sequence[IcebergEntry], content: int) -> IcebergManifest:
        data = write_manifest_bytes(entries, self._schema, content, self._options)
        path = self._put(f"{self._uuid}-m{self._count}.avro", data)
        self._count += 1
        ranges = partition_ranges(self._schema, [entry.file.partition for entry in entries])
        return describe(
            entries, path=path, size_bytes=len(data), content=content, number=self._number, partitions=ranges
        )

    def _put(self, name: str, data: bytes) -> str:
        path = join(self._directory.path, name)
        self.written.append(path)
        self._held.append((path, data))
        if sum(len(one) for _, one in self._held) >= _HELD_BYTES:
            self.flush()
        return path


def _roll(entries: Sequence[IcebergEntry], target_bytes: int) -> list[list[IcebergEntry]]:
    parts: list[list[IcebergEntry]] = []
    size = 0
    for entry in entries:
        if not parts or size >= target_bytes:
            parts.append([])
            size = 0
        parts[-1].append(entry)
        bounds = (entry.file.lower_bounds or {}, entry.file.upper_bounds or {})
        size += _ENTRY_BYTES + sum(len(value) for values in bounds for value in values.values())
    return parts


def named_files(
    directory: IcebergDirectory, lists: Iterable[str], schema: TableSchema, *, vectors: bool = True,
    ignores_broken: bool = False,
) -> set[str]:  # fmt: skip
    """The names of these manifest lists and of the files that they reference; a missing list is left out.

    Args:
        ignores_broken: leave out broken files, too.

    Cost: a get for each list; with `vectors` one more for each manifest of deletes.
    Raises: CorruptionError, StorageError
    """
    found: set[str] = set()
    paths = list(lists)
    calls = [partial(_manifests_of, directory, path, ignores_broken=ignores_broken) for path in paths]
    for path, manifests in zip(paths, directory.at_once(calls), strict=True):
        if manifests is None:
            continue
        found.add(path.rpartition("/")[2])
        for manifest in manifests:
            name = manifest.path.rpartition("/")[2]
            if vectors and manifest.content == DELETES and name not in found:
                found |= _puffin_files(directory, manifest, schema, ignores_broken=ignores_broken)
            found.add(name)
    return found


def _manifests_of(directory: IcebergDirectory, path: str, *, ignores_broken: bool) -> list[IcebergManifest] | None:
    """The manifests of a list; None if it does not exist."""
    try:
        return directory.manifests(path)
    except FileMissingError:
        return None
    except CorruptionError:
        if not ignores_broken:
            raise
        return []


def _puffin_files(
    directory: IcebergDirectory, manifest: IcebergManifest, schema: TableSchema, *, ignores_broken: bool
) -> set[str]:
    try:
        entries = directory.entries(manifest, schema)
    except FileMissingError:
        return set()
    except CorruptionError:
        if not ignores_broken:
            raise
        return set()
    names = {entry.file.path.rpartition("/")[2] for entry in entries}
    return {name for name in names if name.endswith(".puffin")}
