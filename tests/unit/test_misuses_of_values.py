"""Values that are nearly what a verb takes: those of NumPy are taken, the others are told what would be right."""

from __future__ import annotations

import copy
import pickle
import re
import uuid
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from paimon_py import AddColumn, Catalog, Schema, SchemaError, SetOption, UsageError, col, lit
from paimon_py.cdc import Sink
from paimon_py.env import Env

KEYED = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string()), ("n", pa.int32())])


@pytest.fixture
def catalog():
    made = Catalog.open(f"memory://values-{uuid.uuid4()}")
    made.create_database("d")
    return made


@pytest.fixture
def table(catalog):
    made = catalog.create_table("d.t", KEYED, primary_key=["k"], options={"bucket": "1", "changelog-producer": "input"})
    for number in range(4):
        made.write_arrow([{"k": number, "v": "a", "n": number}])
    return made


@pytest.fixture
def shared(catalog):
    return catalog.create_table("d.s", KEYED, primary_key=["k"], options={"bucket": "-1"})


def changes_of(table):
    with table.writer() as writer:
        writer.write_arrow([{"k": 9}])
        return writer.changes(watermark=np.int64(5))


def consumed(table):
    table.stream(consumer_id="c").poll().acknowledge()
    return table.reset_consumer("c", np.int64(2)).next_snapshot_id


ONE, TWO, THREE, LONG_AGO = np.int64(1), np.int64(2), np.int32(3), np.int64(1_500_000_000_000)
NUMBERS = {
    "snapshot": (lambda t: t.snapshot(THREE).id, 3),
    "scan": (lambda t: t.scan(snapshot_id=THREE).count(), 3),
    "time": (lambda t: t.scan(timestamp=np.int64(4_102_444_800_000)).count(), 4),
    "limit": (lambda t: t.scan(limit=THREE).count(), 3),
    "head": (lambda t: t.head(THREE).num_rows, 3),
    "head of a scan": (lambda t: t.scan().head(np.uint8(2)).num_rows, 2),
    "changes": (lambda t: t.changes(ONE, TWO).count(), 1),
    "net changes": (lambda t: t.changes(ONE, TWO, mode="diff").count(), 1),
    "tag": (lambda t: t.create_tag("a", snapshot_id=ONE).snapshot_id, 1),
    "branch": (lambda t: t.create_branch("b", from_=ONE).count(), 1),
    "stream": (lambda t: t.stream(from_=TWO, until=THREE).poll().next_snapshot_id, 3),
    "watermark": (lambda t: t.write_arrow([{"k": 1}], watermark=TWO).snapshot_ids[0], 5),
    "identifier": (lambda t: t.commit(changes_of(t), user="u", identifier=ONE).snapshot_ids[0], 5),
    "filter": (lambda t: t.filter_committed("u", np.array([1, 2])), [1, 2]),
    "consumer": (consumed, 2),
    "expire": (lambda t: t.expire_snapshots(retain_min=ONE, retain_max=TWO, max_deletes=ONE).snapshot_ids, (1,)),
    "age": (lambda t: t.expire_snapshots(older_than=LONG_AGO, dry_run=True).snapshot_ids, ()),
    "rescale": (lambda t: t.rescale(TWO).snapshot_id, 5),
    "rollback": (lambda t: t.rollback_to(TWO).snapshot_id, 2),
    "lookup": (lambda t: t.lookup({"k": ONE}).num_rows, 1),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_whole_numbers_of_numpy_are_taken_where_those_of_python_are(table, name):
    call, expected = NUMBERS[name]
    found = call(table)
    assert found == expected and not isinstance(found, np.generic)


def test_writers_and_threads_may_be_counted_by_numpy(shared):
    assert shared.writer_numbers([{"k": 1}], TWO).to_pylist() in ([0], [1])
    with shared.writer(share=(ONE, TWO)) as writer:
        assert "Writer" in repr(writer)
    assert Env(threads=TWO).at_once("", [lambda: 1]) == [1]


@pytest.mark.parametrize("flag", [True, np.True_], ids=["python", "numpy"])
@pytest.mark.parametrize(
    "call",
    [
        lambda t, flag: t.snapshot(flag),
        lambda t, flag: t.scan(snapshot_id=flag),
        lambda t, flag: t.scan(limit=flag),
        lambda t, flag: t.head(flag),
        lambda t, flag: t.changes(flag, 2),
        lambda t, flag: t.create_tag("a", snapshot_id=flag),
        lambda t, flag: t.create_branch("b", from_=flag),
        lambda t, flag: t.stream(from_=flag),
        lambda t, flag: t.stream(until=flag),
        lambda t, flag: t.rollback_to(flag),
        lambda t, flag: t.rescale(flag),
        lambda t, flag: t.filter_committed("u", [flag]),
        lambda t, flag: t.expire_snapshots(retain_max=flag),
        lambda t, flag: t.write_arrow([{"k": 1}], watermark=flag),
        lambda t, flag: Env(threads=flag),
    ],
)
def test_true_is_no_number(table, call, flag):
    with pytest.raises(UsageError, match=r"(?i)true"):
        call(table, flag)
    assert table.snapshot().id == 4


WRITER = ["abort", "changes", "close", "discard", "restrict", "write_arrow"]
SPLIT = [
    "branch", "bucket", "files", "from_bytes", "partition", "row_count", "schema_id", "since", "size_bytes", "snapshot_id", "total_buckets",
]  # fmt: skip
CHANGES = ["base", "branch", "buckets", "concat", "file_count", "from_bytes", "is_empty", "row_count", "schema_id", "watermark"]


def offered(value):
    return [name for name in dir(value) if not name.startswith("_")]


def test_completion_offers_what_a_user_calls(table):
    with table.writer() as writer:
        writer.write_arrow([{"k": 9}])
        changes = writer.changes()
        assert offered(writer) == WRITER
        writer.discard(changes)
    assert offered(changes) == CHANGES and offered(table.scan().splits()[0]) == SPLIT


def test_a_writer_says_what_travels_in_its_place(table):
    with table.writer() as writer:
        for send in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(UsageError, match=r"send the table .* open table.writer\(\).*bytes\(writer.changes\(\)\)"):
                send(writer)
    stream = pickle.loads(pickle.dumps(table.stream(from_=1)))
    step = pickle.loads(pickle.dumps(stream.poll()))
    assert step.next_snapshot_id == 2


SINKS = {
    "catalog": (("warehouse", "d"), {}, "such as Catalog.open('warehouse')"),
    "database": ((None,), {}, "database is the name of a database"),
    "format": (("d",), {"format": "debezium"}, "'debezium-json'"),
    "options": (("d",), {"options": "bucket=1"}, "options map names to strings"),
    "routes": (("d",), {"routes": {"a": "b"}}, "routes are Routes"),
    "dead letters": (("d",), {"dead_letters": None}, "dead_letters is the name of a table"),
}


@pytest.mark.parametrize("name", SINKS)
def test_a_sink_of_change_events_refuses_what_is_none(catalog, name):
    given, named, words = SINKS[name]
    with pytest.raises(UsageError, match=re.escape(words)):
        Sink(*(given if len(given) == 2 else (catalog, *given)), user="u", **named)


LONG = 10**4400
LONG_NUMBERS = {
    "identifier": lambda t, n: t.write_arrow([{"k": 9}], user="u", identifier=n),
    "snapshot": lambda t, n: t.scan(snapshot_id=n),
    "position": lambda t, n: t.rollback_to(n),
    "time": lambda t, n: t.scan(timestamp=n),
    "row ids": lambda t, n: t.scan(row_ids=[n]),
    "identifiers": lambda t, n: t.filter_committed("u", [n]),
    "option": lambda t, n: t.alter(SetOption("snapshot.num-retained.max", n)),
    "option of a scan": lambda t, n: t.scan(options={"scan.snapshot-id": n}),
    "default": lambda t, n: t.alter(AddColumn("c", "INT", default=n)),
    "value": lambda t, n: t.update("k = 1", {"n": n}),
    "row": lambda t, n: t.write_arrow([{"k": n}]),
}


@pytest.mark.parametrize("name", LONG_NUMBERS)
@pytest.mark.parametrize("number", [LONG, -LONG], ids=["above", "below"])
def test_numbers_that_python_does_not_write_are_refused(table, name, number):
    """The message could not be made: "Exceeds the limit (4300 digits) for integer string conversion"."""
    with pytest.raises(UsageError):
        LONG_NUMBERS[name](table, number)
    assert table.snapshot().id == 4


def test_conditions_compare_with_numbers_of_any_length(table):
    assert table.scan(where=col("k") < LONG).count() == 4 and table.scan(where=f"k > 1{'0' * 4400}").count() == 0
    assert repr(lit(LONG)) == "lit(a whole number of 4,401 digits)"


ANY_VALUES = {
    "UUID": ("BYTES", uuid.UUID(int=5), uuid.UUID(int=5).bytes),
    "set": ("ARRAY<INT>", {7}, [7]),
    "whole decimal": ("INT", Decimal("2"), 2),
    "whole decimals in a list": ("ARRAY<INT>", [Decimal("2")], [2]),
    "decimal of Arrow": ("DOUBLE", pa.scalar(Decimal("2")), 2.0),
}


@pytest.mark.parametrize("name", ANY_VALUES)
def test_values_of_rows_are_values_of_updates(catalog, name):
    kind, value, expected = ANY_VALUES[name]
    made = catalog.create_table("d.one", Schema({"k": "BIGINT", "c": kind}))
    made.write_arrow([{"k": 1, "c": value}, {"k": 2, "c": None}, {"k": 3, "c": None}])
    made.update("k = 2", {"c": value})
    made.merge([{"k": 3}], on=["k"], when_matched_update={"c": lit(value)})
    assert made.to_arrow()["c"].to_pylist() == [expected] * 3


@pytest.mark.parametrize(("kind", "value"), [("INT", Decimal("2.5")), ("INT", 2.5), ("ARRAY<INT>", {"a"}), ("BYTES", "a")])
def test_values_that_rows_refuse_are_refused_by_updates(catalog, kind, value):
    made = catalog.create_table("d.one", Schema({"k": "BIGINT", "c": kind}))
    made.write_arrow([{"k": 2, "c": None}])
    for call in (lambda: made.write_arrow([{"k": 1, "c": value}]), lambda: made.update("k = 2", {"c": lit(value)})):
        with pytest.raises(SchemaError, match="c"):
            call()
