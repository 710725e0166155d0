"""The command that imports files from other systems."""

from __future__ import annotations

from collections.abc import Mapping

import click

from paimon_py import Catalog
from paimon_py.cli.output import show_record, takes_format
from paimon_py.cli.terminal import explained_interrupt, progress
from paimon_py.cli.values import setting, takes_place
from paimon_py.spec.type_text import sql_type


def _key(text: str) -> tuple[str, str]:
    """Parse a partition key, `day` or `day=DATE`, to its name and type."""
    return setting(text) if "=" in text else (text.strip(), "STRING")


@click.command("import")
@click.argument("warehouse")
@click.argument("table", metavar="DB.TABLE")
@click.argument("source")
@click.option("--kind", type=click.Choice(["parquet", "orc", "avro"]), help="Format of the files; default: by name.")
@click.option("--partition-by", multiple=True, type=_key, metavar="KEY[=TYPE]", help="Type of a partition key.")
@click.option("--copy", is_flag=True, help="Rewrite the rows; default: the files stay where they are.")
@click.option("--dry-run", is_flag=True, help="Show what would be imported, and what does not fit.")
@click.option("--verify", is_flag=True, help="Read all values of the files first, and refuse damaged ones.")
@takes_format
@takes_place
def import_files(  # noqa: PLR0913
    warehouse: str, table: str, source: str, kind: str | None, partition_by: tuple[tuple[str, str], ...], copy: bool,
    dry_run: bool, verify: bool, options: Mapping[str, str], form: str,
) -> None:  # fmt: skip
    """Import the Parquet, ORC and Avro files of a directory into a table, each once; the directory is not changed."""
    catalog = Catalog.open(warehouse, options, create=False)
    said = "run the command again, which imports the remaining files; each file is imported once"
    with explained_interrupt(lambda: said), progress("importing") as report:
        done = catalog.import_files(
            table, source, format=kind, partition_by=dict(partition_by) or None, copy=copy, dry_run=dry_run,
            verify=verify, progress=report,
        )  # fmt: skip
    record = {
        "table": done.table, "is_new": done.is_new, "by_reference": done.by_reference, "files": done.files,
        "rows": done.rows, "size_bytes": done.size_bytes, "partitions": done.partitions,
        "known_files": done.known_files, "snapshot_id": done.snapshot_id,
        "columns": {field.name: sql_type(field.type) for field in done.columns},
        "misfits": {each.path: each.reason for each in done.misfits},
    }  # fmt: skip
    show_record(record, form)
