"""Shows a table's schema in a notebook: columns, keys, and options without secrets. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from paimon_py.html import facts, grid, join_values, page, section
from paimon_py.spec.redact import shown_options
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import Field

if TYPE_CHECKING:
    from paimon_py.spec.schema import TableSchema


def schema_page(schema: TableSchema) -> str:
    """The page with columns, keys and options."""
    return page(f"TableSchema {schema.id}", facts({"comment": schema.comment}), schema_parts(schema))


def schema_parts(schema: TableSchema) -> str:
    """The parts with columns, keys and options, with secrets hidden."""
    options = shown_options(schema.options)
    keys = {
        "primary key": join_values(schema.primary_keys) or None,
        "partitioned by": join_values(schema.partition_keys) or None,
    }
    return (
        fields_grid(schema.fields) + facts(keys) + (section("options", facts(options)) if options else "")
    )


def fields_grid(fields: Iterable[Field]) -> str:
    """A grid of columns with their types, and their comments if any column has one."""
    rows = [(field.name, sql_type(field.type), field.description or "") for field in fields]
    if any(comment for _, _, comment in rows):
        return grid(("column", "type", "comment"), rows)
    return grid(("column", "type"), [row[:2] for row in rows])
