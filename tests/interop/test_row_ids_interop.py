"""Tables that track rows, filled and changed by Java and by us in turns: ids stay, numbers are ids of snapshots."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from followed import check_followed
from pair import Kind, Pair

pytestmark = pytest.mark.java

COLUMNS = [["id", "INT"], ["v", "STRING"], ["p", "INT NOT NULL"]]
TRACKED = {"bucket": "-1", "row-tracking.enabled": "true"}
KINDS = {
    "parquet": Kind(COLUMNS, options=TRACKED),
    "orc in parts": Kind(COLUMNS, partition_by=["p"], options={**TRACKED, "file.format": "orc"}),
    "vectors": Kind(COLUMNS, options={**TRACKED, "deletion-vectors.enabled": "true"}),
    "vectors in parts": Kind(COLUMNS, partition_by=["p"], options={**TRACKED, "deletion-vectors.enabled": "true", "row-tracking.partition-group-on-commit": "false"}),
}
SHOWN = ["id", "v", "p", "_ROW_ID", "_SEQUENCE_NUMBER"]


class Life:
    """Random steps on one table; a dict knows the values of each row id."""

    def __init__(self, pair: Pair, kind: Kind, rng: random.Random) -> None:
        self.pair, self.rng = pair, rng
        self.marks = "deletion-vectors.enabled" in kind.options
        self.rows: dict[int, tuple] = {}
        self.next_id = 0
        pair.create(kind, rng.choice("oj"))

    def check(self) -> None:
        table = self.pair.table()
        ours = sorted(tuple(row.values()) for row in table.scan(columns=SHOWN).to_arrow().to_pylist())
        theirs = sorted(tuple(row[name] for name in SHOWN) for row in self.pair.step("read", rowTracking=True))
        assert ours == theirs
        assert {row[3]: row[:3] for row in ours} == self.rows and len(ours) == len(self.rows)
        assert sum(entry.added_rows - entry.deleted_rows for entry in table.history()) == len(self.rows)
        latest = table.snapshot().id if table.snapshot() else 0
        assert all(1 <= row[4] <= latest for row in ours)
        wanted = self.rng.sample(sorted(self.rows), min(3, len(self.rows)))
        assert table.scan(columns=["_ROW_ID"], where=f"_ROW_ID in ({', '.join(map(str, [*wanted, -1]))})").count() == len(wanted)

    def write(self, who: str) -> None:
        rows = [{"id": self.rng.randrange(100), "v": f"{who}{self.rng.randrange(9)}", "p": self.rng.randrange(2)} for _ in range(self.rng.randrange(1, 6))]
        if who == "o":
            self.pair.table().write_arrow(pa.Table.from_pylist(rows, self.pair.table().scan().schema))
        else:
            self.pair.step("write", rows=rows)
        self.learn(len(rows))

    def learn(self, count: int) -> None:
        """New rows have the next ids, in an order that Java does not say."""
        found = self.pair.table().scan(columns=SHOWN[:4], where=f"_ROW_ID >= {self.next_id}").to_arrow().to_pylist()
        new = {row["_ROW_ID"]: (row["id"], row["v"], row["p"]) for row in found}
        assert sorted(new) == list(range(self.next_id, self.next_id + count))
        self.rows |= new
        self.next_id += count

    def change(self, who: str) -> None:
        """Some rows get another value, one goes."""
        if not self.rows:
            return
        chosen = self.rng.sample(sorted(self.rows), min(3, len(self.rows)))
        changed, gone = chosen[1:], chosen[:1]
        if who == "o" or self.marks:  # the oracle's rewriteRows knows no deletion vectors
            if changed:
                self.pair.table().update(f"_ROW_ID in ({', '.join(map(str, changed))})", {"v": "changed"})
            self.pair.table().delete(f"_ROW_ID = {gone[0]}")
        else:
            self.pair.step("rewriteRows", set={str(number): {"v": "changed"} for number in changed}, delete=gone)
        self.rows |= {number: (self.rows[number][0], "changed", self.rows[number][2]) for number in changed}
        del self.rows[gone[0]]

    def upsert(self) -> None:
        """Rows with an id that is there once change, others come."""
        ids = [row[0] for row in self.rows.values()]
        known = [one for one in set(ids) if ids.count(one) == 1][:2]
        fresh = next(number for number in range(200, 10_000) if number not in ids)
        data = [{"id": one, "v": "upserted", "p": 1} for one in (*known, fresh)]
        self.pair.table().upsert(pa.Table.from_pylist(data, self.pair.table().scan().schema), on=["id"])
        self.rows |= {number: (row[0], "upserted", 1) for number, row in self.rows.items() if row[0] in known}
        self.learn(1)

    def step(self) -> None:
        who, verb = self.rng.choice("oj"), self.rng.choice(("write", "write", "change", "upsert", "compact"))
        if verb == "write":
            self.write(who)
        elif verb == "change":
            self.change(who)
        elif verb == "upsert":
            self.upsert()
        elif who == "o":
            self.pair.table().compact(full=True)
        else:
            self.pair.step("compact", full=True)


def play(java, tmp_path, name: str, seed: int) -> None:
    rng = random.Random(f"{name} {seed}")
    life = Life(Pair(java("2.0.0"), tmp_path), KINDS[name], rng)
    life.write("o")
    for _ in range(8):
        life.step()
        life.check()
    check_followed(life.pair.table())


@pytest.mark.parametrize("name", KINDS)
def test_both_see_the_same_ids_whoever_writes(java, tmp_path, name):
    play(java, tmp_path, name, 0)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(1, 26))
@pytest.mark.parametrize("name", KINDS)
def test_both_see_the_same_ids_in_many_lives(java, tmp_path, name, seed):
    play(java, tmp_path, name, seed)
