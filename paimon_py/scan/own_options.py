"""The rows of an earlier state as they were then: under the options that the table had, in the columns it has now."""

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
"""What the names of options begin with that decide which rows a state has, of the same files."""


def under(table: OpenTable, schema_id: int) -> TableSchema:
    """A schema with the options of another version of it, and the columns that only these need.

    Cost: one get, the first time.
    Raises: UnsupportedError for options that paimon_py cannot read by.
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
    """Whether two versions of a schema make the same rows of the same files."""
    first, second = ({name: text for name, text in each.options.items() if name.startswith(_MERGING)}
                     for each in (one, other))  # fmt: skip
    return first == second
