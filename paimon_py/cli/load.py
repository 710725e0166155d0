"""The command that brings files in: CSV, Parquet or JSON, batch by batch, as one commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

import click
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from paimon_py import CommitResult, StorageError, Table, UsageError
from paimon_py.cli.output import show_record, takes_format
from paimon_py.cli.talk import Report, progress
from paimon_py.cli.values import takes_table
from paimon_py.commit.commit import committed_before
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.storage.open import open_store
from paimon_py.tally import Tally

_KINDS = {"csv": "csv", "tsv": "csv", "parquet": "parquet", "json": "json", "jsonl": "json", "ndjson": "json"}
_INTO_FILES = "rows into files"


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
    """Bring the rows of files into a table as one commit. Columns match by name; JSON is one object on each line."""
    label = CommitLabel(user, identifier)
    known = committed_before(table._root, table.schema, label)
    if known is not None:
        _show(known, form)
        return
    readers = {path: _reader_of(path, kind, delimiter, nulls) for path in files}
    sizes = {path: _size_of(path) for path in files}
    with progress("loading") as report, table.writer() as writer:
        bar = _Bar(report, sum(sizes.values()))
        writer._count_by(Tally(bar.written, 0, _INTO_FILES))
        for path, reader in readers.items():
            store, place = open_store(path, {})
            with store.open_read(place) as source:
                with _reading(path):
                    schema, batches = reader(source, table)
                told = bar.told(batches, source, path)
                writer.write_arrow(pa.RecordBatchReader.from_batches(schema, told))
                bar.before += sizes[path]
        bar.end_reading()
        changes = writer.changes()
    _show(table.commit(changes, user=user, identifier=identifier), form)


def _show(done: CommitResult, form: str) -> None:
    found = {"snapshot_id": done.snapshot_id, "new_files": done.file_count, "rows": done.row_count}
    if done.already_committed:
        found["already_committed"] = True
    show_record(found, form)


Reader = Callable[[BinaryIO, Table], tuple[pa.Schema, Iterator[pa.RecordBatch]]]


def _reader_of(path: str, kind: str | None, delimiter: str | None, nulls: tuple[str, ...]) -> Reader:
    suffix = path.rpartition(".")[2].lower()
    known = kind or _KINDS.get(suffix)
    if known == "csv":
        split = delimiter or ("\t" if suffix == "tsv" else ",")
        if len(split) != 1:
            raise click.UsageError(f"--delimiter is one character, not {split!r}")
        return lambda source, table: _csv(source, table, split, nulls)
    if known == "json":
        return _json
    if known == "parquet":
        return _parquet
    raise click.UsageError(f"the name {path!r} does not say what the file is: add --kind csv, parquet or json")


def _csv(
    source: BinaryIO, table: Table, delimiter: str, nulls: tuple[str, ...]
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Values are read in the types of the table's columns; nothing without quotes is NULL, `""` is an empty text."""
    found = pa.csv.open_csv(
        source,
        parse_options=pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=pa.csv.ConvertOptions(
            column_types=_types(table), null_values=["", *nulls], strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )  # fmt: skip
    return found.schema, found


def _json(source: BinaryIO, table: Table) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Values are read in the types of the table's columns; which columns there are, the first rows say.

    Raises: ArrowInvalid for a field that comes up later.
    """
    names = pa.json.open_json(source).schema
    source.seek(0)
    types = _types(table)
    schema = pa.schema([types.field(field.name) if field.name in types.names else field for field in names])
    options = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    found = pa.json.open_json(source, parse_options=options)
    return found.schema, found


def _parquet(source: BinaryIO, table: Table) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:  # noqa: ARG001
    found = pa.parquet.ParquetFile(source)
    return found.schema_arrow, found.iter_batches()


def _types(table: Table) -> pa.Schema:
    schema: pa.Schema = table.scan().schema
    return schema


def _size_of(path: str) -> int:
    store, place = open_store(path, {})
    status = store.stat(place)
    if status is None:
        raise StorageError(f"there is no file {path}", path=path, operation="open_read")
    return status.size_bytes or 0


class _Bar:
    """How far a load has come: bytes of all files while they are read, then rows on their way into files of the table.

    Attributes:
        before: bytes of the files that were read.
    """

    def __init__(self, report: Report, size: int) -> None:
        """`size`: bytes of all files."""
        self._report, self._size = report, size
        self._rows = self.before = 0
        self._is_read = False

    def told(self, batches: Iterator[pa.RecordBatch], source: BinaryIO, path: str) -> Iterator[pa.RecordBatch]:
        """The batches of a file, while it is said how far they have come.

        Raises: UsageError for what cannot be read as that kind of file.
        """
        rest = iter(batches)
        while True:
            with _reading(path):
                batch = next(rest, None)
            if batch is None:
                return
            self._rows += batch.num_rows
            self._report(min(self.before + source.tell(), self._size), self._size, path.rpartition("/")[2])
            yield batch

    def end_reading(self) -> None:
        """Count rows from now on."""
        self._is_read = True
        self._report(0, self._rows, _INTO_FILES)

    def written(self, done: int, total: int, what: str) -> None:
        """Say what the writer counts, once there is nothing more to read."""
        if self._is_read:
            self._report(done, total or self._rows, what)


@contextmanager
def _reading(path: str) -> Iterator[None]:
    try:
        yield
    except pa.ArrowException as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
