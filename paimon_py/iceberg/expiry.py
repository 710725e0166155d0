"""Decides which Iceberg snapshots and metadata files are kept.

Source: docs/format.md §25.8; Java `IcebergCommitCallback.expireSnapshots`, `deleteApplicableMetadataFiles`.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon_py.iceberg.metadata import IcebergSnapshot
from paimon_py.spec.iceberg import IcebergOptions


def find_expired(
    snapshots: Sequence[IcebergSnapshot], number: int, now_millis: int, options: IcebergOptions
) -> Sequence[IcebergSnapshot]:
    """The oldest snapshots, which expire when snapshot `number` is published."""
    for place, one in enumerate(snapshots):
        found = one["snapshot-id"]
        stays = found > number - options.retained_min
        goes = found <= number - options.retained_max or one["timestamp-ms"] < now_millis - options.retained_millis
        if stays or not goes:
            return snapshots[:place]
    return snapshots


def old_versions(versions: Sequence[int], number: int, options: IcebergOptions) -> list[int]:
    """The metadata files that are deleted when version `number` is published."""
    return [one for one in versions if one < number - options.previous_max] if options.deletes_old else []


def fallen_versions(versions: Sequence[int], number: int, options: IcebergOptions) -> list[int]:
    """The versions that no longer protect the files that they reference when version `number` is published.

    If versions are not deleted, each publication adds one; the files of the older ones were deleted before.
    """
    fallen = [one for one in versions if one < number - options.previous_max]
    return fallen if options.deletes_old else fallen[-1:]
