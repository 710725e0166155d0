"""Finds the tables of a query in DuckDB's syntax tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from paimon_py.errors import UnsupportedError, UsageError
from paimon_py.queries.time_travel import NamedState, split_name

_RESERVED = frozenset({"memory", "temp", "system", "pg_catalog", "information_schema"})
"""Names of DuckDB's own catalogs and schemas: a database with such a name would be ambiguous."""
_NARROWING = ("where_clause", "group_expressions", "group_sets", "having", "sample", "qualify")
"""Parts of a query that read more rows than they return."""
_PLAIN = frozenset({"STAR", "COLUMN_REF", "VALUE_CONSTANT"})


class NamedTable(msgspec.Struct, frozen=True):
    """A table in a query.

    Attributes:
        database, table: its names; for system tables with `$`.
        view: the name of the view that represents it in its database.
        state: the state to read, None for the latest.
        limit: the maximum number of its rows that the query needs; None if it may need all.
    """

    database: str
    table: str
    view: str
    state: NamedState | None = None
    limit: int | None = None

    @property
    def name(self) -> str:
        """Database and table."""
        return f"{self.database}.{self.table}"


def find_tables(tree: dict[str, Any], database: str | None) -> tuple[list[NamedTable], bool]:
    """The distinct tables of a statement, and whether the tree was changed: names with states became plain names.

    Args:
        tree: the result of `json_serialize_sql`; changed in place.
        database: the database of tables without one.

    Raises:
        UsageError: a table name without a database, or with more than two parts.
        UnsupportedError: SHOW statements, or names that differ only in case.
    """
    statements = tree["statements"]
    if len(statements) != 1:
        raise UsageError(f"sql takes one statement, not {len(statements)}")
    found: dict[str, NamedTable] = {}
    is_changed = False
    node = statements[0]["node"]
    for reference in _references(node, frozenset()):
        named = _named_table(reference, database)
        if named.state is not None:
            is_changed = True
            _rename(reference, named)
        key = f"{named.database}.{named.view}".lower()
        if found.setdefault(key, named) != named:
            raise UnsupportedError(
                f"sql cannot distinguish {found[key].name!r} and {named.name!r}: DuckDB ignores the case of names",
                feature="names that differ in case",
            )
    if len(found) == 1:
        most, tables = _limit(node), list(found.values())
        return [msgspec.structs.replace(tables[0], limit=most)], is_changed
    return list(found.values()), is_changed


def _references(node: Any, hidden: frozenset[str]) -> Iterator[dict[str, Any]]:
    """All references to tables, except to names of a WITH clause, which hide tables without a database."""
    if isinstance(node, list):
        for each in node:
            yield from _references(each, hidden)
        return
    if not isinstance(node, dict):
        return
    kind = node.get("type")
    if kind == "SHOW_REF" and node.get("show_type") == "SHOW_SPECIAL":
        raise UnsupportedError(
            "sql answers queries: catalog.databases(), catalog.tables('db') and sys.tables list", feature="SHOW"
        )
    if kind == "BASE_TABLE":
        is_hidden = not node["schema_name"] and node["table_name"].lower() in hidden
        if not is_hidden:
            yield node
        return
    for entry in (node.get("cte_map") or {}).get("map", ()):
        name = entry["key"].lower()
        query = entry["value"]["query_node"]
        is_recursive = query.get("type") == "RECURSIVE_CTE_NODE"
        yield from _references(query, hidden | {name} if is_recursive else hidden)
        hidden |= {name}
    for key, value in node.items():
        if key != "cte_map":
            yield from _references(value, hidden)


def _named_table(reference: dict[str, Any], database: str | None) -> NamedTable:
    table, state = split_name(reference["table_name"])
    schema = reference["schema_name"] or database
    if reference["catalog_name"]:
        raise UsageError(f"a table is named database.table, not {reference['catalog_name']}.{schema}.{table}")
    if not schema:
        raise UsageError(f"a table is named database.table, got {table}; database= says where names without one are")
    if schema.lower() in _RESERVED:
        raise UnsupportedError(
            f"sql cannot read tables of the database {schema!r}: DuckDB reserves the name",
            feature="database name",
        )
    clause = reference.get("at_clause")
    if clause is not None:
        state = _state_of(clause, table)
    view = table if state is None else f"{table} {state.unit} {state.value if state.is_number else repr(state.value)}"
    return NamedTable(schema, table, view, state)


def _state_of(clause: dict[str, Any], table: str) -> NamedState:
    """The state in a DuckDB clause such as `AT (VERSION => 3)`."""
    literal = clause["expr"].get("literal") or {}
    unit, value = clause["unit"].upper(), literal.get("text")
    if unit not in ("VERSION", "TIMESTAMP") or value is None:
        raise UsageError(
            f"the state of {table} must be AT (VERSION => 3), AT (VERSION => 'tag') or AT (TIMESTAMP => '2024-01-31'),"
            " with a literal"
        )
    return NamedState(unit, str(value), literal.get("kind") == "INTEGER")


def _rename(reference: dict[str, Any], named: NamedTable) -> None:
    """Replace the table by its view; columns can still be qualified by the name of the table."""
    reference["alias"] = reference["alias"] or named.table
    reference["table_name"], reference["at_clause"] = named.view, None
    if "qualified_name" in reference:
        reference["qualified_name"]["path"][-1] = named.view


def _limit(node: dict[str, Any]) -> int | None:
    """The maximum number of rows that a query needs; only for queries like `SELECT columns FROM t LIMIT n`."""
    source = node.get("from_table") or {}
    if node.get("type") != "SELECT_NODE" or source.get("type") != "BASE_TABLE" or source.get("sample"):
        return None
    if any(node.get(part) for part in _NARROWING):
        return None
    modifiers = node.get("modifiers", ())
    if [modifier.get("limit_type") for modifier in modifiers] != ["ROW_COUNT"] or (node["cte_map"] or {}).get("map"):
        return None
    if not all(column.get("type") in _PLAIN for column in node["select_list"]):
        return None
    limit, offset = _number(modifiers[0].get("limit")), _number(modifiers[0].get("offset") or _ZERO)
    return None if limit is None or offset is None else limit + offset


_ZERO: dict[str, Any] = {"literal": {"kind": "INTEGER", "text": "0"}}


def _number(expression: dict[str, Any] | None) -> int | None:
    literal = (expression or {}).get("literal") or {}
    return int(literal["text"]) if literal.get("kind") == "INTEGER" else None
