"""Random lives of tables that one table object looks keys up in all the time, against a dict."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest

from paimon_py import AddColumn, DropColumn, RenameColumn, SetOption, Table, UpdateColumnType
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import latest_hint_path, snapshot_path
from paimon_py.spec.new_schema import Schema, TableSpec, new_table_schema
from paimon_py.storage.memory_store import MemoryStore

PATH = "/warehouse/db.db/t"
REMOVE = {
    "partial-update": "partial-update.remove-record-on-delete",
    "aggregation": "aggregation.remove-record-on-delete",
}
KINDS = {
    "deduplicate": {},
    "sequence": {"sequence.field": "n"},
    "partial-update": {"merge-engine": "partial-update", REMOVE["partial-update"]: "true"},
    "aggregation": {"merge-engine": "aggregation", REMOVE["aggregation"]: "true", "fields.n.aggregate-function": "sum"},
    "first-row": {"merge-engine": "first-row", "write-only": "false"},
    "vectors": {"deletion-vectors.enabled": "true", "write-only": "false"},
    "dynamic": {"bucket": "-1", "dynamic-bucket.target-row-num": "15"},
}
KEYS = {
    "number": {"k": ("BIGINT", [7 * k - 90 for k in range(30)])},
    "wide number": {"k": ("BIGINT", [(k - 15) * 2**58 for k in range(30)])},
    "text": {"k": ("STRING", ["", *(f"key {k}" * (k % 3 + 1) for k in range(29))])},
    "parts": {"p": ("INT", [1, 2, 3]), "k": ("STRING", list("abcdefghij"))},
    "pair": {"k": ("INT", [-1, 0, 2**31 - 1]), "j": ("SMALLINT", list(range(-5, 5)))},
    "mixed": {"k": ("DECIMAL(9, 2)", [Decimal(k).scaleb(-2) for k in (-1, 0, 7)]), "j": ("DATE", list(range(10)))},
    "double": {"k": ("DOUBLE", [-1.5, 0.0, 3.25, float("inf"), *map(float, range(4, 30))])},
}
CACHES = ["0 b", "3 kb", "12 kb", "60 kb", "256 mb"]
_DATES = pa.array(range(10), pa.int32()).cast(pa.date32()).to_pylist()


class Life:
    """A table; the rows of its latest snapshot and of those before, by key and by the first name of each column."""

    def __init__(self, kind: str, seed: int) -> None:
        self.rng = rng = random.Random(f"lookups of {kind} {seed}")
        self.kind = kind
        self.store = MemoryStore()
        keys = KEYS[rng.choice(list(KEYS))]
        self.keys = list(keys)
        self.domain = [()]
        for text, values in keys.values():
            self.domain = [(*key, value) for key in self.domain for value in (_DATES if text == "DATE" else values)]
        self.names = {name: name for name in [*keys, "v", "n"]}
        options = {
            "bucket": rng.choice(["1", "1", "3"]), "write-only": rng.choice(["true", "false"]), **KINDS[kind],
            "file.format": rng.choice(["parquet", "parquet", "orc", "avro"]),
            "lookup.cache-max-memory-size": rng.choice(CACHES),
        }  # fmt: skip
        fields = [*((name, f"{text} NOT NULL") for name, (text, _) in keys.items()), ("v", "STRING"), ("n", "INT")]
        parts = ("p",) if "p" in keys else ()
        spec = TableSpec(primary_keys=tuple(keys), partition_keys=parts, options=options)
        root = self._root()
        assert root.schemas.add(new_table_schema(Schema(fields), spec, time_millis=0))
        self.table = Table(root, root.schemas.latest(), "db.t")
        self.rows: dict[tuple, dict] = {}
        self.history: dict[int, dict[tuple, dict]] = {}
        self.added = 0
        self.rescaled = 0

    def _root(self) -> TableRoot:
        return TableRoot(self.store, PATH, Env(pool=SerialPool()))

    def elsewhere(self) -> Table:
        """The table in another process, or in this one."""
        root = self._root()
        latest = root.schemas.latest()
        if self.table.schema.id == latest.id and self.rng.random() < 0.3:
            return self.table
        return Table(root, latest, "db.t")

    def step(self) -> None:
        verbs = ["write"] * 5 + ["compact", "overwrite", "alter", "roll_back", "rescale", "resize"]
        getattr(self, self.rng.choice(verbs))()
        latest = self.table.snapshot()
        if latest is not None:
            self.history[latest.id] = dict(self.rows)
        for _ in range(self.rng.choice([1, 1, 2, 5])):
            self.look()

    def drawn(self, most: int) -> list[tuple]:
        return self.rng.sample(self.domain, self.rng.randrange(1, most))

    def arrow(self, rows: dict[tuple, dict], kinds: list[str] | None = None) -> pa.Table:
        schema = pa.schema(self.table.scan().schema)
        named = [
            {self.names[name]: value for name, value in {**dict(zip(self.keys, key, strict=True)), **row}.items()}
            for key, row in rows.items()
        ]
        data = pa.Table.from_pylist(named, schema)
        return data if kinds is None else data.append_column("_row_kind", pa.array(kinds, pa.string()))

    def some_rows(self) -> dict[tuple, dict]:
        rng = self.rng
        others = [name for name in self.names if name not in self.keys]
        return {
            key: {
                name: None if rng.random() < 0.2 else rng.choice("xyz") * 3 if name == "v" else rng.randrange(100)
                for name in others
            }
            for key in self.drawn(25)
        }

    def write(self) -> None:
        rows = self.some_rows()
        if self.kind in ("first-row", "sequence") or self.rng.random() < 0.4:
            self.elsewhere().write_arrow(self.arrow(rows))
            kinds = ["+I"] * len(rows)
        else:
            kinds = self.rng.choices(["+I", "+U", "-D"], k=len(rows))
            for row, kind in zip(rows.values(), kinds, strict=True):
                row.update(dict.fromkeys(row) if kind == "-D" else {})
            self.elsewhere().write_arrow(self.arrow(rows, kinds))
        for (key, row), kind in zip(rows.items(), kinds, strict=True):
            self.put(key, row, kind)

    def put(self, key: tuple, row: dict, kind: str) -> None:
        old = self.rows.get(key)
        if kind == "-D":
            self.rows.pop(key, None)
        elif old is None:
            self.rows[key] = row
        elif self.kind in ("partial-update", "aggregation"):
            new = {**old, **{name: value for name, value in row.items() if value is not None}}
            if self.kind == "aggregation" and None not in (old["n"], row["n"]):
                new["n"] = old["n"] + row["n"]
            self.rows[key] = new
        elif self.kind == "sequence":
            if (-1 if row["n"] is None else row["n"]) >= (-1 if old["n"] is None else old["n"]):
                self.rows[key] = row
        elif self.kind != "first-row":
            self.rows[key] = row

    def compact(self) -> None:
        self.elsewhere().compact(full=self.rng.random() < 0.5)

    def overwrite(self) -> None:
        rows = self.some_rows()
        where = {}
        if "p" in self.keys and self.rng.random() < 0.7:
            where = {"p": self.rng.choice([1, 2, 3])}
            rows = {key: row for key, row in rows.items() if key[0] == where["p"]}
        self.elsewhere().write_arrow(self.arrow(rows), overwrite=where)
        kept = {key: row for key, row in self.rows.items() if where and key[0] != where["p"]}
        self.rows = {**kept, **rows}

    def alter(self) -> None:
        choice = self.rng.choice(["add", "drop", "rename", "rename key", "widen"])
        if choice == "add":
            self.added += 1
            self.names[f"x{self.added}"] = f"x{self.added}"
            self.table.alter(AddColumn(f"x{self.added}", "BIGINT"))
        elif choice == "drop" and f"x{self.added}" in self.names:
            self.table.alter(DropColumn(self.names.pop(f"x{self.added}")))
        elif choice == "rename" or (choice == "rename key" and self.keys[-1] != "p"):
            name = "v" if choice == "rename" else self.keys[-1]
            new = f"{name}_{self.rng.randrange(10**6)}"
            self.table.alter(RenameColumn(self.names[name], new))
            self.names[name] = new
        elif choice == "widen" and self.table.schema.field("n").type.root.name == "INT":
            self.table.alter(UpdateColumnType("n", "BIGINT"))

    def roll_back(self) -> None:
        """As Java does it: newer snapshots are gone, and their numbers are given anew."""
        known = [number for number in self.history if number >= self.rescaled]
        if not known:
            return
        to = self.rng.choice(known[-4:])
        for number in self._root().snapshots.ids():
            if number > to:
                self.store.delete(snapshot_path(PATH, number))
                self.history.pop(number, None)
        self.store.put(latest_hint_path(PATH), str(to).encode())
        self.rows = dict(self.history[to])
        if self.rng.random() < 0.7:
            self.write()

    def rescale(self) -> None:
        if self.kind != "dynamic" and self.history:
            self.elsewhere().rescale(self.rng.choice([1, 2, 4]))
            self.rescaled = self.table.snapshot().id

    def resize(self) -> None:
        """The same cache with another limit."""
        self.table.alter(SetOption("lookup.cache-max-memory-size", self.rng.choice(CACHES)))

    def look(self) -> None:
        """One lookup: some keys or nearly all, some of them twice, some columns."""
        rng = self.rng
        keys = self.drawn(rng.choice([2, 5, 29]))
        keys += rng.choices(keys, k=rng.randrange(3))
        names = None if rng.random() < 0.5 else rng.sample(list(self.names), rng.randrange(1, len(self.names)))
        asked = [{self.names[name]: part for name, part in zip(self.keys, key, strict=True)} for key in keys]
        columns = None if names is None else [self.names[name] for name in names]
        filled = rng.random() < 0.5
        found = self.table.lookup(asked, columns=columns, missing="null" if filled else "drop")
        expected = []
        for key in keys:
            if filled or key in self.rows:
                row = {**dict(zip(self.keys, key, strict=True)), **self.rows.get(key, {})}
                expected.append({self.names[name]: row.get(name) for name in names or self.names})
        assert found.to_pylist() == expected
        frames = self.table._lookups._frames
        assert frames is None or frames.nbytes <= frames.max_bytes


def live(kind: str, seed: int, steps: int) -> None:
    life = Life(kind, seed)
    for number in range(steps):
        try:
            life.step()
        except Exception as error:
            raise AssertionError(f"kind {kind!r}, seed {seed}, step {number}: {error!r}") from error


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_lives_answers_lookups_as_a_dict_does(kind):
    for seed in range(2):
        live(kind, seed, 12)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_lives_long_answers_lookups_as_a_dict_does(kind):
    for seed in range(2, 42):
        live(kind, seed, 40)
