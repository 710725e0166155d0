"""Creating, deleting and renaming branches.

Source: format.md §15.5; docs/reliability.md §3 (o); Java `FileSystemBranchManager`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from paimon_py.codec.snapshot_json import snapshot_to_json
from paimon_py.errors import (
    AlreadyExistsError,
    SnapshotExpiredError,
    StorageError,
    TableNotFoundError,
    TagNotFoundError,
    UnsupportedError,
)
from paimon_py.maintain.tags import is_kept
from paimon_py.metadata.branches import branch_directories, check_new_branch, is_complete, require_branch
from paimon_py.metadata.catalog_entry import SnapshotCatalog
from paimon_py.metadata.origins import origin_at, origin_of, origin_to_json
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.snapshots import PINNING
from paimon_py.metadata.users import users_until
from paimon_py.spec.layout import MAIN_BRANCH, is_temporary, origin_path, schema_path, snapshot_path, tag_path
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.storage.store import FileMissingError


def create_branch(
    root: TableRoot, name: str, begin: str | Snapshot | None, *, newest_schema: bool = False
) -> TableRoot:
    """Create a branch: empty, at a snapshot, or at the snapshot of a tag, which is copied to the branch too.

    Args:
        newest_schema: copy all schemas of the table, including those newer than the snapshot. Always done for an empty
            branch.

    First a file records where the branch begins; the oldest schema is written last, and makes the branch visible. An
    interrupted call can be repeated. Before the last step the snapshot is checked again: expiry lists branches after
    deleting snapshots, so either expiry sees the branch, or the branch is not created. If another table came to the
    path, it keeps none of these files.

    Cost: two lists; a get per snapshot of the table up to that one; a put for the snapshot, the tag and each schema,
      and a get for each. If another program committed the snapshot, a get and a put per user.
    Raises:
        TableNotFoundError: another table is at the path.
        SnapshotExpiredError: the snapshot expired in the meantime.
        AlreadyExistsError: a branch of this name, or remains of one, exist.
        TagNotFoundError: the tag does not exist.
    """
    branch = root.on_branch(check_new_branch(name))
    if root.history is not None:
        return _create_by_catalog(root.history, branch, begin)
    if is_complete(root, branch):
        raise AlreadyExistsError(f"branch {name!r} of {root.path} already exists", path=branch.branch_path)
    snapshot = root.tags.get(begin).snapshot if isinstance(begin, str) else begin
    if snapshot is not None:
        root.require_own(snapshot)
    newest = root.schemas.latest().id if snapshot is None or newest_schema else snapshot.schema_id
    files = _files(root, branch, snapshot, begin if isinstance(begin, str) else None, newest)
    users = [] if snapshot is None else users_until(root, snapshot)
    _check_remains(root, branch, {*(path for path, _ in files), *(branch.users.path_of(one.user) for one in users)})
    origin, *others, visible = files
    _put_file(root, branch, origin, snapshot)
    for value in users:
        branch.users.put(value)
    for file in others:
        _put_file(root, branch, file, snapshot)
    if snapshot is not None:
        _require_kept(root, branch, snapshot, files[:-1])
    _put_file(root, branch, visible, snapshot)
    _withdraw(root, branch, files)
    return branch


def _create_by_catalog(history: SnapshotCatalog, branch: TableRoot, begin: str | Snapshot | None) -> TableRoot:
    """Let the catalog create a branch if it manages snapshots. Raises: UnsupportedError for a snapshot"""
    if isinstance(begin, Snapshot):
        raise UnsupportedError(
            f"a catalog that manages snapshots creates branches from tags: create_tag('…', {begin.id}) makes one,"
            " and from_=None begins an empty branch",
            feature="branches that begin at a snapshot id",
        )
    history.create_branch(branch.branch, begin)
    return branch


def _require_kept(root: TableRoot, branch: TableRoot, snapshot: Snapshot, files: Sequence[tuple[str, bytes]]) -> None:
    """Check that the snapshot of a new branch has not expired; otherwise delete the files of the branch.

    Raises: SnapshotExpiredError; TableNotFoundError if another table is at the path
    """
    if is_kept(root, snapshot):
        return
    _withdraw(root, branch, files)
    root.store.delete_tree(branch.branch_path)
    raise SnapshotExpiredError(
        f"snapshot {snapshot.id} of {root.path} expired while the branch {branch.branch!r} was made from it{PINNING}",
        path=branch.branch_path, snapshot_id=snapshot.id,
    )  # fmt: skip


def _put_file(root: TableRoot, branch: TableRoot, file: tuple[str, bytes], snapshot: Snapshot | None) -> None:
    """Write a file of a new branch, unless an interrupted call has written it. `snapshot`: where the branch begins.

    Raises: AlreadyExistsError if another file is there.
    """
    path, data = file
    is_there = root.store.put_new(path, data, within=root.path) or root.store.get(path) == data
    if not is_there and not (path == origin_path(branch.branch_path) and _begins_at(branch, snapshot)):
        raise _remains_error(path, branch.branch)


def _withdraw(root: TableRoot, branch: TableRoot, files: Sequence[tuple[str, bytes]]) -> None:
    """Delete the written files of a new branch if another table is at the path by now. Cost: a list

    Raises: TableNotFoundError
    """
    try:
        root.schemas.latest()
    except TableNotFoundError:
        for path, data in reversed(files):
            with suppress(FileMissingError):
                if root.store.get(path) == data:
                    root.store.delete(path)
        directories = {path.rpartition("/")[0] for path, _ in files} - {branch.branch_path}
        for directory in (*sorted(directories), branch.branch_path):
            with suppress(StorageError):
                root.store.remove_directory(directory)
        raise


def _begins_at(branch: TableRoot, snapshot: Snapshot | None) -> bool:
    """Whether an interrupted call began at the same snapshot, possibly with more of its ancestors."""
    origin = origin_of(branch)
    return snapshot is not None and origin is not None and origin.ancestors[-1:] == (Base.of(snapshot),)


def _check_remains(root: TableRoot, branch: TableRoot, ours: set[str]) -> None:
    """Check that there are no remains of an earlier branch of this name, which would become part of the new one.

    Cost: a list; one more per directory with remains.
    Raises: AlreadyExistsError
    """
    directories = [branch.branch_path]
    for directory in directories:
        for status in root.store.list(directory):
            if status.is_directory:
                directories.append(status.path)
            elif status.path not in ours and not is_temporary(status.name):
                raise _remains_error(status.path, branch.branch)


def _remains_error(path: str, name: str) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"{path} remains from an earlier branch {name!r}: delete_branch({name!r}) removes the remains", path=path
    )


def _files(
    root: TableRoot, branch: TableRoot, snapshot: Snapshot | None, tag: str | None, newest: int
) -> list[tuple[str, bytes]]:
    """The files of a new branch, in write order, at least two; `newest` is its last schema id.

    Raises: TableNotFoundError, TagNotFoundError
    """
    source, home, get = root.branch_path, branch.branch_path, root.store.get
    files = [(origin_path(home), origin_to_json(origin_at(root, snapshot)))]
    if snapshot is not None:
        files.append((snapshot_path(home, snapshot.id), snapshot_to_json(snapshot)))
    if tag is not None:
        try:
            files.append((tag_path(home, tag), get(tag_path(source, tag))))
        except FileMissingError as error:
            raise TagNotFoundError(
                f"tag {tag!r} of {root.path} was deleted in the meantime", path=root.path
            ) from error
    numbers = [number for number in reversed(root.schemas.ids()) if number <= newest] or [root.schemas.latest().id]
    return files + [(schema_path(home, number), get(schema_path(source, number))) for number in numbers]


def delete_branch(root: TableRoot, name: str) -> None:
    """Delete a branch, or its remains. Files that only the branch references become orphans, as in Java.

    Cost: some lists; a delete per schema and for the directory, and a list for each 16 of them.
    Raises:
        TableNotFoundError: another table is at the path.
        BranchNotFoundError
        CommitConflictError: a fast-forward is in progress.
    """
    branch = root.on_branch(check_new_branch(name))
    if root.history is not None:
        root.history.delete_branch(branch.branch)
        return
    if name not in branch_directories(root):
        require_branch(root, name)
    root.on_branch(MAIN_BRANCH).cuts.refuse()
    for number in root.each_of_same(branch.schemas.ids()):
        root.store.delete(schema_path(branch.branch_path, number))
    root.schemas.latest()
    root.store.delete_tree(branch.branch_path)


def rename_branch(root: TableRoot, name: str, new_name: str) -> None:
    """Rename a branch.

    Raises:
        BranchNotFoundError, AlreadyExistsError
        UnsupportedError: the store cannot move a directory atomically (object stores).
        TableNotFoundError: another table is at the path.
    """
    if root.history is not None:
        raise UnsupportedError(
            f"the catalog of {root.path} manages its branches, and does not support renaming", feature="rename_branch"
        )
    branch, target = require_branch(root, check_new_branch(name)), root.on_branch(check_new_branch(new_name))
    if root.store.list(target.branch_path):
        raise AlreadyExistsError(f"branch {new_name!r} of {root.path} already exists", path=target.branch_path)
    root.schemas.latest()
    root.store.rename_directory(branch.branch_path, target.branch_path)
