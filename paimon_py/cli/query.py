"""The command that runs SQL on the tables of a warehouse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import click

from paimon_py import Catalog
from paimon_py.cli.output import show_rows, takes_format
from paimon_py.cli.values import setting, takes_place


@click.command()
@click.argument("warehouse")
@click.argument("query", metavar="SELECT…")
@click.option("--database", "-d", help="Database of unqualified table names.")
@click.option(
    "--set", "settings", multiple=True, type=setting, metavar="NAME=VALUE",
    help="Setting of DuckDB, such as memory_limit=1GB; may be repeated.",
)  # fmt: skip
@click.option(
    "--blobs", type=click.Choice(["refs", "bytes"]), default="refs", show_default=True,
    help="Query where BLOBs are stored (uri, offset, length), or read them.",
)  # fmt: skip
@takes_format
@takes_place
def sql(
    warehouse: str, query: str, database: str | None, settings: tuple[tuple[str, str], ...],
    blobs: Literal["refs", "bytes"], options: Mapping[str, str], form: str,
) -> None:  # fmt: skip
    """Run a query on the tables of a warehouse with DuckDB. Read-only.

    Tables are db.t, db."t$files" and db.t FOR VERSION AS OF 3.
    """
    catalog = Catalog.open(warehouse, options, create=False)
    found = catalog.sql(query, database=database, settings=dict(settings), blobs=blobs)
    show_rows(found.schema, found.to_reader(), form)
