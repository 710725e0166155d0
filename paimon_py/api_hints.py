"""Names of other libraries, with advice for callers that use them here.

Only errors read this module's tables. A missing attribute still raises `AttributeError`, so that `hasattr` and
tab completion work; a call with wrong arguments still raises `TypeError`.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

C = TypeVar("C", bound=type)

_WRITE = "write_arrow(data)"
_SCAN = "scan(columns=[…], where=…)"

ATTRIBUTES: Mapping[str, Mapping[str, str]] = {
    "Catalog": {
        **dict.fromkeys(("get_table", "load_table", "open_table"), "table('db.t')"),
        "list_tables": "tables('db')",
        **dict.fromkeys(("list_databases", "list_namespaces", "namespaces", "schemas"), "databases()"),
        **dict.fromkeys(("create_namespace", "create_schema"), "create_database(name)"),
        **dict.fromkeys(("drop_namespace", "drop_schema"), "drop_database(name)"),
        "table_exists": "'t' in catalog.tables('db')",
        **dict.fromkeys(("database_exists", "namespace_exists"), "'db' in catalog.databases()"),
        "purge_table": "drop_table('db.t')",
        "create_table_if_not_exists": "create_table(…, exist_ok=True)",
        "alter_table": "table('db.t').alter(…)",
        **dict.fromkeys(("exists", "has_table"), "'t' in catalog.tables('db')"),
        "create": "create_table('db.t', columns) or create_database('db')",
        "drop": "drop_table('db.t') or drop_database('db')",
        **dict.fromkeys(("query", "execute"), "sql('SELECT … FROM db.t')"),
        **dict.fromkeys(("load", "open_dataset"), "table('db.t')"),
        "ls": "databases(), and tables('db')",
        "close": "nothing: a catalog holds nothing open",
    },
    "Table": {
        **dict.fromkeys(("append", "write", "write_pandas", "write_polars", "insert", "insert_into"), _WRITE),
        "overwrite": "write_arrow(data, overwrite={}), or {'month': 3} for a partition",
        **dict.fromkeys(("filter", "where", "select", "query", "read", "new_read_builder"), _SCAN),
        **dict.fromkeys(("to_table", "to_pyarrow_table", "collect"), "to_arrow()"),
        **dict.fromkeys(("to_pyarrow_dataset", "to_dataset"), "scan().to_dataset()"),
        "to_duckdb": "scan().to_duckdb(connection, 't')",
        **dict.fromkeys(("to_reader", "to_batches"), "scan().to_reader()"),
        "log": "history()",
        **dict.fromkeys(("version", "current_snapshot", "snapshot_by_id"), "snapshot() or snapshot(id)"),
        **dict.fromkeys(("load_as_version", "at", "as_of"), "scan(snapshot_id=…), scan(tag=…) or scan(timestamp=…)"),
        **dict.fromkeys(("files", "file_uris", "inspect", "get_add_actions"), "system('files').to_arrow()"),
        **dict.fromkeys(("optimize", "rewrite_data_files"), "compact()"),
        **dict.fromkeys(("vacuum", "expire", "cleanup_metadata"), "expire_snapshots() and remove_orphans()"),
        **dict.fromkeys(("rollback", "rollback_to_snapshot"), "rollback_to(snapshot id, tag or time) or restore(…)"),
        **dict.fromkeys(("columns", "column_names"), "schema.names"),
        **dict.fromkeys(("dtypes", "fields"), "schema.fields"),
        "primary_keys": "schema.primary_keys",
        "partition_keys": "schema.partition_keys",
        **dict.fromkeys(("shape", "num_rows", "row_count"), "count()"),
        **dict.fromkeys(("update_schema", "update_spec", "add_column"), "alter(AddColumn(…), SetOption(…), …)"),
        **dict.fromkeys(("new_batch_write_builder", "new_stream_write_builder", "transaction"), "writer()"),
        "manage_snapshots": "create_tag(name) or create_branch(name)",
        **dict.fromkeys(("drop", "delete_table"), "truncate() for its rows, catalog.drop_table('db.t') for all of it"),
        "rename": "… of its catalog: catalog.rename_table(old, new)",
        **dict.fromkeys(("path", "uri", "table_uri"), "location"),
        "properties": "options",
        "metrics": "… of paimon_py.metrics: measure_table(table)",
        **dict.fromkeys(("describe", "info", "detail", "printSchema", "print_schema"), "schema and doctor()"),
        **dict.fromkeys(("rows", "iterrows", "to_pylist", "fetchall"), "to_arrow().to_pylist()"),
        "close": "nothing: a table holds nothing open",
        "time_travel": "scan(snapshot_id=…), scan(tag=…) or scan(timestamp=…)",
        **dict.fromkeys(("show", "limit", "take"), "head(20)"),
        "sql": "… of its catalog: catalog.sql('SELECT … FROM db.t')",
        **dict.fromkeys(("size", "stats"), "levels() for files and bytes, statistics() for what analyze() stored"),
        "join": "scan().to_duckdb(connection, 't'), or scan().to_polars(lazy=True)",
        "repair": "doctor(), which names the call that mends each finding",
    },
    "Scan": {
        **dict.fromkeys(("filter", "where", "with_filter"), "where=… of table.scan"),
        **dict.fromkeys(("select", "project", "with_projection"), "columns=[…] of table.scan"),
        "with_limit": "limit=… of table.scan",
        **dict.fromkeys(("use_ref", "at"), "snapshot_id=…, tag=… or timestamp=… of table.scan"),
        **dict.fromkeys(("collect", "to_table", "to_arrow_table", "read_all"), "to_arrow()"),
        **dict.fromkeys(("to_pylist", "to_list", "fetchall"), "to_arrow().to_pylist()"),
        **dict.fromkeys(("to_batches", "to_arrow_batch_reader", "to_record_batches"), "to_reader()"),
        **dict.fromkeys(("plan", "plan_files", "new_scan"), "splits() or explain()"),
        **dict.fromkeys(("show", "take"), "head(20)"),
        **dict.fromkeys(("num_rows", "count_rows", "shape"), "count()"),
    },
    "Writer": {
        "commit": "changes(), and pass them to table.commit(…)",
        **dict.fromkeys(("prepare_commit", "flush"), "changes()"),
        **dict.fromkeys(("write", "write_pandas", "write_arrow_batch", "write_batch", "write_table"), _WRITE),
    },
    "Stream": {
        "acknowledge": "poll().acknowledge(), which acknowledges a step",
        **dict.fromkeys(("next", "fetch"), "poll(), or a for loop"),
    },
    "Column": {
        **dict.fromkeys(("is_in", "in_", "contains_any"), "isin([…])"),
        **dict.fromkeys(("isnull", "isna", "is_none", "isNull", "is_na"), "is_null()"),
        **dict.fromkeys(("notnull", "notna", "isnotnull", "isNotNull", "not_null"), "is_not_null()"),
        **dict.fromkeys(("startswith", "startsWith"), "starts_with('x')"),
        **dict.fromkeys(("endswith", "endsWith"), "ends_with('x')"),
        "is_between": "between(a, b)",
        **dict.fromkeys(
            ("upper", "lower", "cast", "abs", "round", "substr", "coalesce", "fillna", "fill_null", "concat", "strip"),
            "the function of SQL, in a value that is calculated: sql('upper(a)')",
        ),
        **dict.fromkeys(("desc", "asc", "sort"), "order_by=('a', 'descending') of table.scan"),
    },
    "paimon_py": {
        **{name: f"import paimon_py.{name} first" for name in ("cdc", "env", "errors", "testing", "types")},
        **dict.fromkeys(("load_catalog", "CatalogFactory", "connect", "open"), "Catalog.open(warehouse)"),
        **dict.fromkeys(("DeltaTable", "load_table", "open_table"), "Table.open(path), or catalog.table('db.t')"),
        **dict.fromkeys(("write_deltalake", "write_paimon"), "table.write_arrow(data)"),
        **dict.fromkeys(("field", "column", "Col"), "col('a')"),
    },
}  # fmt: skip
"""Maps a class, or this package, and a name elsewhere to the equivalent here."""

ITEMS: Mapping[str, str] = {
    "Catalog": "table('db.t'), and tables('db') for the names of tables",
    "Table": "scan(columns=[…]) for columns, to_arrow() for rows",
    "Scan": "columns=[…] of table.scan for columns, to_arrow() or to_reader() for rows",
    "Column": "col('a', 'b') for the field b of a ROW a",
}
"""Maps a class to the equivalent of indexing it."""

ARGUMENTS: Mapping[str, str] = {
    "primary_keys": "primary_key=[…]",
    **dict.fromkeys(("partition_keys", "partition_spec", "partitioned_by", "partitions_by"), "partition_by=[…]"),
    **dict.fromkeys(("properties", "table_options", "configuration", "storage_options"), "options={…}"),
    **dict.fromkeys(("ignore_if_exists", "if_not_exists", "exists_ok"), "exist_ok=True"),
    **dict.fromkeys(("filter", "filters", "row_filter", "predicate", "condition"), "where=…"),
    **dict.fromkeys(("selected_fields", "projection", "select"), "columns=[…]"),
    **dict.fromkeys(("version", "snapshot", "as_of_version"), "snapshot_id=…"),
    **dict.fromkeys(("as_of", "as_of_timestamp", "time", "datetime"), "timestamp=…"),
    "mode": "overwrite={} for the whole table, {'month': 3} for a partition; without it rows are added",
    **dict.fromkeys(("set", "updates", "new_values"), "a mapping as the second argument: update(where, {'c': 1})"),
    "from": "from_=…",
    **dict.fromkeys(("retain_last", "num_retained"), "retain_min=… and retain_max=…"),
    **dict.fromkeys(("retention_hours", "older_than_ms"), "older_than=…"),
    **dict.fromkeys(("keys", "join_cols", "key_columns"), "on=[…]"),
    **dict.fromkeys(("add_columns", "drop_columns", "set_properties"), "alter(AddColumn('x', 'INT'), …)"),
    "warehouse": "the warehouse as the first argument: Catalog.open('s3://bucket/warehouse')",
}  # fmt: skip
"""Maps an argument elsewhere to the equivalent here."""


CHANGES: Mapping[str, str] = {
    "after": "position=After('k')",
    "before": "position=Before('k')",
    "first": "position=First()",
    "last": "position=Last()",
    "move": "position=First(), Last(), After('k') or Before('k')",
    **dict.fromkeys(("new_name", "to", "new"), "name='…', the new name"),
    **dict.fromkeys(("name", "column_name", "field", "field_name", "path", "old_name"), "column='…', the column"),
    **dict.fromkeys(("new_type", "data_type", "field_type", "dtype", "new_data_type"), "type='INT'"),
    **dict.fromkeys(("doc", "description", "new_comment"), "comment='…'"),
    **dict.fromkeys(("new_default", "value", "new_default_value"), "default='…', a text"),
    **dict.fromkeys(("key", "option"), "name='…'"),
    **dict.fromkeys(("nullability", "null"), "nullable=True or False"),
    "not_null": "nullable=False",
    "force": "allow_narrowing=True",
}
"""Maps an argument of a schema change elsewhere to the equivalent here, if the change has that argument."""

_BESIDE_ADD_COLUMN: Mapping[str, str] = {
    **dict.fromkeys(
        ("nullable", "required", "not_null"),
        "UpdateColumnNullability('…', False) in a later alter, once rows have values: a new column is nullable",
    ),
    **dict.fromkeys(("default_value", "initial_default"), "default='…', a text"),
}

_BESIDE: Mapping[str, Mapping[str, str]] = {
    "AddColumn": _BESIDE_ADD_COLUMN,
    "Schema": {
        **dict.fromkeys(("primary_key", "primary_keys", "identifier_field_ids"), "primary_key=[…] of create_table"),
        **dict.fromkeys(("partition_by", "partition_keys", "partition_spec"), "partition_by=[…] of create_table"),
        **dict.fromkeys(("options", "properties"), "options={…} of create_table"),
        "comment": "comment='…' of create_table",
    },
}

_OF_SCANS = ("columns", "where", "limit", "order_by", "snapshot_id", "tag", "timestamp")


class ApiHints:
    """Raises errors with a hint for attributes of other libraries that this class does not have."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            if hasattr(type(self), name):  # a property that failed: its own error says more
                return object.__getattribute__(self, name)
            raise AttributeError(unknown_attribute(type(self), name))

        def __getitem__(self, item: object) -> object:
            raise TypeError(no_items(type(self)))

        __iter__ = None  # else Python would loop by __getitem__


def unknown_attribute(owner: type, name: str) -> str:
    """The message for an attribute that instances of a class do not have."""
    reason = f"{owner.__name__!r} object has no attribute {name!r}"
    if name.startswith("_"):
        return reason
    known = [each for each in dir(owner) if not each.startswith("_")]
    return reason + _advice(ATTRIBUTES.get(owner.__name__, {}).get(name), name, known)


def no_items(owner: type) -> str:
    """The message for indexing an object that is neither a list nor a mapping."""
    way = ITEMS.get(owner.__name__)
    return f"{owner.__name__!r} object is not subscriptable" + ("" if way is None else f"; write {way}")


def unknown_name(name: str, known: list[str]) -> str:
    """The message for a name that the package does not have."""
    return f"module 'paimon_py' has no attribute {name!r}" + _advice(ATTRIBUTES["paimon_py"].get(name), name, known)


def _advice(way: str | None, name: str, known: list[str]) -> str:
    if way is not None:
        return f"; write {way}"
    near = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def explains_arguments(change: C) -> C:
    """A class decorator: a TypeError for wrong constructor arguments contains the right ones."""
    made = change.__dict__["__init__"]

    @functools.wraps(made)
    def __init__(self: object, *args: object, **kwargs: object) -> None:
        try:
            made(self, *args, **kwargs)
        except TypeError as error:
            known = list(inspect.signature(change).parameters)
            beside = _BESIDE.get(change.__name__, {})
            ways = [beside.get(name) or CHANGES.get(name, "") for name in kwargs if name not in known]
            fit = [way for way in ways if way.partition("=")[0] in known or way in beside.values()]
            advice = "".join(f"; write {way}" for way in fit)
            reason = str(error).replace(".__init__()", "()")
            error.args = (f"{reason}{advice}; arguments: {', '.join(known) or 'none'}",)
            raise

    change.__init__ = __init__  # type: ignore[misc]
    return change


def explain_call(error: TypeError, verb: Callable[..., Any], given: Mapping[str, object]) -> None:
    """Add the right arguments, and all existing ones, to the error of a call that does not fit a method."""
    signature = inspect.signature(verb)
    known = [name for name in signature.parameters if name not in ("self", "cls")]
    wrong = [name for name in given if name not in known]
    ways = [way for name in wrong if (way := ARGUMENTS.get(name)) and way.partition("=")[0] in (*known, way)]
    unknown = [name for name in wrong if name not in ARGUMENTS]
    near = [f"{found[0]}=…" for name in unknown if (found := difflib.get_close_matches(name, known, 1, 0.8))]
    asked = [name for name in wrong if name in _OF_SCANS]
    if "lazy" in wrong and verb.__name__ == "to_polars":
        ways.append("scan().to_polars(lazy=True)")
    named = [each.name for each in signature.parameters.values() if each.kind is each.KEYWORD_ONLY]
    if named and not given and "positional argument" in str(error) and "missing" not in str(error):
        ways.append(f"the name of an argument before its value: {verb.__name__}({named[0]}=…)")
    if asked and verb.__name__.startswith(("to_", "count", "head")):
        ways.append(f"scan({', '.join(f'{name}=…' for name in asked)}).{verb.__name__}()")
    advice = "".join(f"; write {way}" for way in (*ways, *near))
    error.args = (f"{error}{advice}; arguments: {', '.join(known) or 'none'}",)
