"""Deletion vectors that lookups have read, kept while the latest snapshot references them."""

from __future__ import annotations

from paimon_py.codec.deletion_vectors import DeletionVector
from paimon_py.files.deletion_filter import check_fits
from paimon_py.metadata.deletion_files import read_deletions
from paimon_py.scan.plan import Deletions
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.manifest import DeletionPlace
from paimon_py.storage.store import OpenRead


class KnownVectors:
    """The deletion vectors of data files; an index file never changes, so its path identifies it."""

    def __init__(self, store: OpenRead) -> None:
        self._store = store
        self._vectors: dict[DeletionPlace, DeletionVector] = {}

    def get(self, file: DataFile, place: DeletionPlace) -> DeletionVector:
        """The deletion vector of a file.

        Raises: FileMissingError, CorruptionError
        """
        vector = self._vectors.get(place)
        if vector is None:
            vector = read_deletions(self._store, {file.name: place})[file.name]
            check_fits(file, vector, place.path)
            self._vectors[place] = vector
        return vector

    def keep_only(self, deletions: Deletions) -> None:
        """Discard vectors that a snapshot no longer references."""
        named = {place for places in deletions.values() for place in places.values()}
        self._vectors = {place: vector for place, vector in list(self._vectors.items()) if place in named}

    @property
    def nbytes(self) -> int:
        """Memory in bytes, roughly: the size of the stored vectors."""
        return sum(place.length for place in list(self._vectors))
