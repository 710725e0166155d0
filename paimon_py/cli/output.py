"""Prints rows and records on stdout, as text, JSON or CSV."""

from __future__ import annotations

import csv
import functools
import io
import json
import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timezone
from typing import Any

import click
import msgspec
import pyarrow as pa
import pyarrow.types as pat
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table as Grid

from paimon_py import BlobRef, CorruptionError, Variant
from paimon_py.codec.blob_refs import BlobViewRef
from paimon_py.codec.texts import with_valid_text
from paimon_py.codec.variant.form import is_variant
from paimon_py.spec.redact import shown_url

FORMATS = ("table", "json", "csv")
_BYTES_MAX, _BYTES_SHOWN = 64, 16
_REFERENCES = {b"references": b""}
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_FOLDED = 20
"""The width from which values are folded, before a table is too wide for a terminal."""
_WIDE = 100_000
"""The width of the screen if there is none: output to files and pipes is not truncated."""


def takes_format(command: Callable[..., None]) -> Callable[..., None]:
    """A decorator: adds the option `--format`, passed as `form`."""
    option = click.option(
        "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="How rows are shown."
    )
    return option(command)


def on_one_line(text: str) -> str:
    """A string in which line ends and other terminal control characters are shown as escapes."""
    return _CONTROLS.sub(lambda match: ascii(match[0])[1:-1], text)


def show_rows(schema: pa.Schema, batches: Iterable[pa.RecordBatch], form: str) -> None:
    """Print rows as a table, as a JSON array with one row per line, or as CSV; the last two are streamed."""
    if form == "table":
        _draw_rows(schema, batches)
    elif form == "csv":
        CsvRows(schema).add(batches)
    else:
        _show_array(schema, batches)


def show_table(rows: pa.Table, form: str) -> None:
    """Print the rows of a table in memory, like `show_rows`."""
    show_rows(rows.schema, rows.to_batches(), form)


def in_utc(rows: pa.Table, *names: str) -> pa.Table:
    """Rows with these columns, times of this machine's zone, as times in UTC."""
    for name in names:
        local = rows[name].cast(pa.timestamp("ms"), safe=False).to_pylist()
        times = [None if one is None else one.astimezone(timezone.utc) for one in local]
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, name, pa.array(times, pa.timestamp("ms", "UTC")))
    return rows


def show_record(record: Mapping[str, object], form: str) -> None:
    """Print one record: a line per property, one JSON object, or CSV with one row."""
    if form == "json":
        click.echo(json.dumps({name: plain(value) for name, value in record.items()}, ensure_ascii=False, indent=2))
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerows([list(record), [_cell(value) for value in record.values()]])
    else:
        grid = Grid.grid(padding=(0, 2))
        for name, value in record.items():
            grid.add_row(f"[bold]{escape(name)}[/bold]", escape(on_one_line(_cell(value))))
        draw(grid)


def draw(what: RenderableType) -> None:
    """Print a rich renderable on stdout; in full if stdout is not a terminal."""
    console = Console(file=sys.stdout, highlight=False)
    if console.is_terminal:
        console.print(what)
        return
    plain_text = Console(file=io.StringIO(), highlight=False, width=_WIDE)
    with plain_text.capture() as drawn:
        plain_text.print(what)
    click.echo("\n".join(line.rstrip() for line in drawn.get().splitlines()))


class CsvRows:
    """Streams rows as CSV: the header once, then rows; NULL is empty."""

    def __init__(self, schema: pa.Schema) -> None:
        self._writer = csv.writer(sys.stdout, lineterminator="\n")
        self._writer.writerow(schema.names)

    def add(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Write rows."""
        for row in _rows(batches):
            self._writer.writerow([_cell(value) for value in row])


def show_lines(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Print one JSON object per line."""
    for line in _objects(schema, batches):
        click.echo(line)


def _show_array(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    before = "["
    for line in _objects(schema, batches):
        click.echo(f"{before}{line}", nl=False)
        before = ",\n "
    click.echo("[]" if before == "[" else "]")


def _objects(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    for row in _rows(batches):
        named = dict(zip(schema.names, map(plain, row), strict=True))
        yield json.dumps(named, ensure_ascii=False)


Cells = Sequence[Sequence["str | None"]]


def _draw_rows(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Print rows as a table, or one below the other if a terminal is too narrow for their columns."""
    rows = [[None if value is None else on_one_line(_cut(value)) for value in row] for row in _rows(batches)]
    console = Console(file=sys.stdout)
    is_narrow = console.is_terminal and _width_of(schema.names, rows) > console.width
    draw(_records(schema.names, rows) if is_narrow else _grid(schema, rows))


def _width_of(names: Sequence[str], rows: Cells) -> int:
    """The width of a table whose names and short values are not broken."""
    texts = ([row[at] or "NULL" for row in rows] for at in range(len(names)))
    cells = (min(max(map(cell_len, column), default=0), _FOLDED) for column in texts)
    widths = [max(cell_len(on_one_line(name)), width) for name, width in zip(names, cells, strict=True)]
    return sum(widths) + 3 * len(widths) - 1


def _grid(schema: pa.Schema, rows: Cells) -> Grid:
    grid = Grid(show_edge=False, header_style="bold")
    for field in schema:
        number = pat.is_integer(field.type) or pat.is_floating(field.type) or pat.is_decimal(field.type)
        grid.add_column(escape(on_one_line(field.name)), justify="right" if number else "left", overflow="fold")
    for row in rows:
        grid.add_row(*map(_cell_markup, row))
    return grid


def _records(names: Sequence[str], rows: Cells) -> RenderableType:
    """Rows one below the other, a line for each column."""
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(overflow="fold")
    grid.add_column(overflow="fold")
    for number, row in enumerate(rows, 1):
        grid.add_row(f"[dim]row {number}[/dim]" if number == 1 else f"\n[dim]row {number}[/dim]")
        for name, cell in zip(names, row, strict=True):
            grid.add_row(f"[bold]{escape(on_one_line(name))}[/bold]", _cell_markup(cell))
    return grid if rows else "no rows"


def _cell_markup(cell: str | None) -> str:
    return "[dim]NULL[/dim]" if cell is None else escape(cell)


def _cut(value: object) -> str:
    """A cell of a table; of many bytes the first ones and the number."""
    if isinstance(value, bytes) and len(value) > _BYTES_MAX:
        return f"{value[:_BYTES_SHOWN].hex()}… ({len(value):,} bytes)"
    if isinstance(value, BlobRef):
        size = "all" if value.length is None else f"{value.length:,}"
        return f"{size} bytes of {shown_url(value.uri).rpartition('/')[2]}"
    return _cell(value)


def with_references(
    schema: pa.Schema, names: Collection[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The batches; columns of these names contain references to BLOBs, which are shown as such."""
    fields = [field.with_metadata(_REFERENCES) if field.name in names else field for field in schema]
    for batch in batches:
        yield pa.RecordBatch.from_arrays(batch.columns, schema=pa.schema(fields))


def _reference(value: object) -> object:
    """A serialized reference as a value; references in lists and maps likewise."""
    if isinstance(value, list):
        return [_reference(item) for item in value]
    if isinstance(value, tuple):
        return value[0], _reference(value[1])
    if not isinstance(value, bytes):
        return value
    try:
        return BlobRef.from_bytes(value)
    except CorruptionError:
        return BlobViewRef.from_bytes(value)


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[Sequence[Any]]:
    """Rows as Python values; few rows, or one batch at a time."""
    for batch in map(with_valid_text, batches):
        yield from zip(*map(_values, batch.schema, batch.columns), strict=True)


def _values(field: pa.Field, column: pa.Array) -> list[Any]:
    """The values of a column; variants are JSON, and times with nanoseconds strings, since Python lacks them."""
    if is_variant(field):
        return [None if each is None else Variant(**each).to_json() for each in column.to_pylist()]
    if (field.metadata or {}).keys() >= _REFERENCES.keys():
        return [_reference(value) for value in column.to_pylist()]
    exact = pat.is_timestamp(column.type) and column.type.unit == "ns"
    values: list[Any] = (column.cast(pa.string()) if exact else column).to_pylist()
    return values


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, datetime):
        exact = "auto" if value.microsecond % 1000 else "milliseconds" if value.microsecond else "seconds"
        return value.isoformat(sep=" ", timespec=exact).replace("+00:00", "Z")
    shown = plain(value)
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)


@functools.singledispatch
def plain(value: object) -> Any:
    """A value in JSON types: times as ISO strings, bytes as hexadecimal digits, decimals and NaN as strings."""
    return str(value)


@plain.register(str)
@plain.register(int)
@plain.register(type(None))
def _same(value: object) -> Any:
    return value


@plain.register
def _real(value: float) -> Any:
    return value if math.isfinite(value) else str(value)


@plain.register(datetime)
@plain.register(date)
@plain.register(time)
def _moment(value: Any) -> str:
    text: str = value.isoformat()
    return text


@plain.register
def _bytes(value: bytes) -> str:
    return value.hex()


@plain.register(BlobRef)
@plain.register(BlobViewRef)
def _place(value: Any) -> Any:
    return msgspec.structs.asdict(value)


@plain.register
def _mapping(value: dict) -> Any:  # type: ignore[type-arg]
    return {str(key): plain(item) for key, item in value.items()}


@plain.register(list)
@plain.register(tuple)
def _items(value: Any) -> Any:
    return [plain(item) for item in value]
