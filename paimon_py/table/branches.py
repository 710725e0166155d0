"""Branch methods of `Table`: branches are table states that evolve independently."""

from __future__ import annotations

from types import EllipsisType
from typing import TypeVar

import msgspec

from paimon_py.arguments import check_flag, way_of
from paimon_py.errors import UsageError
from paimon_py.maintain.cleanup.expired import FastForwarded
from paimon_py.metadata.branches import branch_names, check_new_branch, require_branch, require_unnamed
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.events import BranchEvent
from paimon_py.spec.layout import check_name
from paimon_py.spec.snapshot import Snapshot
from paimon_py.table.verbs import TableVerbs, at_table_door, cuts_history, reads

_Table = TypeVar("_Table", bound="TableBranches")


@at_table_door
class TableBranches(TableVerbs):
    """Methods of `Table` that create, open and manage branches, and fast-forward the table to one.

    A branch starts empty or from a snapshot of the table, and then has its own schemas, snapshots and tags. No data is
    copied. The table itself is the branch "main".
    """

    def create_branch(self: _Table, name: str, from_: str | int | EllipsisType | None = ...) -> _Table:
        """Create a branch. By default it starts from the latest snapshot and the current columns.

        A branch created from a tag or a snapshot id has the columns of that time.

        Args:
            name: letters, digits and more, but not digits alone, and not "main".
            from_: the name of a tag or the id of a snapshot from which the branch starts; None: it starts empty, with
                the columns of the table. A tag keeps the branch's files even when Java expires snapshots of the table,
                so a tag is the safer starting point. REST catalogs create branches from tags only: there the latest
                snapshot gets a tag, `branch-<name>`, if it has none.

        Returns: the branch, as a table to read and write.

        Cost: a get for each snapshot up to that one; a put for each schema, and for snapshot and tag.
        Raises:
            AlreadyExistsError: a branch of this name exists.
            TagNotFoundError, SnapshotNotFoundError: the starting point does not exist.
            UsageError: the name is invalid, or `from_` is not a tag, a snapshot id or None.
        """
        from paimon_py.maintain.branches import create_branch
        from paimon_py.maintain.observers import report

        begin = self._latest_to_begin_with(check_new_branch(name)) if from_ is ... else self._begin(from_)
        made = self._on(create_branch(self._root, name, begin, newest_schema=from_ is ...))
        report(self._root, lambda: BranchEvent(**self._root.event_place(), action="create", name=name))
        return made

    @reads
    def branches(self) -> list[str]:
        """The names of all branches except main, sorted. Cost: a list, and one for each branch."""
        return self._root.check_listed(branch_names(self._root))

    @reads
    def branch(self: _Table, name: str) -> _Table:
        """Open a branch as a table: all methods work on the branch. "main" is the table itself.

        Cost: three lists and a get.
        Raises: BranchNotFoundError, UsageError; TableNotFoundError if another table is at the path.
        """
        branch = self._on(require_branch(self._root, name))
        self._root.require_same(self._schema)
        return branch

    @cuts_history
    def fast_forward(self, name: str, *, discard: bool = False) -> FastForwarded:
        """Fast-forward the table to the current state of a branch.

        The table keeps exactly the snapshots that the branch is based on, and gets those of the branch; the branch
        remains. If the table has snapshots that the branch is not based on, tags of such snapshots, later schema
        changes, or consumers that have not read what has expired in the branch, nothing is done.

        If the process is interrupted, call the method again; until then no other change to the table is possible.
        Consumers that have read deleted snapshots, or still had to, cause a warning.

        Args:
            discard: delete everything that the branch is not based on; the result lists what was deleted.

        Returns: the latest snapshot, the snapshots that were deleted and added, tags that were deleted, and consumers
            to reset.

        Raises:
            BranchNotFoundError: the branch does not exist.
            UsageError: the branch has no snapshot, or this table is itself a branch.
            CommitConflictError: the table has changes that the branch is not based on; or a rollback, an expiry or
                another fast-forward is running.
        """
        from paimon_py.maintain.fast_forward import fast_forward, fast_forward_event
        from paimon_py.maintain.observers import notify_move

        check_flag("discard", discard)
        moved = fast_forward(self._root, name, discard=discard)
        self._schema = self._root.schemas.latest()
        said = notify_move(self._open_table, lambda: fast_forward_event(self._root, moved))
        return msgspec.structs.replace(moved, warnings=said)

    def delete_branch(self, name: str) -> None:
        """Delete a branch with its snapshots and tags; files that only the branch referenced become orphans.

        Raises:
            BranchNotFoundError: the branch does not exist.
            UsageError: an option of the table refers to the branch (`scan.fallback-branch`, `scan.primary-branch`).
        """
        from paimon_py.maintain.branches import delete_branch
        from paimon_py.maintain.observers import report

        require_unnamed(self._schema.options, name)
        delete_branch(self._root, name)
        report(self._root, lambda: BranchEvent(**self._root.event_place(), action="delete", name=name))

    def rename_branch(self, name: str, new_name: str) -> None:
        """Rename a branch.

        Raises:
            BranchNotFoundError: the branch does not exist.
            AlreadyExistsError: a branch with the new name exists.
            UsageError: the name is invalid, or an option of the table refers to the branch.
            UnsupportedError: the store cannot move a directory in one step (object stores).
        """
        from paimon_py.maintain.branches import rename_branch
        from paimon_py.maintain.observers import report

        require_unnamed(self._schema.options, name)
        rename_branch(self._root, name, new_name)
        place = self._root.event_place
        report(self._root, lambda: BranchEvent(**place(), action="rename", name=new_name, old_name=name))

    def _begin(self, from_: object) -> str | Snapshot | None:
        if from_ is None:
            return None
        if isinstance(from_, str):
            return check_name("tag", from_)
        if isinstance(from_, int) and not isinstance(from_, bool):
            return self._root.snapshots.get(from_)
        raise UsageError(f"from_ must be the name of a tag or the id of a snapshot, not {from_!r}{way_of(from_)}")

    def _latest_to_begin_with(self, name: str) -> str | Snapshot | None:
        """The latest snapshot, or a tag of it (existing or new) where the catalog creates branches only from tags."""
        from paimon_py.maintain.tags import make_tag

        latest = self._root.latest()
        if latest is None or self._root.history is None:
            return latest
        for tag in self._root.tags.list():
            if tag.snapshot.mark == latest.mark:
                return tag.name
        return make_tag(self._newest_table, f"branch-{name}", latest).name

    def _on(self: _Table, root: TableRoot) -> _Table:
        """The table of a branch."""
        raise NotImplementedError
