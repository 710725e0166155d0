"""Commands that print rows: of a state, of the changes between two states, and as they are committed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime

import click
import pyarrow as pa

from paimon_py.cli.output import CsvRows, show_lines, show_rows, takes_format, with_references
from paimon_py.cli.values import AnyTable, moment, names, require_changes, state, takes_readable
from paimon_py.scan.rows import Rows
from paimon_py.spec.blobs import AS_DESCRIPTOR, holds_blobs

_COLUMNS = click.option("--columns", "-c", type=names, metavar="A,B,…", help="Only these columns, in this order.")
_WHERE = click.option("--where", help="Only matching rows, such as \"a > 3 AND b LIKE 'x%'\".")
_BLOBS = click.option(
    "--blobs", type=click.Choice(["refs", "bytes"]), default="refs", show_default=True,
    help="Show where BLOBs are stored and how large they are, or read them.",
)  # fmt: skip
_LIMIT = click.option("--limit", "-n", type=click.IntRange(0), default=20, show_default=True, help="Maximum rows.")


@click.command()
@takes_readable
@_LIMIT
@_COLUMNS
@_WHERE
@click.option("--snapshot", "snapshot_id", type=click.IntRange(1), help="Read the snapshot with this id.")
@click.option("--tag", help="Read the snapshot of a tag.")
@click.option("--timestamp", type=moment, metavar="TIME", help="Read the last snapshot at this time.")
@_BLOBS
@takes_format
def head(
    table: AnyTable, limit: int, columns: list[str] | None, where: str | None, blobs: str, form: str,
    **then: int | str | datetime | None,
) -> None:  # fmt: skip
    """Show the first rows of a table, or of an earlier state of it."""
    given = {name: value for name, value in then.items() if value is not None}
    scan = table.scan(limit=limit, columns=columns, where=where, **given)  # type: ignore[arg-type]
    _show(table, scan, blobs, form)


@click.command()
@takes_readable
@click.argument("start", type=state, metavar="BEFORE")
@click.argument("end", type=state, metavar="[AFTER]", required=False)
@click.option(
    "--mode", type=click.Choice(["diff", "auto", "delta", "changelog"]), default="diff", show_default=True,
    help="One change per key, the rows that were written, or those of the changelog.",
)  # fmt: skip
@click.option("--limit", "-n", type=click.IntRange(0), help="Maximum number of rows.")
@_COLUMNS
@_WHERE
@_BLOBS
@takes_format
def diff(  # noqa: PLR0913 (one for each option)
    table: AnyTable, start: int | str | datetime, end: int | str | datetime | None, mode: str,
    limit: int | None, columns: list[str] | None, where: str | None, blobs: str, form: str,
) -> None:  # fmt: skip
    """Show the changes after one state, up to another or the latest: snapshot ids, tags or times."""
    scan = require_changes(table).changes(start, end, mode=mode, limit=limit, columns=columns, where=where)
    _show(table, scan, blobs, form)


@click.command()
@takes_readable
@click.option(
    "--from", "from_", default="latest", show_default=True, type=state, metavar="STATE",
    help="latest, full (all rows first), earliest, the id of a snapshot, a time, or a position.",
)  # fmt: skip
@click.option("--until", type=state, metavar="STATE", help="now, the id of the last snapshot, or a time; or no end.")
@click.option("--consumer", help="Continue from this consumer, and advance it with each step.")
@_COLUMNS
@_WHERE
@_BLOBS
@takes_format
def tail(
    table: AnyTable, from_: int | str | datetime, until: int | str | datetime | None, consumer: str | None,
    columns: list[str] | None, where: str | None, blobs: str, form: str,
) -> None:  # fmt: skip
    """Follow the changes of a table as they are committed. JSON is one object per line."""
    stream = require_changes(table).stream(
        from_=from_, until=until, consumer_id=consumer, columns=columns, where=where,
        options={AS_DESCRIPTOR: "true" if blobs == "refs" else "false"},
    )  # fmt: skip
    rows = CsvRows(stream.schema) if form == "csv" else None
    for step in stream:
        found = _mark_references(table, step.to_reader(), blobs)
        if rows is not None:
            rows.add(found)
        elif form == "json":
            show_lines(stream.schema, found)
        else:
            click.secho(f"snapshot {step.snapshot_id}", bold=True)
            show_rows(stream.schema, found, form)
        sys.stdout.flush()
        if consumer is not None:
            step.acknowledge()


def _show(table: AnyTable, scan: Rows, blobs: str, form: str) -> None:
    rows = scan._with_blobs(blobs)
    show_rows(rows.schema, _mark_references(table, rows.to_reader(), blobs), form)


def _mark_references(table: AnyTable, reader: pa.RecordBatchReader, blobs: str) -> Iterator[pa.RecordBatch]:
    """The rows of a table; references to BLOBs are marked."""
    names = {field.name for field in table.schema.fields if holds_blobs(field.type)} if blobs == "refs" else ()
    return with_references(reader.schema, names, reader)
