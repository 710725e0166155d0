"""The write buffer gives one sorted run with each key once, the newest version of it."""

import numpy as np
import pyarrow as pa
import pytest
from unit.write.support import schema_of

from paimon_py.lsm.buffer import WINDOW_ROWS, MergeBuffer
from paimon_py.lsm.engines.deduplicate import Deduplicate
from paimon_py.lsm.order import merge_order


def buffer_of(schema, first=0):
    return MergeBuffer(merge_order(schema), Deduplicate(), first)


def plain():
    return schema_of({"k": "INT NOT NULL", "v": "STRING"}, primary_key=["k"])


def batch(keys, values):
    return pa.record_batch([pa.array(keys, pa.int32()), pa.array(values)], ["k", "v"])


def drained(buffer):
    return pa.Table.from_batches(list(buffer.drain())).to_pylist()


def test_the_newest_version_of_a_key_keeps_its_number_and_kind():
    buffer = buffer_of(plain(), first=100)
    buffer.add(batch([3, 1], ["a", "b"]))
    buffer.add(batch([3, 2], ["c", "d"]), pa.array([3, 2], pa.int8()))
    buffer.add(batch([1], ["e"]))
    assert buffer.row_count == 5
    assert buffer.next_sequence == 105
    assert drained(buffer) == [
        {"_SEQUENCE_NUMBER": 104, "_VALUE_KIND": 0, "k": 1, "v": "e"},
        {"_SEQUENCE_NUMBER": 103, "_VALUE_KIND": 2, "k": 2, "v": "d"},
        {"_SEQUENCE_NUMBER": 102, "_VALUE_KIND": 3, "k": 3, "v": "c"},
    ]


def test_draining_empties_the_buffer_and_numbers_go_on():
    buffer = buffer_of(plain())
    buffer.add(batch([1], ["a"]))
    assert len(drained(buffer)) == 1
    assert (buffer.row_count, buffer.size_bytes, buffer.next_sequence) == (0, 0, 1)
    assert list(buffer.drain()) == []
    buffer.add(batch([1], ["b"]))
    assert drained(buffer)[0]["_SEQUENCE_NUMBER"] == 1


def test_sequence_fields_decide_before_arrival():
    schema = schema_of({"k": "INT NOT NULL", "v": "INT"}, primary_key=["k"], options={"sequence.field": "v"})
    descending = schema_of(
        {"k": "INT NOT NULL", "v": "INT"}, primary_key=["k"],
        options={"sequence.field": "v", "sequence.field.sort-order": "descending"},
    )  # fmt: skip
    for given, best in ((schema, 9), (descending, 4)):
        buffer = buffer_of(given)
        buffer.add(batch([1, 1, 1, 1], pa.array([9, None, 4, 7], pa.int32())))
        (row,) = drained(buffer)
        assert row["v"] == best


def test_sorted_unique_rows_are_not_copied():
    values = pa.array(range(1000), pa.int64())
    buffer = buffer_of(schema_of({"k": "BIGINT NOT NULL"}, primary_key=["k"]))
    buffer.add(pa.record_batch([values], ["k"]))
    (out,) = buffer.drain()
    assert out.column("k").buffers()[1].address == values.buffers()[1].address


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_windows_continue_each_other(seed):
    random = np.random.default_rng(seed)
    buffer = buffer_of(plain(), first=7)
    latest = {}
    number = 7
    for size in (1, 150_000, 100_000, 3):
        keys = random.integers(-(2**31), 2**31, size).astype(np.int32)
        keys[: size // 2] = random.integers(0, 1000, size // 2)
        values = [str(number + i) for i in range(size)]
        kinds = random.integers(0, 4, size).astype(np.int8)
        buffer.add(batch(keys.tolist(), values), pa.array(kinds.tolist(), pa.int8()))
        latest.update(zip(keys.tolist(), zip(range(number, number + size), kinds.tolist(), strict=True), strict=True))
        number += size
    batches = list(buffer.drain())
    assert max(b.num_rows for b in batches) <= WINDOW_ROWS
    table = pa.Table.from_batches(batches)
    assert table.column("k").to_pylist() == sorted(latest)
    found = zip(
        table.column("k").to_pylist(), table.column("_SEQUENCE_NUMBER").to_pylist(),
        table.column("_VALUE_KIND").to_pylist(), table.column("v").to_pylist(), strict=True,
    )  # fmt: skip
    assert all(latest[k] == (sequence, kind) and v == str(sequence) for k, sequence, kind, v in found)


def test_composite_text_keys_sort_by_bytes():
    schema = schema_of({"a": "STRING NOT NULL", "b": "BYTES NOT NULL"}, primary_key=["a", "b"])
    buffer = buffer_of(schema)
    rows = [("\uffff", b"a"), ("😀", b""), ("a", b"\xff"), ("a", b"\x00"), ("", b"z"), ("a", b"\xff")]
    buffer.add(pa.record_batch([pa.array([a for a, _ in rows]), pa.array([b for _, b in rows])], ["a", "b"]))
    found = [(row["a"], row["b"]) for row in drained(buffer)]
    assert found == sorted(set(rows), key=lambda row: (row[0].encode(), row[1]))
