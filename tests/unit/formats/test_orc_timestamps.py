"""Timestamps in ORC beyond what pyarrow can read, and the parts of the ORC format that they need."""

from __future__ import annotations

import base64
import io
import random

import golden
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import orc
from unit.formats.samples import batches_of

from paimon_py.errors import CorruptionError, PaimonError, UnsupportedError
from paimon_py.formats.base import decoding
from paimon_py.formats.orc.chunks import LZ4, LZO, NONE, SNAPPY, ZLIB, ZSTD, Chunks, frame, join
from paimon_py.formats.orc.footer import SECONDARY_STREAM, TIMESTAMP_KINDS, read_stripe_footer, read_tail
from paimon_py.formats.orc.format import OrcFormat
from paimon_py.formats.orc.rle import decode_v1, decode_v2
from paimon_py.formats.orc.timestamps import LongTimestamps, as_timestamps, long_timestamps
from paimon_py.formats.orc.zones import base_seconds, wall_seconds
from paimon_py.formats.reshape import reshape
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field

# Written by Java Paimon 2.0.0 in Asia/Shanghai: years 1, 1812, 1900, 1969, 2024, 9999 and nulls.
SHANGHAI = base64.b85decode(
    "Pf|k>000UG5(EebPykE-0OQi&;$naUAt??vFA<6V`_CMIyg)|b-}`?Hf6Xm6xcSE>fDr&j0084s<Kkj~10e|xHZLKG|NR}0A1{zm_&5J"
    ">+poFB28;oW05Sjo<C5ZHXMg}9eh#((#w1RT1`dG+4v7X10384T3JeMa000005(EeePyt8)0OL~Q;$naUAqft4FCmHhUHccVS;(ZY;la"
    "O!zvdPjFa|IJ00jU5|NKP&0Qd#}pUK171LoP%^r-^?rDuNj0D|JgmjGshnm{_4ai>2d007HlWdMTPOdyg$pI?ZnO7Ir|1pom5{6zo&_y"
    "zyr%){9O=GoHpsRIC|XMXkog5t!N0A_-kKsuRmr#~G40A2+E002Dz001uo-5)&#0095|3jhGZ1poq62LJ&6*6arW0RHPhLI41(U}O4uc"
    "d<0%dcLK)3@bfl7#WoJNHl<1rD5~a{(-pw1poj90NeloP0TS0!!Qg5P+PH#aS1emf+!u6lukKA&yW*%O1yOG{h{BV3?0NnpD*Q@;?>zD"
    "H@&^6*g`vd&|m{qdqRhvLJw!C@Wx!uT+Up0=kTZH0u%ROkt+3YVqZ;1Ne&}_!~NdBzqPE}Q9k=o>JQie0OKm>V&Py9VBnJBVDl1@_`m<"
    "m@y82f6#l*cxA528VuPE1Yyub~?75_XvO*I7`#T<kW#=Dm1IaQ1<*c~`IoN<SZxSa*1BXBZheQJh7aIo`P>2nvjUA}%e%JnmYZfvoY<K"
    "`M6r@cb0K5SJ<6suJ$1KIe!7Q+jQDP6HLZJq`k^l#f5HlkavlL^A6l0YXW1^A}2d5Pu7iU3YW^R6-US^6AqXAG%2u;jTNtA<2h>-<N*h"
    "onMXdol26l1BC7_tnfsj-=bxsj!r0Tv644cM(%IM@RitYkRYyhJ4a?>}?=@d6ozfA9Y-{57}O;N~Bj0LBP=D=DC?ki`G~j>llx`G?y;v"
    "W!4EYb!wxHXzNL#L3aXA<)1f(ZFHF#=!*?VgqVp2Wq?DwSVE7g-i+?9zYBQY14O@;OD^*!I;EqsAs8X0RRZ$0T2NgfPfGp0ssssZ!igh"
    "^aBG=QbQO"
)
COLUMNS = (
    ("t", "TIMESTAMP(6)"),
    ("z", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
    ("a", {"type": "ARRAY", "element": {"type": "ROW", "fields": [{"id": 10, "name": "u", "type": "TIMESTAMP(0)"}]}}),
)
T = ("0000-12-30T00:00:00", "1812-06-24T04:05:06", "1900-06-01T12:00:00", "1969-12-31T23:59:59", "2024-07-01T12:00:00", "9999-12-31T23:59:59")
CODECS = {"uncompressed": NONE, "zlib": ZLIB, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}


def fields(**replaced):
    return [Field(place, name, parse_type(replaced.get(name, kind))) for place, (name, kind) in enumerate(COLUMNS)]


def read(data, columns, **replaced):
    opened = OrcFormat().open(io.BytesIO(data), "f.orc", fields(**replaced), len(data))
    table = pa.Table.from_batches(list(batches_of(opened, columns, batch_rows=4)))
    table.validate(full=True)
    kinds = dict(COLUMNS) | replaced
    return golden.normalise(table, [[name, kinds[name]] for name in columns])


def test_years_1_to_9999_of_a_writer_in_another_zone_read_as_in_java():
    assert [row[0] for row in read(SHANGHAI, ["t"])] == [
        T[0], T[1] + ".007008", T[2], T[3] + ".5", T[4] + ".123456", T[5] + ".999999", None
    ]


def test_instants_come_as_stored():
    assert [row[0] for row in read(SHANGHAI, ["z"])] == [
        "0000-12-29T16:00:00", "1812-06-23T20:05:06.007", "1900-06-01T03:54:17", "1969-12-31T15:59:59.5",
        "2024-07-01T04:00:00.123", "9999-12-31T15:59:59.999", None,
    ]


def test_timestamps_inside_rows_and_arrays_are_found():
    lists = [row[1] for row in read(SHANGHAI, ["t", "a"])]
    assert lists == [
        [],
        [{"u": T[1]}],
        [{"u": T[2]}, None],
        [{"u": T[3]}, None, {"u": None}],
        [{"u": T[4]}, None, {"u": None}, {"u": T[3]}],
        [{"u": T[5]}, None, {"u": None}, {"u": T[4]}],
        None,
    ]


def test_nanoseconds_out_of_their_range_are_refused_by_name():
    with pytest.raises(UnsupportedError) as caught:
        read(SHANGHAI, ["t"], t="TIMESTAMP(9)")
    assert "range" in caught.value.feature


def test_files_in_range_are_left_to_pyarrow():
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        sink = io.BytesIO()
        orc.write_table(pa.table({"t": pa.array([-(10**15), None, 10**15], kind)}), sink)
        assert long_timestamps(sink, orc.ORCFile(sink).schema) is None


# What long_timestamps reads where pyarrow reads right as well


def numbers(seed, count):
    """Nanoseconds before and after 1970 that make every kind of run."""
    dice = random.Random(seed)
    out = []
    while len(out) < count:
        run, unit = dice.randint(1, 700), 10 ** dice.choice([0, 0, 2, 3, 5, 6, 8, 9])
        first = dice.randint(-(10**18), 10**18) // unit
        step = dice.choice([0, 1, -3, 10**6])
        noise = dice.choice([0, 0, 3, 1000, 10**9])
        out += [(first + place * step + dice.randint(0, noise)) * unit for place in range(run)]
        if noise and dice.random() < 0.5:
            out += [dice.choice(out[-run:]) + dice.choice([0, 0, 0, 999_999_999]) for _ in range(200)]
    limit = 9_000_000_000_000_000_000
    return [(value + limit) % (2 * limit) - limit for value in out[:count]]


def shapes(seed, count):
    """Columns that hold the same numbers flat and nested, with nulls at each depth."""
    dice = random.Random(seed)
    flat = [value if dice.random() < 0.8 else None for value in numbers(seed, count)]
    inner = pa.struct([("n", pa.int32()), ("t", pa.timestamp("ns")), ("z", pa.timestamp("ns", "UTC"))])
    rows = [
        None if dice.random() < 0.2 else {"n": place, "t": value, "z": dice.choice(flat)} for place, value in enumerate(flat)
    ]
    cut = [
        None if dice.random() < 0.1 else rows[place : place + dice.randint(0, 3)] for place in range(len(rows))
    ]
    maps = [None if part is None else [(place, row) for place, row in enumerate(part)] for part in cut]
    return pa.table(
        {
            "t": pa.array(flat, pa.timestamp("ns")),
            "dense": pa.array([value or 0 for value in flat], pa.timestamp("ns")),
            "void": pa.nulls(len(flat), pa.timestamp("ns")),
            "n": pa.array(range(len(flat)), pa.int64()),
            "r": pa.array(rows, inner),
            "a": pa.array(cut, pa.list_(inner)),
            "m": pa.array(maps, pa.map_(pa.int32(), inner)),
            "k": pa.array([[(value, 1)] for value in numbers(seed + 1, len(flat))], pa.map_(pa.timestamp("ns"), pa.int8())),
        }
    )


def forced(data):
    """All timestamps of a file through LongTimestamps."""
    tail = read_tail(io.BytesIO(data))
    columns = frozenset(number for number, node in enumerate(tail.types) if node.kind in TIMESTAMP_KINDS)
    return LongTimestamps(io.BytesIO(data), tail, columns)


def paimon_type(kind):
    if pa.types.is_timestamp(kind):
        return f"TIMESTAMP(9){' WITH LOCAL TIME ZONE' if kind.tz else ''}"
    if pa.types.is_struct(kind):
        inside = [{"id": place, "name": f.name, "type": paimon_type(f.type)} for place, f in enumerate(kind)]
        return {"type": "ROW", "fields": inside}
    if pa.types.is_map(kind):
        return {"type": "MAP", "key": paimon_type(kind.key_type), "value": paimon_type(kind.item_type)}
    if pa.types.is_list(kind):
        return {"type": "ARRAY", "element": paimon_type(kind.value_type)}
    return {pa.int8(): "TINYINT", pa.int32(): "INT", pa.int64(): "BIGINT"}[kind]


def leaf(array, kind, target):
    return as_timestamps(array, target) if pa.types.is_struct(array.type) else array


def assert_same(data, names=None):
    theirs, ours = orc.ORCFile(io.BytesIO(data)), forced(data)
    file = orc.ORCFile(ours.source)
    for stripe in range(theirs.nstripes):
        want = theirs.read_stripe(stripe, columns=names)
        got = ours.complete(stripe, file.read_stripe(stripe, columns=names))
        for name in want.schema.names:
            kind = want.schema.field(name).type
            column = reshape(got.column(name), parse_type(paimon_type(kind)), kind, leaf)
            column.validate(full=True)
            assert column.equals(want.column(name)), name
    return theirs.nstripes


@pytest.mark.parametrize("version", ["0.11", "0.12"])
@pytest.mark.parametrize("codec", CODECS)
def test_both_decoders_agree_on_flat_and_nested_columns(codec, version):
    sink = io.BytesIO()
    orc.write_table(
        shapes(7, 2000), sink, compression=codec, file_version=version, stripe_size=1024, batch_size=500,
        compression_block_size=65_536,
    )
    assert read_tail(sink).chunks.codec == CODECS[codec]
    assert_same(sink.getvalue())
    assert_same(sink.getvalue(), ["m", "t"])


@pytest.mark.parametrize("codec", ["uncompressed", "zstd"])
def test_both_decoders_agree_in_every_stripe(codec):
    sink = io.BytesIO()
    values = np.random.default_rng(1).integers(-(2**62), 2**62, 60_000).tolist()
    table = pa.table({"t": pa.array(values, pa.timestamp("ns")), "n": pa.array(range(60_000), pa.int64())})
    orc.write_table(table, sink, compression=codec, stripe_size=65_536)
    assert assert_same(sink.getvalue()) > 2


@pytest.mark.parametrize("seed", range(8))
def test_both_decoders_agree_on_random_numbers(seed):
    sink = io.BytesIO()
    orc.write_table(shapes(seed, 2000).select(["t", "dense"]), sink, compression="zstd")
    assert_same(sink.getvalue())


def test_digits_beyond_the_unit_are_cut_off_towards_the_past():
    sink = io.BytesIO()
    table = pa.table({"t": pa.array([-1, -1_000_000_001, 1_999_999_999, None, 0], pa.timestamp("ns"))})
    orc.write_table(table, sink)
    ours = forced(sink.getvalue())
    pairs = ours.complete(0, orc.ORCFile(ours.source).read_stripe(0)).column(0)
    assert as_timestamps(pairs, pa.timestamp("s")).cast(pa.int64()).to_pylist() == [-1, -2, 1, None, 0]
    assert as_timestamps(pairs, pa.timestamp("us")).cast(pa.int64()).to_pylist() == [-1, -1_000_001, 1_999_999, None, 0]


# Zones


def test_before_1900_java_knows_only_the_standard_time_of_today():
    year_1, year_1899, year_1900 = -62_135_596_800, -2_208_988_801, -2_208_988_800
    stored = np.array([year_1, year_1899, year_1900], np.int64)
    ahead = (wall_seconds(stored, "Asia/Shanghai") - stored).tolist()
    assert ahead == [8 * 3600, 8 * 3600, 8 * 3600 + 343]


def test_summer_time_goes_on_for_ever():
    july = [1_720_000_000 + years * 146_097 * 86_400 // 400 for years in (0, 100, 1000, 7900)]
    stored = np.array([*july, july[0] - 15_778_476], np.int64)
    ahead = (wall_seconds(stored, "America/New_York") - stored).tolist()
    assert ahead == [-4 * 3600] * 4 + [-5 * 3600]


def test_seconds_count_from_2015_in_the_zone_of_the_writer():
    assert base_seconds("GMT") == 1_420_070_400
    assert base_seconds("Asia/Shanghai") == 1_420_070_400 - 8 * 3600


def test_an_unknown_zone_is_refused_by_name():
    with pytest.raises(UnsupportedError, match="Mars/Phobos"):
        wall_seconds(np.zeros(1, np.int64), "Mars/Phobos")


# Runs, as the specification of ORC gives them


@pytest.mark.parametrize(
    ("run", "values"),
    [
        ("0a2710", [10000] * 5),
        ("5e035ca1ab1edeadbeef", [23713, 43806, 57005, 48879]),
        ("c609020222424246", [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]),
        ("c00405" + "01", [5, 4, 3, 2, 1]),
        (
            "8e132b2107d01e00147028323c46505a646e78828c96a0aab4befce8",
            [2030, 2000, 2020, 1000000, *range(2040, 2200, 10)],
        ),
    ],
)
def test_runs_of_version_2(run, values):
    data = bytes.fromhex(run)
    assert decode_v2(data, len(values)).tolist() == values
    assert decode_v2(data + data, len(values) + 3).tolist() == values + values[:3]
    for length in range(len(data)):
        with pytest.raises((IndexError, EOFError)):
            decode_v2(data[:length], len(values))


def test_a_patch_may_lie_more_than_255_numbers_away():
    header = bytes([0x80 | 0 << 1 | 1, 44, 0x00 | 7, 7 << 5 | 2, 3])
    data = header + bytes(300 // 8 + 1) + ((255 << 8).to_bytes(2, "big") + (20 << 8 | 9).to_bytes(2, "big"))
    assert decode_v2(data, 301).tolist() == [3] * 275 + [3 + 18] + [3] * 25


@pytest.mark.parametrize(
    ("run", "values"),
    [
        ("610007", [7] * 100),
        ("61ff64", list(range(100, 0, -1))),
        ("fb020306070b", [2, 3, 6, 7, 11]),
        ("ff" + "f8ffffffffffffffff01", [-8]),
    ],
)
def test_runs_of_version_1(run, values):
    data = bytes.fromhex(run)
    assert decode_v1(data, len(values)).tolist() == values
    for length in range(len(data)):
        with pytest.raises(IndexError):
            decode_v1(data[:length], len(values))


# Damage


def test_chunks_stored_as_they_are_come_back():
    data = bytes(range(256)) * 10
    for codec in (NONE, ZLIB, LZO):
        chunks = Chunks(codec, 100)
        assert join(chunks, frame(chunks, data)) == data


def test_a_codec_that_is_not_there_is_refused_by_name():
    with pytest.raises(UnsupportedError, match="LZO"):
        join(Chunks(LZO, 100), b"\x02\x00\x00a")


@pytest.mark.parametrize("codec", [ZLIB, SNAPPY, LZ4, ZSTD])
def test_damaged_chunks_are_corruption(codec):
    dice = random.Random(codec)
    for _ in range(300):
        piece = dice.randbytes(dice.randint(0, 40))
        with decoding_or_corrupt():
            assert len(join(Chunks(codec, 1000), (len(piece) << 1).to_bytes(3, "little") + piece)) <= 1000


@pytest.mark.parametrize("codec", CODECS)
def test_a_damaged_stream_of_fractions_is_corruption_or_other_fractions(codec):
    sink = io.BytesIO()
    orc.write_table(shapes(3, 400).select(["t"]), sink, compression=codec)
    data = sink.getvalue()
    ours = forced(data)
    stripe = orc.ORCFile(ours.source).read_stripe(0)
    tail = read_tail(sink)
    stream = next(s for s in read_stripe_footer(sink, tail, tail.stripes[0]).streams if s.kind == SECONDARY_STREAM)
    dice = random.Random(5)
    refused = 0
    for _ in range(200):
        damaged = bytearray(data)
        damaged[stream.offset + dice.randrange(stream.length)] ^= 1 << dice.randrange(8)
        with decoding_or_corrupt() as outcome:
            result = LongTimestamps(io.BytesIO(bytes(damaged)), tail, frozenset({1})).complete(0, stripe)
            assert result.column(0).is_null().equals(stripe.column(0).is_null())
        refused += outcome.refused
    assert refused > 5


@pytest.mark.parametrize("codec", ["uncompressed", "zlib"])
def test_a_damaged_tail_is_corruption_or_another_tail(codec):
    sink = io.BytesIO()
    orc.write_table(shapes(3, 40), sink, compression=codec)
    data, schema = sink.getvalue(), orc.ORCFile(sink).schema
    first = read_tail(sink).footer_at
    for at in range(first, len(data), 2):
        damaged = bytearray(data)
        damaged[at] ^= 1 << at % 7
        with decoding_or_corrupt():
            long_timestamps(io.BytesIO(bytes(damaged)), schema)
    for length in range(0, len(data), 7):
        with decoding_or_corrupt():
            long_timestamps(io.BytesIO(data[:length]), schema)


def test_a_file_cut_short_is_corruption():
    for length in (1, 100, len(SHANGHAI) // 2, len(SHANGHAI) - 1):
        with pytest.raises(CorruptionError):
            read(SHANGHAI[:length], ["t"])


class decoding_or_corrupt:
    """Whatever is raised inside must be an error of this package."""

    refused = False

    def __enter__(self):
        self._decoding = decoding("f.orc")
        self._decoding.__enter__()
        return self

    def __exit__(self, kind, error, trace):
        try:
            self._decoding.__exit__(kind, error, trace)
        except PaimonError:
            self.refused = True
        self.refused |= isinstance(error, PaimonError)
        return kind is None or self.refused
