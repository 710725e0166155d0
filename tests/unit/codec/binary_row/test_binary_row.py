"""BinaryRows against the worked examples of the format (format.md §6.4, §7.1) and against themselves."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.binary_row import decode, decode_at, encode, hash_rows
from paimon_py.errors import CorruptionError, UnsupportedError
from paimon_py.spec.types import MAX_LENGTH, ArrayType, Atomic, Field, MapType, MultisetType, Root, RowType

INT, BIGINT, DOUBLE = Atomic(Root.INT), Atomic(Root.BIGINT), Atomic(Root.DOUBLE)
STRING = Atomic(Root.VARCHAR, length=MAX_LENGTH)
BYTES = Atomic(Root.VARBINARY, length=MAX_LENGTH)
WIDE = Atomic(Root.DECIMAL, precision=20, scale=3)
MICROS = Atomic(Root.TIMESTAMP, precision=6)
ODDMENTS = [
    Atomic(Root.DECIMAL, precision=10, scale=2),
    WIDE,
    Atomic(Root.TIMESTAMP, precision=3),
    MICROS,
    Atomic(Root.TIMESTAMP_LTZ, precision=9),
]
D = decimal.Decimal
PAIR = RowType((Field(0, "x", INT), Field(1, "y", STRING)))
TIME_OF_ALL = datetime.datetime.fromisoformat("2024-01-02T03:04:05.678901")

GOLDEN = {
    "int": ([INT], (1,), "00000001 0000000000000000 0100000000000000", 1465514398),
    "short string and null": (
        [INT, STRING, BIGINT],
        (1, "hi", None),
        "00000003 0004000000000000 0100000000000000 6869000000000082 0000000000000000",
        1104927149,
    ),
    "eight bytes go to the variable part": (
        [INT, STRING, BIGINT],
        (7, "12345678", 5),
        "00000003 0000000000000000 0700000000000000 0800000020000000 0500000000000000 3132333435363738",
        -60090232,
    ),
    "18 digits stay in the slot and 19 do not": (
        [Atomic(Root.DECIMAL, precision=18, scale=2), Atomic(Root.DECIMAL, precision=19, scale=2)],
        (D("1234567890123456.78"), D("1.00")),
        "00000002 0000000000000000 4ef330a64b9bb601 0100000018000000 6400000000000000 0000000000000000",
        334243500,
    ),
    "padding": (
        [INT, STRING, BIGINT],
        (7, "hello paimon", -2),
        "00000003 0000000000000000 0700000000000000 0c00000020000000 feffffffffffffff"
        " 68656c6c6f207061 696d6f6e00000000",
        1494117420,
    ),
    "fixed width": (
        [Atomic(Root.BOOLEAN), Atomic(Root.TINYINT), Atomic(Root.SMALLINT), Atomic(Root.FLOAT), DOUBLE]
        + [Atomic(Root.DATE), Atomic(Root.TIME, precision=3)],
        (True, -1, -2, 1.5, -2.25, datetime.date(2024, 5, 14), datetime.time(12, 34, 56, 789000)),
        "00000007 0000000000000000 0100000000000000 ff00000000000000 feff000000000000 0000c03f00000000"
        " 00000000000002c0 914d000000000000 952cb30200000000",
        768434597,
    ),
    "decimals and timestamps": (
        ODDMENTS,
        (
            D("123.45"),
            D("-123456789012.345"),
            TIME_OF_ALL.replace(microsecond=678000),
            TIME_OF_ALL,
            1704164645123456789,
        ),
        "00000005 0000000000000000 3930000000000000 0600000030000000 2edb20c88c010000 88bf0d0040000000"
        " 55f8060048000000 8fb779f220870000 0000000000000000 2edb20c88c010000 03d920c88c010000",
        -750172971,
    ),
    "nulls keep their reserved bytes": (
        ODDMENTS,
        (None,) * 5,
        "00000005 001f000000000000 0000000000000000 0000000030000000 0000000000000000 0000000040000000 0000000048000000"
        + "00" * 32,
        -9341372,
    ),
    "binaries": (
        [BYTES, Atomic(Root.VARBINARY, length=3)],
        (bytes.fromhex("0102030405060708ff"), bytes.fromhex("0a0b")),
        "00000002 0000000000000000 0900000018000000 0a0b000000000082 0102030405060708 ff00000000000000",
        -1045769409,
    ),
    "nested": (
        [ArrayType(INT), ArrayType(STRING), MapType(STRING, BIGINT), PAIR],
        ([1, None, 3], ["a", "long string value"], [("k1", 1), ("key-two-long", None)], {"x": 9, "y": "z"}),
        "00000004 0000000000000000 1800000028000000 3000000040000000 4400000070000000 18000000b8000000"
        " 03000000 02000000 01000000 00000000 03000000 00000000"
        " 02000000 00000000 6100000000000081 1100000018000000 6c6f6e6720737472696e672076616c756500000000000000"
        " 28000000 02000000 00000000 6b31000000000082 0c00000018000000 6b65792d74776f2d6c6f6e6700000000"
        " 02000000 02000000 0100000000000000 0000000000000000 00000000"
        " 0000000000000000 0900000000000000 7a00000000000081",
        1605995302,
    ),
}

HASHES = [
    (INT, 0, -300363099),
    (INT, 2, 1340390384),
    (INT, -1, 1133687267),
    (INT, 2147483647, -1125657321),
    (INT, -2147483648, 916225219),
    (BIGINT, -1, -821098432),
    (BIGINT, 2**63 - 1, -1566569095),
    (DOUBLE, 1.5, 1860889473),
    (DOUBLE, 0.0, -300363099),
    (DOUBLE, -0.0, 302122119),
    (STRING, "", 302122119),
    (STRING, "a", 943281246),
    (STRING, "abc", -101922419),
    (STRING, "1234567", 199144172),
    (STRING, "12345678", -391021801),
    (STRING, "hello paimon", 168916036),
    (STRING, "中文", 1956728004),
    (Atomic(Root.DATE), datetime.date(2024, 5, 14), 1806713378),
    (MICROS, TIME_OF_ALL, 828821739),
    (Atomic(Root.DECIMAL, precision=10, scale=2), D("123.45"), 767607022),
    (WIDE, D("-123456789012.345"), -1965313918),
    (Atomic(Root.DECIMAL, precision=20, scale=0), D(127), 1891628258),
    (Atomic(Root.DECIMAL, precision=20, scale=0), D(128), -795104203),
    (Atomic(Root.DECIMAL, precision=20, scale=0), D(-128), 1196242097),
    (Atomic(Root.DECIMAL, precision=20, scale=0), D(-129), -104809469),
    (Atomic(Root.DECIMAL, precision=20, scale=0), D(-32768), -1316820663),
    (Atomic(Root.DECIMAL, precision=20, scale=0), None, -1380280760),
]


def columns_of(types, rows):
    return [pa.array([row[i] for row in rows], type=to_arrow_type(kind)) for i, kind in enumerate(types)]


@pytest.mark.parametrize("name", GOLDEN)
def test_rows_have_the_bytes_and_hash_of_the_format(name):
    types, row, text, code = GOLDEN[name]
    columns = columns_of(types, [row])
    rows = encode(columns, types)
    assert rows[0].as_py() == bytes.fromhex(text)
    assert hash_rows(columns, types).tolist() == [code]
    for column, back in zip(columns, decode(rows, types), strict=True):
        back.validate(full=True)
        assert back.equals(column)


def test_seven_bytes_are_stored_in_the_slot_and_longer_strings_are_not():
    for kind, texts in ((STRING, ["1234567", "12345678", "中文a"]), (BYTES, [b"1234567", b"12345678", b"\xff" * 7])):
        rows = encode([pa.array(texts, to_arrow_type(kind))], [kind]).to_pylist()
        short = [text.encode() if kind is STRING else text for text in (texts[0], texts[2])]
        assert [rows[0], rows[2]] == [bytes.fromhex("000000010000000000000000") + text + b"\x87" for text in short]
        assert rows[1] == bytes.fromhex("0000000100000000000000000800000010000000") + b"12345678"


@pytest.mark.parametrize(("kind", "value", "code"), HASHES)
def test_single_keys_hash_as_in_java(kind, value, code):
    column = pa.array([value], type=to_arrow_type(kind))
    assert hash_rows([column], [kind]).tolist() == [code]


def test_composite_keys_hash_as_in_java():
    columns = [pa.array([1, 1, None], pa.int32()), pa.array(["a", None, "a"])]
    assert hash_rows(columns, [INT, STRING]).tolist() == [-948407462, -74682006, -193201184]


def test_a_row_without_columns_is_arity_and_header():
    assert encode([], []).to_pylist() == [bytes(12)]
    assert encode([], [], count=3).to_pylist() == [bytes(12)] * 3


def all_types():
    atoms = [Atomic(root) for root in (Root.BOOLEAN, Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT)]
    atoms += [Atomic(Root.FLOAT), DOUBLE, Atomic(Root.DATE), Atomic(Root.TIME, precision=3), STRING, BYTES]
    atoms += [Atomic(Root.CHAR, length=5), Atomic(Root.DECIMAL, precision=38, scale=10), WIDE]
    atoms += [Atomic(Root.TIMESTAMP, precision=p) for p in (0, 3, 6, 9)]
    atoms += [Atomic(Root.TIMESTAMP_LTZ, precision=p) for p in (0, 3, 6, 9)]
    return [*atoms, Atomic(Root.DECIMAL, precision=18, scale=2)]


def sample(kind, count, seed):
    """Deterministic values with about a tenth nulls, as an array that starts inside its buffers."""
    random = np.random.default_rng(seed)
    arrow = to_arrow_type(kind)
    size = count + 13
    values: list = []
    for _ in range(size):
        if random.random() < 0.1:
            values.append(None)
        else:
            values.append(value_of(kind, random))
    return pa.array(values, type=arrow).slice(13)


def value_of(kind, random):
    match kind:
        case ArrayType(element=element):
            return [optional(element, random) for _ in range(random.integers(0, 40))]
        case MapType(key=key, value=value):
            return [(value_of(key, random), optional(value, random)) for _ in range(random.integers(0, 5))]
        case MultisetType(element=element):
            return [(value_of(element, random), int(random.integers(1, 9))) for _ in range(random.integers(0, 5))]
        case RowType(fields=fields):
            return {field.name: optional(field.type, random) for field in fields}
    root = kind.root
    big = int(random.integers(-(2**63), 2**63, dtype=np.int64)) >> int(random.integers(0, 63))
    if root is Root.BOOLEAN:
        return bool(big & 1)
    if root is Root.BIGINT:
        return big
    if root in (Root.TINYINT, Root.SMALLINT, Root.INT, Root.DATE):
        bits = {Root.TINYINT: 8, Root.SMALLINT: 16}.get(root, 32)
        return (big & (2**bits - 1)) - 2 ** (bits - 1)
    if root is Root.TIME:
        return big % 86_400_000
    if root in (Root.FLOAT, Root.DOUBLE):
        return float(np.float32(random.normal() * 10.0 ** random.integers(-30, 30)))
    if root in (Root.CHAR, Root.VARCHAR):
        return "aé中😀"[big % 4] * int(random.choice([0, 1, 2, 3, 7, 8, 9, 40]))
    if root is Root.VARBINARY:
        return random.bytes(int(random.choice([0, 1, 6, 7, 8, 9, 16, 33, 700])))
    if root is Root.DECIMAL:
        limit = 10**kind.precision - 1
        unscaled = int(random.integers(0, 2**62)) ** 3 % (limit + 1) // 10 ** int(random.integers(0, kind.precision))
        return D(unscaled if big & 1 else -unscaled).scaleb(-kind.scale, decimal.Context(prec=60))
    seconds = big % 8_000_000_000 - 4_000_000_000
    per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[to_arrow_type(kind).unit]
    return seconds * per + abs(big) % per


def optional(kind, random):
    return None if kind.nullable and random.random() < 0.2 else value_of(kind, random)


NESTED = [
    ArrayType(Atomic(Root.BOOLEAN)),
    ArrayType(Atomic(Root.SMALLINT)),
    ArrayType(WIDE),
    ArrayType(MICROS),
    ArrayType(ArrayType(STRING)),
    MapType(Atomic(Root.INT, nullable=False), ArrayType(INT)),
    MultisetType(STRING),
    RowType((Field(0, "a", WIDE), Field(1, "b", ArrayType(RowType((Field(2, "c", STRING), Field(3, "d", INT))))))),
]


@pytest.mark.parametrize("kind", all_types() + NESTED, ids=str)
def test_decode_inverts_encode(kind):
    column = sample(kind, 60 if kind in NESTED else 300, seed=7)
    rows = encode([column, column], [kind, kind])
    for back in decode(rows, [kind, kind]):
        back.validate(full=True)
        assert back.equals(column)


def test_many_columns_need_a_second_header_word():
    types = [INT] * 57 + [STRING] * 6
    rows = [[None if (i + r) % 3 == 0 else (str(i) * 9 if i > 56 else i) for i in range(63)] for r in range(5)]
    columns = columns_of(types, rows)
    assert [c.to_pylist() for c in decode(encode(columns, types), types)] == [c.to_pylist() for c in columns]
    assert encode(columns, types)[0].as_py()[4:20] != bytes(16)


def murmur(data):
    """The hash as format.md §7.1 words it."""
    mask, value = 0xFFFFFFFF, 42
    for (word,) in np.frombuffer(data, "<u4").reshape(-1, 1).tolist():
        word = word * 0xCC9E2D51 & mask
        word = (word << 15 | word >> 17) & mask
        value ^= word * 0x1B873593 & mask
        value = ((value << 13 | value >> 19) * 5 + 0xE6546B64) & mask
    value ^= len(data)
    value = (value ^ value >> 16) * 0x85EBCA6B & mask
    value = (value ^ value >> 13) * 0xC2B2AE35 & mask
    value ^= value >> 16
    return value - 2**32 if value >= 2**31 else value


def test_the_hash_of_columns_is_the_hash_of_the_row_bytes():
    types = all_types() + NESTED
    columns = [sample(kind, 40, seed=index) for index, kind in enumerate(types)]
    codes = hash_rows(columns, types).tolist()
    assert codes == [murmur(row[4:]) for row in encode(columns, types).to_pylist()]


def test_very_long_strings_hash_word_by_word():
    column = pa.array(["x" * 5000, "short", None, "y" * 4999, "0123456789"])
    assert hash_rows([column], [STRING]).tolist() == [murmur(r[4:]) for r in encode([column], [STRING]).to_pylist()]


def test_a_chunked_column_and_more_rows_than_a_chunk_hash_alike():
    values = np.arange(150_000)
    column = pa.chunked_array([pa.array(values[:70_000].tolist()), pa.array(values[70_000:].tolist())])
    whole = hash_rows([column], [BIGINT])
    assert whole[[0, 65_535, 65_536, 149_999]].tolist() == [
        hash_rows([pa.array([i])], [BIGINT])[0] for i in (0, 65_535, 65_536, 149_999)
    ]


def test_only_wanted_columns_are_decoded():
    rows = encode(columns_of([INT, STRING], [(1, "a"), (2, "b")]), [INT, STRING])
    variant = Atomic(Root.VARIANT)
    assert [c.to_pylist() for c in decode(rows, [variant, STRING], wanted=[1])] == [["a", "b"]]
    with pytest.raises(UnsupportedError) as caught:
        decode(rows, [variant, STRING])
    assert "VARIANT" in caught.value.feature


def test_rows_inside_a_larger_buffer_are_read_in_place():
    rows = encode(columns_of([INT, STRING], [(1, "a" * 20), (2, None)]), [INT, STRING]).to_pylist()
    buffer = np.frombuffer(b"\x07" * 5 + rows[0] + b"\x01\x02\x03" + rows[1] + bytes(8), np.uint8)
    starts = np.array([5 + len(rows[0]) + 3, 5], np.int64)
    assert [c.to_pylist() for c in decode_at(buffer, starts, [INT, STRING])] == [[2, 1], [None, "a" * 20]]


def test_no_rows_decode_to_empty_columns():
    assert [len(c) for c in decode([], [INT, STRING])] == [0, 0]


def test_another_arity_is_corruption():
    row = encode(columns_of([INT], [(1,)]), [INT])
    with pytest.raises(CorruptionError, match="1 fields, 2 expected|at least 28"):
        decode(row, [INT, INT])
    with pytest.raises(CorruptionError, match="2 fields, 1 expected"):
        decode(encode(columns_of([INT, INT], [(1, 2)]), [INT, INT]), [INT])


@pytest.mark.parametrize("kind", [STRING, WIDE, MICROS, ArrayType(INT), MapType(STRING, INT), PAIR], ids=str)
def test_damaged_rows_are_corruption_or_other_values_but_never_a_crash(kind):
    good = encode([sample(kind, 4, seed=5)], [kind]).to_pylist()[0]
    random = np.random.default_rng(11)
    outcomes = set()
    for _ in range(400):
        bad = bytearray(good)
        bad[int(random.integers(4, len(bad)))] = int(random.integers(0, 256))
        try:
            decode([bytes(bad)], [kind])
            outcomes.add("read")
        except CorruptionError:
            outcomes.add("corrupt")
        except UnsupportedError:
            outcomes.add("out of range")
    assert "corrupt" in outcomes or kind in (WIDE, MICROS)


def test_a_nanosecond_beyond_arrow_is_refused_not_wrapped():
    nanos = Atomic(Root.TIMESTAMP, precision=9)
    row = bytearray(encode([pa.array([0], pa.timestamp("ns"))], [nanos])[0].as_py())
    row[20:28] = (2**60).to_bytes(8, "little")
    with pytest.raises(UnsupportedError):
        decode([bytes(row)], [nanos])


def test_text_that_is_not_utf8_is_corruption():
    row = encode([pa.array([b"\xff\xfe"], pa.binary())], [BYTES]).to_pylist()
    with pytest.raises(CorruptionError, match="UTF-8"):
        decode(row, [STRING])


def test_garbage_under_nulls_does_not_reach_the_bytes():
    data = pa.array([1, 2], pa.int32())
    dirty = pa.Array.from_buffers(pa.int32(), 2, [pa.py_buffer(b"\x01"), data.buffers()[1]])
    clean = pa.array([1, None], pa.int32())
    assert encode([dirty], [INT]).equals(encode([clean], [INT]))
    assert hash_rows([dirty], [INT]).tolist() == hash_rows([clean], [INT]).tolist()


def test_items_hidden_by_null_lists_do_not_reach_the_bytes():
    offsets = pa.array([0, 2, 4, 5], pa.int32())
    items = pa.array([1, 2, 3, 4, 5], pa.int32())
    kind = to_arrow_type(ArrayType(INT))
    dirty = pa.Array.from_buffers(kind, 3, [pa.py_buffer(b"\x05"), offsets.buffers()[1]], children=[items])
    assert dirty.to_pylist() == [[1, 2], None, [5]]
    assert encode([dirty], [ArrayType(INT)]).equals(encode([pa.array([[1, 2], None, [5]], kind)], [ArrayType(INT)]))
