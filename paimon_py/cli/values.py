"""Parses command-line values: tables, options, ages, times, partitions; invalid values are usage errors."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

import click
import pyarrow as pa

from paimon_py import Catalog, Table, UsageError
from paimon_py.catalog.catalog import BRANCH_MARK
from paimon_py.spec.layout import DATABASE_SUFFIX
from paimon_py.system.metadata_table import MetadataTable
from paimon_py.system.table import SystemTable

AnyTable = Table | SystemTable | MetadataTable
"""Tables that can be read."""

_AGE = re.compile(r"(\d+)\s*(d|h|min|m|s)")
_SECONDS = {"d": 86_400, "h": 3_600, "min": 60, "m": 60, "s": 1}


def setting(text: str) -> tuple[str, str]:
    """Parse an option of a store or catalog, `name=value`, to name and value."""
    name, mark, value = text.partition("=")
    if not mark or not name:
        raise click.BadParameter(f"{_hide(text)} is not NAME=VALUE")
    return name.strip(), value


def age(text: str) -> timedelta:
    """Parse a duration: 7d, 12h, 30min, 10s."""
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise click.BadParameter(f"{text!r} is not an age such as 7d, 12h, 30min or 10s")
    try:
        return timedelta(seconds=int(match[1]) * _SECONDS[match[2]])
    except OverflowError:
        raise click.BadParameter(f"{text!r} is too long") from None


def positive_age(text: str) -> timedelta:
    """Parse a duration above 0."""
    found = age(text)
    if not found:
        raise click.BadParameter(f"{text!r} must be above 0, such as 10s")
    return found


def age_or_moment(text: str) -> timedelta | datetime:
    """Parse a duration or a time: 7d, or 2024-01-31, optionally with a time of day."""
    if _AGE.fullmatch(text.strip()):
        return age(text)
    found = _moment(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is neither an age such as 7d nor a time such as 2024-01-31T10:00")
    return found


def moment(text: str) -> datetime:
    """Parse a time: 2024-01-31, optionally with 10:00:00 and a zone; local time without a zone."""
    found = _moment(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not a time such as 2024-01-31T10:00")
    return found


def state(text: str) -> int | datetime | str:
    """Parse a state of a table: a snapshot id, a time, or a tag."""
    if text.isdecimal() and text.isascii():
        return int(text)
    return _moment(text) or text


def partition(text: str) -> dict[str, str]:
    """Parse a partition, or the common part of several: `month=3` or `year=2024,month=3`. Returns strings by key."""
    return dict(setting(part) for part in text.split(","))


def new_file(text: str) -> Path:
    """Parse the path of a file to be written."""
    found = Path(text)
    if found.is_dir():
        raise click.BadParameter(f"{text!r} is a directory, not a file")
    if not found.absolute().parent.is_dir():
        raise click.BadParameter(f"directory {str(found.absolute().parent)!r} does not exist")
    return found


def names(text: str) -> list[str]:
    """Parse comma-separated column names."""
    return [name.strip() for name in text.split(",")]


def _hide(text: str) -> str:
    return f"an option of {len(text)} characters without ="


def _moment(text: str) -> datetime | None:
    """The time in a string, None if it is not a time. A plain number is not a time."""
    try:
        return None if text.strip().isdecimal() else datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        return None


def takes_place(command: Callable[..., None]) -> Callable[..., None]:
    """A decorator: adds `--option`, passed as the mapping `options`."""

    @functools.wraps(command)
    def wrapper(*args: object, options: tuple[tuple[str, str], ...], **kwargs: object) -> None:
        command(*args, options=dict(options), **kwargs)

    return click.option(
        "--option", "-o", "options", multiple=True, type=setting, metavar="NAME=VALUE",
        help="Option of the store or catalog, such as s3.endpoint=…; may be repeated.",
    )(wrapper)  # fmt: skip


def takes_name(command: Callable[..., None]) -> Callable[..., None]:
    """A decorator: adds the argument TABLE and the option `--warehouse`, as strings."""
    named = click.option("--warehouse", "-w", help="Path or URL of a warehouse; TABLE is then a name such as db.t.")
    return click.argument("table", metavar="TABLE")(named(command))


def takes_readable(command: Callable[..., None]) -> Callable[..., None]:
    """A decorator: adds the argument TABLE, opened; includes system tables."""

    @functools.wraps(command)
    def wrapper(table: str, warehouse: str | None, options: Mapping[str, str], **kwargs: object) -> None:
        command(open_table(table, warehouse, options), **kwargs)

    return takes_name(takes_place(wrapper))


def takes_table(command: Callable[..., None]) -> Callable[..., None]:
    """A decorator: adds the argument TABLE, opened; system tables are refused."""

    @functools.wraps(command)
    def wrapper(table: AnyTable, **kwargs: object) -> None:
        if not isinstance(table, Table):
            raise UsageError(f"{table.name} is a system table: only head, diff, tail and schema can read it")
        command(table, **kwargs)

    return takes_readable(wrapper)


def typed_partition(table: Table, texts: Mapping[str, str]) -> dict[str, object]:
    """A partition with typed values; values of unknown columns stay strings.

    Raises: UsageError for an invalid value.
    """
    schema = table.scan().schema
    known = schema.names
    return {name: _parse_value(schema.field(name), text) if name in known else text for name, text in texts.items()}


def _parse_value(field: pa.Field, text: str) -> object:
    try:
        return pa.scalar(text).cast(field.type).as_py()
    except pa.ArrowException as error:
        raise UsageError(f"{text!r} is not a value of {field.name}, which is {field.type}: {error}") from error


def require_changes(table: AnyTable) -> Table | SystemTable:
    """The table, if it supports changes.

    Raises: UsageError for a system table of metadata.
    """
    if isinstance(table, MetadataTable):
        raise UsageError(f"{table.name} contains metadata, which has no changes: use head")
    return table


def table_name(table: str, warehouse: str | None) -> tuple[str, str]:
    """The warehouse of a table, and its name in it; `table` is a name in `warehouse`, or a path.

    Raises: click.UsageError for a path that does not end in DATABASE.db/TABLE, and for a name without a database.
    """
    if warehouse is not None:
        if "." not in table.strip("."):
            raise click.UsageError(f"{table!r} is not a name such as db.t")
        return warehouse, table
    parent, _, name = table.rstrip("/").rpartition("/")
    place, _, database = parent.rpartition("/")
    if not name or not database.endswith(DATABASE_SUFFIX):
        raise click.UsageError(
            f"{table!r} does not end in DATABASE.db/TABLE: write warehouse/db.db/t, or db.t with --warehouse"
        )
    return place or ".", f"{database[: -len(DATABASE_SUFFIX)]}.{name}"


def open_table(name: str, warehouse: str | None, options: Mapping[str, str]) -> AnyTable:
    """A table by its path, or by its name in a warehouse; `$branch_b` and `$files` are branches and system tables.

    Raises: NotFoundError, UsageError, UnsupportedError, StorageError
    """
    if warehouse is not None:
        return Catalog.open(warehouse, options, create=False).table(name)
    directory, slash, last = name.rpartition("/")
    base, _, rest = last.partition("$")
    if not rest:
        return Table.open(name, options)
    table = Table.open(f"{directory}{slash}{base}", options)
    branch, _, system = rest.partition("$")
    if not branch.startswith(BRANCH_MARK):
        return table.system(rest)
    found = table.branch(branch[len(BRANCH_MARK) :])
    return found.system(system) if system else found
