"""The files and tables that the workloads share, made when they are first needed.

Every table that is read was written by paimon_py, so that all peers read the same files.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks import data
from benchmarks.children import run
from paimon_py import Catalog, Table

UPSERTS = 10
ENGINES = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {
        "merge-engine": "aggregation", "fields.a.aggregate-function": "sum", "fields.b.aggregate-function": "max",
        "fields.c.aggregate-function": "last_non_null_value", "fields.d.aggregate-function": "min",
        "fields.e.aggregate-function": "last_value",
    },
}  # fmt: skip


class Workspace:
    """A directory of inputs and tables of one scale; what is there already is used again.

    `scale` 1.0 means the row counts in the names of the workloads.
    """

    def __init__(self, root: Path, scale: float) -> None:
        self.root = root
        self.million = max(200, int(1_000_000 * scale))

    def input(self, name: str) -> list[str]:
        """Paths of Arrow files: `append`, `load-1m`, `load-5m`, `upserts` (ten of them), `small`.

        `even`: ten files of a million ascending even keys. `everywhere`, `together`: a tenth of a million keys, half of
        them even, all over those or neighbours.
        """
        tables = {
            "append": lambda: [data.narrow(np.arange(10 * self.million), 7)],
            "load-1m": lambda: [data.narrow(data.load_keys(self.million), 8)],
            "load-5m": lambda: [data.narrow(data.load_keys(5 * self.million), 9)],
            "upserts": self._upserts,
            "small": lambda: [data.narrow(np.arange(100) + 10**9, 5)],
            "even": lambda: (data.narrow(2 * np.arange(start, start + self.million), start) for start in self._parts()),
            "everywhere": lambda: [data.narrow(data.half_even(self.million // 10, 20 * self.million), 6)],
            "together": lambda: [data.narrow(np.arange(self.million // 10) + 11 * self.million, 6)],
        }
        directory = self.root / "inputs" / name
        if not directory.exists():
            unfinished = directory.with_name(f"{name}.unfinished")
            unfinished.mkdir(parents=True, exist_ok=True)
            for number, table in enumerate(tables[name]()):
                data.store(table, unfinished / f"{number}.arrow")
            unfinished.rename(directory)
        return [str(path) for path in sorted(directory.iterdir())]

    def merged(self, engine: str = "deduplicate") -> Path:
        """One load and ten upserts, not compacted: eleven runs in one bucket.

        `engine`: `deduplicate`; `partial-update`, where upserts bring half of the columns; or `aggregation`.
        """

        def fill(table: Table) -> None:
            for number, source in enumerate([*self.input("load-1m"), *self.input("upserts")]):
                rows = pa.ipc.open_file(pa.memory_map(source)).read_all()
                if engine == "partial-update" and number:
                    rows = data.without(rows, ("a", "d", "e") if number % 2 else ("b", "c"))
                table.write_arrow(rows)

        name = "merged" if engine == "deduplicate" else f"merged-{engine}"
        return self._table(name, fill, options=ENGINES[engine])

    def settled(self, producer: str) -> Path:
        """One load, compacted, and ten upserts that are not; what they change is told by no changelog yet."""

        def fill(table: Table) -> None:
            for number, source in enumerate([*self.input("load-1m"), *self.input("upserts")]):
                table.write_arrow(pa.ipc.open_file(pa.memory_map(source)).read_all())
                if not number:
                    table.compact(full=True)

        return self._table(f"settled-{producer}", fill, options={"changelog-producer": producer})

    def runs(self, count: int, rows: int) -> Path:
        """`count` runs of `rows` wide rows over the same keys, half of which occur in the next run again."""

        def fill(table: Table) -> None:
            for number in range(count):
                keys = data.scattered(np.arange(rows) + number * rows // 2, count * rows)
                table.write_arrow(data.wide(keys, number))

        return self._table(f"runs-{count}-{rows}", fill, schema=data.wide(np.arange(1), 1).schema)

    def appended(self, *, marks: bool = False, keyed: bool = False) -> Path:
        """Ten files of a million rows, without a key, or with one in one bucket; `marks`: with deletion vectors."""

        def fill(table: Table) -> None:
            for source in self.input("even"):
                table.write_arrow(pa.ipc.open_file(pa.memory_map(source)).read_all())

        options = {"deletion-vectors.enabled": "true"} if marks else {}
        name = f"appended{'-marks' if marks else ''}{'-keyed' if keyed else ''}"
        return self._table(name, fill, keyed=keyed, options=options)

    def delta(self) -> Path:
        """The rows of `appended` in ten files of deltalake."""
        directory = self.root / "tables" / "delta"
        if not directory.exists():
            unfinished = directory.with_name("delta.unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            run("delta", "write", {"table": str(unfinished), "inputs": self.input("even")})
            unfinished.rename(directory)
        return directory

    def commits(self, count: int) -> Path:
        """`count` commits of 100 rows in one bucket, keys ascending with the commits."""

        def fill(table: Table) -> None:
            for number in range(count):
                table.write_arrow(data.narrow(np.arange(100) + 100 * number, number))

        return self._table(f"commits-{count}", fill)

    def wide(self, rows: int) -> Path:
        """`rows` wide rows: 80 % loaded in one commit, ten upserts of 2 % each, half of them on old keys."""

        def fill(table: Table) -> None:
            loaded, share = rows * 8 // 10, rows * 2 // 100
            with table.writer() as writer:
                for start in range(0, loaded, 500_000):
                    writer.write_arrow(data.wide(np.arange(start, min(start + 500_000, loaded)), start))
                table.commit(writer.changes())
            for number in range(UPSERTS):
                keys = data.upsert_keys(share, loaded, number)
                table.write_arrow(data.wide(keys, 1000 + number))

        return self._table(f"wide-{rows}", fill, schema=data.wide(np.arange(1), 1).schema)

    def told(self, rows: int) -> Path:
        """`rows` wide rows in scattered order, loaded in one commit, with the changelog of the input."""

        def fill(table: Table) -> None:
            with table.writer() as writer:
                for start in range(0, rows, 500_000):
                    numbers = np.arange(start, min(start + 500_000, rows))
                    writer.write_arrow(data.wide(data.scattered(numbers, rows), start))
                table.commit(writer.changes())

        options = {"changelog-producer": "input", "write-only": "true"}
        return self._table(f"told-{rows}", fill, schema=data.wide(np.arange(1), 1).schema, options=options)

    def _parts(self) -> range:
        return range(0, 10 * self.million, self.million)

    def _upserts(self) -> list[pa.Table]:
        tenth = self.million // 10
        keys = [data.upsert_keys(tenth, self.million, number) for number in range(UPSERTS)]
        return [data.narrow(key, 20 + number) for number, key in enumerate(keys)]

    def _table(
        self,
        name: str,
        fill: Callable[[Table], None],
        schema: pa.Schema = data.SCHEMA,
        options: Mapping[str, str] | None = None,
        keyed: bool = True,
    ) -> Path:
        directory = self.root / "tables" / name
        if not directory.exists():
            unfinished = directory.with_name(f"{name}.unfinished")
            fill(Table.open(str(fresh_table(unfinished, schema, keyed=keyed, options=options))))
            unfinished.rename(directory)
        return table_path(directory)


def table_path(warehouse: Path) -> Path:
    """Where the table `db.t` of a warehouse lies."""
    return warehouse / "db.db" / "t"


def files_by_age(table: Path) -> list[str]:
    """The live files of a table's only bucket, oldest first."""
    snapshot = Table.open(str(table)).snapshot()
    entries = [entry for manifest in snapshot.manifests() for entry in manifest.entries()]
    entries.sort(key=lambda entry: entry.file.min_sequence)
    return [str(table / "bucket-0" / entry.file.name) for entry in entries]


def fresh_table(
    warehouse: Path, schema: pa.Schema, *, keyed: bool, options: Mapping[str, str] | None = None,
    partition_by: Sequence[str] = (),
) -> Path:  # fmt: skip
    """An empty table `db.t` in a warehouse of its own: one bucket and key `k`, or no key and no buckets."""
    shutil.rmtree(warehouse, ignore_errors=True)
    catalog = Catalog.open(str(warehouse))
    catalog.create_database("db")
    base = {"bucket": "1", "write-only": "true"} if keyed else {"bucket": "-1"}
    given = {**base, **(options or {})}
    catalog.create_table("db.t", schema, primary_key=["k"] if keyed else [], partition_by=partition_by, options=given)
    return table_path(warehouse)
