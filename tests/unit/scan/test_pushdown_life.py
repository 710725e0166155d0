"""A question to scans as a whole: do filters, limits, counts and first rows give what a plain full read would?

The reference reads every row of a table without any of them, and does their work on the table in memory.
"""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest
from unit.scan.build import table
from unit.scan.order import ordered

from paimon_py import AddColumn, DropColumn, RenameColumn, UpdateColumnType, col
from paimon_py.errors import UsageError
from paimon_py.expr.arrow import evaluate
from paimon_py.expr.bind import bind

FORMATS = ["parquet", "orc", "avro"]
NAN = float("nan")
TEXTS = ["", "a", "a\0", "prefix-of-sixteen-and-more-a", "prefix-of-sixteen-and-more-b", "é", "\U0001f600", "zz"]
CHOICES = {
    "INT": [*range(-6, 7), 2**31 - 1, -(2**31)],
    "BIGINT": [*range(-6, 7), 2**63 - 1, -(2**63)],
    "FLOAT": [-0.0, 0.0, 1.5, -2.5, NAN, float("inf"), float("-inf")],
    "DOUBLE": [-0.0, 0.0, 1.5, -2.5, NAN, float("inf"), float("-inf")],
    "STRING": TEXTS,
    "DECIMAL(9, 2)": [Decimal(n).scaleb(-2) for n in (-1250, -1, 0, 1, 99999)],
}
FIELDS = [
    ("p", "INT NOT NULL"), ("k", "INT NOT NULL"), ("n", "INT"), ("f", "FLOAT"), ("s", "STRING"), ("d", "DECIMAL(9, 2)"),
    ("t", "BIGINT"), ("pos", "ROW<x INT, y STRING>"),
]  # fmt: skip
NEVER = 2**31 - 1
LAYOUTS = {
    "append": {"bucket": "-1"},
    "append in buckets": {"bucket": "2", "bucket-key": "k"},
    "append with vectors": {"bucket": "-1", "deletion-vectors.enabled": "true"},
    "keyed": {"bucket": "2"},
    "keyed by sequence": {"bucket": "1", "sequence.field": "n"},
    "keyed with vectors": {"bucket": "1", "deletion-vectors.enabled": "true"},
    "keyed and expiring": {"bucket": "1", "record-level.expire-time": "1 d", "record-level.time-field": "t"},
    "first row": {"bucket": "1", "merge-engine": "first-row"},
    "partial update": {"bucket": "1", "merge-engine": "partial-update"},
    "aggregation": {
        "bucket": "1", "merge-engine": "aggregation", "fields.default-aggregate-function": "last_non_null_value",
        "fields.n.aggregate-function": "max",
    },
}  # fmt: skip
STATS = [
    {}, {"metadata.stats-mode": "none"}, {"metadata.stats-mode": "counts"}, {"metadata.stats-mode": "truncate(3)"},
    {"metadata.stats-mode": "full"}, {"metadata.stats-dense-store": "false", "fields.n.stats-mode": "none"},
    {"metadata.stats-keep-first-n-columns": "3"},
]  # fmt: skip


class Life:
    """One table and what happens to it."""

    def __init__(self, layout, file_format, draw):
        self.draw = draw
        self.layout = layout
        self.keyed = not layout.startswith("append")
        options = {
            **LAYOUTS[layout], **draw.choice(STATS), "file.format": file_format, "write-only": "true",
            "source.split.open-file-cost": "1 b", "source.split.target-size": draw.choice(["1 b", "3 kb", "1 mb"]),
            "parquet.block.size": "1000",
        }  # fmt: skip
        if draw.random() < 0.5 and layout != "first row":
            options |= {"file-index.bitmap.columns": "n,s", "file-index.bloom-filter.columns": "k"}
        self.indexed = "file-index.bitmap.columns" in options
        partitioned = draw.random() < 0.4
        self.table = table(
            FIELDS, primary_key=("p", "k") if self.keyed else (), partition_by=("p",) if partitioned else (), options=options
        )
        self.added = 0

    def write(self):
        draw, schema = self.draw, self.table.scan().schema
        keys = sorted({(draw.choice([1, 2]), draw.randrange(40)) for _ in range(draw.randrange(1, 25))})
        narrow = {name: draw.choices(self.values(name), k=draw.randrange(1, 4)) for name in schema.names}
        rows = []
        for p, k in keys:
            row = {name: draw.choice([None, *narrow[name]]) for name in schema.names}
            expired = draw.random() < 0.3
            row |= {"p": p, "k": k, "t": 1 if expired else NEVER}
            rows.append(row)
        data = pa.Table.from_pylist(rows, schema=schema)
        if self.keyed and self.layout not in ("first row", "partial update", "aggregation"):
            data = data.append_column("_row_kind", [[draw.choice(["+I", "+I", "+U", "-D"]) for _ in rows]])
        self.table.write_arrow(data)

    def values(self, name):
        if name == "pos":
            return [{"x": 1, "y": "a"}, {"x": None, "y": None}, {"x": 7, "y": "zz"}]
        kind = self.table.scan().schema.field(name).type
        known = {
            pa.int32(): "INT", pa.int64(): "BIGINT", pa.float32(): "FLOAT", pa.float64(): "DOUBLE", pa.string(): "STRING",
        }  # fmt: skip
        return CHOICES[known.get(kind, "DECIMAL(9, 2)")]

    def step(self):
        draw = self.draw
        choice = draw.random()
        if choice < 0.6:
            self.write()
        elif choice < 0.75:
            self.table.compact(full=draw.random() < 0.5)
        elif choice < 0.85 and self.layout == "append with vectors":
            self.table.delete(col("k") < draw.randrange(20))
        else:
            self.evolve()

    def evolve(self):
        """Change the schema in a way that leaves the options' columns alone."""
        names = self.table.scan().schema.names
        free = [name for name in names if name.startswith("new")]
        self.added += 1
        ways = [AddColumn(f"new{self.added}", self.draw.choice(["INT", "DOUBLE", "STRING"]))]
        ways += [UpdateColumnType("f", "DOUBLE")] if self.table.scan().schema.field("f").type == pa.float32() else []
        if not self.indexed and self.layout not in ("keyed by sequence",):
            ways += [UpdateColumnType("n", "BIGINT")] if self.table.scan().schema.field("n").type == pa.int32() else []
        if free:
            ways.append(RenameColumn(free[0], f"new{self.added + 100}"))
        way = self.draw.choice(ways)
        if free and self.draw.random() < 0.5:
            self.table.alter(DropColumn(free[0]))
            way = AddColumn(free[0], self.draw.choice(["INT", "STRING", "BIGINT"]))
        self.table.alter(way)

    def condition(self, depth=0):
        draw = self.draw
        if depth < 2 and draw.random() < 0.4:
            one, two = self.condition(depth + 1), self.condition(depth + 1)
            return draw.choice([one & two, one | two, ~(one & two)])
        name = draw.choice(self.table.scan().schema.names)
        column, values = col(name), self.values(name)
        if name == "pos":
            column, values = draw.choice([(col("pos", "x"), [1, 7, 3]), (col("pos", "y"), ["a", "zz", "q"])])
        one, two = draw.choice(values), draw.choice(values)
        tests = [
            column == one, column != one, column < one, column >= one, column.isin([one, two]), column.not_in([one, two]),
            column.is_null(), column.is_not_null(),
        ]  # fmt: skip
        if isinstance(one, str):
            tests += [column.starts_with(one[:3]), ~column.starts_with(one[:3]), column.like(f"{one[:2]}%")]
        return draw.choice(tests)


def shown(rows, names=None):
    return Counter(repr(row if names is None else [row[name] for name in names]) for row in rows)


def check(life, everything):
    """One random filter, with and without limit and order."""
    draw, made = life.draw, life.table
    where = None if draw.random() < 0.3 else life.condition()
    rows = everything.to_pylist()
    if where is not None:
        try:
            bound = bind(where, made._schema.fields)
        except UsageError:  # a literal that the column has no value for
            return
        columns = {name: everything.column(name).combine_chunks() for name in everything.column_names}
        rows = everything.filter(evaluate(bound, columns)).to_pylist()
    scan = made.scan(where=where)
    assert shown(scan.to_arrow().to_pylist()) == shown(rows), where
    assert scan.count() == len(rows), where
    assert made.scan(where=where, columns=[]).to_arrow().num_rows == len(rows), where
    limit = draw.choice([0, 1, 2, 5, 30, 500])
    some = made.scan(where=where, limit=limit)
    found = some.to_arrow().to_pylist()
    assert len(found) == some.count() == some.head(limit).num_rows == min(limit, len(rows)), (where, limit)
    assert not shown(found) - shown(rows), (where, limit)
    assert sum(some.read(split).read_all().num_rows for split in some.splits()) >= len(found)
    names = [name for name in everything.column_names if name != "pos"]
    order = [(name, draw.random() < 0.5) for name in draw.sample(names, draw.choice([1, 1, 2]))]
    order_by = [(name, "descending") if down else name for name, down in order]
    first = made.scan(where=where, order_by=order_by, limit=limit).to_arrow().to_pylist()
    expected = ordered(rows, order)[:limit]
    asked = [name for name, _ in order]
    assert [[repr(row[name]) for name in asked] for row in first] == [
        [repr(row[name]) for name in asked] for row in expected
    ], (where, order, limit)
    assert not shown(first) - shown(rows), (where, order, limit)
    inner = made.scan(where=where, columns=["pos.y", "k"]).to_arrow().to_pylist()
    assert shown(inner) == shown({"pos.y": row["pos"] and row["pos"]["y"], "k": row["k"]} for row in rows), where


def live(layout, file_format, seed, steps, checks):
    life = Life(layout, file_format, random.Random(f"{layout} {file_format} {seed}"))
    life.write()
    for _ in range(steps):
        life.step()
        everything = life.table.scan(options={"file-index.read.enabled": "false"}).to_arrow()
        for _ in range(checks):
            check(life, everything)


@pytest.mark.parametrize("number", range(len(LAYOUTS)))
def test_what_is_pushed_down_changes_no_answer(number):
    live(list(LAYOUTS)[number], FORMATS[number % 3], 0, 6, 2)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(1, 15))
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("file_format", FORMATS)
def test_what_is_pushed_down_changes_no_answer_in_many_lives(layout, file_format, seed):
    live(layout, file_format, seed, 20, 5)
