"""The one way of every verb to a commit."""

from __future__ import annotations

from paimon_py.commit.changes import Changes
from paimon_py.commit.commit import commit
from paimon_py.commit.renumber import renumber
from paimon_py.commit.request import CommitRequest
from paimon_py.commit.result import CommitResult
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.schema import TableSchema


def commit_changes(root: TableRoot, schema: TableSchema, changes: Changes, request: CommitRequest) -> CommitResult:
    """Commit changes of a table with this schema; where others were faster, new rows get later sequence numbers.

    Raises: what `commit` raises.
    """
    return commit(
        root, schema, changes, request, renumber=lambda bucket, offset: renumber(root, schema, bucket, offset)
    )
