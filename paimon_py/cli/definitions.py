"""Commands that create, alter and drop tables."""

from __future__ import annotations

import re
from collections.abc import Mapping

import click

from paimon_py import (
    AddColumn,
    After,
    Catalog,
    DropColumn,
    First,
    OptionError,
    RemoveOption,
    RenameColumn,
    Schema,
    SetOption,
    Table,
    UpdateColumnType,
    UpdateComment,
    UsageError,
)
from paimon_py.cli.output import show_record, takes_format
from paimon_py.cli.sizes import count_text
from paimon_py.cli.terminal import ask, takes_yes
from paimon_py.cli.values import names, setting, table_name, takes_name, takes_place, takes_table
from paimon_py.spec.option_names import known_names, nearest
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field, RowType

Change = AddColumn | DropColumn | RenameColumn | UpdateColumnType | SetOption | RemoveOption | UpdateComment


def _columns(text: str) -> tuple[Field, ...]:
    """The columns in a string such as `k BIGINT NOT NULL, v STRING`."""
    try:
        found = parse_type(f"ROW<{text}>")
    except UsageError as error:
        why = re.sub(r"'ROW<(.*?)>'", r"'\1'", str(error))  # the columns as the caller wrote them
        message = f"{text!r} does not list columns as in 'k BIGINT NOT NULL, v STRING': {why}"
        raise click.BadParameter(message) from None
    assert isinstance(found, RowType)
    return found.fields


def _column(text: str) -> Field:
    fields = _columns(text)
    if len(fields) != 1:
        raise click.BadParameter(f"{text!r} is not one column as in 'v STRING'")
    return fields[0]


@click.command()
@takes_name
@click.option("--columns", type=_columns, required=True, metavar="COLUMNS", help="Names and types of the columns.")
@click.option("--primary-key", "-k", "primary_key", type=names, metavar="A,B", help="Columns of the primary key.")
@click.option("--partition-by", "-p", type=names, metavar="A,B", help="Partition keys.")
@click.option("--option", "table_options", multiple=True, type=setting, metavar="NAME=VALUE", help="Table option.")
@click.option("--comment", help="Description of the table.")
@click.option("--exist-ok", is_flag=True, help="Do nothing if the table exists.")
@click.option(
    "--store-option", "-o", "options", multiple=True, type=setting, metavar="NAME=VALUE",
    help="Option of the store or catalog, such as s3.endpoint=…; may be repeated.",
)
@takes_format
def create(  # noqa: PLR0913
    table: str, columns: tuple[Field, ...], primary_key: list[str] | None, partition_by: list[str] | None,
    table_options: tuple[tuple[str, str], ...], comment: str | None, exist_ok: bool, warehouse: str | None,
    options: tuple[tuple[str, str], ...], form: str,
) -> None:  # fmt: skip
    """Create a table, and its database if it does not exist. Here --option sets a table option."""
    place, name = table_name(table, warehouse)
    catalog = Catalog.open(place, dict(options))
    catalog.create_database(name.rpartition(".")[0], exist_ok=True)
    made = catalog.create_table(
        name, Schema([(field.name, field.type) for field in columns]), primary_key=primary_key or (),
        partition_by=partition_by or (), options=dict(table_options), comment=comment, exist_ok=exist_ok,
    )  # fmt: skip
    show_record({"name": made.name, "location": made.location}, form)


@click.command()
@takes_table
@click.option("--add", multiple=True, type=_column, metavar="COLUMN", help="Add a column, such as 'c INT'.")
@click.option("--first", is_flag=True, help="Put the added column before all others.")
@click.option("--after", metavar="NAME", help="Put the added column after another one.")
@click.option("--drop", multiple=True, metavar="NAME", help="Drop a column.")
@click.option("--rename", multiple=True, type=setting, metavar="OLD=NEW", help="Rename a column.")
@click.option("--type", "types", multiple=True, type=_column, metavar="COLUMN", help="Change a type: 'c BIGINT'.")
@click.option("--allow-narrowing", is_flag=True, help="Change a type even if rows that exist may not fit.")
@click.option("--set", "settings", multiple=True, type=setting, metavar="NAME=VALUE", help="Set an option.")
@click.option("--unset", multiple=True, metavar="NAME", help="Remove an option.")
@click.option("--comment", help="Description of the table.")
@takes_format
def alter(  # noqa: PLR0913
    table: Table, add: tuple[Field, ...], first: bool, after: str | None, drop: tuple[str, ...],
    rename: tuple[tuple[str, str], ...], types: tuple[Field, ...], allow_narrowing: bool,
    settings: tuple[tuple[str, str], ...], unset: tuple[str, ...], comment: str | None, form: str,
) -> None:  # fmt: skip
    """Change columns and options of a table in one step."""
    if (first or after is not None) and len(add) != 1:
        raise click.UsageError("--first and --after give the position of a single column of --add")
    position = First() if first else None if after is None else After(after)
    changes: list[Change] = [AddColumn(field.name, field.type, position=position) for field in add]
    changes += [RenameColumn(old, new) for old, new in rename]
    changes += [UpdateColumnType(field.name, field.type, allow_narrowing=allow_narrowing) for field in types]
    changes += [DropColumn(name) for name in drop]
    changes += [SetOption(name, value) for name, value in settings]
    changes += [RemoveOption(_known_option(table, name)) for name in unset]
    changes += [] if comment is None else [UpdateComment(comment)]
    if not changes:
        raise click.UsageError("nothing is changed: give --add, --drop, --rename, --type, --set, --unset or --comment")
    show_record({"schema_id": table.alter(*changes).id}, form)


def _known_option(table: Table, name: str) -> str:
    """The name of an option that the table has, or that Paimon knows.

    Raises: OptionError
    """
    has = table.options
    if name not in has and name not in known_names():
        near = nearest(name, known_names() | has.keys())
        hint = f"did you mean {near!r}?" if near else f"its options are {', '.join(has) or 'all defaults'}"
        raise OptionError(f"{table.name} has no option {name!r}; {hint}", option=name)
    return name


@click.command()
@takes_name
@takes_place
@takes_yes
def drop(table: str, warehouse: str | None, options: Mapping[str, str], yes: bool) -> None:
    """Drop a table with all its files, snapshots, tags and branches. This cannot be undone."""
    place, name = table_name(table, warehouse)
    catalog = Catalog.open(place, options, create=False)
    found = catalog.table(name)
    if not yes:
        latest = found.snapshot()
        if latest is None:
            held = "it is empty"
        else:
            rows = latest.total_record_count
            held = "its files hold rows" if rows is None else f"its files hold {count_text(rows, 'row')}"
        ask(f"Drop {found.location}? {held}", yes=yes)
    catalog.drop_table(name)
    click.echo(f"dropped {found.location}")
