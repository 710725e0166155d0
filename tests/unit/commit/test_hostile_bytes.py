"""Changes, splits and tasks that others made up or damaged, over many kinds of tables.

What was damaged on the way is refused. What is sealed with a right checksum and lies is refused with nothing written, or
the table holds right rows afterwards; the lies that only a file itself could tell are named here.
"""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from model.table_modes import MODES, Mode
from unit.commit.mutations import changed, damaged, mutations, opened, sealed
from unit.commit.support import TABLE, Clock, Ids, below, put_schema, schema

from paimon_py.env import Env, SerialPool
from paimon_py.errors import CorruptionError, PaimonError, UsageError
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.table import Table

COLUMNS = {"p": "INT NOT NULL", "k": "INT NOT NULL", "v": "STRING", "n": "INT", "x": "BIGINT"}
TOLD = Mode(name="told", options={"bucket": "1", "changelog-producer": "input"})
FEW = ("one bucket", "told", "buckets with vectors", "dynamic", "postponed", "append in parts", "append with vectors", "clustered")
SHAPES = {mode.name: mode for mode in (*MODES, TOLD)}

LESS = {"added", "buckets", "written", "compacted", "added_index", "deleted_index", "deleted", "changelog"}
"""Who hands over less has written less."""

UNTOLD = "row_count"
"""Only who opens the file knows it; others find it wrong when they read."""


def opened_table(store, table_schema, owner):
    return Table(TableRoot(store, TABLE, Env(Clock(), Ids(owner), SerialPool())), table_schema, "db.t")


def rows(numbers, value):
    count = len(numbers)
    return pa.table({
        "p": pa.array([number % 2 for number in numbers], pa.int32()), "k": pa.array(numbers, pa.int32()),
        "v": [f"{value}{number}" for number in numbers], "n": pa.array([1] * count, pa.int32()), "x": pa.array(numbers, pa.int64()),
    })  # fmt: skip


def read(table):
    return sorted(table.scan().to_arrow().to_pylist(), key=repr)


class Shape:
    """A table with some commits, and what travels of it."""

    def __init__(self, mode):
        keys = ["k"] if mode.moves else ["p", "k"] if mode.parted else ["k"]
        self.schema = schema(
            primary_key=keys if mode.keyed else (), partition_by=["p"] if mode.parted else (), options=mode.options, columns=COLUMNS
        )
        self.store = MemoryStore(clock=Clock())
        put_schema(self.store, self.schema)
        table = opened_table(self.store, self.schema, "a")
        for number in range(4):
            table.write_arrow(rows(range(number, number + 6), f"r{number}-"))
        with table.writer() as writer:
            writer.write_arrow(rows(range(2, 9), "new"))
            self.changes = bytes(writer.changes())
        self.before = read(table)
        self.splits = [bytes(split) for split in table.scan().splits()]
        self.tasks = [bytes(task) for task in table.compaction_tasks(full=True)]
        after = opened_table(self.store.copy(), self.schema, "b")
        after.commit(self.changes)
        self.hides = mode.hides
        self.after = self.settled(after)
        compacted = opened_table(self.store.copy(), self.schema, "e")
        compacted.commit([compacted.run_compaction(task) for task in self.tasks] or self.changes)
        self.compacted = read(compacted) if self.tasks else self.before
        self.table = opened_table(self.store, self.schema, "f")

    def settled(self, table):
        """All rows, also those that readers leave out until a compaction has seen them."""
        if self.hides:
            table.compact(full=True)
        return read(table)

    def copy(self, owner="c"):
        return opened_table(self.store.copy(), self.schema, owner)


@pytest.fixture(scope="module", params=FEW)
def shape(request):
    return Shape(SHAPES[request.param])


@pytest.fixture(scope="module", params=[pytest.param(name, marks=pytest.mark.full) for name in SHAPES])
def any_shape(request):
    return Shape(SHAPES[request.param])


def refused(table, action):
    """Whether an action was refused, and then nothing was written."""
    names = below(table._root.store, TABLE)
    try:
        action()
    except PaimonError as error:
        assert below(table._root.store, TABLE) == names, error
        return True
    return False


def commit_lie(shape, head, value, path, new):
    """Commit a mutation on a copy of the table: `refused`, rows are `right`, or `less`; or `untold`."""
    table = shape.copy()
    if refused(table, lambda: table.commit(sealed(head, changed(value, path, new)))):
        return "refused"
    table = opened_table(table._root.store, shape.schema, "d")
    try:
        found = shape.settled(table)
        table.scan(where="k = 3 and x > 1").to_arrow()
        table.write_arrow(rows([1, 100], "later"))
    except PaimonError as error:
        assert path[-1] == UNTOLD, (path, new, error)
        return "untold"
    right = found in (shape.after, shape.settled(shape.copy()))
    assert right or path[-1] in LESS, (path, new)
    return "right" if right else "less"


def compact_lie(shape, head, value, path, new):
    """Run a mutation of a task and commit what it makes: `refused`, or rows are what they were."""
    table = shape.copy()
    made = []
    if refused(table, lambda: made.append(table.run_compaction(sealed(head, changed(value, path, new))))):
        return "refused"
    try:
        table.commit(bytes(made[0]))
    except PaimonError:
        return "refused"
    found = read(opened_table(table._root.store, shape.schema, "d"))
    assert found == shape.before or found == shape.compacted, (path, new)
    return "right"


def read_lie(shape, head, value, path, new):
    """Read a mutation of a split: `refused`, or rows; which ones only the maker of the split knows."""
    try:
        shape.table.scan().read(sealed(head, changed(value, path, new))).read_all()
    except PaimonError:
        return "refused"
    return "read"


def lies(travelling, count, seed):
    """Mutations of some bytes that travel: the head, the value, the path and what stands there then."""
    found = [(*opened(data), path, new) for data in travelling for path, new in mutations(opened(data)[1])]
    return random.Random(seed).sample(found, min(count, len(found)))


def check_damage(shape, count):
    table, random_ = shape.copy(), random.Random(1)
    for many, action in ((shape.splits, table.scan().read), (shape.tasks, table.run_compaction), ([shape.changes], table.commit)):
        for data in many:
            for wrong in (damaged(data, random_) for _ in range(count)):
                assert wrong == data or refused(table, lambda: action(wrong)), wrong
    assert read(table) == shape.before


def check_lies(shape, count, seed):
    changes = [commit_lie(shape, *one) for one in lies([shape.changes], count, seed)]
    tasks = [compact_lie(shape, *one) for one in lies(shape.tasks, 2 * count, seed)]
    splits = [read_lie(shape, *one) for one in lies(shape.splits, count, seed)]
    assert changes.count("refused") >= len(changes) // 5
    assert tasks.count("refused") >= len(tasks) // 2
    assert not splits or splits.count("refused")


def test_damage_on_the_way_is_refused(shape):
    check_damage(shape, 100)


def test_who_lies_is_refused_or_leaves_right_rows(shape):
    check_lies(shape, 20, 2)


def test_much_damage_on_the_way_is_refused(any_shape):
    check_damage(any_shape, 2000)


@pytest.mark.parametrize("seed", range(2))
def test_who_lies_in_any_table_is_refused_or_leaves_right_rows(any_shape, seed):
    check_lies(any_shape, 100, seed)


LIES = {
    "row_count": (2**62, "rows"), "size_bytes": (0, "bytes"), "level": (9, "level 9"), "name": ("../x", "plain file name"), "schema_id": (7, "schema 7"),
    "min_key": (b"\0\0\0\2" + bytes(24), "fields"), "max_key": (b"", "serialized row"), "min_sequence": (2**63 - 1, "sequence numbers"),
    "max_sequence": (-1, "sequence numbers"), "delete_row_count": (99, "deletes"), "creation_time_millis": (2**62, "was made at"),
    "extra_files": (["../y"], "plain file name"), "embedded_index": (b"x", "index of"), "value_stats_columns": (["k"], "statistics"),
    "write_columns": (["k"], "part of"), "external_path": ("file:///etc/passwd", "is at"),
}  # fmt: skip


@pytest.fixture(scope="module")
def one_bucket():
    return Shape(SHAPES["one bucket"])


@pytest.mark.parametrize("field", LIES)
def test_a_file_that_cannot_be_is_refused_before_anything_is_written(one_bucket, field):
    new, words = LIES[field]
    head, value = opened(one_bucket.changes)
    table = one_bucket.copy()
    names = below(table._root.store, TABLE)
    with pytest.raises(CorruptionError, match=words) as caught:
        table.commit(sealed(head, changed(value, ("buckets", 0, "written", "added", 0, field), new)))
    assert caught.value.table == TABLE and "nothing was committed" in str(caught.value)
    assert below(table._root.store, TABLE) == names and read(table) == one_bucket.before


@pytest.mark.parametrize(("path", "new", "words"), [
    (("watermark",), 2**63, "watermark"), (("base", "id"), -1, r"base\.id"), (("buckets", 0, "bucket"), 1, "bucket 1 of 1"),
    (("buckets", 0, "total_buckets"), 2, "2 buckets, the table has 1"), (("buckets", 0, "partition"), bytes(13), "partitions"),
    (("buckets", 0, "partition"), b"", "serialized row"),
    (("buckets", 0, "written", "added", 0, "value_stats", "max_values"), b"\0\0\0\7", "the statistics of file .* are not of"),
])  # fmt: skip
def test_changes_that_cannot_be_are_refused_before_anything_is_written(one_bucket, path, new, words):
    head, value = opened(one_bucket.changes)
    table = one_bucket.copy()
    names = below(table._root.store, TABLE)
    with pytest.raises((CorruptionError, UsageError), match=words):
        table.commit(sealed(head, changed(value, path, new)))
    assert below(table._root.store, TABLE) == names and read(table) == one_bucket.before
