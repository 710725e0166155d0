"""Commands that change which data are kept: compaction, expiry, tags. Deletions are shown first."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import click
import msgspec
import pyarrow as pa

from paimon_py import ExpiredSnapshots, Table, col
from paimon_py.cli.output import in_utc, show_record, show_table, takes_format
from paimon_py.cli.sizes import count_text
from paimon_py.cli.terminal import ask, progress, takes_yes
from paimon_py.cli.values import age, age_or_moment, partition, state, takes_table, typed_partition
from paimon_py.cli.words import in_commands

_TAGS = ["tag_name", "snapshot_id", "commit_time", "record_count", "create_time", "time_retained"]


@click.command()
@takes_table
@click.option("--full", is_flag=True, help="Merge all files of every bucket.")
@click.option("--partition", "-p", "chosen", type=partition, multiple=True, metavar="KEY=VALUE,…", help="Partition.")
@click.option("--where", help="Only partitions that match, such as \"month > 3\".")
@takes_format
def compact(table: Table, full: bool, chosen: tuple[dict[str, str], ...], where: str | None, form: str) -> None:
    """Merge the files of a table into fewer and larger ones; the rows do not change."""
    partitions = [typed_partition(table, one) for one in chosen] or None
    with progress("compacting") as report:
        done = table.compact(full=full, partitions=partitions, where=where, progress=report)
    show_record(
        {
            "snapshot_id": done.snapshot_id, "new_files": done.file_count, "rows_in_new_files": done.row_count,
            "given_up": done.dropped_compaction,
        },
        form,
    )  # fmt: skip


@click.command()
@takes_table
@click.argument("buckets", type=click.IntRange(1))
@click.option("--partition", "-p", "chosen", type=partition, multiple=True, metavar="KEY=VALUE,…", help="Partition.")
@takes_format
def rescale(table: Table, buckets: int, chosen: tuple[dict[str, str], ...], form: str) -> None:
    """Rewrite a table, or some partitions, with another number of buckets; the rows do not change."""
    partitions = [typed_partition(table, one) for one in chosen] or None
    with progress("rescaling") as report:
        done = table.rescale(buckets, partitions=partitions, progress=report)
    show_record({"snapshot_id": done.snapshot_id, "new_files": done.file_count, "rows": done.row_count}, form)


@click.command()
@takes_table
@click.option("--retain-max", type=click.IntRange(1), help="Keep at most this many snapshots, whatever their age.")
@click.option("--retain-min", type=click.IntRange(1), help="Keep at least this many of the newest snapshots.")
@click.option("--older-than", type=age_or_moment, metavar="AGE|TIME", help="Expire only snapshots that are older.")
@click.option("--max-deletes", type=click.IntRange(1), help="Expire at most this many snapshots.")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and stop.")
@takes_yes
@takes_format
def expire(
    table: Table, retain_max: int | None, retain_min: int | None, older_than: timedelta | datetime | None,
    max_deletes: int | None, dry_run: bool, yes: bool, form: str,
) -> None:  # fmt: skip
    """Expire old snapshots, and delete the files that only they reference. Options default to those of the table."""
    said = {"retain_max": retain_max, "retain_min": retain_min, "older_than": older_than, "max_deletes": max_deletes}
    planned = table.expire_snapshots(**said, dry_run=True)  # type: ignore[arg-type]
    if dry_run or not planned.snapshot_ids:
        _show_expired(planned, form)
        return
    if not yes:
        _show_expired(planned, "table")
        gone = f"{count_text(len(planned.snapshot_ids), 'snapshot')} and {count_text(planned.data_files, 'data file')}"
        ask(f"Delete {gone}?", yes=yes)
    with progress("expiring") as report:
        done = table.expire_snapshots(**said, progress=report)  # type: ignore[arg-type]
    _show_expired(done, form)


@click.command()
@takes_table
@click.argument("action", type=click.Choice(["list", "create", "replace", "rename", "delete"]), default="list")
@click.argument("name", required=False)
@click.argument("new_name", required=False)
@click.option("--snapshot", type=click.IntRange(1), help="The snapshot to tag; default: the latest.")
@click.option("--retain", type=age, metavar="AGE", help="How long to keep the tag; default: by the table's options.")
@takes_yes
@takes_format
def tag(
    table: Table,
    action: str,
    name: str | None,
    new_name: str | None,
    snapshot: int | None,
    retain: timedelta | None,
    yes: bool,
    form: str,
) -> None:
    """List, create, replace, rename or delete tags of a table.

    Files that only a deleted or replaced tag kept are deleted too.
    """
    if action == "list":
        show_table(_tags(table, name), form)
        return
    if name is None:
        raise click.UsageError(f"tag TABLE {action} needs the NAME of a tag")
    if (action == "rename") != (new_name is not None):
        raise click.UsageError("NEW_NAME is only for: tag TABLE rename NAME NEW_NAME")
    if new_name is not None:
        made = table.rename_tag(name, new_name)
        show_record({"tag_name": made.name, "snapshot_id": made.snapshot_id}, form)
        return
    if action in ("create", "replace"):
        make = table.create_tag if action == "create" else table.replace_tag
        made = make(name, snapshot, retain=retain)
        show_record({"tag_name": made.name, "snapshot_id": made.snapshot_id}, form)
        return
    found = _tags(table, name)
    if found.num_rows and not yes:
        show_table(found, "table")
        ask(f"Delete the tag {name}?", yes=yes)
    table.delete_tag(name)


@click.command()
@takes_table
@click.argument("action", type=click.Choice(["list", "create", "delete", "fast-forward"]), default="list")
@click.argument("name", required=False)
@click.option("--from", "from_", type=state, metavar="TAG|ID", help="Start from this; default: the latest snapshot.")
@click.option("--empty", is_flag=True, help="Begin without rows.")
@click.option("--discard", is_flag=True, help="Fast-forward even if the table loses commits and tags.")
@takes_yes
@takes_format
def branch(
    table: Table, action: str, name: str | None, from_: object, empty: bool, discard: bool, yes: bool, form: str
) -> None:
    """List, create or delete branches of a table, or fast-forward the table to a branch.

    'TABLE$branch_NAME' is a branch as a table.
    """
    if from_ is not None and empty:
        raise click.UsageError("give --from or --empty, not both")
    if action == "list":
        where = None if name is None else col("branch_name") == name
        show_table(in_utc(table.system("branches").scan(where=where).to_arrow(), "create_time"), form)
        return
    if name is None:
        raise click.UsageError(f"branch TABLE {action} needs the NAME of a branch")
    if action == "create":
        begin: Any = from_ if from_ is not None else None if empty else ...
        latest = table.create_branch(name, begin).snapshot()
        show_record({"branch_name": name, "snapshot_id": latest and latest.id}, form)
        return
    if action == "fast-forward":
        if discard:
            ask(f"Fast-forward to branch {name}, and lose all commits that it does not build on?", yes=yes)
        done = table.fast_forward(name, discard=discard)
        show_record({
            "snapshot_id": done.snapshot_id, "deleted_snapshots": list(done.gone_ids),
            "deleted_tags": list(done.tags), "consumers": list(done.consumers),
        }, form)  # fmt: skip
        return
    held = table.branch(name).snapshots()
    if not yes:
        rows = held[-1].total_record_count if held else 0
        show_record({"branch_name": name, "snapshots": len(held), "total_record_count": rows}, "table")
        ask(f"Delete the branch {name} with its {count_text(len(held), 'snapshot')}?", yes=yes)
    table.delete_branch(name)


def _show_expired(found: ExpiredSnapshots, form: str) -> None:
    record = msgspec.structs.asdict(found)
    show_record({**record, "reason": found.reason and in_commands(found.reason)}, form)


def _tags(table: Table, name: str | None) -> pa.Table:
    where = None if name is None else col("tag_name") == name
    return in_utc(table.system("tags").scan(columns=_TAGS, where=where).to_arrow(), "commit_time", "create_time")
