"""One row decoded by itself is what a column of one row is, for every type, NULL and damage."""

import decimal

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.binary_row import decode, decode_one, encode
from paimon_py.errors import CorruptionError, UnsupportedError
from paimon_py.spec.type_text import parse_type

VALUES = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-(2**7), 2**7 - 1),
    "SMALLINT": st.integers(-(2**15), 2**15 - 1),
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "FLOAT": st.floats(width=32, allow_nan=False),
    "DOUBLE": st.floats(allow_nan=False),
    "DATE": st.dates(),
    "STRING": st.text(max_size=12),
    "VARCHAR(9)": st.text(max_size=9),
    "BYTES": st.binary(max_size=12),
    "DECIMAL(10, 2)": st.decimals(min_value=-(10**7), max_value=10**7, places=2),
    "DECIMAL(30, 0)": st.integers(-(10**29), 10**29).map(lambda value: decimal.Decimal(value)),
    "TIMESTAMP(3)": st.datetimes().map(lambda value: value.replace(microsecond=value.microsecond // 1000 * 1000)),
    "TIMESTAMP(6)": st.datetimes(),
    "ARRAY<INT>": st.lists(st.integers(0, 9), max_size=3),
}


@st.composite
def rows(draw):
    names = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=9))
    types = [parse_type(name) for name in names]
    values = [draw(st.none() | VALUES[name]) for name in names]
    columns = [pa.array([value], to_arrow_type(kind)) for value, kind in zip(values, types, strict=True)]
    return types, encode(columns, types)[0].as_py()


def outcome(decoder, row, types, wanted=None):
    try:
        found = decoder(row, types, wanted)
    except (CorruptionError, UnsupportedError) as error:  # times beyond 64 bits are not damaged for Paimon
        return str(error)
    for array in found:
        array.validate(full=not pa.types.is_decimal(array.type))  # Java reads decimals with too many digits
    return [(array.type, str(array)) for array in found]  # damaged dates are none of Python


def by_columns(row, types, wanted):
    return decode([row], types, wanted)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows(), st.data())
def test_one_row_is_a_column_of_one_row(made, data):
    types, row = made
    assert outcome(decode_one, row, types) == outcome(by_columns, row, types)
    wanted = data.draw(st.lists(st.sampled_from(range(len(types))), max_size=4))
    assert outcome(decode_one, row, types, wanted) == outcome(by_columns, row, types, wanted)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows(), st.data())
def test_damage_raises_the_same_error_as_in_columns(made, data):
    types, row = made
    at = data.draw(st.integers(0, len(row) - 1))
    changed = row[:at] + bytes([data.draw(st.integers(0, 255))]) + row[at + 1 :]
    cut = changed[: data.draw(st.integers(0, len(row)))] if data.draw(st.booleans()) else changed
    one, columns = outcome(decode_one, cut, types), outcome(by_columns, cut, types)
    assert repr(one) == repr(columns) or isinstance(one, str) is isinstance(columns, str) is True


def test_times_beyond_64_bits_are_refused():
    kind = parse_type("TIMESTAMP(6)")
    [row] = encode([pa.array([0], pa.timestamp("us"))], [kind])
    far = row.as_py()[:-8] + (-71_776_150_597_217_280).to_bytes(8, "little", signed=True)
    one, columns = outcome(decode_one, far, [kind]), outcome(by_columns, far, [kind])
    assert one == columns and "-71776150597217280 ms since 1970" in one


def test_every_byte_but_zero_is_true_as_in_java():
    """Java reads `byte != 0`; both decoders do."""
    types = [parse_type("BOOLEAN"), parse_type("BOOLEAN")]
    row = encode([pa.array([True]), pa.array([False])], types)[0].as_py()
    at = len(row) - 16
    assert (row[at], row[at + 8]) == (1, 0)
    for byte in range(256):
        changed = row[:at] + bytes([byte]) + row[at + 1 :]
        for found in (decode([changed], types), decode_one(changed, types)):
            assert [column[0].as_py() for column in found] == [byte != 0, False]
