"""Making branches, deleting and renaming them, and moving main on to what a branch has become.

Source: format.md §15.5; Java `FileSystemBranchManager`.
"""

from __future__ import annotations

from paimon_py.codec.snapshot_json import snapshot_to_json
from paimon_py.errors import AlreadyExistsError, SnapshotExpiredError, UnsupportedError, UsageError
from paimon_py.maintain.expired import FastForwarded
from paimon_py.maintain.tags import is_kept
from paimon_py.metadata.branches import check_new_branch, require_branch
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.snapshots import PINNING
from paimon_py.spec.layout import (
    MAIN_BRANCH,
    earliest_hint_path,
    latest_hint_path,
    schema_path,
    snapshot_path,
    tag_path,
)
from paimon_py.spec.snapshot import Snapshot


def create_branch(root: TableRoot, name: str, begin: str | Snapshot | None) -> TableRoot:
    """Make a branch: empty, or at a snapshot, or at that of a tag, which then is a tag of the branch too.

    The snapshot is written first, and the newest schema last, which makes the branch. A call that died can be repeated.
    Before that the snapshot is looked for again: expiry lists branches once the snapshot is gone, and so either knows
    of the branch, or the branch is not made.

    Cost: a put for the snapshot, the tag and each schema, and a get.
    Raises:
        SnapshotExpiredError: the snapshot went meanwhile.
        AlreadyExistsError: there is a branch of this name, or what is left of another one.
        TagNotFoundError
    """
    branch = root.on_branch(check_new_branch(name))
    if root.history is not None:
        if isinstance(begin, Snapshot):
            raise UnsupportedError(
                f"a catalog that keeps the history makes branches of tags: create_tag('…', {begin.id}) makes one",
                feature="branches that begin at a snapshot id",
            )
        root.history.create_branch(branch.branch, begin)
        return branch
    if branch.schemas.ids():
        raise AlreadyExistsError(f"branch {name!r} of {root.path} exists already", path=branch.branch_path)
    snapshot = root.tags.get(begin).snapshot if isinstance(begin, str) else begin
    newest = root.schemas.latest().id if snapshot is None else snapshot.schema_id
    source, home, get = root.branch_path, branch.branch_path, root.store.get
    files: list[tuple[str, bytes]] = []
    if snapshot is not None:
        files.append((snapshot_path(home, snapshot.id), snapshot_to_json(snapshot)))
    if isinstance(begin, str):
        files.append((tag_path(home, begin), get(tag_path(source, begin))))
    numbers = [number for number in root.schemas.ids() if number <= newest]
    files += [(schema_path(home, number), get(schema_path(source, number))) for number in numbers]
    for number, (path, data) in enumerate(files):
        if number == len(files) - 1 and snapshot is not None and not is_kept(root, snapshot):
            root.store.delete_tree(home)
            raise SnapshotExpiredError(
                f"snapshot {snapshot.id} of {root.path} expired while the branch {name!r} was made from it{PINNING}",
                path=home, snapshot_id=snapshot.id,
            )  # fmt: skip
        if not root.store.put_new(path, data, within=root.path) and root.store.get(path) != data:
            raise AlreadyExistsError(
                f"{path} is left of another branch {name!r}: delete_branch({name!r}) removes the remains", path=path
            )
    return branch


def delete_branch(root: TableRoot, name: str) -> None:
    """Delete a branch, or the remains of one. Files that only the branch named become orphans, as in Java.

    Raises: BranchNotFoundError
    """
    branch = root.on_branch(check_new_branch(name))
    if root.history is not None:
        root.history.delete_branch(branch.branch)
        return
    if not root.store.list(branch.branch_path):
        require_branch(root, name)
    for number in branch.schemas.ids():
        root.store.delete(schema_path(branch.branch_path, number))
    root.store.delete_tree(branch.branch_path)


def rename_branch(root: TableRoot, name: str, new_name: str) -> None:
    """Give a branch another name.

    Raises:
        BranchNotFoundError, AlreadyExistsError
        UnsupportedError: the store cannot move a directory in one step (object stores).
    """
    if root.history is not None:
        raise UnsupportedError(
            f"the catalog of {root.path} keeps its branches, and cannot give one another name", feature="rename_branch"
        )
    branch, target = require_branch(root, check_new_branch(name)), root.on_branch(check_new_branch(new_name))
    if root.store.list(target.branch_path):
        raise AlreadyExistsError(f"branch {new_name!r} of {root.path} exists already", path=target.branch_path)
    root.store.rename_directory(branch.branch_path, target.branch_path)


def fast_forward(root: TableRoot, name: str) -> FastForwarded:
    """Make main what a branch is: snapshots, schemas and tags of main go from where the branch begins, its own come.

    What both have stays untouched. Later snapshots of main go first, newest first, then those of the branch come,
    oldest first: whoever reads meanwhile finds a state of either. So the branch's first one comes before all that if
    main has forgotten it. A call that died can be repeated.

    Cost: three lists of each side, a get for each snapshot and tag, a delete for each that goes, a put for each that
        comes.
    Raises:
        BranchNotFoundError
        UsageError: the branch has no snapshot, or this is not main.
    """
    if root.branch != MAIN_BRANCH:
        raise UsageError(f"main is moved on, not the branch {root.branch!r}: call fast_forward on the table itself")
    branch = require_branch(root, check_new_branch(name))
    numbers = branch.snapshots.ids()
    if not numbers:
        raise UsageError(f"branch {name!r} of {root.path} has no snapshot: there is nothing to move main on to")
    first = branch.snapshots.get(numbers[0])
    coming = {number: branch.snapshots.get(number) for number in numbers}
    there = {number: root.snapshots.find(number) for number in root.snapshots.ids() if number >= first.id}
    same = {number for number, snapshot in there.items() if snapshot is not None and coming.get(number) == snapshot}
    going = [number for number in there if number not in same]
    tags = [tag for tag in root.tags.list() if tag.snapshot.id >= first.id]
    if root.history is not None:
        root.history.fast_forward(branch.branch)
        return FastForwarded(
            snapshot_id=numbers[-1], gone_ids=tuple(going), new_ids=tuple(sorted(coming.keys() - same))
        )
    home, kept = root.branch_path, max((*same, first.id - 1))
    root.store.delete(latest_hint_path(home))
    if first.id < min(root.snapshots.ids(), default=0):
        root.store.put(snapshot_path(home, first.id), snapshot_to_json(first), within=home)
        root.store.put(earliest_hint_path(home), str(first.id).encode(), within=home)
    for number in sorted(going, reverse=True):
        root.store.delete(snapshot_path(home, number))
    root.changelogs.cut([number for number in root.changelogs.ids() if number > kept])
    branch_tags = {tag.name: tag for tag in branch.tags.list()}
    for tag in tags:
        if branch_tags.get(tag.name) != tag:
            root.store.delete(tag_path(home, tag.name))
    _move_schemas(root, branch, first.schema_id)
    for number, snapshot in sorted(coming.items()):
        if number not in same:
            root.store.put(snapshot_path(home, number), snapshot_to_json(snapshot), within=home)
    for name_of_tag in branch_tags:
        data = root.store.get(tag_path(branch.branch_path, name_of_tag))
        root.store.put(tag_path(home, name_of_tag), data, within=home)
    root.store.put(latest_hint_path(home), str(numbers[-1]).encode(), within=home)
    return FastForwarded(
        snapshot_id=numbers[-1],
        gone_ids=tuple(sorted(going)),
        new_ids=tuple(number for number in numbers if number not in same),
    )


def _move_schemas(root: TableRoot, branch: TableRoot, first: int) -> None:
    """Put the schemas of a branch from a number on in the place of main's."""
    numbers, there = branch.schemas.ids(), root.schemas.ids()
    for number in reversed(there):
        if number >= first and number not in numbers:
            root.store.delete(schema_path(root.branch_path, number))
    for number in numbers:
        data, path = root.store.get(schema_path(branch.branch_path, number)), schema_path(root.branch_path, number)
        if number not in there or root.store.get(path) != data:
            root.store.put(path, data, within=root.path)
