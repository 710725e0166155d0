"""Tables with data evolution, filled and changed by Java and by us in turns: both see the same values of the same rows."""

from __future__ import annotations

import random

import golden
import pyarrow as pa
import pytest
from filters import predicate
from followed import check_followed
from pair import Kind, Pair

from paimon_py import AddColumn, RenameColumn

pytestmark = pytest.mark.java

COLUMNS = [["id", "INT"], ["v", "STRING"], ["n", "BIGINT"], ["p", "INT NOT NULL"]]
EVOLVES = {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true", "deletion-vectors.enabled": "true", "compaction.min.file-num": "2"}
KINDS = {
    "parquet": Kind(COLUMNS, options=EVOLVES),
    "orc in parts": Kind(COLUMNS, partition_by=["p"], options={**EVOLVES, "file.format": "orc"}),
    "avro": Kind(COLUMNS, options={**EVOLVES, "file.format": "avro"}),
    "64-bit vectors in parts": Kind(COLUMNS, partition_by=["p"], options={**EVOLVES, "deletion-vectors.bitmap64": "true"}),
    "small files": Kind(COLUMNS, options={**EVOLVES, "target-file-size": "10 b", "source.split.open-file-cost": "1 b", "metadata.stats-mode": "none"}),
}


class Life:
    """Random steps on one table; a dict knows the values of each row id."""

    def __init__(self, pair: Pair, kind: Kind, rng: random.Random) -> None:
        self.pair, self.rng = pair, rng
        self.rows: dict[int, dict] = {}
        self.next_id = 0
        self.names = [name for name, _ in kind.columns]
        pair.create(kind, rng.choice("oj"))

    def check(self) -> None:
        table = self.pair.table()
        shown = [*self.names, "_ROW_ID", "_SEQUENCE_NUMBER"]
        found = table.scan(columns=shown).to_arrow().to_pylist()
        ours = sorted((tuple(row.values()) for row in found), key=repr)
        theirs = sorted((tuple(row[name] for name in shown) for row in self.pair.step("read", rowTracking=True)), key=repr)
        assert ours == theirs
        assert {row.pop("_ROW_ID"): {name: row[name] for name in self.names} for row in found} == self.rows
        assert table.scan().count() == len(self.rows)
        assert sum(entry.added_rows - entry.deleted_rows for entry in table.history()) == len(self.rows)
        one = self.rng.choice(self.names)
        narrow = sorted((row["_ROW_ID"], row["_SEQUENCE_NUMBER"], row[one]) for row in table.scan(columns=["_ROW_ID", "_SEQUENCE_NUMBER", one]).to_arrow().to_pylist() if row[one] is not None)
        read = self.pair.step("read", rowTracking=True, projection=[one, "_ROW_ID", "_SEQUENCE_NUMBER"])
        assert narrow == sorted((row["_ROW_ID"], row["_SEQUENCE_NUMBER"], row[one]) for row in read if row[one] is not None)
        limit = self.rng.randrange(90)
        ids = {n for n, row in self.rows.items() if row["n"] is not None and row["n"] < limit}
        assert set(table.scan(columns=["_ROW_ID"], where=f"n < {limit}").to_arrow()["_ROW_ID"].to_pylist()) == ids

    def row(self, who: str) -> dict:
        row = {"id": self.rng.randrange(100), "v": f"{who}{self.rng.randrange(9)}", "n": self.rng.choice((None, self.rng.randrange(90))), "p": self.rng.randrange(2)}
        return {name: row.get(name) for name in self.names} | {"p": row["p"]}

    def write(self, who: str) -> None:
        rows = [self.row(who) for _ in range(self.rng.randrange(1, 6))]
        if who == "o":
            self.pair.table().write_arrow(pa.Table.from_pylist(rows, self.pair.table().scan().schema))
        else:
            self.pair.step("write", rows=rows)
        self.learn(len(rows))

    def learn(self, count: int) -> None:
        """New rows have the next ids, in an order that Java does not say."""
        found = self.pair.table().scan(columns=[*self.names, "_ROW_ID"], where=f"_ROW_ID >= {self.next_id}").to_arrow().to_pylist()
        new = {row.pop("_ROW_ID"): row for row in found}
        assert sorted(new) == list(range(self.next_id, self.next_id + count))
        self.rows |= new
        self.next_id += count

    def columns(self) -> list[str]:
        free = [name for name in self.names if name not in ("id", "p")]
        return self.rng.sample(free, self.rng.randrange(1, len(free) + 1))

    def update(self, who: str) -> None:
        """Some columns of some rows; Java writes them for all rows of a file."""
        columns = self.columns()
        if who == "o":
            ids = self.rng.sample(sorted(self.rows), min(3, len(self.rows)))
            new = {n: {name: self.row("u")[name] for name in columns} for n in ids}
            if self.rng.random() < 0.5:
                data = [{"_ROW_ID": n, **values} for n, values in new.items()]
                schema = self.pair.table().scan().schema
                fields = [pa.field("_ROW_ID", pa.int64()), *(schema.field(name) for name in columns)]
                self.pair.table().update_rows(pa.Table.from_pylist(data, pa.schema(fields)))
            else:
                new = dict.fromkeys(ids, new[ids[0]])
                self.pair.table().update(f"_ROW_ID in ({', '.join(map(str, ids))})", new[ids[0]])
        else:
            files = self.pair.table().system("files").scan().to_arrow().to_pylist()
            file = self.rng.choice(files)
            first = file["first_row_id"]
            new = {n: {name: self.row("w")[name] for name in columns} for n in range(first, first + file["record_count"])}
            where = {}
            if file["partition"] and file["partition"] != "{}":
                where = {"p": int(file["partition"].strip("{}").rpartition("=")[2])}
            self.pair.step("write", rows=[{**values, **where} for values in new.values()], writeColumns=columns, firstRowId=first)
        for n, values in new.items():
            if n in self.rows:
                self.rows[n] = {**self.rows[n], **values}

    def delete(self, who: str) -> None:
        gone = self.rng.sample(sorted(self.rows), min(2, len(self.rows)))
        if who == "o":
            self.pair.table().delete(f"_ROW_ID in ({', '.join(map(str, gone))})")
        else:
            self.pair.step("deleteRows", rowIds=gone)
        for n in gone:
            del self.rows[n]

    def upsert(self) -> None:
        ids = [row["id"] for row in self.rows.values()]
        known = [one for one in set(ids) if ids.count(one) == 1][:2]
        fresh = next(number for number in range(200, 10_000) if number not in ids)
        data = pa.Table.from_pylist([{"id": one, "n": 5, "p": 1} for one in (*known, fresh)], pa.schema([("id", pa.int32()), ("n", pa.int64()), ("p", pa.int32())]))
        self.pair.table().merge(data, on=["id"], when_matched_update={"n": "source.n"}, when_not_matched_insert={"id": "source.id", "n": "source.n", "p": "source.p"})
        self.rows |= {n: {**row, "n": 5} for n, row in self.rows.items() if row["id"] in known}
        self.learn(1)

    def alter(self) -> None:
        """A column comes, or gets another name."""
        added = [name for name in self.names if name.startswith("x")]
        if added and self.rng.random() < 0.5:
            old, new = added[0], f"x{self.rng.randrange(10_000)}"
            self.pair.table().alter(RenameColumn(old, new))
        else:
            old, new = None, f"x{self.rng.randrange(10_000)}"
            self.pair.table().alter(AddColumn(new, "STRING"))
        self.names = [new if name == old else name for name in self.names] + ([new] if old is None else [])
        self.rows = {n: {(new if name == old else name): value for name, value in row.items()} | ({new: None} if old is None else {}) for n, row in self.rows.items()}

    def step(self) -> None:
        who, verb = self.rng.choice("oj"), self.rng.choice(("write", "update", "update", "update", "delete", "upsert", "compact", "alter"))
        if verb == "write" or not self.rows:
            self.write(who)
        elif verb == "update":
            self.update(who)
        elif verb == "delete":
            self.delete(who)
        elif verb == "upsert":
            self.upsert()
        elif verb == "alter":
            self.alter()
        elif who == "o":
            self.pair.table().compact(full=True)
        else:
            self.pair.step("compact", full=True)


def play(java, tmp_path, name: str, seed: int) -> None:
    rng = random.Random(f"{name} {seed}")
    life = Life(Pair(java("2.0.0"), tmp_path), KINDS[name], rng)
    life.write("o")
    life.write("j")
    for _ in range(10):
        life.step()
        life.check()
    check_followed(life.pair.table())


@pytest.mark.parametrize("name", KINDS)
def test_both_see_the_same_rows_whoever_writes_their_columns(java, tmp_path, name):
    play(java, tmp_path, name, 0)


THEIRS = {
    "the same column": {"op": "write", "rows": [{"n": 70 + n} for n in range(3)], "writeColumns": ["n"], "firstRowId": 0},
    "another column": {"op": "write", "rows": [{"v": f"w{n}"} for n in range(3)], "writeColumns": ["v"], "firstRowId": 0},
    "a compaction": {"op": "compact", "full": True},
    "a delete": {"op": "deleteRows", "rowIds": [0]},
    "new rows": {"op": "write", "rows": [{"id": 1, "v": "new", "n": 9, "p": 0}]},
}


@pytest.mark.parametrize("name", THEIRS)
def test_we_see_what_java_did_before_we_commit(java, tmp_path, name):
    """Our values are made when Java has not committed yet, and made again when it has."""
    pair = Pair(java("2.0.0"), tmp_path)
    pair.create(KINDS["parquet"], "j")
    pair.step("write", rows=[{"id": n, "v": f"v{n}", "n": n, "p": 0} for n in range(3)])
    pair.step("write", rows=[{"id": n, "v": f"v{n}", "n": n, "p": 0} for n in range(3, 5)])
    done = []

    def values(old):
        if not done:
            done.append(pair.steps([THEIRS[name]]))
        return pa.array([n + 100 for n in old["n"].to_pylist()], pa.int64())

    assert pair.table().update("id = 1", {"n": values}).rounds == 2
    found = sorted(pair.table().to_arrow().to_pylist(), key=repr)
    theirs = sorted(({key: row[key] for key in ("id", "v", "n", "p")} for row in pair.step("read")), key=repr)
    assert found == theirs and len(found) == 5 + (name == "new rows") - (name == "a delete")
    (row, *more) = [(row["v"], row["n"]) for row in found if row["id"] == 1]
    if name == "new rows":
        assert sorted([row, *more]) == [("new", 109), ("v1", 101)]
    else:
        assert row == ("w1" if name == "another column" else "v1", 171 if name == "the same column" else 101)


FILTERS = (None, ["=", "v", "new"], ["=", "v", "v3"], ["=", "n", 50], ["and", ["=", "v", "up"], ["=", "n", 4]], ["isNull", "n"])


@pytest.mark.parametrize("version", ["2.0.0", "1.4.2"])
@pytest.mark.parametrize("indexes", [{}, {"file-index.bitmap.columns": "v,n", "file-index.in-manifest-threshold": "0 b"}, {"file-index.bloom-filter.columns": "v,n"}], ids=str)
def test_java_finds_the_newest_values_of_our_columns(java, tmp_path, version, indexes):
    pair = Pair(java(version), tmp_path)
    options = {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true", **indexes}
    pair.create(Kind(COLUMNS, partition_by=["p"], options=options), "o")
    table = pair.table()
    table.write_arrow(pa.Table.from_pylist([{"id": n, "v": f"v{n}", "n": n, "p": n % 2} for n in range(10)], table.scan().schema))
    table.update("id = 3", {"v": "new"})
    table.update_rows(pa.table({"_ROW_ID": [2, 7], "n": [50, None]}))
    table.upsert([{"id": 4, "v": "up"}], on=["id"])
    for tree in FILTERS:
        asked = {} if tree is None else {"filter": tree, "executeFilter": True}
        theirs = [{name: row[name] for name, _ in COLUMNS} for row in pair.step("read", **asked)]
        where = None if tree is None else predicate(tree, {name: golden.parse_type(kind) for name, kind in COLUMNS})
        assert sorted(table.scan(where=where).to_arrow().to_pylist(), key=str) == sorted(theirs, key=str), tree


@pytest.mark.full
@pytest.mark.parametrize("seed", range(1, 26))
@pytest.mark.parametrize("name", KINDS)
def test_both_see_the_same_rows_in_many_lives(java, tmp_path, name, seed):
    play(java, tmp_path, name, seed)
