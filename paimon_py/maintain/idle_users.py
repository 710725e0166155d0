"""Deletes the last identifiers of users that have not committed for long and that no state references.

A user that a snapshot, tag, branch or kept changelog references is kept whatever its age: its file is the backup of
these references.

Source: docs/reliability.md §3 (h); docs/decisions/0030-lineage.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import msgspec

from paimon_py.maintain.cleanup.references import BranchRoot
from paimon_py.maintain.file_tasks import is_older
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.user_files import UserFiles, user_file_name
from paimon_py.spec.options import Options
from paimon_py.storage.store import FileStatus

RETENTION = "commit.user-retention"


class IdleUser(NamedTuple):
    """The file of an idle user that no state references. `name`: the file name if it is damaged.

    `limit`: the user last committed before this time, in epoch milliseconds of the store's clock.
    """

    name: str
    file: FileStatus
    limit: int


def idle_users(
    root: TableRoot, branches: Sequence[BranchRoot], now_millis: int, named: Collection[str]
) -> Iterator[IdleUser]:
    """The users of some branches that have been idle for longer than their branch's `commit.user-retention`.

    Args:
        now_millis: the time, by the clock of the store.
        named: users that some state of the table references.

    Cost: a list per branch, and a get per user, or two if it is idle.
    """
    kept = {user_file_name(user) for user in named}
    for branch in branches:
        retention = Options(branch.schemas.latest().options).get_duration(RETENTION)
        files, limit = UserFiles(root.store, branch.path), now_millis - retention
        for file in files.files():
            if file.name not in kept and _is_idle(files, file, limit):
                yield IdleUser(files.name_of(file), file, limit)


def forget_user(root: TableRoot, user: IdleUser) -> bool:
    """Delete the file of a user unless the user has committed meanwhile. Returns whether it did.

    Cost: a stat, a get, a list and a delete.
    Raises: TableNotFoundError: another table is at the path.
    """
    status = root.store.stat(user.file.path)
    if status is None or not _is_idle(root.users, status, user.limit):
        return False
    root.schemas.latest()
    root.store.delete(user.file.path)
    return True


def _is_idle(files: UserFiles, file: FileStatus, limit: int) -> bool:
    return is_older(msgspec.structs.replace(file, modified_millis=files.commit_millis(file)), limit)
