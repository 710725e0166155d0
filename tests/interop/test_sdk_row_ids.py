"""Random lives of tables with row tracking, and with columns in several files, that pypaimon 2.1 and we change in turns.

Known mistakes of pypaimon 2.1.0, which the lives go around:

- It returns NULL as the id of rows in files that store their ids (after our updates and compactions, without data evolution).
- It finds columns by name: values that were written before a rename are NULL.
- It leaves out rows of files that have none of the columns that are read.
- A condition that no row of a file matches, and the column of ids, are an IndexError (without data evolution).
- It cannot read several files of vectors beside one file of rows, which a compaction leaves.
- It cannot read NULL vectors of Parquet files.
- It cannot write NULL in an array of an Avro file.
"""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pyarrow as pa
import pytest
from environments import SDK, python_with
from followed import check_followed
from sdk_turns import Player

from paimon_py import AddColumn, Catalog, RenameColumn, Schema, Table
from paimon_py.codec.arrow_types import to_arrow_schema

pytest.importorskip("vortex", reason="needs paimon-py[vortex]")
pytest.importorskip("lance", reason="needs paimon-py[lance]")

pytestmark = [pytest.mark.full, pytest.mark.timeout(3600)]

RELEASE = "pypaimon-2.1.0"
LIVES = 30
"""For each kind of table."""

COLUMNS = [("id", "INT"), ("v", "STRING"), ("n", "BIGINT"), ("a", "ARRAY<INT>"), ("p", "INT")]
TRACKED = {"bucket": "-1", "row-tracking.enabled": "true"}
EVOLVES = {**TRACKED, "data-evolution.enabled": "true", "deletion-vectors.enabled": "true", "compaction.min.file-num": "2"}


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of table."""

    options: dict[str, str]
    parts: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = tuple(COLUMNS)

    @property
    def evolves(self) -> bool:
        return "data-evolution.enabled" in self.options


KINDS = {
    "parquet": Kind(EVOLVES),
    "orc in parts": Kind({**EVOLVES, "file.format": "orc"}, ("p",)),
    "avro": Kind({**EVOLVES, "file.format": "avro"}),
    "small files": Kind({**EVOLVES, "target-file-size": "10 b", "source.split.open-file-cost": "1 b", "metadata.stats-mode": "none"}),
    "blobs": Kind(EVOLVES, columns=(*COLUMNS, ("b", "BLOB"))),
    "vectors apart": Kind({**EVOLVES, "vector.file.format": "parquet"}, columns=(*COLUMNS, ("e", "VECTOR<FLOAT, 3>"))),
    "vortex": Kind({**EVOLVES, "file.format": "vortex", "vector.file.format": "vortex"}, columns=(*COLUMNS, ("e", "VECTOR<FLOAT, 3>"))),
    "lance in parts": Kind({**EVOLVES, "file.format": "lance", "vector.file.format": "lance"}, ("p",), (*COLUMNS, ("e", "VECTOR<FLOAT, 3>"))),
    "tracked": Kind(TRACKED),
    "tracked in parts with dead rows": Kind({**TRACKED, "deletion-vectors.enabled": "true"}, ("p",)),
}


class Life:
    """Random steps on one table; a dict knows the values of each row id."""

    def __init__(self, player: Player, warehouse: Path, kind: Kind, name: str, rng: random.Random) -> None:
        self.player, self.kind, self.rng, self.name = player, kind, rng, f"db.{name}"
        self.path = f"{warehouse}/db.db/{name}"
        self.rows: dict[int, dict] = {}
        self.past: dict[int, dict[int, dict]] = {}
        self.names = [column for column, _ in kind.columns]
        self.next_id = 0
        self.renamed: set[str] = set()
        self.ids_stored = False
        self.holed = [1, None] if kind.options.get("file.format") != "avro" else [1]
        schema = Schema(list(kind.columns))
        arrow = to_arrow_schema(schema.fields)
        if rng.random() < 0.5:
            Catalog.open(str(warehouse)).create_table(self.name, schema, partition_by=kind.parts, options=kind.options)
        else:
            player.step("create", self.name, arrow.empty_table(), keys=[], parts=list(kind.parts), options=kind.options)

    def table(self) -> Table:
        return Table.open(self.path)

    def check(self) -> None:
        """We read what the model holds, and so does pypaimon, in all columns and in some, with and without a condition."""
        table = self.table()
        found = table.scan(columns=[*self.names, "_ROW_ID"]).to_arrow().to_pylist()
        assert {row.pop("_ROW_ID"): row for row in found} == self.rows
        assert table.scan().count() == len(self.rows)
        latest = table.snapshot()
        if latest is not None:
            self.past[latest.id] = dict(self.rows)
        some = self.rng.sample(self.names, self.rng.randrange(1, len(self.names)))
        limit = self.rng.randrange(90)
        matching = {n: row for n, row in self.rows.items() if row["n"] is not None and row["n"] < limit}
        ours = table.scan(columns=[*some, "_ROW_ID"], where=f"n < {limit}").to_arrow().to_pylist()
        assert {row.pop("_ROW_ID"): row for row in ours} == {n: {name: row[name] for name in some} for n, row in matching.items()}
        past = self.rng.choice(sorted(self.past))
        ids = self.past[past]
        seen = table.scan(columns=["_ROW_ID"], snapshot_id=past).to_arrow()["_ROW_ID"].to_pylist()
        assert sorted(seen) == sorted(ids)
        self.check_theirs(some, limit, matching)

    def check_theirs(self, some: list[str], limit: int, matching: dict[int, dict]) -> None:
        known = [name for name in self.names if name not in self.renamed]
        with_ids = [] if self.ids_stored else ["_ROW_ID"]
        self.same(known, with_ids, self.rows)
        narrow = [name for name in some if name in known]
        if narrow and (not self.kind.evolves or all(name in COLUMN_NAMES for name in narrow)):
            self.same(narrow, with_ids, self.rows)
        self.same(known, with_ids if self.kind.evolves else [], matching, less=["n", limit])

    def same(self, names: list[str], ids: list[str], rows: dict[int, dict], **given) -> None:
        got = self.player.step("read", self.name, given={"columns": [*names, *ids], **given})
        theirs = [] if got is None or not got.num_columns else got.to_pylist()
        shown = [str([row[name] for name in (*names, *ids)]) for row in theirs]
        wanted = [str([row[name] for name in names] + [n] * len(ids)) for n, row in rows.items()]
        assert sorted(shown) == sorted(wanted), (names, given)

    def row(self, who: str) -> dict:
        rng = self.rng
        row = {
            "id": rng.randrange(100), "v": f"{who}{rng.randrange(9)}", "n": rng.choice((None, rng.randrange(90))),
            "a": rng.choice((None, [], self.holed, [rng.randrange(9)])), "p": rng.randrange(2),
            "b": rng.choice((None, b"", bytes([rng.randrange(256)]) * 5)), "e": [float(rng.randrange(9)), 0.5, -1.0],
        }  # fmt: skip
        return {name: row.get(name) for name in self.names}

    def arrow(self, rows: list[dict], names: list[str]) -> pa.Table:
        schema = self.table().scan().schema
        fields = [pa.field("_ROW_ID", pa.int64(), nullable=False) if name == "_ROW_ID" else schema.field(name) for name in names]
        return pa.Table.from_pylist(rows, pa.schema(fields))

    def write(self, who: str) -> None:
        rows = [self.row(who) for _ in range(self.rng.randrange(1, 6))]
        data = self.arrow(rows, self.names)
        if who == "o":
            self.table().write_arrow(data)
        else:
            self.player.step("write", self.name, data)
        self.learn(rows)

    def learn(self, rows: list[dict]) -> None:
        """New rows have the next ids; the order of partitions is open."""
        found = self.table().scan(columns=[*self.names, "_ROW_ID"], where=f"_ROW_ID >= {self.next_id}").to_arrow().to_pylist()
        new = {row.pop("_ROW_ID"): row for row in found}
        assert sorted(new) == list(range(self.next_id, self.next_id + len(rows)))
        assert sorted(map(str, new.values())) == sorted(map(str, rows))
        self.rows |= new
        self.next_id += len(rows)

    def update(self, who: str) -> None:
        """Some columns of some rows."""
        free = [name for name in self.names if name not in ("id", "p")]
        columns = self.rng.sample(free, self.rng.randrange(1, len(free) + 1))
        ids = self.rng.sample(sorted(self.rows), min(3, len(self.rows)))
        new = {n: {name: self.row("u")[name] for name in columns} for n in ids}
        if self.kind.evolves and self.rng.random() < 0.6:
            data = self.arrow([{"_ROW_ID": n, **values} for n, values in new.items()], ["_ROW_ID", *columns])
            if who == "o":
                self.table().update_rows(data)
            else:
                self.player.step("change", self.name, data, given={"how": "update"})
        else:
            number = self.rows[ids[0]]["id"]
            new = {n: new[ids[0]] for n, row in self.rows.items() if row["id"] == number}
            if who == "o" or not self.kind.evolves:
                self.table().update(f"id = {number}", new[ids[0]])
                self.ids_stored |= not self.kind.evolves
            else:
                given = {"how": "update_where", "column": "id", "value": number}
                self.player.step("change", self.name, self.arrow([new[ids[0]]], columns), given=given)
        self.rows |= {n: {**self.rows[n], **values} for n, values in new.items()}

    def delete(self, who: str) -> None:
        gone = self.rng.sample(sorted(self.rows), min(2, len(self.rows)))
        if who == "o" or not self.kind.evolves:
            self.table().delete(f"_ROW_ID in ({', '.join(map(str, gone))})")
            self.ids_stored |= not self.kind.evolves and "deletion-vectors.enabled" not in self.kind.options
        else:
            self.player.step("change", self.name, pa.table({"_ROW_ID": pa.array(gone, pa.int64())}), given={"how": "delete"})
        for n in gone:
            del self.rows[n]

    def upsert(self, who: str) -> None:
        ids = [row["id"] for row in self.rows.values()]
        known = [one for one in sorted(set(ids)) if ids.count(one) == 1 and not self.kind.parts][:2]
        fresh = next(number for number in range(200, 10_000) if number not in ids)
        data = self.arrow([{**self.row("k"), "id": one} for one in (*known, fresh)], self.names)
        rows = {row["id"]: row for row in data.to_pylist()}
        if who == "o" or not self.kind.evolves:
            self.table().upsert(data, on=[*self.kind.parts, "id"])
            self.ids_stored |= not self.kind.evolves
        else:
            self.player.step("change", self.name, data, given={"how": "upsert", "keys": [*self.kind.parts, "id"]})
        self.rows |= {n: rows[row["id"]] for n, row in self.rows.items() if row["id"] in known}
        self.learn([rows[fresh]])

    def alter(self, who: str) -> None:
        """A column comes, or gets another name."""
        added = [name for name in self.names if name.startswith("x")]
        new = f"x{self.rng.randrange(10_000)}"
        old = added[0] if added and self.rng.random() < 0.4 else None
        if who == "o":
            self.table().alter(AddColumn(new, "STRING") if old is None else RenameColumn(old, new))
        else:
            given = {"how": "add", "name": new} if old is None else {"how": "rename", "name": old, "new": new}
            self.player.step("alter", self.name, given=given)
        self.names = [new if name == old else name for name in self.names] + ([new] if old is None else [])
        self.renamed |= {new} if old is not None else set()

        def altered(row: dict) -> dict:
            return {name: row[old if name == new and old is not None else name] if name != new or old else None for name in self.names}

        self.rows = {n: altered(row) for n, row in self.rows.items()}

    def step(self) -> None:
        who = self.rng.choice("ot")
        verb = self.rng.choice(("write", "update", "update", "update", "delete", "upsert", "compact", "alter"))
        if verb == "compact" and self.rows and "e" not in self.names:
            self.table().compact(full=True)
            self.ids_stored |= not self.kind.evolves
        elif verb in ("write", "compact") or not self.rows:
            self.write(who)
        else:
            getattr(self, verb)(who)


COLUMN_NAMES = {name for name, _ in COLUMNS} | {"b", "e"}


def play(player: Player, warehouse: Path, name: str, seed: int) -> None:
    life = Life(player, warehouse, KINDS[name], f"{name.replace(' ', '_')}_{seed}", random.Random(f"{name} {seed}"))
    life.write("o")
    life.write("t")
    for _ in range(10):
        life.step()
        life.check()
    check_followed(life.table())


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A player and its warehouse."""
    library, packages = SDK[RELEASE]
    packages = [f"{packages[0].replace('==', '[vortex,lance]==')}"]
    python, warehouse = python_with(tmp_path_factory.mktemp("python"), packages), tmp_path_factory.mktemp("warehouse")
    Catalog.open(str(warehouse)).create_database("db")
    player = Player(python, library, warehouse)
    yield player, warehouse
    player.close()


@pytest.mark.parametrize("name", KINDS)
def test_both_see_the_same_rows_whoever_changes_them(place, name):
    for seed in range(LIVES):
        play(*place, name, seed)
