"""Reads tables with another library, in whose Python this runs: `foreign_reader.py LIBRARY WAREHOUSE DIRECTORY NAME…`.

Each table of the database `default` becomes one Arrow file of the directory, or a text file with the error.
"""

from __future__ import annotations

import os
import pathlib
import sys

import pyarrow as pa


def by_pypaimon(warehouse: str, name: str) -> pa.Table:
    from pypaimon import CatalogFactory

    builder = CatalogFactory.create({"warehouse": warehouse}).get_table(f"default.{name}").new_read_builder()
    return builder.new_read().to_arrow(builder.new_scan().plan().splits())


def by_rust(warehouse: str, name: str) -> pa.Table:
    from pypaimon_rust.datafusion import PaimonCatalog

    builder = PaimonCatalog({"warehouse": warehouse}).get_table(f"default.{name}").new_read_builder()
    return pa.Table.from_batches(builder.new_read().read(builder.new_scan().plan().splits()))


def by_daft(warehouse: str, name: str) -> pa.Table:
    from pypaimon.daft import read_paimon

    return read_paimon(f"default.{name}", catalog_options={"warehouse": warehouse}).to_arrow()


def by_vane(warehouse: str, name: str) -> pa.Table:
    import vane

    vane.set_runner_local()
    connection = vane.connect()
    vane.load_installed_extension("paimon", connection=connection)
    return connection.sql(f"SELECT * FROM paimon_scan('{warehouse}/default.db/{name}')").to_arrow_table()


def by_clickhouse(warehouse: str, name: str) -> pa.Table:
    import chdb

    file_format = "Avro" if name.endswith("_avro") else "ORC" if name.endswith("_orc") else "Parquet"
    os.chdir(warehouse)  # chdb opens what lies below the directory that it runs in
    question = f"SELECT * FROM paimonLocal('default.db/{name}', {file_format})"
    return pa.ipc.open_file(pa.BufferReader(chdb.query(question, "Arrow").bytes())).read_all()


LIBRARIES = {"pypaimon": by_pypaimon, "rust": by_rust, "daft": by_daft, "vane": by_vane, "clickhouse": by_clickhouse}


def main(library: str, warehouse: str, directory: str, *names: str) -> None:
    for name in names:
        path = pathlib.Path(directory, name)
        try:
            table = LIBRARIES[library](warehouse, name)
        except BaseException as error:  # noqa: BLE001 - panics of native code are not Exception; what a library cannot read is its answer
            path.with_suffix(".txt").write_text(f"{type(error).__name__}: {error}")
            continue
        with pa.ipc.new_file(path.with_suffix(".arrow"), table.schema) as file:
            file.write_table(table)


if __name__ == "__main__":
    main(*sys.argv[1:])
