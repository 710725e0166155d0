"""Clones a table: its snapshots and files, as they are, in the same or another catalog."""

from __future__ import annotations

from paimon_py.clones.contents import CloneChoice, Contents, choose_contents
from paimon_py.clones.result import CloneResult
from paimon_py.clones.unfinished import begin_clone
from paimon_py.codec.json import schema_from_json
from paimon_py.commit.uncommitted import discarding_on_failure
from paimon_py.errors import AlreadyExistsError
from paimon_py.metadata.branches import check_branch_options
from paimon_py.metadata.root import TableRoot
from paimon_py.metastores.metastore import Metastore, TableName
from paimon_py.progress import Progress
from paimon_py.spec.layout import schema_path
from paimon_py.spec.supported import check_movable, check_readable
from paimon_py.table.table import Table


def clone_table(
    source: Table, metastore: Metastore, name: TableName, choice: CloneChoice, progress: Progress | None,
    *, dry_run: bool,
) -> tuple[CloneResult, TableRoot | None]:  # fmt: skip
    """See `Catalog.clone_table`. Returns the new table, None in a dry run."""
    root = source._root
    check_readable(source._schema)
    check_movable(source._schema, "clone")
    target = metastore.new_location(name)
    if target is None:
        raise AlreadyExistsError(f"table {str(name)!r} already exists", table=str(name))
    contents = choose_contents(root, choice)
    _check_options(target, contents)
    result = CloneResult(
        table=str(name), source=root.path, snapshot_id=None if contents.newest is None else contents.newest.id,
        snapshots=len(contents.snapshots), tags=tuple(tag.name for tag in contents.tags), files=len(contents.files),
        size_bytes=sum(file.size_bytes or 0 for file in contents.files), dry_run=dry_run,
    )  # fmt: skip
    if dry_run:
        return result, None
    work = begin_clone(root, target, contents)
    with discarding_on_failure(work.discard):
        work.copy(progress)
    if not metastore.adopt_table(name, target, work.publish):
        work.discard()
        raise AlreadyExistsError(f"table {str(name)!r} was created in the meantime", table=str(name))
    work.finish()
    return result, target


def _check_options(target: TableRoot, contents: Contents) -> None:
    """Refuse options that need a branch, since branches are not cloned. Raises: OptionError"""
    number, data = contents.schemas[-1]
    check_branch_options(target, schema_from_json(data, schema_path(target.path, number)).options)
