"""Commands that show the history of a table, roll it back, and manage consumers."""

from __future__ import annotations

from datetime import datetime

import click
import msgspec
import pyarrow as pa

from paimon_py import Table
from paimon_py.cli.output import show_record, show_table, takes_format
from paimon_py.cli.terminal import ask, progress, takes_yes
from paimon_py.cli.values import state, takes_table

_HISTORY = pa.schema([
    ("snapshot", pa.int64()), ("time", pa.timestamp("us", "UTC")), ("operation", pa.string()),
    ("added_rows", pa.int64()), ("deleted_rows", pa.int64()), ("total_rows", pa.int64()),
    ("rewritten_rows", pa.int64()), ("added_files", pa.int64()), ("deleted_files", pa.int64()), ("user", pa.string()),
    ("identifier", pa.int64()),
])  # fmt: skip
_CONSUMERS = pa.schema([("name", pa.string()), ("next_snapshot_id", pa.int64()), ("behind", pa.int64())])


@click.command()
@takes_table
@click.option("--limit", "-n", type=click.IntRange(1), default=20, show_default=True, help="Maximum commits.")
@takes_format
def history(table: Table, limit: int, form: str) -> None:
    """Show the commits of a table, newest first: operation, added and deleted rows, files, user."""
    rows = [
        {
            "snapshot": one.snapshot_id, "time": one.time_millis * 1000, "operation": one.operation,
            "added_rows": one.added_rows, "deleted_rows": one.deleted_rows,
            "total_rows": one.total_rows, "rewritten_rows": one.rewritten_rows, "added_files": one.added_files,
            "deleted_files": one.deleted_files, "user": one.user, "identifier": one.identifier,
        }
        for one in table.history(limit)
    ]  # fmt: skip
    show_table(pa.Table.from_pylist(rows, _HISTORY), form)


@click.command()
@takes_table
@click.argument("target", type=state, metavar="SNAPSHOT|TAG|TIME")
@takes_yes
@takes_format
def rollback(table: Table, target: int | str | datetime, yes: bool, form: str) -> None:
    """Roll a table back to an earlier state: later snapshots and their tags are deleted."""
    if not yes:
        latest = table.snapshot()
        table._target(target)  # raises an error before the question
        ask(f"Roll back {table.location} from snapshot {latest and latest.id} to {target}?", yes=yes)
    show_record(msgspec.structs.asdict(table.rollback_to(target)), form)


@click.command()
@takes_table
@click.option("--to", "target", type=state, required=True, metavar="SNAPSHOT|TAG|TIME", help="The state to bring back.")
@click.option("--user", help="User of the commit; with --identifier it can be repeated.")
@click.option("--identifier", type=click.IntRange(0), help="Number of the commit; a repeated one does nothing.")
@takes_format
def restore(
    table: Table, target: int | str | datetime, user: str | None, identifier: int | None, form: str
) -> None:
    """Bring the rows of an earlier state back in a new commit; no history is deleted.

    Restoring the state that is printed as `before` undoes it.
    """
    if identifier is not None and user is None:
        raise click.UsageError("--identifier needs --user")
    with progress("restoring") as report:
        done = table.restore(target, user=user, identifier=identifier, progress=report)
    shown = msgspec.structs.asdict(done)
    names = ("snapshot_id", "before", "already_committed", "row_count", "file_count")
    show_record({name: shown[name] for name in names}, form)


@click.command()
@takes_table
@click.argument("action", type=click.Choice(["list", "reset", "delete"]), default="list")
@click.argument("name", required=False)
@click.argument("snapshot", type=click.IntRange(1), required=False)
@takes_yes
@takes_format
def consumers(table: Table, action: str, name: str | None, snapshot: int | None, yes: bool, form: str) -> None:
    """List the consumers that protect snapshots from expiry; reset or delete one."""
    if action == "list":
        latest = table.snapshot()
        newest = 0 if latest is None else latest.id
        found = [(one.name, one.next_snapshot_id, newest + 1 - one.next_snapshot_id) for one in table.consumers()]
        rows = [dict(zip(_CONSUMERS.names, each, strict=True)) for each in found]
        show_table(pa.Table.from_pylist(rows, _CONSUMERS), form)
        return
    if name is None:
        raise click.UsageError(f"consumers TABLE {action} needs the NAME of a consumer")
    if action == "delete":
        if name in {one.name for one in table.consumers()}:
            ask(f"Delete the consumer {name}? Snapshots that it has not read may then expire.", yes=yes)
        table.delete_consumer(name)
        return
    if snapshot is None:
        raise click.UsageError("consumers TABLE reset NAME needs the id of the SNAPSHOT that it reads next")
    show_record(msgspec.structs.asdict(table.reset_consumer(name, snapshot)), form)
