"""Where the new files of a bucket go: into its directory below the table, or to external paths.

Source: format.md §1.1; Java `DataFilePathFactory`.
"""

from __future__ import annotations

from paimon_py.env import Ids
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.external_paths import ExternalPaths, external_paths
from paimon_py.spec.layout import bucket_path, check_file_name, data_file_path, relative_bucket_path
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema


class BucketPlace:
    """Paths of new files of one bucket, for one writer: external paths take turns from file to file."""

    __slots__ = ("_directory", "_external", "_ids", "_position", "_relative")

    def __init__(
        self, directory: str, *, relative: str = "", external: ExternalPaths | None = None, ids: Ids | None = None
    ) -> None:
        """`directory`: of the bucket; `relative`: the same below the table, for `external`, which needs `ids`."""
        self._directory = directory
        self._relative = relative
        self._external = external
        self._ids = ids
        self._position = 0 if external is None or ids is None else external.first_position(ids.jitter())

    def locate(self, name: str) -> tuple[str, str | None]:
        """Where the next file goes, and what its manifest entry says about that (None below the table).

        Raises: CorruptionError for a name that would leave the directory.
        """
        if self._external is None or self._ids is None:
            return data_file_path(self._directory, name), None
        check_file_name(name)
        self._position += 1
        path = self._external.path(self._relative, name, self._position, self._ids.jitter())
        return path, path


def bucket_place(root: str, schema: TableSchema, partition: str, bucket: int, ids: Ids) -> BucketPlace:
    """The place that the options of a table ask for; `partition` as made by `partition_path`.

    Raises:
        OptionError: the options for external paths contradict each other.
    """
    return BucketPlace(
        bucket_path(root, schema, partition, bucket),
        relative=relative_bucket_path(schema, partition, bucket),
        external=external_paths(Options(schema.options)),
        ids=ids,
    )


def path_in(directory: str, file: DataFile) -> str:
    """Where a data file of the bucket with this directory lies: a path of the table's store, or a URL."""
    return file.external_path or data_file_path(directory, file.name)


def paths_in(directory: str, file: DataFile) -> tuple[str, ...]:
    """Where a data file and the files beside it lie."""
    path = path_in(directory, file)
    directory = path.rpartition("/")[0]
    return (path, *(data_file_path(directory, name) for name in file.extra_files))
