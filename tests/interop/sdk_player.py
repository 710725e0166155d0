"""Writes and reads tables with the official SDK or its Rust core, in whose Python this runs: `sdk_player.py LIBRARY WAREHOUSE`.

Each line of the input is a JSON object (`op` = create, write, overwrite, read, or a change of rows or columns; `table`; `path` of
an Arrow file); each answer is a line, too: `{"ok": true}` or `{"error": text}`.
"""

from __future__ import annotations

import json
import sys

import pyarrow as pa


def load(path: str) -> pa.Table:
    with pa.ipc.open_file(path) as file:
        return file.read_all()


def with_own_vectors(data: pa.Table) -> pa.Table:
    """The rows with vectors whose elements may be NULL, as the SDK takes them."""
    for at, field in enumerate(data.schema):
        if pa.types.is_fixed_size_list(field.type):
            kind = pa.list_(field.type.value_type, field.type.list_size)
            data = data.set_column(at, pa.field(field.name, kind), pa.array(data[field.name].to_pylist(), kind))
    return data


class Sdk:
    def __init__(self, warehouse: str):
        from pypaimon import CatalogFactory

        self._catalog = CatalogFactory.create({"warehouse": warehouse})
        self._catalog.create_database("db", True)

    def create(self, table: str, path: str, keys: list, parts: list, options: dict) -> None:
        from pypaimon import Schema

        schema = Schema.from_pyarrow_schema(load(path).schema, partition_keys=parts, primary_keys=keys, options=options)
        self._catalog.create_table(table, schema, False)

    def write(self, table: str, path: str, overwrite: bool = False) -> None:
        builder = self._catalog.get_table(table).new_batch_write_builder()
        if overwrite:
            builder.overwrite()
        writer = builder.new_write()
        writer.write_arrow(with_own_vectors(load(path)))
        commit = builder.new_commit()
        commit.commit(writer.prepare_commit())
        writer.close()
        commit.close()

    def read(self, table: str, columns: list | None = None, snapshot: int | None = None, less: list | None = None) -> pa.Table:
        """`less`: a column and a number, which its values are below."""
        found = self._catalog.get_table(table)
        builder = (found if snapshot is None else found.copy({"scan.snapshot-id": str(snapshot)})).new_read_builder()
        if less is not None:
            builder = builder.with_filter(builder.new_predicate_builder().less_than(*less))
        if columns is not None:
            builder = builder.with_projection(columns)
        return builder.new_read().to_arrow(builder.new_scan().plan().splits())

    def change(self, table: str, path: str, how: str, **given) -> None:
        """A change of rows by their ids, by a condition, or by a key."""
        builder = self._catalog.get_table(table).new_batch_write_builder()
        update = builder.new_update()
        data = with_own_vectors(load(path))
        if how == "update":
            messages = update.with_update_type([name for name in data.column_names if name != "_ROW_ID"]).update_by_arrow_with_row_id(data)
        elif how == "update_where":
            where = update.new_predicate_builder().equal(given["column"], given["value"])
            messages = update.update_by_predicate(where, data.to_pylist()[0])
        elif how == "delete":
            messages = update.delete_by_row_id(data["_ROW_ID"].to_pylist())
        else:
            messages = update.with_update_type(data.column_names).upsert_by_arrow_with_key(data, given["keys"])
        commit = builder.new_commit()
        commit.commit(messages)
        commit.close()

    def alter(self, table: str, how: str, name: str, new: str = "") -> None:
        from pypaimon.schema.data_types import AtomicType
        from pypaimon.schema.schema_change import SchemaChange

        if how == "add":
            change = SchemaChange.add_column(name, AtomicType("STRING"))
        else:
            change = SchemaChange.rename_column(name, new) if how == "rename" else SchemaChange.drop_column(name)
        self._catalog.alter_table(table, [change], False)


class Rust:
    def __init__(self, warehouse: str):
        self._warehouse = warehouse

    def _table(self, table: str):
        from pypaimon_rust.datafusion import PaimonCatalog

        return PaimonCatalog({"warehouse": self._warehouse}).get_table(table)

    def write(self, table: str, path: str, overwrite: bool = False) -> None:
        builder = self._table(table).new_batch_write_builder()
        if overwrite:
            builder = builder.with_overwrite()
        writer = builder.new_write()
        for batch in load(path).to_batches():
            writer.write_arrow(batch)
        builder.new_commit().commit(writer.prepare_commit())
        writer.close()

    def read(self, table: str) -> pa.Table:
        builder = self._table(table).new_read_builder()
        batches = builder.new_read().read(builder.new_scan().plan().splits())
        return pa.Table.from_batches(batches) if batches else None


def play(library, step: dict) -> None:
    table, path = step["table"], step["path"]
    if step["op"] == "create":
        library.create(table, path, step["keys"], step["parts"], step["options"])
    elif step["op"] == "change":
        library.change(table, path, **step["given"])
    elif step["op"] == "alter":
        library.alter(table, **step["given"])
    elif step["op"] == "read":
        found = library.read(table, **step.get("given", {}))
        with pa.ipc.new_file(path, found.schema if found is not None else pa.schema([])) as file:
            if found is not None:
                file.write_table(found)
    else:
        library.write(table, path, step["op"] == "overwrite")


def main(library: str, warehouse: str) -> None:
    player = {"pypaimon": Sdk, "rust": Rust}[library](warehouse)
    for line in sys.stdin:
        try:
            play(player, json.loads(line))
        except BaseException as error:  # noqa: BLE001 - panics of native code are not Exception; the test reads the text
            answer = {"error": f"{type(error).__name__}: {error}"}
        else:
            answer = {"ok": True}
        print(json.dumps(answer), file=sys.__stdout__, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
