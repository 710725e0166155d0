"""Data files of a table that lie outside its directory, and deletion vectors beside them."""

from __future__ import annotations

from paimon_py.files.places import paths_in
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.external_paths import PATHS


def external_files(root: TableRoot) -> list[str]:
    """URLs of all files outside the table that a snapshot or tag names, with the files beside them.

    Cost: nothing unless some schema of the table has external paths; then every snapshot's entries.
    """
    if not any(root.schemas.get(number).options.get(PATHS) for number in root.schemas.ids()):
        return []
    found: set[str] = set()
    kept = [root.snapshots.find(number) for number in root.snapshots.ids()]
    for snapshot in (*kept, *(tag.snapshot for tag in root.tags.list())):
        if snapshot is None:
            continue
        for entry in root.manifests.live_entries(snapshot).entries():
            if entry.file.external_path is not None:
                found.update(paths_in("", entry.file))
        index = [] if snapshot.index_manifest is None else root.manifests.read_index(snapshot.index_manifest)
        found.update(entry.external_path for entry in index if entry.external_path is not None)
    return sorted(found)
