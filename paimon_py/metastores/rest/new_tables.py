"""Encodes a new or replacing table for a REST server, and checks whether the server created it. Pure.

Source: Java `RESTCatalog.createTable`, `replaceTable`, main of August 2026.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paimon_py.metastores.options import TABLE_DEFAULT_PREFIX
from paimon_py.metastores.rest.change_json import schema_json
from paimon_py.metastores.rest.messages import TableAnswer
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.type_text import print_field


def server_schema(schema: TableSchema, catalog_options: Mapping[str, str]) -> dict[str, Any]:
    """A schema as the server takes it, including the catalog's options for new tables."""
    size = len(TABLE_DEFAULT_PREFIX)
    given = catalog_options.items()
    defaults = {key[size:]: text for key, text in given if key.startswith(TABLE_DEFAULT_PREFIX)}
    return schema_json(schema, {**defaults, **schema.options})


def was_created(found: TableAnswer, wanted: Mapping[str, Any], schema: TableSchema) -> bool:
    """Whether a table has the requested columns, keys, options and comment."""
    there = found.schema
    if there is None:
        return False
    options = {name: text for name, text in (there.options or {}).items() if name != "path"}
    columns = [(field["name"], field["type"]) for field in (print_field(field) for field in schema.fields)]
    return (
        options == {name: text for name, text in wanted["options"].items() if name != "path"}
        and [(field.get("name"), field.get("type")) for field in there.fields if isinstance(field, dict)] == columns
        and tuple(there.primaryKeys or ()) == schema.primary_keys
        and tuple(there.partitionKeys or ()) == schema.partition_keys
        and there.comment == wanted["comment"]
    )
