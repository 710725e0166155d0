"""Writing and committing for `Table`: what its verbs load when they are called, so that readers do without it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa

from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.commit.changes import Changes
from paimon_py.commit.commit import commit
from paimon_py.commit.overwrite import overwrite_of
from paimon_py.commit.renumber import renumber
from paimon_py.commit.request import CommitRequest
from paimon_py.commit.result import CommitResult
from paimon_py.commit.rounds import ROUNDS, on_latest
from paimon_py.errors import CommitUnknownError, PaimonError, UsageError
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.supported import check_compactable, check_writable
from paimon_py.write.session import Writer

Publish = Callable[[Changes, CommitRequest], CommitResult]
"""`commit_changes` for one table."""


def writer(root: TableRoot, schema: TableSchema, *, overwrite: bool, share: tuple[int, int] | None = None) -> Writer:
    """See `Table.writer`."""
    check_writable(schema)
    part = read_keys = None
    if share is not None:
        if not (isinstance(share, tuple) and len(share) == 2):
            raise UsageError(f"share is the number of a writer and of all writers, such as (2, 4), not {share!r}")
        from paimon_py.write.dynamic import Share

        part = Share.of(schema, *share)
    if bucket_mode(schema) is BucketMode.MOVING:
        from paimon_py.rows.live_keys import live_keys

        read_keys = live_keys(root, schema)
    return Writer(root, schema, ignore_existing=overwrite, share=part, read_keys=read_keys)


def write(
    root: TableRoot, schema: TableSchema, data: object, publish: Publish, *,
    overwrite: Mapping[str, object] | str | None, watermark: int | None,
) -> CommitResult:  # fmt: skip
    """See `Table.write_arrow`; `publish` commits what was written."""
    mode = overwrite_of(schema, overwrite)
    request = CommitRequest(overwrite=mode, watermark=watermark)
    can_repeat = mode is None and isinstance(data, (pa.Table, pa.RecordBatch))
    if can_repeat and bucket_mode(schema) is BucketMode.MOVING:
        return on_latest(root, lambda *_: _written(root, schema, data, request, publish), rounds=ROUNDS)
    return _written(root, schema, data, request, publish)


def request_of(
    schema: TableSchema, *, user: str | None, identifier: int | None,
    overwrite: Mapping[str, object] | str | None, watermark: int | None, properties: Mapping[str, str] | None,
) -> CommitRequest:  # fmt: skip
    """What `Table.commit` was asked for."""
    if identifier is not None and user is None:
        raise UsageError("commit(identifier=…) needs user=…: an identifier counts the commits of one user")
    return CommitRequest(
        user=user, identifier=identifier, overwrite=overwrite_of(schema, overwrite), watermark=watermark,
        properties=properties, check_files=True,
    )  # fmt: skip


def concat(changes: Changes | bytes | Iterable[Changes | bytes]) -> Changes:
    """What several writers did as one value.

    Raises: UsageError for anything else.
    """
    given = [changes] if isinstance(changes, (Changes, bytes)) or not isinstance(changes, Iterable) else changes
    parts: list[Changes] = []
    for part in given:
        if not isinstance(part, (Changes, bytes)):
            raise UsageError(f"commit takes what writer.changes() returns, its bytes, or a list of these, not {part!r}")
        parts.append(Changes.from_bytes(part) if isinstance(part, bytes) else part)
    return Changes.concat(parts)


def nothing_instead(
    root: TableRoot, schema: TableSchema, chosen: PartitionChoice | None = None
) -> tuple[Changes, CommitRequest]:
    """What removes all rows of some partitions, or of the table."""
    check_writable(schema)
    changes = Changes(schema_id=schema.id, base_snapshot_id=root.snapshots.latest_id(), buckets=())
    return changes, CommitRequest(overwrite=chosen or PartitionChoice(), operation="TRUNCATE")


def commit_changes(root: TableRoot, schema: TableSchema, changes: Changes, request: CommitRequest) -> CommitResult:
    """Commit changes of a table with this schema."""
    compacts_only = request.overwrite is None and any(bucket.compact_before for bucket in changes.buckets)
    writes = any(bucket.new_files or bucket.deleted_files for bucket in changes.buckets)
    (check_compactable if compacts_only and not writes else check_writable)(schema)
    return commit(
        root, schema, changes, request, renumber=lambda bucket, offset: renumber(root, schema, bucket, offset)
    )


def _written(
    root: TableRoot, schema: TableSchema, data: object, request: CommitRequest, publish: Publish
) -> CommitResult:
    with writer(root, schema, overwrite=request.overwrite is not None) as session:
        if isinstance(request.overwrite, PartitionChoice):
            session.keep_to(request.overwrite)
        session.write_arrow(data)
        changes = session.changes()
        try:
            return publish(changes, request)
        except CommitUnknownError:
            raise
        except PaimonError:  # anything else, a Ctrl-C say, may come after publication: then the files stay
            session.discard(changes)
            raise
