"""Locations of the new files of a bucket: its directory below the table, or external paths.

Source: format.md §1.1; Java `DataFilePathFactory`.
"""

from __future__ import annotations

from paimon_py.env import Ids
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.external_paths import ExternalPaths
from paimon_py.spec.layout import check_file_name, data_file_path


class BucketPlace:
    """The paths of new files of one bucket, for one writer; external paths alternate from file to file."""

    __slots__ = ("_directory", "_external", "_ids", "_position", "_relative")

    def __init__(
        self, directory: str, *, relative: str = "", external: ExternalPaths | None = None, ids: Ids | None = None
    ) -> None:
        """`directory`: directory of the bucket; `relative`: to the table, for `external`, which needs `ids`."""
        self._directory = directory
        self._relative = relative
        self._external = external
        self._ids = ids
        self._position = 0 if external is None or ids is None else external.first_position(ids.jitter())

    def locate(self, name: str) -> tuple[str, str | None]:
        """The path of the next file, and the path to store in its manifest entry (None below the table).

        Raises: CorruptionError for a name that would leave the directory.
        """
        if self._external is None or self._ids is None:
            return data_file_path(self._directory, name), None
        check_file_name(name)
        self._position += 1
        path = self._external.path(self._relative, name, self._position, self._ids.jitter())
        return path, path


def path_in(directory: str, file: DataFile) -> str:
    """The location of a data file in the bucket with this directory: a path in the table's store, or a URL."""
    return file.external_path or data_file_path(directory, file.name)


def paths_in(directory: str, file: DataFile) -> tuple[str, ...]:
    """The locations of a data file and of its extra files."""
    path = path_in(directory, file)
    directory = path.rpartition("/")[0]
    return (path, *(data_file_path(directory, name) for name in file.extra_files))
