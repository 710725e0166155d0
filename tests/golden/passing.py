"""Tables whose streams pass over commits that take rows away, as Java's do where nobody says otherwise."""

from __future__ import annotations

import msgspec

from paimon_py import Table

OPTION = "streaming-read-append-overwrite"


def passing(table: Table) -> Table:
    """The table; without primary key and without a word on the option, with its default in Java said out loud."""
    if not isinstance(table, Table) or table.schema.primary_keys or OPTION in table.options:
        return table
    schema = msgspec.structs.replace(table._schema, options={**table._schema.options, OPTION: "false"})
    return Table(table._root, schema, table.name)
