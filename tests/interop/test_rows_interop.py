"""Rows deleted, updated and merged by us in tables that Java reads, writes and compacts in between."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from pair import Kind, Pair

pytestmark = pytest.mark.java

COLUMNS = [["p", "INT NOT NULL"], ["k", "INT NOT NULL"], ["v", "STRING"], ["n", "BIGINT"], ["t", "TIMESTAMP(6)"]]
VECTORS = {"deletion-vectors.enabled": "true"}
BUCKETS = {"bucket": "2", "bucket-key": "k"}
KINDS = {
    "files": Kind(COLUMNS),
    "files in parts": Kind(COLUMNS, partition_by=["p"], options={"file.format": "orc"}),
    "files in buckets": Kind(COLUMNS, options=BUCKETS),
    "vectors": Kind(COLUMNS, options=VECTORS),
    "vectors of 64 bits": Kind(COLUMNS, options={**VECTORS, "deletion-vectors.bitmap64": "true"}),
    "vectors in parts": Kind(COLUMNS, partition_by=["p"], options={**VECTORS, "deletion-vector.index-file.target-size": "1 b"}),
    "vectors in buckets": Kind(COLUMNS, options={**VECTORS, **BUCKETS, "file.format": "avro"}),
    "keyed": Kind(COLUMNS, ["p", "k"], ["p"], {"bucket": "1"}),
    "keyed vectors": Kind(COLUMNS, ["p", "k"], [], {"bucket": "2", **VECTORS}),
    "keyed with a sequence": Kind(COLUMNS, ["p", "k"], [], {"bucket": "1", "sequence.field": "n"}),
    "partial update": Kind(
        COLUMNS, ["p", "k"], [],
        {"bucket": "1", "merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    ),
}  # fmt: skip
OLD = {"files": "0.9.0", "keyed": "0.9.0", "vectors": "1.4.2", "vectors in parts": "1.4.2", "vectors in buckets": "1.4.2"}


@pytest.mark.parametrize("name", ["files in parts", "vectors"])
def test_what_java_wrote_again_is_no_change_of_an_append_table(java, tmp_path, name):
    pair = Pair(java(OLD.get(name, "2.0.0")), tmp_path)
    pair.create(KINDS[name], "j")
    for number in range(14):
        pair.act(("write", [{"p": 0, "k": number, "v": "a", "n": number}]), "oj"[number % 2])
    table = pair.table()
    done = table.delete("k < 2")
    pair.step("compact", full=True)
    table = pair.table()
    assert table.snapshot().id > done.snapshot_id
    assert table.changes(done.snapshot_id, mode="diff").count() == 0
    found = [table.changes(done).to_arrow().to_pylist(), table.changes(done.before, mode="diff").to_arrow().to_pylist()]
    for rows in found:
        assert sorted((row["k"], row["_row_kind"]) for row in rows) == [(0, "-D"), (1, "-D")]


class Script:
    """Random steps of both sides on one table."""

    def __init__(self, pair: Pair, kind: Kind, rng: random.Random) -> None:
        self.pair, self.kind, self.rng = pair, kind, rng
        self.high = 100
        pair.create(kind, rng.choice("oj"))

    def rows(self, most=12) -> list[dict]:
        keys = self.rng.sample([(p, k) for p in range(2) for k in range(15)], self.rng.randrange(1, most))
        self.high += 1
        return [{"p": p, "k": k, "v": self.rng.choice("abc"), "n": self.high} for p, k in keys]

    def step(self) -> None:
        verb = self.rng.choice(["write", "write", "delete", "update", "merge", "upsert", "compact"])
        getattr(self, verb)()
        self.pair.agree()
        assert self.pair.table().scan().count() == len(self.pair.agree())

    def write(self) -> None:
        self.pair.act(("write", self.rows()), self.rng.choice("oj"))

    def compact(self) -> None:
        by = self.rng.choice("oj")
        if by == "j":
            self.pair.step("compact", full=self.rng.random() < 0.5)
        else:
            self.pair.table().compact(full=self.rng.random() < 0.5)

    def where(self) -> str:
        k = self.rng.randrange(15)
        return self.rng.choice([f"k = {k}", f"k < {k} AND p = 1", "v = 'a'", f"k IN ({k}, {k + 2}) OR v IS NULL", "p = 0"])

    def delete(self) -> None:
        self.pair.table().delete(self.where())

    def update(self) -> None:
        self.high += 1
        self.pair.table().update(self.where(), {"v": self.rng.choice(["set", "longer than before"]), "n": self.high})

    def upsert(self) -> None:
        table = self.pair.table()
        data = self.source(("p", "k", "v", "n"))
        table.upsert(data, on=None if self.kind.primary_key else ["p", "k"])

    def merge(self) -> None:
        self.pair.table().merge(
            self.source(("p", "k", "v", "n")), ["p", "k"],
            when_matched_delete="source.v = 'a'",
            when_matched_update=[("source.n > target.n AND target.v IS DISTINCT FROM source.v", True), {"n": "source.n"}],
            when_not_matched_insert=True,
            when_not_matched_by_source_update=("target.k = 3", {"v": "alone", "n": self.high}),
        )  # fmt: skip

    def source(self, names) -> pa.Table:
        types = {"p": pa.int32(), "k": pa.int32(), "v": pa.string(), "n": pa.int64()}
        return pa.Table.from_pylist(self.rows(), pa.schema([(name, types[name]) for name in names]))


def play(java, tmp_path, kind, seed, steps, version="2.0.0"):
    rng = random.Random(f"{kind}{seed}")
    script = Script(Pair(java(version), tmp_path / "w"), KINDS[kind], rng)
    for _ in range(steps):
        script.step()


@pytest.mark.parametrize("kind", KINDS)
def test_java_reads_and_continues_what_row_operations_leave(java, tmp_path, kind):
    play(java, tmp_path, kind, 1, 6)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2, 12))
@pytest.mark.parametrize("kind", KINDS)
def test_long_scripts_of_row_operations(java, tmp_path, kind, seed):
    play(java, tmp_path, kind, seed, 20)


@pytest.mark.full
@pytest.mark.parametrize(("kind", "version"), OLD.items())
def test_older_javas_read_and_continue_them(java, tmp_path, kind, version):
    play(java, tmp_path, kind, 1, 12, version)
