"""Tables with vectors in files of their own, filled and changed by Java and by us in turns: both see the same rows."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from pair import Kind, Pair

from paimon_py import AddColumn, UnsupportedError, col

pytestmark = pytest.mark.java

VECTORS = {"e": {"type": "VECTOR", "element": "FLOAT", "length": 2}, "w": {"type": "VECTOR", "element": "INT", "length": 1}}
COLUMNS = [["id", "INT"], ["e", VECTORS["e"]], ["n", "STRING"], ["w", VECTORS["w"]]]
EVOLVES = {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true", "deletion-vectors.enabled": "true", "compaction.min.file-num": "2"}
KINDS = {
    "parquet": Kind(COLUMNS, options={**EVOLVES, "vector.file.format": "parquet"}),
    "avro": Kind(COLUMNS, options={**EVOLVES, "vector.file.format": "avro", "file.format": "avro"}),
    "beside orc": Kind(COLUMNS, options={**EVOLVES, "vector.file.format": "parquet", "file.format": "orc"}),
    "partitioned": Kind(COLUMNS, partition_by=["n"], options={**EVOLVES, "vector.file.format": "parquet", "target-file-row-num": "3"}),
}
TYPES = {"e": pa.list_(pa.float32(), 2), "w": pa.list_(pa.int32(), 1)}


class Life:
    """Random steps on one table; a dict knows the values of each row id."""

    def __init__(self, pair: Pair, kind: Kind, rng: random.Random) -> None:
        self.pair, self.rng, self.kind = pair, rng, kind
        self.rows: dict[int, dict] = {}
        self.extra = 0
        pair.create(kind, "j")

    def value(self, name):
        count = 2 if name == "e" else 1
        return self.rng.choice([None, *([[self.rng.randrange(9) * (1.0 if count == 2 else 1) for _ in range(count)]] * 3)])

    def row(self):
        return {"id": self.rng.randrange(100), "e": self.value("e"), "n": self.rng.choice(["x", "y"]), "w": self.value("w")}

    def seen(self):
        names = [name for name, _ in COLUMNS] + ["_ROW_ID"]
        return {row.pop("_ROW_ID"): row for row in self.pair.table().scan(columns=names).to_arrow().to_pylist()}

    def write(self):
        rows = [self.row() for _ in range(self.rng.randrange(1, 8))]
        if self.rng.random() < 0.5 and not self.extra:
            self.pair.step("write", rows=rows)
        else:
            self.pair.table().write_arrow(rows)
        before, self.rows = self.rows, self.seen()
        assert {one: row for one, row in self.rows.items() if one in before} == before
        new = [row for one, row in sorted(self.rows.items()) if one not in before]
        assert sorted(map(repr, new)) == sorted(map(repr, rows))

    def chosen(self):
        return self.rng.sample(sorted(self.rows), self.rng.randrange(len(self.rows) + 1))

    def set_vectors(self):
        ids, names = self.chosen(), self.rng.choice([["e"], ["w"], ["e", "w"]])
        if ids:
            values = {name: [self.value(name) for _ in ids] for name in names}
            columns = {name: pa.array(found, TYPES[name]) for name, found in values.items()}
            try:
                self.pair.table().update_rows(pa.table({"_ROW_ID": ids, **columns}))
            except UnsupportedError:
                assert self.extra
                return
            for place, one in enumerate(ids):
                self.rows[one] = {**self.rows[one], **{name: values[name][place] for name in names}}

    def set_id(self):
        for one in (ids := self.chosen()):
            self.rows[one] = {**self.rows[one], "id": -one}
        if ids:
            self.pair.table().update_rows(pa.table({"_ROW_ID": ids, "id": pa.array([-one for one in ids], pa.int32())}))

    def delete(self):
        for one in (ids := self.chosen()[:2]):
            del self.rows[one]
        if ids:
            self.pair.table().delete(col("_ROW_ID").isin(ids))

    def care(self):
        if self.rng.random() < 0.5 or self.extra:
            self.pair.table().compact(full=True)
        else:
            self.pair.step("compact", full=True)

    def widen(self):
        """From now on Java neither writes nor compacts: it joins rows whose vectors have several schemas, and cannot read them."""
        self.extra += 1
        self.pair.table().alter(AddColumn(f"x{self.extra}", "INT"))

    def check(self):
        assert self.seen() == self.rows
        theirs = {row["_ROW_ID"]: {name: row[name] for name, _ in COLUMNS} for row in self.pair.step("read", rowTracking=True)}
        assert theirs == self.rows

    def live(self, steps):
        for _ in range(steps):
            self.rng.choice([self.write, self.write, self.set_vectors, self.set_vectors, self.set_id, self.delete, self.care, self.widen])()
            self.check()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_vectors_in_turns(kind, seed, java, tmp_path):
    Life(Pair(java("2.0.0"), tmp_path), KINDS[kind], random.Random(f"{kind} {seed}")).live(10)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(100, 120))
def test_long_lives_of_vectors(kind, seed, java, tmp_path):
    Life(Pair(java("2.0.0"), tmp_path), KINDS[kind], random.Random(f"{kind} {seed}")).live(20)


@pytest.mark.parametrize("kind", ["parquet", "avro"])
def test_entries_are_those_of_java(kind, java, tmp_path):
    """The same rows under the same options: files of the same kinds, rows, columns and statistics, in the same order."""
    pair, found = Pair(java("2.0.0"), tmp_path), {}
    rows = [{"id": i, "e": [i, 1], "n": "x", "w": None if i % 3 else [i]} for i in range(30)]
    for who in "oj":
        pair.create(KINDS[kind], who)
        if who == "o":
            pair.table().write_arrow(rows)
        else:
            pair.step("write", rows=rows)
        root = pair.table()._root
        entries = root.manifests.live_entries(root.latest()).entries()
        if kind == "parquet":  # Java counts the NULLs of vectors in Avro files
            assert {(one.file.value_stats_columns, one.file.value_stats.null_counts) for one in entries if one.file.is_apart} == {((), ())}
        found[who] = [
            (one.file.name.partition(".")[2], one.file.row_count, one.file.write_columns, one.file.first_row_id, one.file.min_sequence, one.file.max_sequence, one.file.source, one.file.delete_row_count)
            for one in entries
        ]  # fmt: skip
        pair.step("drop")
    assert found["o"] == found["j"]
