"""The directories of a table's files, and which of their files may be orphans.

Only directories that Paimon creates are listed: metadata, and buckets below partitions, in the table and below its
external roots. Other files do not belong to the table.

Source: format.md §1, §16.6; Java `OrphanFilesClean.listPaimonFileDirs`, `FileStorePathFactory`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from paimon_py.maintain.cleanup.references import BranchRoot
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.schemas import Schemas
from paimon_py.spec.blobs import PACK_SUFFIX
from paimon_py.spec.layout import (
    CHANGELOG_PREFIX,
    DATABASE_SUFFIX,
    EARLIEST,
    LATEST,
    PATH_DIRECTORY,
    POSTPONE_BUCKET,
    SNAPSHOT_PREFIX,
    bucket_dir,
    changelog_directory,
    consumer_directory,
    escape,
    index_directory,
    is_plain_directory,
    is_temporary,
    join,
    manifest_directory,
    parse_number,
    schema_directory,
    snapshot_directory,
    statistics_directory,
    tag_directory,
    user_directory,
)
from paimon_py.storage.store import Store

_ENTROPY = tuple(re.compile(f"[01]{{{size}}}") for size in (4, 4, 4, 8))
"""Directories below a bucket by which the external path strategy `entropy-inject` spreads files."""

_BUCKET = "bucket-"


class Content(Enum):
    """The content of a directory, which determines which of its files may be orphans."""

    NAMED = "files that states name"
    SNAPSHOTS = "snapshots and their hints"
    CHANGELOGS = "changelogs that outlive their snapshots, and their hints"
    KEPT = "files that nothing names, and those that never became complete"


class Directory(NamedTuple):
    """A directory of a store.

    Attributes:
        levels: the number of directories, from this one upwards, that may be removed if they are empty.
        external: the external root that contains it; None: it is in the table's own store.
    """

    store: Store
    path: str
    content: Content
    levels: int = 0
    external: str | None = None

    def may_hold(self, name: str) -> bool:
        """Whether a file of this name may be an orphan."""
        if self.content is Content.KEPT:
            return is_temporary(name)
        if name.endswith(PACK_SUFFIX) or self.content is Content.NAMED:
            return not name.endswith(PACK_SUFFIX)
        prefix = SNAPSHOT_PREFIX if self.content is Content.SNAPSHOTS else CHANGELOG_PREFIX
        return not name.startswith(prefix) and name not in (EARLIEST, LATEST)


def metadata_directories(root: TableRoot, branch_roots: Iterable[BranchRoot]) -> Iterator[Directory]:
    """The metadata directories of all branches."""
    for home in branch_roots:
        yield Directory(root.store, snapshot_directory(home.path), Content.SNAPSHOTS)
        yield Directory(root.store, changelog_directory(home.path), Content.CHANGELOGS)
        own = (schema_directory, tag_directory, consumer_directory, user_directory)
        for path in (*(directory(home.path) for directory in own), *([] if home.path == root.path else [home.path])):
            yield Directory(root.store, path, Content.KEPT)
    for path in (manifest_directory(root.path), index_directory(root.path), statistics_directory(root.path)):
        yield Directory(root.store, path, Content.NAMED)


def bucket_directories(
    root: TableRoot, branch_roots: Sequence[BranchRoot], keys: Sequence[str], external: Iterable[str]
) -> Iterator[Directory]:
    """The directories of data files, below the table and below some external roots.

    `keys`: the partition keys. Cost: a list for the table and for each (partial) partition; with external paths
      that spread files, also for each bucket and each of its parts.
    Raises: StorageError
    """
    below = sorted({where for home in branch_roots for where in _data_directories(home.schemas)})
    places: list[tuple[Store, str, str | None]] = [(root.store, root.path, None)]
    for url in external:
        store, place = root.files.resolve(f"{url}/{_BUCKET}")
        places.append((store, place.removesuffix(f"/{_BUCKET}"), url))
    for store, path, url_above in places:
        for where in below:
            for bucket in _buckets(store, join(path, where), keys, 0):
                yield bucket._replace(external=url_above)
                if url_above is not None and bucket.content is Content.NAMED:
                    yield from _spread_directories(bucket._replace(external=url_above), _ENTROPY)


def external_store(root: TableRoot, url: str) -> Store:
    """The store of an external root. Raises: CorruptionError if the table does not have the root."""
    return root.files.resolve(f"{url}/{_BUCKET}")[0]


def external_roots(root: TableRoot, branch_roots: Iterable[BranchRoot]) -> tuple[list[str], list[str]]:
    """The external roots of a table, of all branches: those used only by the table, and those that other tables may
    use.

    Checks other tables of the same warehouse; roots inside table directories count as theirs.

    Cost: none without external roots; else reads the schemas of all tables of the warehouse.
    """
    of_branches = (url for branch in branch_roots for url in branch.schemas.external_roots())
    mine = sorted({*root.files.external_roots(), *of_branches})
    if not mine:
        return [], []
    warehouse = _warehouse(root.path)
    theirs = set() if warehouse is None else set(_roots_of_others(root, warehouse))
    shared = [url for url in mine if any(_overlap(url, other) for other in theirs) or _in_a_table(root, warehouse, url)]
    return [url for url in mine if url not in shared], shared


def _data_directories(schemas: Schemas) -> Iterator[str]:
    """The parent directories of buckets and partitions below a root, for each version of the schema."""
    for number in schemas.ids():
        found = schemas.get(number).options.get(PATH_DIRECTORY, "")
        yield found if found and is_plain_directory(found) else ""


def _buckets(store: Store, path: str, keys: Sequence[str], depth: int) -> Iterator[Directory]:
    """The buckets of all partitions below a directory, and partitions without buckets."""
    below = [status for status in store.list(path) if status.is_directory]
    found = 0
    for status in below:
        if keys and status.name.startswith(f"{escape(keys[0])}="):
            found += 1
            yield from _buckets(store, status.path, keys[1:], depth + 1)
        elif not keys and _is_bucket(status.name):
            found += 1
            yield Directory(store, status.path, Content.NAMED, depth + 1)
    if depth and not found:
        yield Directory(store, path, Content.KEPT, depth)


def _is_bucket(name: str) -> bool:
    return parse_number(_BUCKET, name) is not None or name == bucket_dir(POSTPONE_BUCKET)


def _spread_directories(above: Directory, parts: Sequence[re.Pattern[str]]) -> Iterator[Directory]:
    """The directories over which the files of a bucket are spread."""
    for status in above.store.list(above.path):
        if status.is_directory and parts[0].fullmatch(status.name):
            below = above._replace(path=status.path, content=Content.NAMED, levels=above.levels + 1)
            yield from _spread_directories(below, parts[1:]) if len(parts) > 1 else (below,)


def _warehouse(path: str) -> str | None:
    """The warehouse of a table, by its path."""
    database = path.rpartition("/")[0]
    return database.rpartition("/")[0] if database.endswith(DATABASE_SUFFIX) else None


def _roots_of_others(root: TableRoot, warehouse: str) -> Iterator[str]:
    """The external roots of all other tables of a warehouse."""
    listed = root.store.list(warehouse)
    databases = [status for status in listed if status.is_directory and status.name.endswith(DATABASE_SUFFIX)]
    tables = [status for database in databases for status in root.store.list(database.path) if status.is_directory]
    for table in tables:
        if table.path != root.path:
            yield from Schemas(root.store, table.path).external_roots()


def _overlap(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def _in_a_table(root: TableRoot, warehouse: str | None, url: str) -> bool:
    """Whether an external root is inside the directory of a table of the warehouse."""
    store, place = root.files.resolve(f"{url}/x")
    if warehouse is None or store is not root.store or not place.startswith(f"{warehouse}/"):
        return False
    return f"{DATABASE_SUFFIX}/" in place[len(warehouse) :]
