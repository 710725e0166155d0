"""The command for Iceberg metadata."""

from __future__ import annotations

import click
import msgspec

from paimon_py import Table
from paimon_py.cli.output import show_record, takes_format
from paimon_py.cli.values import takes_table


@click.command()
@takes_table
@click.argument("action", type=click.Choice(["show", "publish"]), default="show")
@takes_format
def iceberg(table: Table, action: str, form: str) -> None:
    """Show the state of a table's Iceberg metadata and what their readers miss, or publish them again."""
    found = table.publish_iceberg() if action == "publish" else table.iceberg()
    show_record(msgspec.structs.asdict(found), form)
