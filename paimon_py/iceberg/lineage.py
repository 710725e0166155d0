"""Row ids of Iceberg's format version 3: assigns them to the rows of manifests.

Source: docs/format.md §25.7; Java 2.1 `IcebergCommitCallback`; Apache Iceberg table specification, "Row Lineage".
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from paimon_py.iceberg.values import DELETES, IcebergEntry, IcebergManifest


def assign_row_ids(manifests: Sequence[IcebergManifest], first: int) -> tuple[list[IcebergManifest], int]:
    """The manifests of a list with the ids of their first rows, and the first id that remains unassigned.

    Manifests that have theirs keep it, those of deletes have none.
    """
    made = []
    for manifest in manifests:
        if manifest.content == DELETES or manifest.first_row_id is not None:
            made.append(manifest)
            continue
        made.append(msgspec.structs.replace(manifest, first_row_id=first))
        first += manifest.live_rows
    return made, first


def with_row_ids(manifest: IcebergManifest, entries: Sequence[IcebergEntry]) -> list[IcebergEntry]:
    """The entries of a manifest for another manifest, each with the id of its first row."""
    number = manifest.first_row_id
    if number is None:
        return list(entries)
    made = []
    for entry in entries:
        if not entry.is_live or entry.file.first_row_id is not None:
            made.append(entry)
            continue
        file = msgspec.structs.replace(entry.file, first_row_id=number)
        made.append(msgspec.structs.replace(entry, file=file))
        number += entry.file.row_count
    return made
