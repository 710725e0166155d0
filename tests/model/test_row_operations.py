"""Random deletes, updates, upserts and merges on tables of every kind, against a list of rows."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from model.plans_in_parts import PLANS
from model.table_life import ALL_LEVELS
from unit.public import new_catalog, reopened

from paimon_py import col

SCHEMA = pa.schema(
    [pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("v", pa.string()),
     ("n", pa.int32()), ("a", pa.list_(pa.int32()))]
)  # fmt: skip
VECTORS = {"deletion-vectors.enabled": "true"}
BUCKETS = {"bucket": "2", "bucket-key": "k"}
KINDS = {
    "plain": {},
    "parts": {"partition_by": ["p"]},
    "buckets": {"options": BUCKETS},
    "vectors": {"options": VECTORS},
    "vectors in parts": {"partition_by": ["p"], "options": {**VECTORS, "deletion-vectors.bitmap64": "true"}},
    "vectors in buckets": {"options": {**VECTORS, **BUCKETS, "compaction.min.file-num": "3"}},
    "orc": {"options": {"file.format": "orc", **VECTORS}},
    "columns": {"options": {"row-tracking.enabled": "true", "data-evolution.enabled": "true", **VECTORS}},
    "avro": {"options": {"file.format": "avro"}},
    "keyed": {"primary_key": ["p", "k"], "options": {"bucket": "2"}},
    "keyed in dynamic buckets": {"primary_key": ["p", "k"], "options": {"bucket": "-1", "dynamic-bucket.target-row-num": "5"}},
    "keyed in parts": {"primary_key": ["p", "k"], "partition_by": ["p"], "options": {"bucket": "1"}},
    "keyed vectors": {"primary_key": ["p", "k"], "options": {"bucket": "2", **VECTORS}},
    "keyed vectors, write-only": {"primary_key": ["p", "k"], "options": {"bucket": "1", "write-only": "true", **VECTORS}},
    "partial update": {
        "primary_key": ["p", "k"],
        "options": {"bucket": "1", "merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    },
}  # fmt: skip

CONDITIONS = [
    ("k < 5", lambda r: r["k"] < 5),
    ("n > 50", lambda r: r["n"] is not None and r["n"] > 50),
    ("n IS NULL OR v LIKE 'x%'", lambda r: r["n"] is None or (r["v"] or "").startswith("x")),
    ("p = 1 AND k BETWEEN 3 AND 12", lambda r: r["p"] == 1 and 3 <= r["k"] <= 12),
    ("p = 2", lambda r: r["p"] == 2),
    ("v = 'nobody'", lambda r: False),
    ("k IN (1, 7, 13, 19)", lambda r: r["k"] in (1, 7, 13, 19)),
    ("n > k AND NOT p = k", lambda r: r["n"] is not None and r["n"] > r["k"] != r["p"]),
]


class Life:
    """A table, and the list of rows it should hold."""

    def __init__(self, path, kind: str, seed: int) -> None:
        self.rng = random.Random(seed)
        self.table = new_catalog(path).create_table("d.t", SCHEMA, **KINDS[kind])
        self.keyed = bool(self.table.schema.primary_keys)
        self.fills = kind == "partial update"
        self.rows: list[dict] = []

    def some_rows(self, most: int) -> list[dict]:
        rng = self.rng
        keys = rng.sample([(p, k) for p in range(3) for k in range(20)], rng.randrange(1, most))

        def value():
            return {"v": rng.choice(["x", "y", "xy", ""]), "n": rng.randrange(100), "a": [rng.randrange(9)]}

        def blank(row):
            return row if self.fills else {name: None if rng.random() < 0.2 else x for name, x in row.items()}

        return [{"p": p, "k": k, **blank(value())} for p, k in keys]

    def put(self, rows: list[dict]) -> None:
        if self.keyed:
            keys = {(row["p"], row["k"]) for row in rows}
            self.rows = [row for row in self.rows if (row["p"], row["k"]) not in keys]
        self.rows += rows

    def step(self) -> None:
        verb = self.rng.choice(["write", "write", "delete", "update", "upsert", "merge", "choose", "sync", "compact"])
        getattr(self, verb)()
        self.check()

    def check(self) -> None:
        table = reopened(self.table)
        read = table.scan() if not self.hides else table.scan(options=ALL_LEVELS)

        def order(rows):
            return sorted(rows, key=repr)

        assert order(read.to_arrow().to_pylist()) == order(self.rows)
        scan, splits = self.rng.choice(PLANS)(self.rng, table, {"options": ALL_LEVELS} if self.hides else {})
        assert order(row for split in splits for row in scan.read(split).read_all().to_pylist()) == order(self.rows)
        assert read.count() == len(self.rows)

    @property
    def hides(self) -> bool:
        return self.keyed and self.table.options.get("write-only") == "true"

    def write(self) -> None:
        rows = self.some_rows(15)
        self.table.write_arrow(pa.Table.from_pylist(rows, SCHEMA))
        self.put(rows)

    def compact(self) -> None:
        self.table.compact(full=self.rng.random() < 0.5)

    def delete(self) -> None:
        text, holds = self.rng.choice(CONDITIONS)
        gone = [row for row in self.rows if holds(row)]
        result = self.table.delete(text)
        assert (result.deleted, result.updated, result.inserted) == (len(gone), 0, 0)
        assert (result.snapshot_id is None) == (not gone)
        self.rows = [row for row in self.rows if not holds(row)]

    def update(self) -> None:
        text, holds = self.rng.choice(CONDITIONS)
        n = self.rng.randrange(100)
        result = self.table.update(
            text,
            {
                "v": "set",
                "n": n,
                "a": lambda rows: pc.if_else(pc.is_valid(rows["v"]), rows["a"], None) if not self.fills else rows["a"],
            },
        )
        assert (result.deleted, result.updated) == (0, sum(map(holds, self.rows)))
        for at, row in enumerate(self.rows):
            if holds(row):
                a = row["a"] if row["v"] is not None or self.fills else None
                self.rows[at] = {**row, "v": "set", "n": n, "a": a}

    def upsert(self) -> None:
        rows = self.some_rows(8)
        data = pa.Table.from_pylist(rows, SCHEMA)
        if self.keyed:
            assert self.table.upsert(data).upserted == len(rows)
            self.put(rows)
            return
        result = self.table.upsert(data, on=["p", "k"])
        keys = {(row["p"], row["k"]): row for row in rows}
        known = {(row["p"], row["k"]) for row in self.rows}
        hit = [row for row in self.rows if (row["p"], row["k"]) in keys]
        assert (result.updated, result.inserted) == (len(hit), len(rows) - len(known & keys.keys()))
        self.rows = [keys.get((row["p"], row["k"]), row) for row in self.rows]
        self.rows += [row for key, row in keys.items() if key not in known]

    def merge(self) -> None:
        rows = self.some_rows(12)
        source = pa.Table.from_pylist(
            [{"q": r["p"], "k": r["k"], "w": r["v"], "m": r["n"]} for r in rows],
            pa.schema([("q", pa.int32()), ("k", pa.int64()), ("w", pa.string()), ("m", pa.int64())]),
        )
        result = self.table.merge(
            source, {"p": "q", "k": "k"},
            when_matched_delete="source.w = 'y'",
            when_matched_update=("target.n < 70", {"v": col("source", "w") if not self.fills else "new", "n": 7}),
            when_not_matched_insert=("source.m > 20", {"p": "source.q", "k": "source.k", "n": 1, "v": "source.w", "a": [7]}),
        )  # fmt: skip
        by_key = {(row["p"], row["k"]): row for row in rows}
        known = {(row["p"], row["k"]) for row in self.rows}
        kept, updated = [], 0
        for row in self.rows:
            other = by_key.get((row["p"], row["k"]))
            if other is None:
                kept.append(row)
            elif other["v"] != "y":
                hit = row["n"] is not None and row["n"] < 70
                updated += hit
                kept.append({**row, "v": other["v"] if not self.fills else "new", "n": 7} if hit else row)
        new = [row for key, row in by_key.items() if key not in known and row["n"] is not None and row["n"] > 20]
        assert (result.deleted, result.updated, result.inserted) == (len(self.rows) - len(kept), updated, len(new))
        self.rows = kept + [{"p": r["p"], "k": r["k"], "v": r["v"], "n": 1, "a": [7]} for r in new]

    def choose(self) -> None:
        """Several clauses of a kind, of which the first that applies counts, with columns of both sides compared."""
        rows = self.some_rows(15)
        source = pa.Table.from_pylist(
            [{"p": r["p"], "k": r["k"], "w": r["v"], "m": r["n"]} for r in rows],
            pa.schema([("p", pa.int32()), ("k", pa.int64()), ("w", pa.string()), ("m", pa.float64())]),
        )
        other = "other" if self.fills else None
        result = self.table.merge(
            source, ["p", "k"],
            when_matched_delete=["source.m = target.n", "source.w = target.v AND target.k < 5"],
            when_matched_update=[("m > n", {"v": "more"}), ("target.v IS DISTINCT FROM source.w", {"v": other, "n": 5})],
            when_not_matched_insert=[("source.m > source.k", {"p": "source.p", "k": "source.k", "v": "m", "n": 1, "a": [1]}),
                                     ("source.m <= 3", {"p": "source.p", "k": "source.k", "v": "few", "a": [2], "n": 2})],
            when_not_matched_by_source_update=[("n < k", {"n": 99}), ("n < 50", {"v": "low"})],
        )  # fmt: skip
        by_key = {(row["p"], row["k"]): row for row in rows}
        known = {(row["p"], row["k"]) for row in self.rows}
        after, updated = [], 0
        for row in self.rows:
            changes = _chosen(row, by_key.get((row["p"], row["k"])), other)
            updated += bool(changes)
            after += [] if changes is None else [{**row, **changes}]
        new = []
        for key, row in by_key.items():
            if key not in known and row["n"] is not None and (row["n"] > row["k"] or row["n"] <= 3):
                more = row["n"] > row["k"]
                new.append({"p": key[0], "k": key[1], "v": "m" if more else "few", "n": 1 if more else 2, "a": [1 if more else 2]})
        assert (result.deleted, result.updated, result.inserted) == (len(self.rows) - len(after), updated, len(new))
        self.rows = after + new

    def sync(self) -> None:
        """Rows of which the source knows nothing go or change."""
        rows = self.some_rows(25)
        keys = {(row["p"], row["k"]) for row in rows}
        result = self.table.merge(
            pa.table({"p": pa.array([p for p, _ in keys], pa.int32()), "k": [k for _, k in keys]}), ["p", "k"],
            when_not_matched_by_source_delete="target.k > 15",
            when_not_matched_by_source_update=("p = 0", {"v": "alone"}),
        )  # fmt: skip
        kept, updated = [], 0
        for row in self.rows:
            if (row["p"], row["k"]) in keys:
                kept.append(row)
            elif row["k"] <= 15:
                kept.append({**row, "v": "alone"} if row["p"] == 0 else row)
                updated += row["p"] == 0
        assert (result.deleted, result.updated, result.inserted) == (len(self.rows) - len(kept), updated, 0)
        self.rows = kept


def _chosen(row: dict, other: dict | None, text: str | None) -> dict | None:
    """What `choose` sets in a row; None if the row goes."""
    n, v = row["n"], row["v"]
    if other is None:
        if n is None:
            return {}
        return {"n": 99} if n < row["k"] else {"v": "low"} if n < 50 else {}
    m, w = other["n"], other["v"]
    both = m is not None and n is not None
    if (both and m == n) or (w is not None and w == v and row["k"] < 5):
        return None
    if both and m > n:
        return {"v": "more"}
    return {"v": text, "n": 5} if v != w else {}


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_holds_what_a_list_of_rows_would(tmp_path, kind):
    life = Life(tmp_path / "w", kind, 5)
    for _ in range(14):
        life.step()


@pytest.mark.full
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", KINDS)
def test_a_long_life_of_a_table(tmp_path, kind, seed):
    life = Life(tmp_path / "w", kind, seed)
    for _ in range(80):
        life.step()
