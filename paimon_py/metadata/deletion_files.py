"""Index files of deletion vectors: their paths, reading vectors from them, writing new ones.

Source: format.md §10; Java `DeletionVectorsIndexFile`, `DeletionVectorIndexFileWriter`, `IndexPathFactory`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from paimon_py.codec.deletion_vectors import VERSION, DeletionVector, decode, encode
from paimon_py.errors import CorruptionError, StorageError
from paimon_py.formats.base import decoding
from paimon_py.metadata.open_table import BucketFiles
from paimon_py.spec.data_file import FileKind
from paimon_py.spec.manifest import DELETION_VECTORS, DeletionPlace, DeletionVectorRange, IndexEntry
from paimon_py.spec.options import Options
from paimon_py.storage.store import OpenRead, join, new_file

_FRAME = 8
"""The number of bytes that a block may have beyond its stated length."""


def read_deletions(store: OpenRead, places: Mapping[str, DeletionPlace]) -> dict[str, DeletionVector]:
    """The deletion vectors at these places, by name of data file.

    Cost: every index file is opened once, one small read per vector.
    Raises:
        FileMissingError: an index file does not exist.
        CorruptionError: an index file or a vector is damaged.
    """
    by_path: dict[str, list[str]] = {}
    for name, place in places.items():
        by_path.setdefault(place.path, []).append(name)
    vectors: dict[str, DeletionVector] = {}
    for path, names in by_path.items():
        names.sort(key=lambda name: places[name].offset)
        with decoding(path), store.open_read(path) as source:
            version = source.read(1)
            if version != bytes((VERSION,)):
                raise CorruptionError(
                    f"{path} begins with {version.hex() or 'nothing'}, but an index file of deletion vectors begins"
                    " with 01",
                    path=path,
                    offset=0,
                )
            for name in names:
                place = places[name]
                if place.offset < 1 or not 0 <= place.length < 2**31:
                    raise CorruptionError(f"{name} cannot have a deletion vector at {place}", path=path)
                source.seek(place.offset)
                vectors[name] = decode(source.read(place.length + _FRAME), place.length, path, place.offset)
                _check_count(name, vectors[name], place)
    return vectors


class DeletionWriter:
    """Writes index files of deletion vectors for one bucket, or for one partition of a table without buckets."""

    def __init__(self, files: BucketFiles) -> None:
        """Write index files of a bucket, under unique names."""
        root, options = files.table.root, Options(files.table.schema.options)
        self._store = root.files
        self._name = f"index-{root.env.ids.uuid()}"
        self._partition = files.partition
        self._bucket = files.bucket
        self._directory = files.table.index_directory(files.partition, files.bucket)
        self._bits = 64 if options.get_bool("deletion-vectors.bitmap64") else 32
        self._target_bytes = options.get_memory("deletion-vector.index-file.target-size")
        self._written = 0

    def write(self, vectors: Mapping[str, DeletionVector]) -> IndexEntry:
        """Write one index file with these vectors by name of data file, durable on return; may be empty.

        Raises: StorageError, and then the file does not exist.
        """
        return self._file(iter(vectors.items()), None)

    def write_rolling(self, vectors: Mapping[str, DeletionVector]) -> list[IndexEntry]:
        """Write index files of about the target size."""
        rest = iter(vectors.items())
        entries: list[IndexEntry] = []
        left = len(vectors)
        try:
            while left:
                entries.append(self._file(rest, self._target_bytes))
                left -= entries[-1].row_count
        except BaseException:
            self.delete(entries)
            raise
        return entries

    def delete(self, entries: Iterable[IndexEntry]) -> None:
        """Delete files written here that no snapshot references; files that cannot be deleted stay as orphans."""
        for entry in entries:
            with suppress(StorageError):
                self._store.delete(join(self._directory, entry.name))

    def _file(self, vectors: Iterator[tuple[str, DeletionVector]], target_bytes: int | None) -> IndexEntry:
        name = f"{self._name}-{self._written}"
        self._written += 1
        path = join(self._directory, name)
        ranges = []
        with new_file(self._store, path) as sink:
            sink.write(bytes((VERSION,)))
            offset = 1
            for data_file, vector in vectors:
                block, length = encode(vector, bits=self._bits)
                sink.write(block)
                ranges.append(
                    DeletionVectorRange(data_file=data_file, offset=offset, length=length, cardinality=len(vector))
                )
                offset += len(block)
                if target_bytes is not None and offset > target_bytes:
                    break
        return IndexEntry(
            kind=FileKind.ADD,
            partition=self._partition,
            bucket=self._bucket,
            index_type=DELETION_VECTORS,
            name=name,
            size_bytes=offset,
            row_count=len(ranges),
            deletion_vectors=tuple(ranges),
        )


def _check_count(name: str, vector: DeletionVector, place: DeletionPlace) -> None:
    if place.cardinality is not None and place.cardinality != len(vector):
        raise CorruptionError(
            f"the deletion vector of {name} has {len(vector)} rows, the index manifest says {place.cardinality}",
            path=place.path,
            offset=place.offset,
        )
