"""Compaction by lookup against a plain model: what comes out, and which rows above are dead."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from paimon_py.codec.binary_row import encode
from paimon_py.compaction.by_lookup import LevelsAbove, LookupRules
from paimon_py.compaction.rewrite import Merging
from paimon_py.files.deletion_filter import POSITION
from paimon_py.lsm.engines.deduplicate import Deduplicate
from paimon_py.lsm.engines.first_row import FirstRow
from paimon_py.lsm.order import MergeOrder
from paimon_py.lsm.runs import SortedRun
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.types import Atomic, Field, Root

KEY = Field(0, "k", Atomic(Root.INT, nullable=False))
NAME = Field(1, "s", Atomic(Root.VARCHAR, length=2**31 - 1))
AGE = Field(2, "n", Atomic(Root.BIGINT))
FIELDS = (KEY, NAME, AGE)
SYSTEM = {"_SEQUENCE_NUMBER": pa.int64(), "_VALUE_KIND": pa.int8(), "k": pa.int32(), "s": pa.string(), "n": pa.int64()}

Row = dict


class Tree:
    """Files of one bucket in memory."""

    def __init__(self, random_: random.Random) -> None:
        self.random = random_
        self.rows: dict[str, list[Row]] = {}
        self.reads: list[tuple[str, tuple[str, ...]]] = []
        self.number = 0

    def file(self, level: int, keys, deletes: float = 0.0) -> DataFile:
        keys = sorted(keys)
        rows = []
        for key in keys:
            self.number += 1
            kind = 3 if self.random.random() < deletes else 0
            rows.append({"_SEQUENCE_NUMBER": self.number, "_VALUE_KIND": kind, "k": key, "s": f"v{self.number}",
                         "n": self.random.choice([None, self.random.randrange(5)]), "level": level})  # fmt: skip
        name = f"data-{len(self.rows)}"
        self.rows[name] = rows
        low, high = (encode([pa.array([keys[at]], pa.int32())], [KEY.type])[0].as_py() for at in (0, -1))
        return DataFile(
            name=name, size_bytes=100, row_count=len(rows), min_key=low, max_key=high, level=level, schema_id=0,
            min_sequence=rows[0]["_SEQUENCE_NUMBER"], max_sequence=self.number,
            delete_row_count=sum(row["_VALUE_KIND"] for row in rows),
        )  # fmt: skip

    def read(self, file, fields, batch_rows):
        for _, batch in self._pieces(file, fields, batch_rows):
            yield batch

    def read_positions(self, file, fields, batch_rows, bounds):
        assert bounds is None or bounds[0] <= bounds[1]
        for start, batch in self._pieces(file, fields, batch_rows):
            yield batch.append_column(POSITION, pa.array(range(start, start + batch.num_rows), pa.int64()))

    def _pieces(self, file, fields, batch_rows):
        names = tuple(field.name for field in fields)
        self.reads.append((file.name, names))
        rows = self.rows[file.name]
        step = min(batch_rows, self.random.choice([1, 3, 1000]))
        schema = pa.schema([pa.field(name, SYSTEM[name], nullable=name in ("s", "n")) for name in names])
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            yield start, pa.RecordBatch.from_pylist([{name: row[name] for name in names} for row in part], schema=schema)


def merging(tree: Tree, engine, sequence=()) -> Merging:
    order = MergeOrder(keys=(KEY,), sequence=sequence)
    return Merging(order=order, engine=engine, fields=FIELDS, read=tree.read, drop_deletes=True)


def model(section, higher, rules: LookupRules, tree: Tree, order) -> tuple[list[Row], dict[str, set[int]]]:
    """What Java does, key by key."""
    inside: dict[int, list[Row]] = {}
    for file in section:
        for row in tree.rows[file.name]:
            inside.setdefault(row["k"], []).append(row)
    result, dead = [], {}
    for key, rows in sorted(inside.items()):
        high = min((row for row in rows if row["level"]), key=lambda row: row["level"], default=None)
        found = None
        if high is None:
            hits = [(f.level, f.name, at) for f in higher for at, row in enumerate(tree.rows[f.name]) if row["k"] == key]
            if hits:
                _, name, at = min(hits)
                found = tree.rows[name][at]
                if rules.marks:
                    dead.setdefault(name, set()).add(at)
        if rules.first_wins:
            if found is None:
                result.append(min(rows, key=order))
            continue
        candidates = [row for row in rows if not row["level"] or row is high]
        candidates += [found] if found is not None and rules.merges else []
        result.append(max(candidates, key=order))
    return [row for row in result if row["_VALUE_KIND"] == 0], dead


def by_number(row: Row):
    return row["_SEQUENCE_NUMBER"]


def by_age(row: Row):
    return (row["n"] is not None, row["n"] or 0, row["_SEQUENCE_NUMBER"])


CASES = {
    "mark": (LookupRules(marks=True, merges=False), Deduplicate(), (), by_number),
    "mark and merge": (LookupRules(marks=True, merges=True), Deduplicate(), (AGE,), by_age),
    "merge": (LookupRules(marks=False, merges=True), Deduplicate(), (AGE,), by_age),
    "first wins": (LookupRules(marks=False, merges=False, first_wins=True), FirstRow(), (), by_number),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", range(25))
def test_new_rows_meet_the_lowest_older_row_of_their_key(case, seed):
    rules, engine, sequence, order = CASES[case]
    random_ = random.Random(f"{case} {seed}")
    tree = Tree(random_)
    width = random_.choice([10, 60])
    deletes = 0.0 if rules.first_wins else 0.3

    def some(share, low=0, high=width):
        return [key for key in range(low, high) if random_.random() < share] or [low]

    higher = [tree.file(4, some(0.6)), tree.file(3, some(0.3, 0, width // 2)), tree.file(3, some(0.3, width // 2))]
    inside = [tree.file(1, some(0.3))] if random_.random() < 0.5 else []
    inside += [tree.file(0, some(random_.choice([0.05, 0.4])), deletes) for _ in range(random_.randint(1, 3))]
    lookup = LevelsAbove(rules, inside, higher, tree.read_positions, (KEY,))
    runs = [SortedRun((file,)) for file in inside]
    got = [row for batch in lookup.rows(runs, merging(tree, engine, sequence)) for row in batch.to_pylist()]
    want, dead = model(inside, higher, rules, tree, order)
    assert got == [{name: row[name] for name in SYSTEM} for row in want]
    assert {name: set(vector.positions.tolist()) for name, vector in lookup.found.vectors.items()} == dead
    if not rules.merges:
        above = {file.name for file in higher}
        assert {names for name, names in tree.reads if name in above} <= {("k",)}


def test_a_file_that_is_moved_marks_the_rows_it_replaces_and_reads_only_keys():
    tree = Tree(random.Random(3))
    higher = [tree.file(5, range(0, 50)), tree.file(5, range(50, 100))]
    new = tree.file(0, [3, 7, 200])
    lookup = LevelsAbove(LookupRules(marks=True, merges=False), [new], higher, tree.read_positions, (KEY,))
    lookup.look_up(new, merging(tree, Deduplicate()))
    assert {name: v.positions.tolist() for name, v in lookup.found.vectors.items()} == {higher[0].name: [3, 7]} | {}
    assert {names for _, names in tree.reads} == {("k",), ("_SEQUENCE_NUMBER", "_VALUE_KIND", "k")}


def test_files_above_that_no_new_key_reaches_are_not_read():
    tree = Tree(random.Random(4))
    higher = [tree.file(5, range(0, 50)), tree.file(5, range(50, 100))]
    inside = [tree.file(1, [60, 99]), tree.file(0, [3, 7])]
    lookup = LevelsAbove(LookupRules(marks=True, merges=False), inside, higher, tree.read_positions, (KEY,))
    rows = [r for b in lookup.rows([SortedRun((f,)) for f in inside], merging(tree, Deduplicate())) for r in b.to_pylist()]
    assert [row["k"] for row in rows] == [3, 7, 60, 99]
    assert higher[1].name not in {name for name, _ in tree.reads}


def test_a_compaction_without_new_rows_makes_no_lookups():
    tree = Tree(random.Random(5))
    higher = [tree.file(5, range(0, 50))]
    inside = [tree.file(1, [3, 9]), tree.file(2, [3, 7])]
    lookup = LevelsAbove(LookupRules(marks=True, merges=False), inside, higher, tree.read_positions, (KEY,))
    rows = [r for b in lookup.rows([SortedRun((f,)) for f in inside], merging(tree, Deduplicate())) for r in b.to_pylist()]
    assert [row["k"] for row in rows] == [3, 7, 9]
    assert not lookup.found.vectors
