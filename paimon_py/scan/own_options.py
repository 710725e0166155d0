"""Reads an earlier state with the table's options at that time, in the current columns."""

from __future__ import annotations

import msgspec

from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.option_changes import renamed_options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.supported import check_readable

_MERGING = (
    "aggregation.", "deduplicate.", "deletion-vectors.", "fields.", "first-row.", "ignore-", "merge-engine",
    "partial-update.", "rowkind.", "sequence.",
)  # fmt: skip
"""Prefixes of options that affect which rows a state has, given the same files."""


def under(table: OpenTable, schema_id: int) -> TableSchema:
    """A schema with the options of another version, and the columns that only these options need.

    Cost: one get, the first time.
    Raises: UnsupportedError for options that paimon_py does not support for reading.
    """
    if schema_id == table.schema.id:
        return table.schema
    own = table.root.schemas.get(schema_id)
    check_readable(own)
    names = {field.id: field.name for field in table.schema.fields}
    taken = set(table.schema.names)
    gone = [field for field in own.fields if field.id not in names]
    for field in gone:
        names[field.id] = f"{field.name}#{field.id}" if field.name in taken else field.name
    renames = {field.name: names[field.id] for field in own.fields if names[field.id] != field.name}
    more = tuple(msgspec.structs.replace(field, name=names[field.id]) for field in gone)
    return msgspec.structs.replace(
        table.schema, fields=table.schema.fields + more, options=renamed_options(own.options, renames)
    )


def merge_alike(one: TableSchema, other: TableSchema) -> bool:
    """Whether two versions of a schema produce the same rows from the same files."""
    first, second = ({name: text for name, text in each.options.items() if name.startswith(_MERGING)}
                     for each in (one, other))  # fmt: skip
    return first == second
