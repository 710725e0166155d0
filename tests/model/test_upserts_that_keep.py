"""Upserts whose data lack random columns, against a dict per key: every engine, kind of bucket, layout and deletion vectors."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from paimon_py import Catalog, UpdateColumnDefault

VECTORS = {"deletion-vectors.enabled": "true"}
DYNAMIC = {"bucket": "-1", "dynamic-bucket.target-row-num": "5"}
PARTIAL = {"merge-engine": "partial-update"}
GROUPS = {**PARTIAL, "fields.g.sequence-group": "a,s"}
SUMS = {**GROUPS, "fields.s.aggregate-function": "sum"}
SEQUENCE = {"sequence.field": "g"}
KINDS = {
    "one bucket": {"bucket": "1"},
    "buckets": {"bucket": "3"},
    "write-only": {"bucket": "2", "write-only": "true"},
    "vectors": {"bucket": "2", **VECTORS},
    "write-only vectors": {"bucket": "1", "write-only": "true", **VECTORS},
    "lookup changelog": {"bucket": "1", "changelog-producer": "lookup"},
    "input changelog": {"bucket": "2", "changelog-producer": "input"},
    "dynamic": DYNAMIC,
    "dynamic with vectors": {**DYNAMIC, **VECTORS},
    "sequence": {"bucket": "2", **SEQUENCE},
    "sequence with vectors": {"bucket": "2", **SEQUENCE, **VECTORS},
    "small buffers": {"bucket": "2", "write-buffer-size": "2 kb", "lookup.cache-max-memory-size": "1 kb"},
    "orc": {"bucket": "1", "file.format": "orc"},
    "partial update": {"bucket": "2", **PARTIAL},
    "partial update, groups": {"bucket": "2", **GROUPS},
    "partial update, groups, vectors": {"bucket": "1", **GROUPS, **VECTORS},
    "partial update, sums": {"bucket": "2", **SUMS},
    "partial update, dynamic": {**DYNAMIC, **SUMS},
}
LAYOUTS = {"whole": (["k"], []), "parts": (["p", "k"], ["p"]), "moving": (["k"], ["p"])}
COLUMNS = pa.schema([
    pa.field("p", pa.int32()), pa.field("k", pa.int64(), nullable=False), ("a", pa.int64()), ("b", pa.string()),
    ("g", pa.int64()), ("s", pa.int64()), ("t", pa.struct([("x", pa.int64()), ("y", pa.string())])), ("m", pa.int64()),
])  # fmt: skip
DEFAULTS = {"b": "new", "g": 0}
GIVEN_ALWAYS = ("m",)


class Life:
    """A table and what its rows must be."""

    def __init__(self, path, kind, layout, seed):
        self.rng = random.Random(f"upserts that keep {kind} {layout} {seed}")
        self.options = KINDS[kind]
        self.keys, parts = LAYOUTS[layout]
        self.is_partial = "merge-engine" in self.options
        self.groups = "fields.g.sequence-group" in self.options
        self.sums = "fields.s.aggregate-function" in self.options
        self.catalog = Catalog.open(str(path))
        self.catalog.create_database("d", exist_ok=True)
        self.tables = [self._made(f"d.t{number}", parts) for number in range(2)]
        self.rows = {}

    def _made(self, name, parts):
        columns = [field.with_nullable(field.name not in [*self.keys, "m"]) for field in COLUMNS]
        table = self.catalog.create_table(
            name, pa.schema(columns), primary_key=self.keys, partition_by=parts, options=self.options
        )
        table.alter(*(UpdateColumnDefault(name, str(value)) for name, value in DEFAULTS.items()))
        return table

    def value(self, name):
        rng = self.rng
        if name == "p":
            return rng.randrange(3)
        if name == "k":
            return rng.randrange(24)
        if name in ("g", "m"):
            return rng.randrange(100)
        if rng.random() < 0.2 and not (name == "b" and self.is_partial):  # a plain write makes the default of a NULL
            return None
        if name == "b":
            return rng.choice("uvw")
        return {"x": rng.randrange(9), "y": rng.choice("ab")} if name == "t" else rng.randrange(100)

    def step(self):
        """One upsert; in tables that deduplicate the other table gets it with `on`."""
        rng = self.rng
        rest = [name for name in COLUMNS.names if name not in self.keys]
        known = list(self.rows)
        only_known = bool(known) and rng.random() < 0.5
        names = [name for name in rest if rng.random() < 0.5]
        if not only_known:
            names = [*dict.fromkeys([*names, *GIVEN_ALWAYS])]
        data = {}
        for _ in range(rng.choice([1, 3, 12])):
            row = {name: self.value(name) for name in [*self.keys, *names]}
            if only_known:
                row.update(zip(self.keys, rng.choice(known)))
            data[tuple(row[name] for name in self.keys)] = row
        fields = [COLUMNS.field(name) for name in [*self.keys, *names]]
        rng.shuffle(fields)
        rows = list(data.values())
        if rng.random() < 0.3:
            rows = [row for row in rows for _ in range(2)] if not self.sums else rows
        given = pa.Table.from_pylist(rows, pa.schema(fields))
        first, second = self.tables
        done = first.upsert(given)
        lacks = set(rest) - set(names)
        there = {key for key in data if key in self.rows}
        if not self.is_partial and lacks:
            assert (done.updated, done.inserted) == (len(there), len(data) - len(there)), done
        for key, row in data.items():
            self.rows[key] = self.merged(self.rows.get(key), row, whole=not lacks)
        if lacks and self.has_on(names):
            second.upsert(pa.Table.from_pylist(list(data.values()), pa.schema(fields)), on=self.keys)
        else:
            second.upsert(given)

    def has_on(self, names):
        """Whether `on` takes such data: it sets no partition, and refuses a sequence that falls."""
        moves = "p" in names and "p" in self.partitions
        falls = "sequence.field" in self.options and "g" in names
        return not (self.is_partial or moves or falls)

    @property
    def partitions(self):
        return self.tables[0].schema.partition_keys

    def merged(self, old, row, *, whole):
        if old is None:
            made = {**dict.fromkeys(COLUMNS.names), **DEFAULTS, **row}
            return {name: DEFAULTS.get(name) if value is None else value for name, value in made.items()}
        given = {name: DEFAULTS.get(name) if value is None and whole else value for name, value in row.items()}
        if self.is_partial:
            return self.partly(old, given)
        made = {**old, **given}
        return old if "sequence.field" in self.options and made["g"] < old["g"] else made

    def partly(self, old, given):
        group = ("g", "a", "s") if self.groups else ()
        made = dict(old)
        moves = list(self.partitions) if "p" not in self.keys else []
        for name, value in given.items():
            if name not in group and name not in self.keys and value is not None and name not in moves:
                made[name] = value
        if not any(name in given for name in group):
            return made
        new = {**{name: old[name] for name in group}, **given}
        if self.sums:
            made["s"] = added(old["s"], given.get("s"))
        if new["g"] >= old["g"]:
            made.update({name: new[name] for name in group if not (name == "s" and self.sums)})
        return made

    def check(self):
        wanted = sorted(self.rows.values(), key=lambda row: row["k"] * 10 + (row["p"] or 0))
        for table in self.tables:
            if self.options.get("deletion-vectors.enabled"):
                table.compact(full=True)
            found = sorted(table.to_arrow().to_pylist(), key=lambda row: row["k"] * 10 + (row["p"] or 0))
            assert found == wanted, table.location


def added(old, new):
    return new if old is None else old if new is None else old + new


CASES = [
    (kind, layout) for kind, options in KINDS.items() for layout in LAYOUTS
    if layout != "moving" or options["bucket"] == "-1"
]  # fmt: skip


BOUNDED = [case for number, case in enumerate(CASES) if case[1] == "moving" or number % 2 == (number // 2) % 2]


@pytest.mark.parametrize(("kind", "layout"), BOUNDED)
def test_columns_that_the_data_lack_stay(tmp_path, kind, layout):
    live(tmp_path, kind, layout, range(1))


@pytest.mark.full
@pytest.mark.parametrize(("kind", "layout"), CASES)
def test_columns_that_the_data_lack_stay_with_many_seeds(tmp_path, kind, layout):
    live(tmp_path, kind, layout, range(1, 30))


def live(path, kind, layout, seeds):
    for seed in seeds:
        life = Life(path / str(seed), kind, layout, seed)
        for number in range(8):
            try:
                life.step()
                if life.rng.random() < 0.2:
                    for table in life.tables:
                        table.compact(full=life.rng.random() < 0.5)
                if number % 3 == 2:
                    life.check()
            except BaseException as error:
                error.add_note(f"seed {seed}, step {number}")
                raise
        life.check()
