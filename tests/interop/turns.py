"""Java and we change the tables of one catalog in turns; after every turn both see the same tables and rows."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa

from paimon_py import AddColumn, Catalog, SetOption

COLUMNS = [["k", "BIGINT NOT NULL"], ["v", "STRING"]]
SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.string())])


class Turns:
    """One catalog, two who change it. `opened` opens it anew for us, `options` open it for Java."""

    def __init__(self, java, warehouse: str, options: dict[str, str], opened: Callable[[], Catalog], seed: int) -> None:
        self.java, self.warehouse, self.options, self.opened = java, str(warehouse), options, opened
        self.dice = random.Random(seed)
        self.rows: dict[str, dict[int, str]] = {}
        self.wide: set[str] = set()
        self.keys = 0

    def step(self, **fields):
        return self.java.run(self.warehouse, [fields], catalog_options=self.options)[0]["result"]

    def take(self, count: int) -> None:
        for number in range(count):
            by = "oj"[number % 2] if number < 4 else self.dice.choice("oj")
            verb = "create" if not self.rows else self.dice.choice(["create", "write", "write", "write", "alter", "drop"])
            getattr(self, f"_{verb}")(by)
            self.check()

    def check(self) -> None:
        """Both see the same tables, columns and rows."""
        catalog = self.opened()
        assert catalog.tables("db") == sorted(name.partition(".")[2] for name in self.rows)
        for name, want in self.rows.items():
            ours = catalog.table(name).scan(columns=["k", "v"]).to_arrow().sort_by("k").to_pylist()
            theirs = sorted(self.step(op="read", table=name, projection=["k", "v"]), key=lambda row: row["k"])
            told = [{"k": key, "v": want[key]} for key in sorted(want)]
            assert ours == told, f"we read other rows of {name}"
            assert [{"k": row["k"], "v": row["v"]} for row in theirs] == told, f"Java reads other rows of {name}"
            assert len(catalog.table(name).schema.fields) == (3 if name in self.wide else 2)

    def _create(self, by: str) -> None:
        name = f"db.t{len(self.rows)}_{self.dice.randrange(1000)}"
        if name in self.rows:
            return
        options = {"bucket": "2"}
        if by == "o":
            self.opened().create_table(name, SCHEMA, primary_key=["k"], options=options)
        else:
            self.step(op="create", table=name, columns=COLUMNS, primaryKeys=["k"], tableOptions=options)
        self.rows[name] = {}

    def _write(self, by: str) -> None:
        name = self.dice.choice(sorted(self.rows))
        piece = {self.dice.randrange(20): f"{by}{self.keys + n}" for n in range(5)}
        self.keys += 5
        rows = [{"k": key, "v": value} for key, value in piece.items()]
        if by == "o":
            given = pa.Table.from_pylist(rows, SCHEMA)
            wide = given.append_column("w", pa.nulls(len(rows), pa.int32())) if name in self.wide else given
            self.opened().table(name).write_arrow(wide)
        else:
            self.step(op="write", table=name, rows=rows)
        self.rows[name] |= piece

    def _alter(self, by: str) -> None:
        name = self.dice.choice(sorted(self.rows))
        if name in self.wide:
            return
        if by == "o":
            self.opened().table(name).alter(AddColumn("w", "INT"), SetOption("snapshot.num-retained.max", "50"))
        else:
            self.step(op="alter", table=name, changes=[["add", "w", "INT"]])
        self.wide.add(name)

    def _drop(self, by: str) -> None:
        if len(self.rows) < 2:
            return
        name = self.dice.choice(sorted(self.rows))
        if by == "o":
            self.opened().drop_table(name)
        else:
            self.step(op="drop", table=name)
        del self.rows[name]
        self.wide.discard(name)
