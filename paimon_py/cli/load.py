"""The commands that load CSV, Parquet or JSON files, batch by batch, as one commit, and that delete rows."""

from __future__ import annotations

import csv
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

import click
import msgspec

from paimon_py import BadRow, CommitResult, Snapshot, Table
from paimon_py.cli.output import show_record, takes_format
from paimon_py.cli.sizes import count_text
from paimon_py.cli.terminal import ask, explained_interrupt, progress, takes_yes
from paimon_py.cli.values import new_file, takes_table

_STDIN = "-"


@click.command()
@takes_table
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@click.option("--kind", type=click.Choice(["csv", "parquet", "json"]), help="Format of the files; default: by name.")
@click.option("--delimiter", help="Separator of CSV values; default: a comma, in .tsv a tab.")
@click.option("--null", "nulls", multiple=True, help="A string in CSV files that means NULL, besides empty values.")
@click.option(
    "--keep-good", type=new_file, metavar="FILE",
    help="Load the valid rows of CSV files, and write the others to this CSV file, with line, column and problem.",
)
@click.option("--user", help="User of the load; with --identifier it can be repeated.")
@click.option("--identifier", type=int, help="Number of this load; a repeated number does nothing.")
@takes_format
def load(  # noqa: PLR0913
    table: Table, files: tuple[str, ...], kind: str | None, delimiter: str | None, nulls: tuple[str, ...],
    keep_good: Path | None, user: str | None, identifier: int | None, form: str,
) -> None:  # fmt: skip
    """Load the rows of files as one commit. Columns match by name; JSON has one object per line.

    A FILE is a path, a URL, a directory, a pattern such as 'in/*.csv', or - for stdin. Columns that the table does not
    have are refused.
    """
    if delimiter is not None and len(delimiter) != 1:
        raise click.UsageError(f"--delimiter is one character, not {delimiter!r}")
    bad = None if keep_good is None else _BadRows(keep_good)
    before = table.snapshot()
    with ExitStack() as stack:
        stack.enter_context(explained_interrupt(lambda: _what_was_done(table, before, identifier)))
        paths, report = stack.enter_context(_with_stdin(files, kind)), stack.enter_context(progress("loading"))
        if bad is not None:
            stack.callback(bad.close)
        done = table.load_files(
            paths, format=kind, delimiter=delimiter, nulls=nulls, user=user, identifier=identifier,
            on_bad_row=None if bad is None else bad.add, progress=report,
        )  # fmt: skip
        if bad is not None and not done.already_committed:
            bad.end()
    _show(done, bad, form)


@click.command()
@takes_table
@click.option("--where", required=True, help="The rows to delete, such as \"a > 3 AND b LIKE 'x%'\".")
@click.option("--user", help="User of the deletion; with --identifier it can be repeated.")
@click.option("--identifier", type=int, help="Number of this deletion; a repeated number does nothing.")
@takes_yes
@takes_format
def delete(table: Table, where: str, user: str | None, identifier: int | None, yes: bool, form: str) -> None:
    """Delete the rows that match a condition; earlier snapshots still have them."""
    if not yes:
        rows = count_text(table.scan(where=where).count(), "row")
        ask(f"Delete {rows} of {table.location}?", yes=yes)
    with progress("deleting") as report:
        done = table.delete(where, user=user, identifier=identifier, progress=report)
    show_record(
        {
            "snapshot_id": done.snapshot_id, "deleted": done.deleted, "new_files": done.files_added,
            "already_committed": done.already_committed, "warnings": list(done.warnings),
        },
        form,
    )  # fmt: skip


def _what_was_done(table: Table, before: Snapshot | None, identifier: int | None) -> str:
    """The message after an interrupt."""
    if table.snapshot() == before:
        return "nothing was loaded; run the command again"
    if identifier is not None:
        return "run the command again: rows that were loaded already are not loaded twice"
    begin = "the load began" if before is None else f"snapshot {before.id}"
    return (
        f"there are commits after {begin}; paimon-py history TABLE shows whether the load is one of them;"
        " with --user and --identifier it can be repeated"
    )


@contextmanager
def _with_stdin(files: tuple[str, ...], kind: str | None) -> Iterator[list[str]]:
    """The files, with stdin as a temporary file while the block runs."""
    if _STDIN not in files:
        yield list(files)
        return
    if kind is None:
        raise click.UsageError("stdin needs --kind csv, parquet or json")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, f"stdin.{kind}")
        with path.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        yield [str(path) if file == _STDIN else file for file in files]


class _BadRows:
    """Writes bad rows to a CSV file, which is created for the first row, or at the end of a load without bad rows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: TextIO | None = None
        self.count = 0

    def add(self, row: BadRow) -> None:
        """Write one row."""
        self._write([*msgspec.structs.asdict(row).values()])
        self.count += 1

    def end(self) -> None:
        """Create the file if there were no rows."""
        if self._file is None:
            self._write()

    def close(self) -> None:
        """Close the file if it was created."""
        if self._file is not None:
            self._file.close()

    def _write(self, *rows: list[object]) -> None:
        if self._file is None:
            self._file = self._path.open("w", encoding="utf-8", newline="")
            rows = ([*BadRow.__struct_fields__], *rows)
        csv.writer(self._file, lineterminator="\n").writerows(rows)


def _show(done: CommitResult, bad: _BadRows | None, form: str) -> None:
    found: dict[str, object] = {"snapshot_id": done.snapshot_id, "new_files": done.file_count, "rows": done.row_count}
    if bad is not None:
        found["bad_rows"] = bad.count
    if done.already_committed:
        found["already_committed"] = True
    show_record(found, form)
