"""Checked by mypy, never run: what the public signatures promise."""

from __future__ import annotations

from collections.abc import Mapping

import paimon_py
from paimon_py import Catalog, Changes, CommitResult, Scan, Snapshot, Table, col


def write(data: object) -> int | None:
    catalog: Catalog = Catalog.open("warehouse", options={"metastore": "filesystem"})
    catalog.create_table("demo.t", [("a", "INT")], primary_key="a")  # type: ignore[arg-type]
    table: Table = catalog.table("demo.flights")
    result: CommitResult = table.write_arrow(data, overwrite={"month": 3})
    with table.writer() as writer:
        writer.write_arrow(data)
        changes: Changes = writer.changes()
    again: CommitResult = table.commit([changes, bytes(changes)], user="job-7", identifier=42)
    options: Mapping[str, str] = table.options
    assert options
    return result.snapshot_id or again.snapshot_id


def read(table: Table) -> None:
    scan: Scan = table.scan(snapshot_id=3, columns=["a"], where=(col("a") > 3) & ~col("b").isin([1, 2]), limit=10)
    table.scan(columns="a")  # type: ignore[arg-type]
    table.scan(columns=("a", "b"), where="a > 3").to_polars(lazy=True)
    table.upsert([{"a": 1}], on="a")  # type: ignore[arg-type]
    table.lookup([1], columns="a")  # type: ignore[arg-type]
    table.compact(order_by="a")  # type: ignore[arg-type]
    table.compact(progress=lambda done, total, what: print(done, total, what))
    count: int = scan.count()
    names: list[str] = [split.partition.hex() for split in scan.splits()]
    snapshot: Snapshot | None = table.snapshot()
    if snapshot is not None:
        print(snapshot.id, snapshot.time_millis, [manifest.entries() for manifest in snapshot.manifests()])
    print(count, names, paimon_py.UsageError.kind)
