"""Data files of a table outside its directory, and the deletion vectors next to them."""

from __future__ import annotations

from paimon_py.errors import CorruptionError
from paimon_py.files.places import paths_in
from paimon_py.metadata.branches import other_branches
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import DATABASE_SUFFIX, join


def delete_external_files(root: TableRoot, warehouse: str) -> list[str]:
    """Delete the files of a table that are outside it. Returns the URLs that the table references but may not delete.

    Files that are only referenced are kept, and not returned.

    The returned files are below none of its external roots, or in another table's directory of the warehouse.

    Cost: as `external_files`, and a delete each.
    """
    found = [url for url in external_files(root) if not root.files.is_referenced(url)]
    return [url for url in found if not _delete(root, warehouse, url)]


def _delete(root: TableRoot, warehouse: str, url: str) -> bool:
    try:
        store, place = root.files.resolve(url)
    except CorruptionError:
        return False
    below = place.removeprefix(join(warehouse) + "/")
    if store is root.store and below != place and f"{DATABASE_SUFFIX}/" in below:
        return False
    store.delete(place)
    return True


def external_files(root: TableRoot) -> list[str]:
    """URLs of all files outside the table in snapshots and tags of all branches, with their extra files.

    `root.files` checks whether they are where the table's files may be, and accesses no others.

    Cost: nothing unless the table has external roots; then every snapshot's entries.
    """
    if next(root.files.external_roots(), None) is None:
        return []
    found: set[str] = set()
    branches = [root, *other_branches(root)]
    kept = [branch.snapshots.find(number) for branch in branches for number in branch.snapshots.ids()]
    for snapshot in (*kept, *(tag.snapshot for branch in branches for tag in branch.tags.list())):
        if snapshot is None:
            continue
        for entry in root.manifests.live_entries(snapshot).entries():
            if entry.file.external_path is not None:
                found.update(paths_in("", entry.file))
        index = [] if snapshot.index_manifest is None else root.manifests.read_index(snapshot.index_manifest)
        found.update(entry.external_path for entry in index if entry.external_path is not None)
    return sorted(found)
