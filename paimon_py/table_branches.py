"""The verbs of branches: states of a table that go on by themselves."""

from __future__ import annotations

from typing import TypeVar

from paimon_py.doors import names_place, way_of
from paimon_py.errors import UsageError
from paimon_py.maintain.expired import FastForwarded
from paimon_py.metadata.branches import branch_names, require_branch, require_unnamed
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import check_name
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Snapshot

_Table = TypeVar("_Table", bound="TableBranches")


@names_place(lambda table: table._root.path, lambda table: table._root.schemas.latest())
class TableBranches:
    """What `Table` offers to make branches, to work on one, and to take over what became of one.

    A branch begins empty or with a snapshot of the table, and then has schemas, snapshots and tags of its own. No data
    is copied. The table itself is the branch "main".
    """

    _root: TableRoot
    _schema: TableSchema

    def create_branch(self: _Table, name: str, from_: str | int | None = None) -> _Table:
        """Make a branch.

        Args:
            name: letters, digits and more, but not digits alone, and not "main".
            from_: the name of a tag, or the id of a snapshot, with which the branch begins; None: it begins empty, with
                the columns of the table. The tag keeps the branch's files also where Java expires snapshots of the
                table, so that a tag is the safer beginning.

        Returns: the branch, as a table to read and write.

        Cost: a put for each schema, and for snapshot and tag.
        Raises:
            AlreadyExistsError: there is a branch of this name.
            TagNotFoundError, SnapshotNotFoundError: there is no such beginning.
            UsageError: not a name, or a beginning that is none of these.
        """
        from paimon_py.maintain.branches import create_branch

        return self._on(create_branch(self._root, name, self._begin(from_)))

    def branches(self) -> list[str]:
        """The names of all branches beside main, sorted. Cost: a list, and one for each branch."""
        return self._root.known(branch_names(self._root))

    def branch(self: _Table, name: str) -> _Table:
        """A branch as a table: all verbs work on the branch. "main" is the table itself. Cost: two lists and a get.

        Raises: BranchNotFoundError, UsageError
        """
        return self._on(require_branch(self._root, name))

    def fast_forward(self, name: str) -> FastForwarded:
        """Make the table what a branch is now: from where the branch begins its snapshots replace the table's own.

        Snapshots and tags that were made on the table since the branch began are gone, as after a rollback. The branch
        stays. Whoever dies on the way can call again. Consumers that have read what went are warned of: reset them.

        Returns: the latest snapshot, the snapshots that went and came, and consumers to reset.

        Raises:
            BranchNotFoundError: there is no such branch.
            UsageError: the branch has no snapshot, or this is a branch itself.
        """
        from msgspec import structs

        from paimon_py.maintain.branches import fast_forward
        from paimon_py.maintain.rollback import consumers_beyond, warn_of_consumers

        moved = fast_forward(self._root, name)
        self._schema = self._root.schemas.latest()
        if not moved.gone_ids:
            return moved
        consumers = consumers_beyond(self._root, min(moved.gone_ids))
        warn_of_consumers(self._root, consumers, min(moved.gone_ids))
        return structs.replace(moved, consumers=consumers)

    def delete_branch(self, name: str) -> None:
        """Delete a branch with its snapshots and tags; files that only the branch named become orphans.

        Raises:
            BranchNotFoundError: there is no such branch.
            UsageError: an option of the table names the branch (`scan.fallback-branch`, `scan.primary-branch`).
        """
        from paimon_py.maintain.branches import delete_branch

        require_unnamed(self._schema.options, name)
        delete_branch(self._root, name)

    def rename_branch(self, name: str, new_name: str) -> None:
        """Give a branch another name.

        Raises:
            BranchNotFoundError: there is no such branch.
            AlreadyExistsError: there is one of the new name.
            UsageError: not a name, or an option of the table names the branch.
            UnsupportedError: the store cannot move a directory in one step (object stores).
        """
        from paimon_py.maintain.branches import rename_branch

        require_unnamed(self._schema.options, name)
        rename_branch(self._root, name, new_name)

    def _begin(self, from_: object) -> str | Snapshot | None:
        if from_ is None:
            return None
        if isinstance(from_, str):
            return check_name("tag", from_)
        if isinstance(from_, int) and not isinstance(from_, bool):
            return self._root.snapshots.get(from_)
        raise UsageError(
            f"a branch begins from_ the name of a tag or the id of a snapshot, not {from_!r}{way_of(from_)}"
        )

    def _on(self: _Table, root: TableRoot) -> _Table:
        """The table of a branch."""
        raise NotImplementedError
