"""The command that brings files in: CSV, Parquet or JSON, batch by batch, as one commit."""

from __future__ import annotations

import click

from paimon_py import CommitResult, Table
from paimon_py.cli.output import show_record, takes_format
from paimon_py.cli.talk import progress
from paimon_py.cli.values import takes_table


@click.command()
@takes_table
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@click.option("--kind", type=click.Choice(["csv", "parquet", "json"]), help="What the files are; else their names say.")
@click.option("--delimiter", help="What stands between the values of a CSV file; else a comma, in .tsv a tab.")
@click.option("--null", "nulls", multiple=True, help="A text in CSV files that is NULL, beside nothing.")
@click.option("--user", help="Who loads; with --identifier the command can be repeated.")
@click.option("--identifier", type=int, help="The number of this load: one that the user has committed does nothing.")
@takes_format
def load(
    table: Table, files: tuple[str, ...], kind: str | None, delimiter: str | None, nulls: tuple[str, ...],
    user: str | None, identifier: int | None, form: str,
) -> None:  # fmt: skip
    """Bring the rows of files into a table as one commit. Columns match by name; JSON is one object on each line.

    A FILE is a path, a URL, a directory, or a pattern such as 'in/*.csv'. Columns that the table lacks are refused.
    """
    if delimiter is not None and len(delimiter) != 1:
        raise click.UsageError(f"--delimiter is one character, not {delimiter!r}")
    with progress("loading") as report:
        done = table.load_files(
            files, format=kind, delimiter=delimiter, nulls=nulls, user=user, identifier=identifier, progress=report
        )
    _show(done, form)


def _show(done: CommitResult, form: str) -> None:
    found = {"snapshot_id": done.snapshot_id, "new_files": done.file_count, "rows": done.row_count}
    if done.already_committed:
        found["already_committed"] = True
    show_record(found, form)
