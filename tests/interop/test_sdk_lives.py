"""Random lives of tables that the official SDK, or its Rust core, and we write in turns: both read what the model holds."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import random
from pathlib import Path

import pyarrow as pa
import pytest
from environments import SDK, python_with
from sdk_turns import Player

from paimon_py import Catalog, Schema, Table
from paimon_py.codec.arrow_types import to_arrow_schema

pytestmark = [pytest.mark.full, pytest.mark.timeout(3600)]

LIVES = 80
OLDEST = "pypaimon-1.3.2"
"""Loses files that a compaction only moved to another level, Java's included; places some keys in other buckets than Java does;
numbers rows from the beginning in each commit, so that a deleted key does not come back when it is written again."""
LIMITED = (OLDEST, "pypaimon-1.4.2", "rust-0.4.0")
"""Releases that cannot read nullable and NOT NULL columns of ORC files together, or cannot write ORC with zstd."""
WHOLE_OVERWRITES = (OLDEST, "pypaimon-1.4.2")
"""Releases whose overwrite of a partitioned table replaces all partitions, not those that the data are in."""

TYPES = {
    "INT": lambda rng: rng.randrange(-(2**31), 2**31),
    "BIGINT": lambda rng: rng.randrange(-(2**63), 2**63),
    "DOUBLE": lambda rng: rng.choice([0.5, -1.25, 1e300, 3.0]),
    "BOOLEAN": lambda rng: rng.random() < 0.5,
    "STRING": lambda rng: rng.choice(["", "é", "text", "a b", "x" * 40]),
    "DECIMAL(18, 3)": lambda rng: decimal.Decimal(rng.randrange(-(10**17), 10**17)).scaleb(-3),
    "DATE": lambda rng: datetime.date(1960, 1, 1) + datetime.timedelta(rng.randrange(40000)),
    "TIMESTAMP(6)": lambda rng: datetime.datetime(1971, 1, 1) + datetime.timedelta(microseconds=rng.randrange(10**15)),
}


@dataclasses.dataclass(frozen=True)
class Life:
    """What one seed makes: a table and who acts in which turn."""

    columns: list[tuple[str, str]]
    keys: list[str]
    parts: list[str]
    options: dict[str, str]
    made_by_us: bool
    turns: list[str]

    def rows(self, rng: random.Random) -> list[dict]:
        rows = []
        for _ in range(rng.choice([1, 3, 20])):
            row = {name: TYPES[kind.removesuffix(" NOT NULL")](rng) for name, kind in self.columns if name not in ("k", "p")}
            row = {name: None if rng.random() < 0.15 else value for name, value in row.items()}
            rows.append({"k": rng.randrange(12), "p": f"p{rng.randrange(3)}", **row})
        unique = {tuple(row[key] for key in self.keys): row for row in rows} if self.keys else dict(enumerate(rows))
        names = [name for name, _ in self.columns]
        return [{name: row[name] for name in names} for row in unique.values()]


def life(seed: int, release: str) -> Life:
    rng = random.Random(seed)
    kinds = rng.sample([kind for kind in TYPES if kind != "TIMESTAMP(6)" or "1.3" not in release], rng.randrange(1, 5))
    keyed, parted = rng.random() < 0.6, rng.random() < 0.4
    columns = [("k", "INT NOT NULL" if keyed else "INT"), ("p", "STRING NOT NULL" if keyed else "STRING")]
    columns += [(f"c{n}", kind) for n, kind in enumerate(kinds)]
    options = {"file.format": rng.choice(["parquet", "avro"] if release in LIMITED else ["parquet", "orc", "avro"])}
    if keyed:
        options["bucket"] = "1" if release == OLDEST else rng.choice(["1", "2"])
    acts = ["they write", "they write", "we write", "we compact", "they overwrite"]
    if keyed:
        acts += ["we delete", "we expire"]
    if release == OLDEST and keyed:
        acts = [act for act in acts if act not in ("we compact", "we delete")]
    keys = (["p", "k"] if parted else ["k"]) if keyed else []
    made_by_us = rng.random() < 0.5 or release.startswith("rust")
    return Life(columns, keys, ["p"] if parted else [], options, made_by_us, rng.choices(acts, k=rng.randrange(3, 8)))


@pytest.fixture(scope="module", params=SDK)
def player(request, tmp_path_factory):
    """A player with its warehouse and its release."""
    library, packages = SDK[request.param]
    python, warehouse = python_with(tmp_path_factory.mktemp("python"), packages), tmp_path_factory.mktemp("warehouse")
    Catalog.open(str(warehouse)).create_database("db")
    made = Player(python, library, warehouse)
    yield made, warehouse, request.param
    made.close()


def held(life: Life, model: list[dict]) -> list[str]:
    return sorted(str([row[name] for name, _ in life.columns]) for row in model)


def put(life: Life, model: list[dict], rows: list[dict]) -> list[dict]:
    """The model after a write."""
    if not life.keys:
        return [*model, *rows]
    kept = {tuple(row[key] for key in life.keys): row for row in [*model, *rows]}
    return list(kept.values())


def run(player, warehouse: Path, release: str, seed: int) -> None:
    lived, rng = life(seed, release), random.Random(-seed)
    name = f"db.t{seed}"
    schema = Schema(lived.columns)
    arrow = to_arrow_schema(schema.fields)
    if lived.made_by_us:
        Catalog.open(str(warehouse)).create_table(
            name, schema, primary_key=lived.keys, partition_by=lived.parts, options=lived.options
        )
    else:
        player.step("create", name, arrow.empty_table(), keys=lived.keys, parts=lived.parts, options=lived.options)
    table = Table.open(f"{warehouse}/db.db/t{seed}")
    model: list[dict] = []
    for turn in lived.turns:
        rows = lived.rows(rng)
        data = pa.Table.from_pylist(rows, schema=arrow)
        if turn == "they write":
            player.step("write", name, data)
            model = put(lived, model, rows)
        elif turn == "they overwrite":
            player.step("overwrite", name, data)
            gone = {row["p"] for row in rows} if lived.parts and release not in WHOLE_OVERWRITES else None
            model = put(lived, [row for row in model if gone and row["p"] not in gone], rows)
        elif turn == "we write":
            table.write_arrow(data)
            model = put(lived, model, rows)
        elif turn == "we delete":
            victim = rng.randrange(12)
            table.delete(f"k = {victim}")
            model = [row for row in model if row["k"] != victim]
        elif turn == "we compact":
            table.compact(full=True)
        else:
            table.expire_snapshots(retain_max=1, retain_min=1)
        theirs = player.step("read", name)
        theirs = theirs.select(arrow.names).cast(arrow).to_pylist() if theirs is not None and theirs.num_columns else []
        own = table.to_arrow().to_pylist()
        wanted = held(lived, model)
        assert held(lived, own) == wanted, (seed, turn, lived)
        assert held(lived, theirs) == wanted, (seed, turn, lived)


def test_both_read_what_either_wrote(player):
    actor, warehouse, release = player
    for seed in range(LIVES):
        run(actor, warehouse, release, seed)
