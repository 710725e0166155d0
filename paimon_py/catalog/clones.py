"""Clone method of `Catalog`: copies a table with its snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paimon_py.arguments import NameList, as_names, check_flag, check_progress, with_location
from paimon_py.catalog.verbs import CatalogVerbs
from paimon_py.errors import PaimonError, UsageError
from paimon_py.logs import warn
from paimon_py.progress import Progress
from paimon_py.spec.iceberg import writes_iceberg
from paimon_py.table.table import Table

if TYPE_CHECKING:
    from paimon_py.catalog.catalog import Catalog
    from paimon_py.clones.result import CloneResult


@with_location(lambda catalog: catalog.warehouse)
class CatalogClones(CatalogVerbs):
    """Method of `Catalog` that clones tables."""

    __slots__ = ()

    def clone_table(  # noqa: PLR0913
        self,
        name: str,
        new_name: str,
        *,
        snapshot_id: int | None = None,
        tag: str | None = None,
        tags: bool | NameList = False,
        history: bool = False,
        to: Catalog | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> CloneResult:
        """Copy a table with its files, as they are, to a new table: in this or another catalog, store or warehouse.

        The clone has the same snapshot ids, schemas, options and users' numbers, and nothing in common with the source
        afterwards; branches and consumers are not copied. Readers see no table until it is complete. If the call
        fails, it deletes what it copied; if the process dies, the same call finishes the clone, and `drop_table`
        removes its remains.

        Args:
            name: `database.table`, or a branch of one (`db.t$branch_b1`), which becomes a table.
            new_name: of a table that does not exist, in a database that does.
            snapshot_id, tag: the newest snapshot of the clone, with its schema; by default the table as it is now.
            tags: tags to copy with their snapshots: True for all up to the newest snapshot, or their names.
            history: also copy the snapshots before, with their changelogs.
            to: the catalog of the clone; this one by default.
            dry_run: report what would be copied.
            progress: called with the number of files copied, the total, and "files".

        Cost: reads all manifests of the chosen snapshots, and copies their files, several at a time.
        Raises:
            TableNotFoundError, SnapshotNotFoundError, SnapshotExpiredError, TagNotFoundError: it does not exist (any
                more); create a tag if others expire snapshots meanwhile.
            AlreadyExistsError: a table, or an unfinished clone of another state, has the new name.
            OptionError: an option refers to a branch.
            UnsupportedError: the source has external paths or features that paimon_py does not read, or the target is
                a REST catalog.
            CommitConflictError: the table was rolled back in the meantime, or another call with the same arguments took
                over the clone.
            StorageError: the outcome is uncertain; the same call finishes the clone.
        """
        from paimon_py.clones.clone import clone_table
        from paimon_py.clones.contents import CloneChoice

        for flag, given in (("history", history), ("dry_run", dry_run)):
            check_flag(flag, given)
        check_progress(progress)
        if snapshot_id is not None and tag is not None:
            raise UsageError("clone_table takes snapshot_id or tag, not both")
        target = self if to is None else to
        if not isinstance(target, CatalogVerbs):
            raise UsageError(f"clone_table(to=…) takes a catalog, not {to!r}")
        names = tags if isinstance(tags, bool) else as_names("tags is True, or a list of names", tags)
        choice = CloneChoice(snapshot_id=snapshot_id, tag=tag, tags=names, history=history)
        source = self.table(name)
        if not isinstance(source, Table):
            raise UsageError(f"{name} is a system table, which has no files to clone")
        full = target._split(new_name, "clone_table")
        target._require_database(full.database)
        result, root = clone_table(source, target._metastore, full, choice, progress, dry_run=dry_run)
        if root is not None:
            made = target.table(new_name)
            target._report("create", new_name, root.path)
            _publish_iceberg(made)
        return result


def _publish_iceberg(table: Table) -> None:
    """Publish the Iceberg metadata of a clone, if it has the option. A failure is a warning: the clone is complete."""
    if not writes_iceberg(table.schema) or table.snapshot() is None:
        return
    try:
        table.publish_iceberg()
    except PaimonError as error:
        warn(f"{table.name} was cloned, but its Iceberg metadata was not published: {error}")
