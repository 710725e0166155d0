"""Checks whether a commit may build on the latest snapshot: no rollback is in progress, and nothing is missing.

Source: docs/reliability.md §3 (o).
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon_py.errors import CommitConflictError
from paimon_py.logs import COMMITS, fields
from paimon_py.metadata.hints import read_hint
from paimon_py.metadata.id_runs import current_run, shown_ids
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import latest_hint_path, snapshot_directory, snapshot_path
from paimon_py.spec.snapshot import Snapshot


def require_complete(root: TableRoot, latest: Snapshot | None) -> None:
    """Check that a commit may build on `latest`, the result of `snapshots.latest`.

    Cost: none if it was found by a hint; otherwise a list, the file of a cut and two or three gets.
    Raises: CommitConflictError
    """
    if root.history is not None or not root.snapshots.reset_doubt():
        return
    ids = root.snapshots.ids()
    if not ids:
        _check_never_any(root)
        return
    root.cuts.refuse()
    history = current_run(ids, root.snapshots.earliest_hint)
    following = None if latest is None else root.snapshots.find(latest.id + 1)
    if latest is not None and following is not None and following.follows(latest) is False:
        _check_still_latest(root, following, latest)
    _log_missing(root, ids[-1])
    if len(history) < len(ids):
        raise _gap(root, ids, history)


def _check_still_latest(root: TableRoot, following: Snapshot, latest: Snapshot) -> None:
    """Refuse to commit before a snapshot that does not follow, unless the history was cut since `latest` was read.

    Raises: CommitConflictError
    """
    if root.snapshots.find(latest.id) == latest:
        raise _stray(root, following, latest)


def _check_never_any(root: TableRoot) -> None:
    """Refuse to start a history where one existed before: its hint and tags remain.

    Cost: a get; if there is a hint, a list.
    Raises: CommitConflictError
    """
    hint = read_hint(root.store, latest_hint_path(root.branch_path))
    if hint and root.tags.files():
        raise CommitConflictError(
            f"nothing was committed: {root.path} no longer has snapshots, its LATEST hint refers to"
            f" snapshot {hint}, and there are tags. A rollback was interrupted: rollback_to('…') with the name of"
            " a tag restores its state",
            path=snapshot_directory(root.branch_path), table=root.path,
        )  # fmt: skip


def _log_missing(root: TableRoot, newest: int) -> None:
    """Log that the LATEST hint refers to a snapshot later than all that exist. Cost: a get."""
    hint = read_hint(root.store, latest_hint_path(root.branch_path))
    if hint is not None and hint > newest:
        COMMITS.warning(
            "%s: the LATEST hint refers to snapshot %d, but snapshot %d is the newest that exists, and is built on;"
            " doctor() says what may have happened", root.path, hint, newest, extra=fields(root, snapshot_id=newest),
        )  # fmt: skip


def _stray(root: TableRoot, snapshot: Snapshot, newest: Snapshot) -> CommitConflictError:
    return CommitConflictError(
        f"nothing was committed: snapshot {snapshot.id} of {root.path} does not follow from snapshot {newest.id}. A"
        " commit left it when the table was rolled back, and its process ended;"
        f" table.rollback_to({newest.id}) removes it",
        path=snapshot_path(root.branch_path, snapshot.id), table=root.path, snapshot_id=snapshot.id,
    )  # fmt: skip


def _gap(root: TableRoot, ids: Sequence[int], history: range) -> CommitConflictError:
    return CommitConflictError(
        f"nothing was committed: the history of {root.path} has a gap, there are {shown_ids('snapshot', ids)}: a"
        f" rollback or fast-forward was interrupted. table.rollback_to({history[-1]}) keeps"
        f" {shown_ids('snapshot', history)}; look with scan(snapshot_id=…) whether that is what should stay",
        path=snapshot_directory(root.branch_path), table=root.path, snapshot_id=history[-1],
    )  # fmt: skip
