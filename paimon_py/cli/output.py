"""Rows and records on stdout, as text for people, JSON or CSV."""

from __future__ import annotations

import csv
import functools
import io
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any

import click
import pyarrow as pa
import pyarrow.types as pat
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table as Grid

FORMATS = ("table", "json", "csv")
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_WIDE = 100_000
"""Columns of a screen where there is none: nothing is cut in files and pipes."""


def takes_format(command: Callable[..., None]) -> Callable[..., None]:
    """A decorator: the option `--format`, which comes in as `form`."""
    option = click.option(
        "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="How rows are shown."
    )
    return option(command)


def on_one_line(text: str) -> str:
    """A text without line ends and other characters that steer a terminal: they are shown as escapes."""
    return _CONTROLS.sub(lambda match: ascii(match[0])[1:-1], text)


def show_rows(schema: pa.Schema, batches: Iterable[pa.RecordBatch], form: str) -> None:
    """Rows as a table, as a JSON array with a row on each line, or as CSV; the last two as they come."""
    if form == "table":
        draw(_grid(schema, batches))
    elif form == "csv":
        CsvRows(schema).add(batches)
    else:
        _show_array(schema, batches)


def show_table(rows: pa.Table, form: str) -> None:
    """Rows of a table in memory, as `show_rows` shows rows."""
    show_rows(rows.schema, rows.to_batches(), form)


def show_record(record: Mapping[str, object], form: str) -> None:
    """One thing by its properties: a line for each, one JSON object, or CSV with one row."""
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
    """Something of rich's on stdout; in full where stdout is not a terminal."""
    console = Console(file=sys.stdout, highlight=False)
    if console.is_terminal:
        console.print(what)
        return
    plain_text = Console(file=io.StringIO(), highlight=False, width=_WIDE)
    with plain_text.capture() as drawn:
        plain_text.print(what)
    click.echo("\n".join(line.rstrip() for line in drawn.get().splitlines()))


class CsvRows:
    """CSV that is written as rows come: the names once, then rows; NULL is nothing."""

    def __init__(self, schema: pa.Schema) -> None:
        self._writer = csv.writer(sys.stdout, lineterminator="\n")
        self._writer.writerow(schema.names)

    def add(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Write rows."""
        for row in _rows(batches):
            self._writer.writerow([_cell(value) for value in row])


def show_lines(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """A JSON object on each line."""
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


def _grid(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Grid:
    grid = Grid(show_edge=False, header_style="bold")
    for field in schema:
        number = pat.is_integer(field.type) or pat.is_floating(field.type) or pat.is_decimal(field.type)
        grid.add_column(escape(on_one_line(field.name)), justify="right" if number else "left", overflow="fold")
    for row in _rows(batches):
        grid.add_row(*("[dim]NULL[/dim]" if value is None else escape(on_one_line(_cell(value))) for value in row))
    return grid


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[Sequence[Any]]:
    """Rows as Python values: what is shown is few, or goes out row by row."""
    for batch in batches:
        yield from zip(*map(_values, batch.columns), strict=True)


def _values(column: pa.Array) -> list[Any]:
    """Times of nanoseconds come as texts, since Python has none."""
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
    """A value in what JSON knows: times as ISO texts, bytes as hexadecimal digits, decimals and NaN as texts."""
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


@plain.register
def _mapping(value: dict) -> Any:  # type: ignore[type-arg]
    return {str(key): plain(item) for key, item in value.items()}


@plain.register(list)
@plain.register(tuple)
def _items(value: Any) -> Any:
    return [plain(item) for item in value]
