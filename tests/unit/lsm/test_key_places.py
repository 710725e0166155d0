"""An index of keys answers like a dict, in memory and on disk, whatever the keys are made of and however they hash."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

from paimon_py import StorageError
from paimon_py.env import TemporarySpill
from paimon_py.lsm import key_places as key_index
from paimon_py.lsm.key_places import KeyPlaces
from paimon_py.lsm.key_runs import Run, group_keys, keys_of, merge_runs
from paimon_py.spec.type_text import parse_type
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.fault_store import SimulatedCrash, for_each_fault
from paimon_py.testing.store_spill import StoreSpill

KINDS = {
    "long": (["BIGINT"], lambda n: (n * 7_919,)),
    "negative": (["INT"], lambda n: (-n,)),
    "two ints": (["INT", "INT"], lambda n: (n % 40 - 20, -n)),
    "two longs": (["BIGINT", "BIGINT"], lambda n: (n % 40, n)),
    "text": (["STRING"], lambda n: (f"key-{'x' * (n % 20)}-{n}",)),
    "day and text": (["DATE", "STRING"], lambda n: (datetime.date(2024, 1, 1 + n % 28), str(n))),
    "decimal": (["DECIMAL(30, 2)"], lambda n: (n * 1000,)),
    "double": (["DOUBLE"], lambda n: (n / 3,)),
}


def types_of(kind):
    return [parse_type(f"{text} NOT NULL") for text in KINDS[kind][0]]


def arrow(kind, numbers):
    made = [KINDS[kind][1](n) for n in numbers]
    to = {"BIGINT": pa.int64(), "INT": pa.int32(), "STRING": pa.string(), "DATE": pa.date32(), "DOUBLE": pa.float64()}
    return [
        pa.array([row[at] for row in made], to.get(text, pa.decimal128(30, 2)))
        for at, text in enumerate(KINDS[kind][0])
    ]


def few_hashes(columns, types):
    """A hash that hardly says anything."""
    from paimon_py.codec.binary_row import hash_rows

    return (hash_rows(columns, types) % 3).astype(np.int32)


def play(index, kind, seed, *, hashed=None, rounds=12, size=300):
    """Put and find at random, beside a dict."""
    rng = np.random.default_rng(seed)
    model: dict[int, int] = {}
    more = {} if hashed is None else {"hashed": hashed}
    for _ in range(rounds):
        numbers = rng.integers(0, 2_000, size).tolist()
        keys = keys_of(arrow(kind, numbers), types_of(kind), **more)
        order, starts = group_keys(keys)
        assert int(starts.sum()) == len(set(numbers))
        groups = np.cumsum(starts) - 1
        assert [numbers[row] for row in order[starts].tolist()] == [
            numbers[order[np.flatnonzero(groups == group)[0]]] for group in range(len(set(numbers)))
        ]
        firsts = order[starts]
        asked = [numbers[row] for row in firsts.tolist()]
        distinct = keys.take(firsts)
        assert index.find(distinct).tolist() == [model.get(number, -1) for number in asked]
        places = rng.integers(0, 1 << 40, len(asked))
        put = np.flatnonzero(rng.random(len(asked)) < 0.7)
        index.put(Run(distinct.take(put), places[put]))
        model.update({asked[at]: int(places[at]) for at in put.tolist()})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [1 << 30, 4_000])
def test_every_key_has_the_place_it_got_last(kind, limit):
    index = KeyPlaces(TemporarySpill(), limit)
    play(index, kind, 1)
    index.clear()


@pytest.mark.parametrize("kind", ["two longs", "text"])
@pytest.mark.parametrize("limit", [1 << 30, 4_000])
def test_keys_with_equal_hashes_are_distinguished(kind, limit, monkeypatch):
    monkeypatch.setattr(key_index, "_BLOCK_KEYS", 64)
    index = KeyPlaces(StoreSpill(MemoryStore()), limit)
    play(index, kind, 2, hashed=few_hashes, rounds=6, size=150)


def test_small_blocks_and_many_files_change_nothing(monkeypatch):
    monkeypatch.setattr(key_index, "_BLOCK_KEYS", 16)
    store = MemoryStore()
    index = KeyPlaces(StoreSpill(store), 1)
    play(index, "two longs", 3, rounds=20, size=100)
    assert 1 <= len(StoreSpill(store).paths()) <= 6, "older runs are merged and deleted"
    index.clear()
    assert StoreSpill(store).paths() == []


def test_equal_keys_stay_in_the_order_in_which_they_came():
    keys = keys_of([pa.array(["b", "a", "b", "c", "a", "b"])], types_of("text"), few_hashes)
    order, starts = group_keys(keys)
    texts = np.array(list("babcab"))[order].tolist()
    begins = np.flatnonzero(starts).tolist()
    groups = [order[start:stop].tolist() for start, stop in zip(begins, [*begins[1:], 6])]
    assert sorted(groups) == [[0, 2, 5], [1, 4], [3]], texts


def test_floats_are_keys_as_the_format_compares_them():
    odd = np.array([0x7FF8_0000_0000_0001, 0x7FF8_0000_0000_0000], np.uint64).view(np.float64)
    for more in ([], [pa.array([1, 1, 1, 1], pa.int64())]):
        types = [parse_type("DOUBLE NOT NULL"), *(parse_type("BIGINT NOT NULL") for _ in more)]
        values = pa.array(np.concatenate([odd, [0.0, -0.0]]).tolist(), pa.float64())
        _, starts = group_keys(keys_of([values, *more], types))
        assert int(starts.sum()) == 3, "one NaN, and two zeros"


def test_the_newest_run_wins_a_merge():
    runs = []
    for number in range(3):
        keys = keys_of([pa.array(["a", "b", "c"][number:])], types_of("text"))
        order, _ = group_keys(keys)
        runs.append(Run(keys.take(order), np.full(len(order), number)))
    assert sorted(merge_runs(runs).places.tolist()) == [0, 1, 2]


def test_a_failing_disk_is_named_and_nothing_is_left_on_it():
    def work(store):
        index = KeyPlaces(StoreSpill(store), 1)
        try:
            play(index, "text", 4, rounds=5, size=4)
        finally:
            index.clear()

    def check(store, outcome):
        assert outcome.error is None or isinstance(outcome.error, (StorageError, SimulatedCrash)), outcome.error
        if not isinstance(outcome.error, SimulatedCrash) and outcome.fault.verb != "delete":
            assert StoreSpill(store).paths() == []

    assert for_each_fault(MemoryStore, work, check) > 50


def test_a_full_disk_says_where_to_put_the_index():
    class Full:
        path = "/full/run-1"

        def open_write(self):
            raise OSError(28, "No space left on device")

        def delete(self):
            raise OSError(2, "never there")

    class Place:
        def create(self):
            return Full()

    index = KeyPlaces(Place(), 1)
    with pytest.raises(StorageError, match=r"/full/run-1.*TMPDIR"):
        play(index, "long", 5)
