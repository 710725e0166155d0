"""Times before 1970 with fractions of a second: the bytes that Java writes for them, at every place of a file."""

import io
import random

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import orc
from unit.formats.samples import fields_of, read, write

from paimon_py.errors import UnsupportedError
from paimon_py.formats.base import WriteSettings
from paimon_py.formats.orc.chunks import join
from paimon_py.formats.orc.footer import (
    SECONDARY_STREAM,
    TIMESTAMP_KINDS,
    parts,
    read_at,
    read_stripe_footer,
    read_tail,
)
from paimon_py.formats.orc.format import OrcFormat
from paimon_py.formats.orc.rle import RUN, decode_v2, encode_v2, to_zigzag
from paimon_py.formats.orc.timestamps import codes_of, nanos_of

CODECS = ["none", "zstd", "snappy", "lz4", "zlib"]
UNITS = {0: ("s", 1), 3: ("ms", 10**3), 6: ("us", 10**6), 9: ("ns", 10**9)}
BASE = 1_420_070_400
SMALL = {"orc.row.index.stride": "1000", "orc.compress.size": "65536", "orc.stripe.size": "65536"}


def stamps(values, unit="us", zone=None):
    return pa.array(values, pa.int64()).cast(pa.timestamp(unit, zone))


def numbers(dice, precision, count):
    """Times of years 1 to 9999 and near 1970, but none that Java cannot say."""
    second = UNITS[precision][1]
    low, high = (-9 * 10**18, 9 * 10**18) if precision == 9 else (-62_135_596_800 * second, 253_402_300_800 * second - 1)
    milli = max(second // 1000, 1)
    draw = [
        lambda: None, lambda: dice.randint(low, high), lambda: dice.randint(-3 * second, -second),
        lambda: -second + dice.randint(0, milli - 1), lambda: -dice.randint(0, second // milli) * milli,
        lambda: dice.randint(0, 2 * second),
    ]  # fmt: skip
    return [number if number is None or number < -second + milli or number >= 0 else number // milli * milli
            for number in (dice.choice(draw)() for _ in range(count))]  # fmt: skip


def stored(data, column=1):
    """Seconds since 1970 and nanoseconds of a column as they stand in a file, over all stripes."""
    source = io.BytesIO(data)
    tail = read_tail(source)
    found = []
    for stripe in tail.stripes:
        streams = {s.kind: s for s in read_stripe_footer(source, tail, stripe).streams if s.column == column}
        seconds, nanos = (
            join(tail.chunks, read_at(source, streams[kind].offset, streams[kind].length)) for kind in (1, SECONDARY_STREAM)
        )
        count = stripe.row_count
        found += zip((decode_v2(seconds, count, signed=True) + BASE).tolist(), nanos_of(decode_v2(nanos, count)).tolist())
    return found


@pytest.mark.parametrize(
    ("nanos", "want"),
    [
        (-1_000_000_001, (-1, 999_999_999)),
        (-1_500_000_000, (-1, 500_000_000)),
        (-1_999_000_000, (-1, 1_000_000)),
        (-1_999_000_001, (-2, 999_999)),
        (-2_000_000_000, (-2, 0)),
        (-999_999_999, (-1, 1)),
        (-999_000_001, (-1, 999_999)),
        (-999_000_000, (0, -999_000_000)),
        (-1_000_000, (0, -1_000_000)),
        (1_500_000_000, (1, 500_000_000)),
    ],
)
def test_seconds_and_nanoseconds_are_those_of_java(nanos, want):
    """From a millisecond on Java cuts seconds off towards 1970; but in the last second it would read them wrong."""
    data, _ = write("orc", fields_of("TIMESTAMP(9)"), [pa.record_batch({"c0": stamps([nanos, -5_250_000_000], "ns")})])
    assert stored(data) == [want, (-5, 750_000_000)]


@pytest.mark.parametrize("precision", UNITS)
@pytest.mark.parametrize("codec", CODECS)
def test_random_times_come_back_through_our_reader_and_pyarrow(codec, precision):
    dice = random.Random(precision)
    unit = UNITS[precision][0]
    fields = fields_of(f"TIMESTAMP({precision})", f"TIMESTAMP({precision}) WITH LOCAL TIME ZONE", "INT")
    for count in (1, 2, RUN - 1, RUN, RUN + 1, 3 * RUN, 2500):
        values = numbers(dice, precision, count)
        columns = [stamps(values, unit), stamps(values[::-1], unit, "UTC"), pa.array(range(count), pa.int32())]
        batches = pa.Table.from_arrays(columns, ["c0", "c1", "c2"]).to_batches(max_chunksize=700)
        data, _ = write("orc", fields, batches, options={"orc.compress": codec, **SMALL})
        table = read("orc", data, fields)
        assert [table[name].combine_chunks() for name in ("c0", "c1", "c2")] == columns
        if precision == 9:
            assert orc.ORCFile(io.BytesIO(data)).read()["c0"].combine_chunks() == columns[0]


def nested(dice, count):
    inner = [None if dice.random() < 0.2 else {"u": value} for value in numbers(dice, 6, count)]
    lists = [None if dice.random() < 0.1 else [inner[at] for at in range(at, min(at + dice.randrange(4), count))] for at in range(count)]
    maps = [None if part is None else [(place, value and value["u"]) for place, value in enumerate(part)] for part in lists]
    row = pa.struct([("u", pa.timestamp("us"))])
    return pa.record_batch(
        {"c0": pa.array(inner, row), "c1": pa.array(lists, pa.list_(row)), "c2": pa.array(maps, pa.map_(pa.int32(), pa.timestamp("us")))}
    )


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_times_inside_rows_lists_and_maps_come_back(codec):
    row = {"type": "ROW", "fields": [{"id": 10, "name": "u", "type": "TIMESTAMP(6)"}]}
    fields = fields_of(row, {"type": "ARRAY", "element": row}, {"type": "MAP", "key": "INT", "value": "TIMESTAMP(6)"})
    batch = nested(random.Random(5), 3000)
    data, _ = write("orc", fields, [batch], options={"orc.compress": codec, **SMALL})
    table = read("orc", data, fields)
    for name in ("c0", "c1", "c2"):
        assert table[name].to_pylist() == batch.column(name).to_pylist()


def late_then_old():
    """Many late times, then many old ones: in stripes of their own."""
    dice = random.Random(1)
    late = [dice.randrange(2**50) for _ in range(30_000)]
    old = [-dice.randrange(10**6, 2**50) for _ in range(30_000)]
    return [pa.record_batch({"c0": stamps(part[at : at + 5000]), "c1": pa.array(range(5000), pa.int64())})
            for part in (late, old, late[::-1]) for at in range(0, 30_000, 5000)]  # fmt: skip


def test_stripes_before_the_first_old_time_reach_the_file_at_once():
    fields = fields_of("TIMESTAMP(6)", "BIGINT")
    sink = io.BytesIO()
    writer = OrcFormat().create(sink, fields, WriteSettings(options=SMALL))
    sizes = []
    for batch in late_then_old():
        writer.write(batch)
        sizes.append((len(sink.getvalue()), writer.bytes_written))
    writer.close()
    data = sink.getvalue()
    assert sizes[5][0] > 50_000 and sizes[6][0] == sizes[17][0] < len(data) / 2
    assert sizes[17][1] == pytest.approx(len(data), rel=0.2)
    table = read("orc", data, fields)
    assert table.equals(pa.Table.from_batches(late_then_old()).cast(table.schema))
    assert len(read_tail(io.BytesIO(data)).stripes) > 3


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("late", [1, 700, 40_000])
@pytest.mark.parametrize("old", [1, 700, 40_000])
def test_old_times_may_come_after_any_number_of_late_ones(late, old, codec):
    fields = fields_of("TIMESTAMP(6)")
    parts_ = [list(range(late)), [-5_000_001 - place * 1_000_003 for place in range(old)], [7], [-5_000_001], [8]]
    batches = [pa.record_batch({"c0": stamps(part)}) for part in parts_]
    data, _ = write("orc", fields, batches, options={"orc.compress": codec, **SMALL})
    assert read("orc", data, fields)["c0"].combine_chunks() == stamps(sum(parts_, []))


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (1, 0, 1)])
def test_stripes_and_row_groups_may_hold_nothing_but_nulls(order):
    fields = fields_of("TIMESTAMP(6)", "BIGINT")
    void = pa.array([None] * 40_000, pa.timestamp("us"))
    parts_ = [void, stamps([-5_000_001 - place * 1_000_003 for place in range(40_000)])]
    noise = pa.array(np.random.default_rng(1).integers(0, 2**62, 40_000))
    batches = [pa.record_batch({"c0": parts_[at], "c1": noise}) for at in order]
    data, _ = write("orc", fields, batches, options=SMALL)
    assert len(read_tail(io.BytesIO(data)).stripes) >= len(order)
    assert read("orc", data, fields)["c0"].to_pylist() == pa.chunked_array([parts_[at] for at in order]).to_pylist()


def bounds_of(statistics):
    """Nanoseconds of the least and greatest time."""
    for part in parts(statistics):
        if part.number == 9:
            inner = {one.number: one.value for one in parts(part.data)}
            low, high = ((inner[at] >> 1) ^ -(inner[at] & 1) for at in (3, 4))
            return low * 10**6 + inner.get(5, 1) - 1, high * 10**6 + inner.get(6, 10**6) - 1
    return None


def test_bounds_and_positions_of_row_groups_stripes_and_file_fit_the_values():
    fields = fields_of("TIMESTAMP(6)", "BIGINT")
    data, _ = write("orc", fields, late_then_old(), options=SMALL)
    source = io.BytesIO(data)
    tail = read_tail(source)
    values = [value * 1000 for batch in late_then_old() for value in batch.column(0).cast(pa.int64()).to_pylist()]
    assert bounds_of([part.data for part in parts(tail.footer) if part.number == 7][1]) == (min(values), max(values))
    content = sum(part.value for part in parts(tail.footer) if part.number == 2)
    assert content == sum(sum(stripe[1:4]) for stripe in tail.stripes) == sum(tail.stripes[-1][:4]) - 3
    first = checked = 0
    for stripe in tail.stripes:
        streams = {(s.kind, s.column): s for s in read_stripe_footer(source, tail, stripe).streams}
        raw = {kind: read_at(source, streams[kind, 1].offset, streams[kind, 1].length) for kind in (1, SECONDARY_STREAM, 6)}
        for number, entry in enumerate(parts(join(tail.chunks, raw[6]))):
            group = values[first + number * 1000 : min(first + number * 1000 + 1000, first + stripe.row_count)]
            held = {part.number: part.data for part in parts(entry.data)}
            assert bounds_of(held[2]) == (min(group), max(group))
            at, places = 0, []
            while at < len(held[1]):
                place, at = _varint(held[1], at)
                places.append(place)
            for kind, (chunk, byte, skipped) in ((1, places[-6:-3]), (SECONDARY_STREAM, places[-3:])):
                rest = join(tail.chunks, raw[kind][chunk:])[byte:]
                found = decode_v2(rest, skipped + len(group), signed=kind == 1)[skipped:]
                if kind == SECONDARY_STREAM:
                    assert nanos_of(found).tolist() == [value % 10**9 for value in group]
                checked += len(found)
        first += stripe.row_count
    assert checked == 2 * len(values)


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


@pytest.mark.parametrize(("precision", "value"), [(6, -1), (9, -1), (6, -998_999), (9, -998_999_999), (4, -1)])
def test_times_that_java_reads_a_second_late_are_refused(precision, value):
    unit = "ns" if precision > 6 else "us"
    with pytest.raises(UnsupportedError, match="last second before 1970"):
        write("orc", fields_of(f"TIMESTAMP({precision})"), [pa.record_batch({"c0": stamps([None, 5, value], unit)})])


def test_no_other_file_changes():
    """Files without such times are those of pyarrow, byte by byte."""
    fields = fields_of("TIMESTAMP(6)")
    batch = pa.record_batch({"c0": stamps([-(10**6), 0, 1, None, -(10**15), 253_402_300_799_999_999])})
    data, _ = write("orc", fields, [batch])
    tail = read_tail(io.BytesIO(data))
    assert [node.kind in TIMESTAMP_KINDS for node in tail.types] == [False, True]
    assert stored_or_none(data) == [-1, 0, 0, -(10**9), 253_402_300_799]


def stored_or_none(data):
    source = io.BytesIO(data)
    tail = read_tail(source)
    stream = next(s for s in read_stripe_footer(source, tail, tail.stripes[0]).streams if (s.kind, s.column) == (1, 1))
    raw = join(tail.chunks, read_at(source, stream.offset, stream.length))
    return (decode_v2(raw, 5, signed=True) + BASE).tolist()


@pytest.mark.parametrize("bits", [*range(1, 25), 26, 28, 29, 31, 33, 41, 49, 57, 64])
def test_numbers_of_every_width_come_back(bits):
    dice = np.random.default_rng(bits)
    for count in (1, RUN - 1, RUN, RUN + 1):
        values = (dice.integers(0, 2**64, count, np.uint64) >> np.uint64(64 - bits)).view(np.int64)
        runs = encode_v2(values)
        assert decode_v2(runs.data, count).tolist() == values.tolist()
        signed = values >> 1
        assert decode_v2(encode_v2(to_zigzag(signed)).data, count, signed=True).tolist() == signed.tolist()
        for number in (0, count // 2, count - 1):
            at, inside = runs.place(number)
            assert decode_v2(runs.data[at:], inside + 1)[inside] == values[number]
        assert runs.starts[-1] == len(runs.data)
    assert encode_v2(np.zeros(0, np.int64)).data == b""


def test_fractions_of_every_length_come_back():
    values = np.array([0, 1, 9, 10, 90, 100, 1000, 120_000, 999_999_999, 500_000_000, 100_000_000, -500_000_000, -1], np.int64)
    assert nanos_of(codes_of(values)).tolist() == values.tolist()
    assert codes_of(np.array([1000, 100_000, 10, 0], np.int64)).tolist() == [1 << 3 | 2, 1 << 3 | 4, 10 << 3, 0]
