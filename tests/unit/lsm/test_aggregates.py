"""Every aggregate function equals Java's rules applied row by row, whatever is added, taken back, set or cleared."""

from __future__ import annotations

import random
import struct
from decimal import Decimal, localcontext

import numpy as np
import pyarrow as pa
import pytest
from unit.lsm import aggregate_reference as plain

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.errors import SchemaError
from paimon_py.lsm.aggregates import aggregator_of
from paimon_py.lsm.aggregates.base import ADD, ADD_REVERSED, CLEAR, RETRACT, SET, SKIP, Fold
from paimon_py.spec.new_schema import Schema, TableSpec, new_table_schema

WORDS = ["a", "b", "ab", "abcdefgh", "abcdefghi", "abcdefghj", "", " ", "ä\ue000", "ä😀", "a,b", "b,c,,a", ",", "a\0", "\u2007"]
ROW = "ROW<k INT, t STRING, v BIGINT>"


def pick(values):
    return lambda rng: rng.choice(values)


def array_of(item, longest=4):
    return lambda rng: [item(rng) for _ in range(rng.randrange(longest + 1))]


def nested(rng):
    if rng.random() < 0.1:
        return None
    return (rng.choice([1, 2, 3, 3, None]), rng.choice(["x", "y", None]), rng.choice([0, 5, 7, None]))


def map_of(item):
    return lambda rng: [(key, item(rng)) for key in rng.sample(range(5), rng.randrange(4))]


def timed(rng):
    if rng.random() < 0.15:
        return None
    return (rng.randrange(9), rng.choice(["2024-01", "2024-02", "2024-02", "\ue000", "😀", None]))


INTS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}
FLOATS = [0.0, -0.0, 1.5, -2.25, 1e300, -1e300, 3.3, 0.1, float("inf"), float("-inf"), float("nan")]
SINGLES = [0.0, -0.0, 1.5, -2.25, 1e30, -1e30, 3.3, 0.1, float("inf"), float("-inf"), float("nan")]
FLOAT_TYPES = {"FLOAT": np.float32, "DOUBLE": np.float64}
DECIMALS = {"DECIMAL(4, 2)": (4, 2), "DECIMAL(18, 0)": (18, 0), "DECIMAL(20, 3)": (20, 3), "DECIMAL(38, 10)": (38, 10)}


def integers(bits):
    return lambda rng: rng.randrange(-3, 4)


def decimals(kind):
    precision, scale = kind

    def make(rng):
        digits = rng.choice([1, 2, precision - 1, precision])
        return Decimal(rng.randrange(-(10**digits) + 1, 10**digits)).scaleb(-scale)

    return make


def single(rng):
    return float(np.float32(rng.choice(SINGLES)))


ANY = [ADD, ADD_REVERSED, RETRACT, SET, CLEAR, SKIP]
NO_RETRACT = [ADD, ADD_REVERSED, SET, CLEAR, SKIP]


def larger(a, b):
    return b if plain.order_key(a) < plain.order_key(b) else a


def smaller(a, b):
    return a if plain.order_key(a) < plain.order_key(b) else b


VALUES = {
    **{name: integers(bits) for name, bits in INTS.items()},
    "DOUBLE": pick(FLOATS),
    "FLOAT": single,
    "STRING": pick(WORDS),
    "CHAR(3)": pick(["abc", "abd"]),
    "BYTES": pick([b"", b"a", b"\xff", b"\x7f", b"a\0"]),
    "DATE": integers(31),
    "TIME(3)": pick([0, 1, 86_399_999]),
    "TIMESTAMP(9)": integers(63),
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": integers(63),
    "BOOLEAN": pick([True, False]),
    **{name: decimals(kind) for name, kind in DECIMALS.items()},
}

# function, type, values, options, the plain rules, actions
CASES = []
for _kind in ("INT", "STRING", "DECIMAL(20, 3)"):
    CASES += [
        ("last_value", _kind, {}, plain.LastValue(), ANY),
        ("primary-key", _kind, {}, plain.PrimaryKey(), ANY),
        ("last_non_null_value", _kind, {}, plain.LastNonNull(), ANY),
        ("first_value", _kind, {}, plain.FirstValue(), NO_RETRACT),
        ("first_non_null_value", _kind, {}, plain.FirstNonNull(), NO_RETRACT),
    ]
for _kind in VALUES:
    if _kind != "BOOLEAN":
        CASES += [
            ("max", _kind, {}, plain.Binary(larger), NO_RETRACT),
            ("min", _kind, {}, plain.Binary(smaller), NO_RETRACT),
        ]
for _kind in [*INTS, "FLOAT", "DOUBLE", *DECIMALS]:
    CASES.append(("sum", _kind, {}, plain.Sum(DECIMALS.get(_kind, _kind)), ANY))
    CASES.append(("product", _kind, {}, plain.Product(DECIMALS.get(_kind, _kind)), NO_RETRACT if _kind in DECIMALS else ANY))
CASES += [
    ("bool_and", "BOOLEAN", {}, plain.Binary(lambda a, b: a and b), NO_RETRACT),
    ("bool_or", "BOOLEAN", {}, plain.Binary(lambda a, b: a or b), NO_RETRACT),
    ("listagg", "STRING", {}, plain.Listagg(",", False), NO_RETRACT),
    ("listagg", "STRING", {"list-agg-delimiter": ""}, plain.Listagg("", False), NO_RETRACT),
    ("listagg", "STRING", {"list-agg-delimiter": "; "}, plain.Listagg("; ", False), NO_RETRACT),
    ("listagg", "STRING", {"distinct": "true"}, plain.Listagg(",", True), NO_RETRACT),
    ("listagg", "STRING", {"distinct": "true", "list-agg-delimiter": ""}, plain.Listagg("", True), NO_RETRACT),
    ("listagg", "STRING", {"distinct": "true", "list-agg-delimiter": ",,"}, plain.Listagg(",,", True), NO_RETRACT),
    ("listagg", "STRING", {"distinct": "true", "list-agg-delimiter": ", "}, plain.Listagg(", ", True), NO_RETRACT),
    ("collect", "ARRAY<INT>", {}, plain.Collect(False), ANY),
    ("collect", "ARRAY<STRING>", {}, plain.Collect(False), ANY),
    ("collect", "ARRAY<INT>", {"distinct": "true"}, plain.Collect(True), [ADD, ADD_REVERSED, RETRACT, CLEAR, SKIP]),
    ("merge_map", "MAP<INT, STRING>", {}, plain.MergeMap(), ANY),
    ("merge_map_with_keytime", "MAP<INT, ROW<v INT, t STRING>>", {}, plain.MergeMapTimed(), NO_RETRACT),
]
for _key, _sequence, _limit, _nulls in [
    ((), (), None, None),
    ((), (), 3, None),
    ((0,), (), None, None),
    ((0, 1), (), 2, "ignore"),
    ((0,), (2,), None, "merge"),
    ((0,), (1, 2), 3, None),
]:
    _options = {}
    if _key:
        _options["nested-key"] = ",".join("ktv"[place] for place in _key)
    if _sequence:
        _options["nested-sequence-field"] = ", ".join("ktv"[place] for place in _sequence)
    if _limit:
        _options["count-limit"] = str(_limit)
    if _nulls:
        _options["nested-key-null-strategy"] = _nulls
    _rules = (_key, _sequence, _limit or 2**31 - 1, _nulls or "merge")
    CASES.append(("nested_update", f"ARRAY<{ROW}>", _options, plain.NestedUpdate(*_rules), ANY))
    if _key and not _sequence:
        CASES.append(("nested_partial_update", f"ARRAY<{ROW}>", _options, plain.NestedPartialUpdate(*_rules), NO_RETRACT))

NESTED_VALUES = {
    "ARRAY<INT>": array_of(pick([1, 2, 2, 3, None])),
    "ARRAY<STRING>": array_of(pick(["a", "b", "", None])),
    "MAP<INT, STRING>": map_of(pick(["a", "b", None])),
    "MAP<INT, ROW<v INT, t STRING>>": map_of(timed),
    f"ARRAY<{ROW}>": array_of(nested),
}
UNORDERED = ("merge_map", "merge_map_with_keytime", "nested_update", "nested_partial_update")


def schema_of(kind, function, **options):
    named = {f"fields.c.{name}": value for name, value in options.items()}
    spec = TableSpec(
        primary_keys=("id",),
        options={"bucket": "1", "merge-engine": "aggregation", "fields.c.aggregate-function": function, **named},
    )
    return new_table_schema(Schema([("id", "INT"), ("c", kind)]), spec, time_millis=1)


def arrow(values, kind, schema):
    """Python values as a column: rows as tuples, maps as pairs, times as their numbers."""
    data_type = to_arrow_type(schema.field("c").type)
    if pa.types.is_temporal(data_type):
        width = pa.int32() if data_type.bit_width == 32 else pa.int64()
        return pa.array(values, width).view(data_type)
    if kind.startswith(("ARRAY<ROW", "MAP<INT, ROW")):
        return pa.array([None if value is None else [named(item, kind) for item in value] for value in values], data_type)
    return pa.array(values, data_type)


def named(item, kind):
    if kind.startswith("MAP"):
        return (item[0], None if item[1] is None else {"v": item[1][0], "t": item[1][1]})
    return None if item is None else dict(zip("ktv", item, strict=True))


def python(array, kind):
    """The column as Python values in the same form."""
    if pa.types.is_temporal(array.type):
        return array.view(pa.int32() if array.type.bit_width == 32 else pa.int64()).to_pylist()
    values = array.to_pylist()
    if kind.startswith("ARRAY<ROW"):
        return [v if v is None else [i if i is None else tuple(i.values()) for i in v] for v in values]
    if kind.startswith("MAP<INT, ROW"):
        return [v if v is None else [(k, i if i is None else tuple(i.values())) for k, i in v] for v in values]
    return values


def exact(value, function, kind):
    """Something that is equal only for equal values: bits of floats, no order where there is none."""
    if value is None:
        return None
    if kind == "FLOAT":
        return "nan" if value != value else struct.pack("<f", value)
    if kind == "DOUBLE":
        return "nan" if value != value else struct.pack("<d", value)
    if function in UNORDERED:
        return sorted(value, key=repr)
    return value


def random_folds(rng, values, actions, *, groups, longest, nulls=0.25):
    rows, codes, starts, ends = [], [], [], []
    for _ in range(groups):
        length = rng.randrange(1, longest + 1)
        starts.append(len(rows))
        rows += [None if rng.random() < nulls else values(rng) for _ in range(length)]
        codes += [rng.choice(actions) if rng.random() < 0.5 else ADD for _ in range(length)]
        ends.append(len(rows))
    return rows, codes, starts, ends


def outcome(rules, rows, codes, starts, ends, kind):
    """One value per group, or Refused. What lies before the last SET or CLEAR cannot be refused here, unlike in Java."""
    results = []
    for start, end in zip(starts, ends, strict=True):
        if not isinstance(rules, (plain.FirstValue, plain.FirstNonNull)):
            start = max((place for place in range(start, end) if codes[place] in (SET, CLEAR)), default=start)
        part = rows[start:end]
        if kind in FLOAT_TYPES:
            part = [None if value is None else FLOAT_TYPES[kind](value) for value in part]
        with np.errstate(all="ignore"), localcontext() as context:
            context.prec = 400
            try:
                results.append(plain.fold(rules, part, codes[start:end]))
            except plain.Refused:
                return plain.Refused
    return results


SEEDS = [*range(2), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 40))]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("function", "kind", "options", "rules", "actions"), CASES)
def test_groups_give_the_same_result_as_the_rules_row_by_row(function, kind, options, rules, actions, seed):
    rng = random.Random(f"{function} {kind} {options} {seed}")
    schema = schema_of(kind, function, **options)
    make = NESTED_VALUES.get(kind) or VALUES[kind]
    aggregate = aggregator_of(schema, "c", function)
    for allowed, longest in (([ADD], 5), (actions, 9)):
        rows, codes, starts, ends = random_folds(rng, make, allowed, groups=60, longest=longest)
        wanted = outcome(rules, rows, codes, starts, ends, kind)
        array = pa.concat_arrays([arrow([rows[0]], kind, schema), arrow(rows, kind, schema)]).slice(1)
        fold = Fold(np.array(starts), np.array(ends), np.array(codes, np.int8))
        if wanted is plain.Refused:
            with pytest.raises(SchemaError, match="'c'"):
                aggregate(array, fold)
            continue
        found = aggregate(array, fold)
        assert found.type == array.type
        found.validate()
        for index, (ours, theirs) in enumerate(zip(python(found, kind), wanted, strict=True)):
            place = slice(starts[index], ends[index])
            assert exact(ours, function, kind) == exact(theirs, function, kind), (rows[place], codes[place])


def one_group(values, codes, kind, function, **options):
    """The outcome of one group as a Python value."""
    schema = schema_of(kind, function, **options)
    array = arrow(values, kind, schema)
    fold = Fold(np.array([0]), np.array([len(values)]), np.array(codes, np.int8))
    return python(aggregator_of(schema, "c", function)(array, fold), kind)[0]


@pytest.mark.parametrize(("kind", "bits"), INTS.items())
def test_integers_add_up_to_the_last_value_of_their_type_and_no_further(kind, bits):
    most = 2**bits - 1
    assert one_group([most - 1, 1], [ADD, ADD], kind, "sum") == most
    assert one_group([-most, -1], [ADD, ADD], kind, "sum") == -most - 1
    assert one_group([-most - 1, -1, -1], [ADD, RETRACT, ADD], kind, "sum") == -most - 1
    for values, codes in (
        ([most, 1], [ADD, ADD]),
        ([most, 1, -5], [ADD, ADD, ADD]),
        ([-most - 1, -1], [ADD, ADD]),
        ([-most - 1], [RETRACT]),
        ([-most - 1, 1], [ADD, RETRACT]),
    ):
        with pytest.raises(SchemaError, match=f"'c' exceeds the range of {kind}"):
            one_group(values, codes, kind, "sum")


@pytest.mark.parametrize(("kind", "bits"), INTS.items())
def test_integers_multiply_up_to_the_last_value_of_their_type_and_no_further(kind, bits):
    least = -(2**bits)
    assert one_group([least // 2, 2], [ADD, ADD], kind, "product") == least
    assert one_group([-7, 2], [ADD, RETRACT], kind, "product") == -3
    assert one_group([2, 5, None], [RETRACT, ADD, RETRACT], kind, "product") == 5
    for values, codes in (([least, -1], [ADD, ADD]), ([least, -1], [ADD, RETRACT]), ([least, least], [ADD, ADD])):
        with pytest.raises(SchemaError, match="exceeds the range"):
            one_group(values, codes, kind, "product")
    with pytest.raises(SchemaError, match="divided by zero"):
        one_group([1, 0], [ADD, RETRACT], kind, "product")


def test_short_decimals_grow_beyond_their_precision_and_long_ones_become_null():
    many = [Decimal("99.99"), Decimal("0.01")]
    assert one_group(many, [ADD, ADD], "DECIMAL(4, 2)", "sum") == Decimal("100.00")
    long = [Decimal(10**19 - 1), Decimal(1)]
    assert one_group(long, [ADD, ADD], "DECIMAL(19, 0)", "sum") is None
    assert one_group([*long, Decimal(7)], [ADD, ADD, ADD], "DECIMAL(19, 0)", "sum") == 7
    assert one_group([*long, Decimal(7)], [ADD, ADD, RETRACT], "DECIMAL(19, 0)", "sum") == -7
    assert one_group([Decimal("1.00"), Decimal("8.00")], [ADD, RETRACT], "DECIMAL(4, 2)", "product") == Decimal("0.13")
    with pytest.raises(SchemaError, match="not a terminating decimal"):
        one_group([Decimal("1.00"), Decimal("3.00")], [ADD, RETRACT], "DECIMAL(4, 2)", "product")


def test_sums_of_decimals_do_not_wrap_at_64_bits():
    most = Decimal(10**18 - 1)
    assert one_group([most] * 9, [ADD] * 9, "DECIMAL(18, 0)", "sum") == 9 * most
    assert one_group([most] * 10, [ADD] * 10, "DECIMAL(18, 0)", "sum") is None
    assert one_group([-most] * 10, [ADD] * 10, "DECIMAL(18, 0)", "sum") is None
    assert one_group([*[most] * 10, Decimal(7)], [ADD] * 11, "DECIMAL(18, 0)", "sum") == 7
    assert one_group([most] * 50, [ADD] * 50, "DECIMAL(38, 0)", "sum") == 50 * most
    assert one_group([-most] * 50, [ADD] * 50, "DECIMAL(38, 0)", "sum") == -50 * most


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
@pytest.mark.parametrize("function", ["sum", "product"])
def test_floats_of_long_groups_are_rounded_step_by_step(kind, function):
    rng = random.Random(function + kind)
    schema = schema_of(kind, function)
    rows, codes, starts, ends = random_folds(rng, lambda rng: rng.uniform(0.9, 1.15), [ADD], groups=5, longest=900)
    if kind == "FLOAT":
        rows = [None if row is None else float(np.float32(row)) for row in rows]
    wanted = outcome({"sum": plain.Sum, "product": plain.Product}[function](kind), rows, codes, starts, ends, kind)
    fold = Fold(np.array(starts), np.array(ends), np.array(codes, np.int8))
    found = aggregator_of(schema, "c", function)(arrow(rows, kind, schema), fold).to_pylist()
    assert [exact(value, function, kind) for value in found] == [exact(value, function, kind) for value in wanted]


@pytest.mark.parametrize("function", ["min", "max", "first_value", "first_non_null_value"])
def test_functions_without_retraction_name_the_column_the_function_and_a_fix(function):
    with pytest.raises(SchemaError, match=rf"{function} of column 'c'.*'fields.c.ignore-retract' = 'true'") as caught:
        one_group([1, 2], [ADD, RETRACT], "INT", function)
    assert caught.value.fields == ("c",)


@pytest.mark.parametrize(
    ("function", "wanted"), [("min", 1), ("sum", 4), ("last_value", 3), ("first_value", 1), ("product", 3)]
)
def test_ignored_retracts_leave_values_alone(function, wanted):
    options = {"ignore-retract": "true"}
    assert one_group([1, -9, 3, 5], [ADD, RETRACT, ADD, RETRACT], "INT", function, **options) == wanted


def test_older_elements_are_appended_unless_retracts_are_ignored():
    values, codes = [[1], [2], [3]], [ADD, ADD_REVERSED, ADD_REVERSED]
    assert one_group(values, codes, "ARRAY<INT>", "collect") == [1, 2, 3]
    assert one_group(values, codes, "ARRAY<INT>", "collect", **{"ignore-retract": "true"}) == [3, 2, 1]


@pytest.mark.parametrize(
    ("kind", "values", "wanted"),
    [
        ("ARRAY<DOUBLE>", [[0.0], [-0.0, float("nan")], [float("nan"), 0.0]], 3),
        ("ARRAY<BYTES>", [[b"a"], [b"a", b""], [b""]], 2),
        ("ARRAY<ARRAY<INT>>", [[[1, None]], [[1, None], [1]], [[1]]], 2),
        ("ARRAY<DECIMAL(20, 2)>", [[Decimal("1.00")], [Decimal("1.00"), None], [None]], 2),
    ],
)
def test_distinct_elements_are_equal_by_value(kind, values, wanted):
    assert len(one_group(values, [ADD] * len(values), kind, "collect", distinct="true")) == wanted


def test_a_null_in_a_nested_key_can_be_an_error():
    options = {"nested-key": "k", "nested-key-null-strategy": "error"}
    for function in ("nested_update", "nested_partial_update"):
        with pytest.raises(SchemaError, match="null in 'fields.c.nested-key'"):
            one_group([[(1, "x", 1)], [(None, "x", 1)]], [ADD, ADD], f"ARRAY<{ROW}>", function, **options)
