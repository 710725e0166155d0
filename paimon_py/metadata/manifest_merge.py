"""Selects the manifests that a commit merges, so that reading does not slow down with the number of commits.

Source: format.md §5.5; Java `ManifestFileMerger`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from paimon_py.spec.manifest import ManifestFile
from paimon_py.spec.options import Options


class ManifestSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The manifest settings of a table: format and compression by the names of their options, sizes in bytes."""

    format: str = "avro"
    compression: str = "zstd"
    target_file_size_bytes: int = 8 << 20
    full_compaction_bytes: int = 16 << 20
    merge_min_count: int = 30

    @property
    def avro_compression(self) -> str:
        """The compression while a file is in Avro: none for files to convert to ORC."""
        return self.compression if self.format == "avro" else "none"

    @classmethod
    def of(cls, options: Options) -> ManifestSettings:
        """The settings in a table's options.

        Raises:
            OptionError: the value of an option is not a size or number.
        """
        return cls(
            format=options.get_enum("manifest.format"),
            compression=options.get_str("manifest.compression"),
            target_file_size_bytes=options.get_memory("manifest.target-file-size"),
            full_compaction_bytes=options.get_memory("manifest.full-compaction-threshold-size"),
            merge_min_count=options.get_int("manifest.merge-min-count"),
        )


def must_change(file: ManifestFile, settings: ManifestSettings) -> bool:
    """Whether a full compaction rewrites a manifest in any case: it is small, or contains DELETEs."""
    return file.deleted_files > 0 or file.size_bytes < settings.target_file_size_bytes


def wants_full(files: Sequence[ManifestFile], settings: ManifestSettings) -> bool:
    """Whether enough has accumulated to fold everything."""
    size = sum(file.size_bytes for file in files if must_change(file, settings))
    return size >= settings.full_compaction_bytes


def minor_groups(files: Sequence[ManifestFile], settings: ManifestSettings) -> list[tuple[ManifestFile, ...]]:
    """Neighbours to merge into one; a group of one stays unchanged.

    A group is closed when it reaches the target size; the rest at the end is merged only if there are enough files.
    """
    groups: list[tuple[ManifestFile, ...]] = []
    group: list[ManifestFile] = []
    size = 0
    for file in files:
        group.append(file)
        size += file.size_bytes
        if size >= settings.target_file_size_bytes:
            groups.append(tuple(group))
            group, size = [], 0
    if len(group) >= settings.merge_min_count:
        groups.append(tuple(group))
    else:
        groups.extend((file,) for file in group)
    return groups
