"""Writes and reads tables with the official SDK or its Rust core, in whose Python this runs: `sdk_player.py LIBRARY WAREHOUSE`.

Each line of the input is a JSON object (`op` = create, write, overwrite or read; `table`; `path` of an Arrow file); each answer is
a line, too: `{"ok": true}` or `{"error": text}`.
"""

from __future__ import annotations

import json
import sys

import pyarrow as pa


def load(path: str) -> pa.Table:
    with pa.ipc.open_file(path) as file:
        return file.read_all()


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
        writer.write_arrow(load(path))
        commit = builder.new_commit()
        commit.commit(writer.prepare_commit())
        writer.close()
        commit.close()

    def read(self, table: str) -> pa.Table:
        builder = self._catalog.get_table(table).new_read_builder()
        return builder.new_read().to_arrow(builder.new_scan().plan().splits())


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
    elif step["op"] == "read":
        found = library.read(table)
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
