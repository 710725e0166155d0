"""Writing and committing for `Table`. Loaded when a write method is called, so that readers need not import it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from paimon_py.arguments import as_items, check_progress
from paimon_py.codec.columns import binary_array
from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.commit import uncommitted as uncommitted_files
from paimon_py.commit.changes import Changes, with_compaction
from paimon_py.commit.commit import commit, committed_before
from paimon_py.commit.overwrite import overwrite_of
from paimon_py.commit.request import CommitRequest
from paimon_py.commit.result import CommitResult
from paimon_py.commit.rounds import ROUNDS, on_latest
from paimon_py.commit.state import State
from paimon_py.commit.uncommitted import discarding_on_failure
from paimon_py.errors import NotFoundError, UsageError
from paimon_py.maintain.auto_maintenance import run_auto_maintenance
from paimon_py.maintain.observers import notify, notify_again
from paimon_py.metadata.idle_warning import warn_of_idle_options
from paimon_py.metadata.open_table import OpenTable
from paimon_py.progress import Progress, ProgressCounter
from paimon_py.rows.result import RowsResult
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.commit_label import NO_LABEL, CommitLabel
from paimon_py.spec.snapshot import Base
from paimon_py.spec.supported import check_compactable, check_writable
from paimon_py.write.session import Writer
from paimon_py.write.settings import WriterSettings
from paimon_py.write.streams import counted_stream, known_rows, open_stream, with_blob_bytes

if TYPE_CHECKING:
    from paimon_py.write.cross_partition import KeyShare
    from paimon_py.write.dynamic import BucketCursor, Share
    from paimon_py.write.loaded_files import LoadFormat


def writer(
    table: OpenTable, *, overwrite: bool, share: tuple[int, int] | BucketCursor | KeyShare | None = None,
    keeps_changelog: bool = True,
) -> Writer:  # fmt: skip
    """See `Table.writer`; `keeps_changelog`: see `WriterSettings`."""
    check_writable(table.schema)
    if not isinstance(overwrite, bool):
        raise UsageError(
            f"overwrite of a writer is True or False, not {overwrite!r}: commit(changes, overwrite=…) sets what is"
            " replaced"
        )
    warn_of_idle_options(table.root, table.schema.options)
    part: Share | BucketCursor | KeyShare | None = None
    read_keys = None
    if share is not None:
        from paimon_py.write.cross_partition import KeyShare
        from paimon_py.write.dynamic import BucketCursor, Share

        if isinstance(share, (BucketCursor, KeyShare)):
            part = share
        elif not (isinstance(share, tuple) and len(share) == 2):
            raise UsageError(f"share is the number of a writer and the total number, such as (2, 4), not {share!r}")
        else:
            part = Share.of(table.schema, *share)
    if bucket_mode(table.schema) is BucketMode.CROSS_PARTITION:
        from paimon_py.rows.live_keys import live_keys

        read_keys = live_keys(table)
    settings = WriterSettings.of(table.schema, memory=table.root.env.memory)
    settings = msgspec.structs.replace(settings, keeps_changelog=keeps_changelog)
    return Writer(table, settings, ignore_existing=overwrite, share=part, read_keys=read_keys)


def write(
    table: OpenTable, data: object, *, overwrite: Mapping[str, object] | str | None = None,
    watermark: int | None = None, label: CommitLabel = NO_LABEL, progress: Progress | None = None,
) -> CommitResult:  # fmt: skip
    """See `Table.write_arrow`."""
    check_progress(progress)
    mode = overwrite_of(table.schema, overwrite)
    request = CommitRequest(label=label, overwrite=mode, watermark=watermark, is_new=True)
    known = committed_before(table, label, mode)
    if known is not None:
        return notify_again(table, known)
    return _publish(table, data, request, progress, known_rows(data))


def upsert(
    table: OpenTable, data: object, on: object, label: CommitLabel = NO_LABEL,
    progress: Progress | None = None,
) -> RowsResult:  # fmt: skip
    """See `Table.upsert`; a primary key replaces rows by itself."""
    if not table.schema.primary_keys or on is not None:
        from paimon_py.rows import verbs

        rows = verbs.once(table, label, lambda: verbs.upsert(table, data, on, label, progress))
        if rows.already_committed:
            return notify_again(table, rows)
        return run_auto_maintenance(table, rows, of_batch=True)
    from paimon_py.rows.missing_columns import missing_columns
    from paimon_py.rows.result import of_earlier
    from paimon_py.rows.rules import check_replacing

    check_replacing(table.schema, "upsert")
    check_progress(progress)
    known = committed_before(table, label)
    if known is not None:
        return notify_again(table, of_earlier(known))
    count = known_rows(data)
    data = with_blob_bytes(table, data)
    given = data if isinstance(data, (pa.Table, pa.RecordBatch)) else open_stream(data, table.schema.fields)
    lacking = missing_columns(table.schema, given.schema.names)
    if lacking:
        from paimon_py.rows.keeping import upsert_keeping

        kept = upsert_keeping(table, open_stream(given), lacking, label=label, progress=progress)
        return run_auto_maintenance(table, kept, of_batch=True)
    request = CommitRequest(label=label, is_new=True)
    done = _publish(table, given, request, progress, count)
    return RowsResult(
        snapshot_id=done.snapshot_id, snapshot_ids=done.snapshot_ids, before=done.before,
        already_committed=done.already_committed, upserted=done.row_count, files_added=done.file_count,
        warnings=done.warnings,
    )  # fmt: skip


def load(
    table: OpenTable, files: object, how: LoadFormat, options: Mapping[str, str], *,
    overwrite: Mapping[str, object] | str | None, label: CommitLabel, progress: Progress | None,
) -> CommitResult:  # fmt: skip
    """See `Table.load_files`; `options`: settings of the store that contains the files."""
    from paimon_py.write.loaded_files import INTO_FILES, LoadProgress, find_files

    check_progress(progress)
    request = CommitRequest(label=label, overwrite=overwrite_of(table.schema, overwrite), is_new=True)
    known = committed_before(table, label, request.overwrite)
    if known is not None:
        return notify_again(table, known)
    found = find_files(files, options)
    for file in found:
        how.format_of(file.path)
    load_progress = LoadProgress(progress, found)
    replaces = request.overwrite is not None
    with writer(table, overwrite=replaces, keeps_changelog=not replaces) as session:
        if isinstance(request.overwrite, PartitionChoice):
            session.keep_to(request.overwrite)
        session._count_by(ProgressCounter(load_progress.on_write, 0, INTO_FILES))
        for file in found:
            with file.batches(how, table.schema, load_progress) as batches:
                session.write_arrow(batches)
        if replaces and not load_progress.rows:
            raise UsageError(
                f"the {len(found)} files contain no rows, and overwrite={overwrite!r} would replace rows with nothing;"
                " drop_partitions and truncate do that"
            )
        load_progress.end_reading()
        changes = session.changes(is_new=True)
        with discarding_on_failure(lambda: session.discard(changes)):
            return run_auto_maintenance(table, commit(table, changes, request), of_batch=True)


def publish(
    table: OpenTable, changes: Changes | bytes | Iterable[Changes | bytes], *, label: CommitLabel,
    overwrite: Mapping[str, object] | str | None, watermark: int | None,
    properties: Mapping[str, str] | None,
) -> CommitResult:  # fmt: skip
    """See `Table.commit`."""
    request = CommitRequest(
        label=label, overwrite=overwrite_of(table.schema, overwrite), watermark=watermark, properties=properties,
        check_files=True,
    )  # fmt: skip
    given = _join(changes)
    writes = any(bucket.written.added or bucket.written.deleted for bucket in given.buckets)
    compacts = not writes and any(bucket.compacted.deleted for bucket in with_compaction(given.buckets))
    (check_compactable if compacts and request.overwrite is None else check_writable)(table.schema)
    warn_of_idle_options(table.root, table.schema.options)
    result = commit(table, given, request)
    return run_auto_maintenance(table, result, of_batch=writes and label.identifier is None)


def discard(table: OpenTable, changes: Changes) -> None:
    """Delete the files of changes that will not be committed and whose writers no longer exist; as many as the store
    allows."""
    uncommitted_files.discard(table, changes)


def remove(
    table: OpenTable, chosen: PartitionChoice, specs: Sequence[Mapping[str, object]] = (), *,
    label: CommitLabel = NO_LABEL,
) -> CommitResult:  # fmt: skip
    """See `Table.truncate` and `Table.drop_partitions`; as in Java, such a commit triggers no expiry.

    `specs`: partitions that must exist. Java commits an empty snapshot if they do not.
    """
    check_writable(table.schema)
    known = committed_before(table, label, chosen)
    if known is not None:
        return notify_again(table, known)
    warn_of_idle_options(table.root, table.schema.options)
    base = Base(table.root.snapshots.latest_id() or 0)
    changes = Changes(schema_id=table.schema.id, base=base, buckets=(), branch=table.root.branch)
    choices = [PartitionChoice.of_specs(table.schema, [spec]) for spec in specs]

    def check(state: State) -> None:
        partitions = binary_array(sorted({entry.partition for entry in state.live(chosen)}))
        absent = [spec for spec, choice in zip(specs, choices, strict=True) if not choice(partitions).any()]
        if absent:
            shown = ", ".join(str(dict(spec)) for spec in absent)
            raise NotFoundError(
                f"nothing was dropped: {table.root.path} has no partition {shown}; table.partitions() lists the"
                " existing ones"
            )

    request = CommitRequest(
        label=label, overwrite=chosen, operation="TRUNCATE", is_new=True, check=check if specs else None
    )
    done = commit(table, changes, request)
    return notify(table.newest(), done)


def _join(changes: Changes | bytes | Iterable[Changes | bytes]) -> Changes:
    """Combine the changes of several writers into one value.

    Raises: UsageError for anything else.
    """
    if isinstance(changes, Changes):
        return changes
    asked = "commit takes what writer.changes() returns, its bytes, or a list of these"

    def decode() -> Iterator[Changes]:
        for part in [changes] if isinstance(changes, bytes) else as_items(asked, changes):
            if not isinstance(part, (Changes, bytes)):
                raise UsageError(f"{asked}, not {part!r}")
            yield Changes.from_bytes(part) if isinstance(part, bytes) else part

    return Changes.concat(decode())


def _publish(
    table: OpenTable, data: object, request: CommitRequest, progress: Progress | None, count: int
) -> CommitResult:
    """Write and commit; `count`: the number of rows, 0 if unknown."""
    can_repeat = request.overwrite is None and isinstance(data, (pa.Table, pa.RecordBatch))
    if can_repeat and bucket_mode(table.schema) is BucketMode.CROSS_PARTITION:
        done = on_latest(
            table.root, lambda _, number: _write(table, data, request, progress, count, number), rounds=ROUNDS
        )
    else:
        done = _write(table, data, request, progress, count)
    return run_auto_maintenance(table, done, of_batch=True)


def _write(
    table: OpenTable, data: object, request: CommitRequest, progress: Progress | None, count: int,
    attempt: int = 1,
) -> CommitResult:  # fmt: skip
    tally = ProgressCounter(progress, count, "rows", steps=2, attempt=attempt)
    replaces = request.overwrite is not None
    with writer(table, overwrite=replaces, keeps_changelog=not replaces) as session:
        if isinstance(request.overwrite, PartitionChoice):
            session.keep_to(request.overwrite)
        if progress is not None:
            session._count_by(tally)
            data = counted_stream(with_blob_bytes(table, data), table.schema.fields, tally)
        session.write_arrow(data)
        changes = session.changes(is_new=True)
        with discarding_on_failure(lambda: session.discard(changes)):
            return commit(table, changes, request)
