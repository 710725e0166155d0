"""A buffer that went by way of the disk gives what one gives that stayed in memory, and leaves nothing behind."""

import errno

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.write.support import schema_of

from paimon_py.errors import CorruptionError, OptionError, StorageError
from paimon_py.lsm.buffer import MergeBuffer
from paimon_py.lsm.engines import engine_of
from paimon_py.lsm.groups import Merged
from paimon_py.lsm.order import merge_order
from paimon_py.lsm.spill import EveryRow, SpilledRuns, SpillSettings
from paimon_py.spec.options import Options
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.store_spill import StoreSpill

COLUMNS = {"k": "STRING NOT NULL", "n": "INT NOT NULL", "v": "INT", "w": "STRING"}
ARROW = pa.schema([("k", pa.string()), ("n", pa.int32()), ("v", pa.int32()), ("w", pa.string())])
TINY = SpillSettings(run_bytes=400, block_bytes=100, max_runs=3)


class Told:
    """An engine whose result tells every version it was given, in order: no other order and no part gives the same."""

    def inputs(self, wanted):
        return wanted

    def __call__(self, groups, columns):
        values = columns["w"].take(pa.array(groups.order)).to_pylist()
        texts = ["|".join(map(str, values[a:b])) for a, b in zip(groups.firsts, groups.ends)]
        return Merged(groups.newest_rows, {"w": pa.array(texts, pa.string())})


def keyed(**options):
    return schema_of(COLUMNS, primary_key=["k", "n"], options={key.replace("_", "."): v for key, v in options.items()})


ENGINES = {
    "deduplicate": (keyed(), None),
    "deduplicate by a field": (keyed(sequence_field="v"), None),
    "deduplicate ignoring deletes": (keyed(**{"ignore-delete": "true"}), None),
    "all versions in order": (keyed(), Told()),
    "all versions by a field, falling": (
        keyed(**{"sequence.field": "v", "sequence.field.sort-order": "descending"}), Told(),
    ),
    "first-row": (keyed(**{"merge-engine": "first-row", "ignore-delete": "true"}), None),
    "partial-update": (keyed(**{"merge-engine": "partial-update", "ignore-delete": "true"}), None),
}  # fmt: skip


def buffer_of(schema, engine=None, place=None, spill=TINY, **more):
    spilled = None if place is None else SpilledRuns(place, spill)
    return MergeBuffer(merge_order(schema), engine or engine_of(schema), 10, spilled, **more)


def new_place():
    return StoreSpill(MemoryStore())


def batch_of(rows):
    return pa.RecordBatch.from_pylist([dict(zip(ARROW.names, row[:4])) for row in rows], ARROW)


def drained(buffer, shown=None):
    """The rows that a buffer makes; `shown`: takes those that came in."""
    take = None if shown is None else (lambda batch: shown.extend(batch.to_pylist()))
    return [row for batch in buffer.drain(take) for row in batch.to_pylist()]


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["", "a", "a\0", "key-0000000000000001", "key-0000000000000002"]),
        st.integers(-2, 2),
        st.one_of(st.none(), st.integers(0, 3)),
        st.one_of(st.none(), st.text("xyz", max_size=30)),
        st.sampled_from([0, 0, 0, 2, 3]),
    ),
    max_size=40,
)


@pytest.mark.parametrize("name", ENGINES)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    parts=st.lists(st.tuples(ROWS, st.booleans()), max_size=12),
    run_bytes=st.integers(1, 3000),
    block_bytes=st.integers(1, 1000),
    max_runs=st.integers(2, 5),
    codec=st.sampled_from(["zstd", "lz4", None]),
)
def test_a_spilled_buffer_drains_like_one_in_memory(name, parts, run_bytes, block_bytes, max_runs, codec):
    schema, engine = ENGINES[name]
    place = new_place()
    spill = SpillSettings(run_bytes=run_bytes, block_bytes=block_bytes, max_runs=max_runs, compression=codec)
    spilled, plain = buffer_of(schema, engine, place, spill), buffer_of(schema, engine)
    for rows, spills in parts:
        kinds = pa.array([row[4] for row in rows], pa.int8()) if any(row[4] for row in rows) else None
        for buffer in (spilled, plain):
            buffer.add(batch_of(rows), kinds)
        if spills:
            spilled.spill()
            assert spilled.size_bytes == 0
        assert spilled.next_sequence == plain.next_sequence
        assert spilled.row_count == plain.row_count
    assert drained(spilled) == drained(plain)
    assert place.paths() == []
    assert (spilled.row_count, spilled.size_bytes, spilled.has_spilled) == (0, 0, False)
    assert spilled.next_sequence == plain.next_sequence
    assert drained(spilled) == []


@pytest.mark.parametrize("name", ENGINES)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    parts=st.lists(st.tuples(ROWS, st.booleans()), max_size=8),
    run_bytes=st.integers(1, 3000),
    block_bytes=st.integers(1, 1000),
    max_runs=st.integers(2, 5),
)
def test_every_version_is_reported_before_merging(name, parts, run_bytes, block_bytes, max_runs):
    schema, engine = ENGINES[name]
    spill = SpillSettings(run_bytes=run_bytes, block_bytes=block_bytes, max_runs=max_runs)
    spilled, whole = (
        buffer_of(schema, engine, place, spill, keeps_versions=True) for place in (new_place(), None)
    )  # fmt: skip
    plain = buffer_of(schema, engine)
    given_rows = []
    for rows, spills in parts:
        kinds = pa.array([row[4] for row in rows], pa.int8()) if any(row[4] for row in rows) else None
        for buffer in (spilled, whole, plain):
            buffer.add(batch_of(rows), kinds)
        if spills:
            spilled.spill()
        given_rows += [dict(zip(ARROW.names, row[:4])) | {"_VALUE_KIND": row[4]} for row in rows]
    shown, seen = [], []
    merged = drained(plain)
    assert drained(spilled, shown) == drained(whole, seen) == merged
    assert shown == seen
    for number, row in enumerate(given_rows):
        row["_SEQUENCE_NUMBER"] = 10 + number
    assert sorted(shown, key=lambda row: row["_SEQUENCE_NUMBER"]) == given_rows
    keys = [(row["k"].encode(), row["n"]) for row in shown]
    assert keys == sorted(keys)
    if not merge_order(schema).sequence:
        numbers = [(*key, row["_SEQUENCE_NUMBER"]) for key, row in zip(keys, shown)]
        assert numbers == sorted(numbers)


@pytest.mark.parametrize("name", ["deduplicate", "all versions in order"])
def test_a_key_with_more_versions_than_blocks_stays_whole(name):
    schema, engine = ENGINES[name]
    place = new_place()
    spilled, plain = buffer_of(schema, engine, place), buffer_of(schema, engine)
    for part in range(7):
        rows = [("b", 0, 1, f"{part}.{at}") for at in range(300)] + [("a", part, 1, "x"), ("c", part, 1, "y")]
        for buffer in (spilled, plain):
            buffer.add(batch_of(rows))
        spilled.spill()
    assert len(place.paths()) > TINY.max_runs
    got = drained(spilled)
    assert got == drained(plain)
    assert len(got) == 15


def test_runs_are_united_pass_by_pass_with_few_files_open():
    class Counting(StoreSpill):
        open = most = made = 0

        def create(self):
            Counting.made += 1
            return CountedFile(super().create())

    class CountedFile:
        def __init__(self, file):
            self.file, self.path = file, file.path
            self.open_write, self.delete = file.open_write, file.delete

        def open_read(self):
            source = self.file.open_read()
            Counting.open += 1
            Counting.most = max(Counting.most, Counting.open)
            close = source.close

            def closed():
                Counting.open -= not source.closed
                close()

            source.close = closed
            return source

    place = Counting(MemoryStore())
    schema = keyed()
    spill = SpillSettings(block_bytes=20_000, max_runs=3)
    spilled, plain = buffer_of(schema, Told(), place, spill), buffer_of(schema, Told())
    rows = batch_of([("k", at % 500, at, "w") for at in range(50_000)])
    for _ in range(4):
        for buffer in (spilled, plain):
            buffer.add(rows)
        spilled.spill()
    assert Counting.made == 4
    assert drained(spilled) == drained(plain)
    assert Counting.most == 3
    assert Counting.made == 5
    assert Counting.open == 0
    assert place.paths() == []


def test_rows_of_a_key_are_kept_apart_on_the_disk_unless_the_newest_wins_anyway():
    sizes = {}
    for name in ("deduplicate", "all versions in order"):
        schema, engine = ENGINES[name]
        place = new_place()
        buffer = buffer_of(schema, engine, place, SpillSettings(compression=None))
        buffer.add(batch_of([("a", 1, 1, "x" * 100)] * 1000))
        buffer.spill()
        (path,) = place.paths()
        sizes[name] = len(place.store.get(path))
    assert sizes["deduplicate"] < 3000
    assert sizes["all versions in order"] > 100_000


def test_compression_is_as_the_table_says_and_left_away_where_it_does_not_pay():
    noise = pa.table({"k": pa.array([str(n * 2654435761 % 2**32) for n in range(20_000)]), "v": pa.nulls(20_000)})

    def size(texts, **options):
        place = new_place()
        spilled = SpilledRuns(place, SpillSettings.of(Options(options)))
        spilled.add(pa.table({"t": texts}).to_batches())
        assert len(spilled) == 1
        assert spilled.size_bytes == len(place.store.get(place.paths()[0]))
        return spilled.size_bytes

    same = pa.array(["same text again"] * 20_000)
    plain = size(same, **{"spill-compression": "none"})
    assert size(same) < plain / 5
    assert size(same, **{"spill-compression": "lz4"}) < plain / 4
    assert size(same, **{"spill-compression": "lzo"}) == size(same, **{"spill-compression": "lz4"})
    random = noise.column("k")
    assert size(random) == size(random, **{"spill-compression": "none"}) or size(random) < 0.5 * plain
    assert size(random, **{"spill-compression": "zstd"}) < size(random, **{"spill-compression": "none"})
    best = size(random, **{"spill-compression.zstd-level": "19"})
    assert best < size(random, **{"spill-compression.zstd-level": "1"})
    with pytest.raises(OptionError, match="snappy"):
        SpillSettings.of(Options({"spill-compression": "snappy"}))


def test_a_full_disk_raises_a_storage_error_that_suggests_a_fix():
    class Full(StoreSpill):
        def create(self):
            raise OSError(errno.ENOSPC, "No space left on device")

    class FullFile:
        path = "/tmp/x"

        def open_write(self):
            raise OSError(errno.ENOSPC, "No space left on device")

        def delete(self):
            raise OSError(errno.EIO, "Input/output error")

    for made in (Full(MemoryStore()), type("Place", (), {"create": lambda self: FullFile()})()):
        buffer = buffer_of(keyed(), place=made)
        buffer.add(batch_of([("a", 1, 1, "x")]))
        with pytest.raises(StorageError, match="No space left on device.*TMPDIR.*write-buffer-spillable"):
            buffer.spill()
        buffer.clear()
        assert drained(buffer) == []


def test_a_run_that_was_cut_short_is_noticed():
    place = new_place()
    buffer = buffer_of(keyed(), place=place, spill=SpillSettings(block_bytes=100))
    buffer.add(batch_of([("a", at, at, "x" * 50) for at in range(1000)]))
    buffer.spill()
    (path,) = place.paths()
    place.store.put(path, place.store.get(path)[:-2000])
    with pytest.raises((StorageError, CorruptionError)):
        drained(buffer)
    buffer.clear()
    assert place.paths() == []


def test_a_flipped_bit_in_a_run_is_an_error_of_the_store_or_a_value():
    place = new_place()
    errors = 0
    for number in range(300):
        buffer = buffer_of(keyed(), place=place)
        buffer.add(batch_of([("a", 1, 1, "x")]))
        buffer.spill()
        (path,) = place.paths()
        good = place.store.get(path)
        bit = number * 37 % (8 * len(good))
        place.store.put(path, good[: bit >> 3] + bytes([good[bit >> 3] ^ 1 << (bit & 7)]) + good[(bit >> 3) + 1 :])
        try:
            assert sum(batch.num_rows for batch in buffer.drain()) <= 1
        except (StorageError, CorruptionError):
            errors += 1
        buffer.clear()
    assert errors > 30


def test_numbers_go_on_after_rows_were_spilled_and_drained():
    place = new_place()
    buffer = buffer_of(keyed(), place=place)
    for value in range(4):
        buffer.add(batch_of([("a", 1, value, "x"), ("b", 1, value, "x")]))
        if value != 2:
            buffer.spill()
        got = drained(buffer)
        assert [row["_SEQUENCE_NUMBER"] for row in got] == [10 + 2 * value, 11 + 2 * value]


def test_every_row_is_kept_by_the_engine_that_merges_nothing():
    assert EveryRow().inputs(frozenset("a")) == frozenset("a")
