"""What may be written into a table, and what is refused before anything is written."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest
from unit.write.support import schema_of

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.errors import SchemaError, UsageError
from paimon_py.write.align import Alignment
from paimon_py.write.streams import open_stream, pieces

D = decimal.Decimal


def aligned(schema, table):
    alignment = Alignment(schema, table.schema)
    batch, kinds = alignment.apply(table.combine_chunks().to_batches()[0])
    batch.validate(full=True)
    assert batch.schema.equals(to_arrow_schema(schema.fields))
    return batch.to_pydict(), None if kinds is None else kinds.to_pylist()


def one(kind, array):
    """One column `c` of a type, given as an array."""
    values, _ = aligned(schema_of({"c": kind}), pa.table({"c": array}))
    return values["c"]


def refused(kind, array):
    with pytest.raises(SchemaError) as caught:
        one(kind, array)
    assert caught.value.fields == ("c",)
    return str(caught.value)


def test_columns_match_by_name_and_are_reordered():
    schema = schema_of({"a": "INT", "b": "STRING"})
    values, _ = aligned(schema, pa.table({"b": ["x"], "a": pa.array([1], pa.int32())}))
    assert list(values.items()) == [("a", [1]), ("b", ["x"])]


def test_columns_of_the_right_type_are_not_copied():
    column = pa.array(range(1000), pa.int64())
    schema = schema_of({"c": "BIGINT NOT NULL"})
    batch, _ = Alignment(schema, pa.schema([("c", pa.int64())])).apply(pa.record_batch([column], ["c"]))
    assert batch.column(0).buffers()[1].address == column.buffers()[1].address


WIDENING = [
    ("SMALLINT", pa.array([-128, None], pa.int8())),
    ("INT", pa.array([1, -1], pa.int16())),
    ("BIGINT", pa.array([2**32 - 1], pa.uint32())),
    ("SMALLINT", pa.array([255], pa.uint8())),
    ("FLOAT", pa.array([np.float16(1.5)], pa.float16())),
    ("DOUBLE", pa.array([1.5], pa.float32())),
    ("DOUBLE", pa.array([np.float16(1.5)], pa.float16())),
    ("DOUBLE", pa.array([2**31 - 1], pa.int32())),
    ("DECIMAL(10, 0)", pa.array([7], pa.int32())),
    ("DECIMAL(20, 0)", pa.array([2**64 - 1], pa.uint64())),
    ("DECIMAL(12, 3)", pa.array([D("1.50")], pa.decimal128(9, 2))),
    ("DECIMAL(12, 2)", pa.array([D("1.50")], pa.decimal256(50, 2))),
    ("STRING", pa.array(["a", None], pa.large_string())),
    ("STRING", pa.array(["a", "b" * 30, None], pa.string_view())),
    ("STRING", pa.array(["a", None, "a"]).dictionary_encode()),
    ("BYTES", pa.array([b"ab", None], pa.large_binary())),
    ("BYTES", pa.array([b"ab"], pa.binary(2))),
    ("DATE", pa.array([datetime.date(2024, 5, 14)], pa.date64())),
]


@pytest.mark.parametrize(("kind", "array"), WIDENING, ids=str)
def test_types_widen_without_loss(kind, array):
    assert one(kind, array) == array.to_pylist()


def test_timestamps_change_their_unit_when_nothing_is_lost():
    micros = pa.array([1_700_000_000], pa.timestamp("s")).cast(pa.timestamp("us"))
    for precision in (0, 3, 6, 9):
        (value,) = one(f"TIMESTAMP({precision})", micros)
        assert str(value).startswith("2023-11-14 22:13:20")
    assert one("TIMESTAMP(3)", pa.array([2_000_000], pa.timestamp("ns")))[0].microsecond == 2000
    assert "without loss" in refused("TIMESTAMP(3)", pa.array([1], pa.timestamp("ns")))


def test_times_change_their_unit_when_nothing_is_lost():
    assert one("TIME(3)", pa.array([datetime.time(1, 2, 3, 4000)], pa.time64("us"))) == [datetime.time(1, 2, 3, 4000)]
    assert one("TIME(0)", pa.array([3], pa.time32("s"))) == [datetime.time(0, 0, 3)]
    assert "without loss" in refused("TIME(3)", pa.array([1], pa.time64("us")))


def test_an_instant_of_any_zone_becomes_utc():
    zoned = pa.array([0, 1_000_000], pa.timestamp("us", "Europe/Berlin"))
    schema = schema_of({"c": "TIMESTAMP(6) WITH LOCAL TIME ZONE"})
    batch, _ = Alignment(schema, pa.schema([("c", zoned.type)])).apply(pa.record_batch([zoned], ["c"]))
    assert batch.column(0).type == pa.timestamp("us", "UTC")
    assert batch.column(0).cast(pa.int64()).to_pylist() == [0, 1_000_000]


def test_zones_are_neither_added_nor_dropped():
    assert "local_timestamp" in refused("TIMESTAMP(6)", pa.array([0], pa.timestamp("us", "UTC")))
    fix = refused("TIMESTAMP(6) WITH LOCAL TIME ZONE", pa.array([0], pa.timestamp("us")))
    assert "assume_timezone" in fix


WIDER = [
    ("TINYINT", pa.array([1, None, -128]), pa.array([1, 128, -129]), 1),
    ("SMALLINT", pa.array([-32768, 32767]), pa.array([0, 0, 32768]), 2),
    ("INT", pa.array([1], pa.int64()), pa.array([2**31], pa.int64()), 0),
    ("INT", pa.array([1], pa.uint32()), pa.array([1, 2**32 - 1], pa.uint32()), 1),
    ("BIGINT", pa.array([1], pa.uint64()), pa.array([2**64 - 1], pa.uint64()), 0),
    ("FLOAT", pa.array([1.5, None, float("inf")]), pa.array([1.5, 1e39]), 1),
    ("FLOAT", pa.array([1, 2**24], pa.int32()), pa.array([2**24 + 1], pa.int32()), 0),
    ("DOUBLE", pa.array([1, -(2**53)], pa.int64()), pa.array([None, 2**53 + 1], pa.int64()), 1),
    ("DECIMAL(9, 0)", pa.array([1], pa.int32()), pa.array([1_000_000_000], pa.int32()), 0),
    ("DECIMAL(5, 2)", pa.array([999, -999, None]), pa.array([*range(998), 1000, 7, 1001]), 998),
    ("DECIMAL(38, 20)", pa.array([2**59]), pa.array([2**62]), 0),
    ("DECIMAL(5, 2)", pa.array([D("1.500"), None]), pa.array([D("1.500"), D("1.505")]), 1),
    ("DECIMAL(5, 2)", pa.array([D("1.5000")], pa.decimal64(9, 4)), pa.array([D("1000.0000")], pa.decimal64(9, 4)), 0),
    ("TINYINT", pa.array([D(127), None], pa.decimal32(9, 0)), pa.array([D(127), D(128)], pa.decimal32(9, 0)), 1),
    ("BIGINT", pa.array([D(7)], pa.decimal128(38, 0)), pa.array([D(7), D(2**63)], pa.decimal128(38, 0)), 1),
    ("INT", pa.array([7, 7, None]).dictionary_encode(), pa.array([7, 2**40]).dictionary_encode(), 1),
]


@pytest.mark.parametrize(("kind", "fits", "misfits", "row"), WIDER, ids=[f"{kind}-{at}" for at, (kind, *_) in enumerate(WIDER)])
def test_numbers_of_wider_types_are_accepted_if_every_value_fits(kind, fits, misfits, row):
    assert one(kind, fits) == fits.to_pylist()
    text = refused(kind, misfits)
    assert f"(row {row} of a batch" in text and f"does not fit {kind} without loss" in text
    assert str(misfits[row].as_py()).replace("e+", "e") in text.replace("e+", "e")
    with pytest.raises(SchemaError, match="without loss"):
        one(kind, misfits.slice(row, 1))


def test_floats_of_a_wider_type_are_rounded_to_the_nearest():
    assert one("FLOAT", pa.array([0.1, float("nan")]))[0] == float(np.float32(0.1))


def test_nested_numbers_of_wider_types_are_accepted():
    assert one("ARRAY<INT>", pa.array([[1, None], None])) == [[1, None], None]
    assert "column c.element: 1099511627776 (row 2 of" in refused("ARRAY<INT>", pa.array([[1, 2], None, [1, 2**40], [2**40]]))
    schema = schema_of({"c": {"type": "ROW", "fields": [{"id": 9, "name": "x", "type": "SMALLINT"}]}})
    values, _ = aligned(schema, pa.table({"c": [{"x": 5}, None]}))
    assert values["c"] == [{"x": 5}, None]


NARROWING = [
    ("BIGINT", pa.array([1.0])),
    ("STRING", pa.array([b"a"])),
    ("BYTES", pa.array(["a"])),
    ("STRING", pa.array([1])),
    ("INT", pa.array(["1"])),
    ("BOOLEAN", pa.array([1])),
    ("INT", pa.array([True])),
    ("DATE", pa.array([0], pa.timestamp("s"))),
    ("TIMESTAMP(6)", pa.array([0], pa.date32())),
]


@pytest.mark.parametrize(("kind", "array"), NARROWING, ids=str)
def test_types_of_other_kinds_are_refused(kind, array):
    text = refused(kind, array)
    assert str(array.type) in text
    assert "cast it to pyarrow" in text


@pytest.mark.parametrize(
    ("kind", "array", "way"),
    [
        ("INT", pa.array([[1]]), "give pyarrow int32"),
        ("STRING", pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "give pyarrow string"),
        ("STRING", pa.array([b"0123456789abcdef"], pa.binary(16)).cast(pa.uuid()), "convert each value with str(…)"),
        ("MAP<STRING, INT>", pa.array([{"a": 1}]), "rows as mappings: dicts in rows become maps"),
        ("SMALLINT", pa.array([1.0, None]), "cast it to pyarrow int16, or in pandas, .*: frame['c'].astype('Int16')"),
        ("DATE", pa.array([0], pa.timestamp("us")), "cast it to pyarrow date32[day], or in pandas: frame['c'].dt.date"),
    ],
    ids=str,
)
def test_the_way_out_is_one_that_is_open(kind, array, way):
    text = refused(kind, array)
    assert all(part in text for part in way.split(".*")), text


def test_the_first_value_of_each_column_that_does_not_fit_is_named_in_one_error():
    schema = schema_of({"a": "TINYINT", "b": "VARCHAR(2)", "c": "INT NOT NULL", "d": "ARRAY<VARBINARY(1)>", "e": "INT"})
    table = pa.table(
        {
            "a": [1, 300, 301], "b": ["äö", "äöü", "x"], "c": pa.array([1, 2, None], pa.int32()),
            "d": pa.array([[b"a", b"b"], None, [b"", b"ab"]]), "e": [1, 2, 3],
        }
    )  # fmt: skip
    alignment = Alignment(schema, table.schema)
    batch = table.combine_chunks().to_batches()[0]
    with pytest.raises(SchemaError) as caught:
        alignment.apply(batch, 1000)
    assert str(caught.value).splitlines() == [
        "values do not fit the table:",
        "  column a: 300 (row 1001, int64) does not fit TINYINT without loss; change the value, or widen the column with"
        " table.alter(UpdateColumnType(…))",
        "  column b: 'äöü' (row 1001, 3 characters) does not fit VARCHAR(2); shorten it, or widen the column with"
        " table.alter(UpdateColumnType('b', …))",
        "  column c is NOT NULL but 1 of 3 rows hold NULL (first at row 1002); fill them, or make the column nullable",
        "  column d.element: b'ab' (row 1002, 2 bytes) does not fit VARBINARY(1); shorten it, or widen the column with"
        " table.alter(UpdateColumnType('d', …))",
    ]
    assert caught.value.fields == ("a", "b", "c", "d")


NESTED_MISFITS = [
    ("ARRAY<INT NOT NULL>", pa.array([None, [1, 2], [], [3, None]], pa.list_(pa.int32())), 3, "1 of 4 values hold NULL"),
    ("ARRAY<INT>", pa.array([[1, 2], [3, 2**40]], pa.list_(pa.int64(), 2)), 1, "1099511627776"),
    ("ARRAY<INT>", pa.array([[2**40], [1, 2], [3, 2**41]], pa.list_view(pa.int64())).slice(1), 1, "2199023255552"),
    ("MAP<STRING, ARRAY<TINYINT>>", pa.array([[("a", [1])], [], [("b", [2, 3]), ("c", [4, 500])]],
                                             pa.map_(pa.string(), pa.list_(pa.int64()))), 2, "500"),
    ("MULTISET<STRING>", pa.array([[("a", 1)], [("b", 1), ("c", None)]], pa.map_(pa.string(), pa.int32())), 1, "hold NULL"),
    ("MAP<STRING, INT>", pa.array([[], [{"key": "a", "value": 1}, None]],
                                  pa.list_(pa.struct([("key", pa.string()), ("value", pa.int32())]))), 1, "hold NULL"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "array", "row", "words"), NESTED_MISFITS, ids=[kind for kind, *_ in NESTED_MISFITS])
def test_the_row_of_a_misfit_inside_others_is_the_row_of_the_column(kind, array, row, words):
    text = refused(kind, array)
    assert f"row {row} of a batch" in text and words in text, text


def test_every_offending_column_is_listed_with_both_types_and_the_fix():
    schema = schema_of({"a": "INT", "b": "STRING NOT NULL", "c": "TIMESTAMP(6)", "d": "INT"})
    table = pa.table(
        {"a": pa.array([1.0]), "c": pa.array([0], pa.timestamp("us", "UTC")), "D": [1], "e": [1]}
    )
    with pytest.raises(SchemaError) as caught:
        Alignment(schema, table.schema)
    assert set(caught.value.fields) == {"a", "b", "c", "D", "e"}
    text = str(caught.value)
    assert "a: double given, INT needed; cast it to pyarrow int32" in text
    assert "b: missing, STRING NOT NULL needed" in text
    assert "c: timestamp[us, tz=UTC] given, TIMESTAMP(6) needed" in text
    assert "is it 'd'?" in text
    assert "e: int64 given, the table has no such column" in text


def test_a_column_given_twice_is_refused():
    table = pa.table([pa.array([1]), pa.array([2])], ["c", "c"])
    with pytest.raises(SchemaError, match="2 times"):
        Alignment(schema_of({"c": "BIGINT"}), table.schema)


def test_missing_columns_are_null_or_their_default():
    columns = {"a": "INT", "b": "STRING=none", "c": "INT NOT NULL=7", "d": "TIMESTAMP(3)=2024-01-02 03:04:05"}
    columns |= {"e": "DECIMAL(5, 2)=1.5", "f": {"type": "ARRAY", "element": "INT"}, "g": "DATE=2024-05-14"}
    values, _ = aligned(schema_of(columns), pa.table({"a": pa.nulls(2)}))
    assert values == {
        "a": [None, None], "b": ["none"] * 2, "c": [7, 7], "d": [datetime.datetime.fromisoformat("2024-01-02T03:04:05")] * 2,
        "e": [D("1.50")] * 2, "f": [None, None], "g": [datetime.date(2024, 5, 14)] * 2,
    }  # fmt: skip


def test_null_becomes_the_default_of_a_nullable_column_as_in_java():
    assert one("INT=7", pa.array([1, None], pa.int32())) == [1, 7]


def test_null_in_not_null_is_refused_even_with_a_default():
    text = refused("INT NOT NULL=7", pa.array([1, None, None], pa.int32()))
    assert "2 of 3 rows" in text
    assert "first at row 1" in text


def test_the_nullable_flag_of_the_data_does_not_matter():
    schema = pa.schema([pa.field("c", pa.int32(), nullable=True)])
    assert one("INT NOT NULL", pa.table([pa.array([1], pa.int32())], schema=schema).column(0).chunk(0)) == [1]


def test_untyped_nulls_fit_every_nullable_column():
    for kind in ("INT", "STRING", {"type": "MAP", "key": "INT", "value": "INT"}):
        assert one(kind, pa.nulls(2)) == [None, None]
    refused("INT NOT NULL", pa.nulls(1))


def test_lengths_count_characters_or_bytes():
    assert one("CHAR(2)", pa.array(["中文", "a"])) == ["中文", "a"]
    assert "3 characters" in refused("VARCHAR(2)", pa.array(["abc"]))
    assert "2 bytes" in refused("VARBINARY(1)", pa.array([b"ab"]))
    assert "VARCHAR(2)" in refused("VARCHAR(2)", pa.array(["ok", "中文字"]).dictionary_encode())


def test_decimals_must_fit_their_digits():
    assert one("DECIMAL(4, 2)", pa.array([D("99.99")], pa.decimal128(38, 2))) == [D("99.99")]
    assert "without loss" in refused("DECIMAL(4, 2)", pa.array([D("100.00")], pa.decimal128(38, 2)))


ROW = {
    "type": "ROW",
    "fields": [{"id": 1, "name": "x", "type": "BIGINT NOT NULL"}, {"id": 2, "name": "y", "type": "VARCHAR(3)"}],
}


def test_rows_match_their_fields_by_name():
    array = pa.array([{"y": "a", "x": 1}, None, {"y": None, "x": 2}], pa.struct([("y", pa.string()), ("x", pa.int8())]))
    assert one(ROW, array) == [{"x": 1, "y": "a"}, None, {"x": 2, "y": None}]
    assert one(ROW, array.slice(1)) == [None, {"x": 2, "y": None}]


def test_null_in_a_not_null_field_counts_only_below_a_row_that_is_there():
    kind = pa.struct([("x", pa.int64()), ("y", pa.string())])
    assert "c.x" in refused(ROW, pa.array([{"x": None, "y": "a"}], kind))
    assert "c.element.x" in refused(
        {"type": "ARRAY", "element": ROW}, pa.array([[{"x": None, "y": "a"}]], pa.list_(kind))
    )


def test_a_column_with_a_dot_in_its_name_is_named_whole():
    with pytest.raises(SchemaError) as caught:
        aligned(schema_of({"a.b": "INT NOT NULL"}), pa.table({"a.b": pa.array([None], pa.int32())}))
    assert caught.value.fields == ("a.b",)


def test_nested_problems_name_their_path():
    text = refused(ROW, pa.array([{"x": 1, "y": "abcd"}]))
    assert "c.y" in text
    assert "c.x" in refused(ROW, pa.array([{"x": 1.5, "y": "a"}]))
    assert "'x' is missing" in refused(ROW, pa.array([{"y": "a"}]))
    assert "no field 'z'" in refused(ROW, pa.array([{"x": 1, "z": "a"}]))
    assert "c.element" in refused({"type": "ARRAY", "element": "INT"}, pa.array([["a"]]))
    wrong_values = pa.array([[(1, "b")]], pa.map_(pa.int32(), pa.string()))
    assert "c.value" in refused({"type": "MAP", "key": "INT", "value": "INT"}, wrong_values)


def test_lists_are_accepted_in_every_layout():
    kind = {"type": "ARRAY", "element": "BIGINT"}
    values = [[1, None], None, [], [3]]
    for arrow in (pa.list_(pa.int32()), pa.large_list(pa.int64()), pa.list_view(pa.int8())):
        array = pa.array(values, arrow)
        assert one(kind, array) == values
        assert one(kind, array.slice(1)) == values[1:]
    assert one(kind, pa.array([[1, 2], None], pa.list_(pa.int64(), 2))) == [[1, 2], None]


def test_not_null_elements_hidden_by_a_null_list_do_not_count():
    offsets = pa.array([0, 1, 2], pa.int32())
    items = pa.array([7, None], pa.int32())
    array = pa.Array.from_buffers(
        pa.list_(pa.int32()), 2, [pa.py_buffer(b"\x01"), offsets.buffers()[1]], children=[items]
    )
    assert one({"type": "ARRAY", "element": "INT NOT NULL"}, array) == [[7], None]
    assert "NOT NULL" in refused({"type": "ARRAY", "element": "INT NOT NULL"}, pa.array([[None]], pa.list_(pa.int32())))


def test_maps_are_accepted_as_maps_or_lists_of_pairs():
    kind = {"type": "MAP", "key": "STRING", "value": "BIGINT"}
    values = [[("a", 1), ("b", None)], None, []]
    assert one(kind, pa.array(values, pa.map_(pa.string(), pa.int32()))) == values
    pairs = [None if row is None else [{"key": k, "value": v} for k, v in row] for row in values]
    arrow = pa.large_list(pa.struct([("key", pa.large_string()), ("value", pa.int64())]))
    assert one(kind, pa.array(pairs, arrow)) == values
    assert one({"type": "MULTISET", "element": "STRING"}, pa.array([[("a", 2)]], pa.map_(pa.string(), pa.int32()))) == [
        [("a", 2)]
    ]
    refused(kind, pa.array([[{"k": "a", "value": 1}]]))


def keyed(**options):
    return schema_of({"k": "INT NOT NULL", "v": "STRING"}, primary_key=["k"], options=options)


def with_kinds(kinds):
    return pa.table({"k": pa.array(range(len(kinds)), pa.int32()), "v": ["x"] * len(kinds), "_row_kind": kinds})


def test_row_kinds_are_accepted_as_strings_or_bytes():
    kinds = ["+I", "-U", "+U", "-D"]
    for given in (pa.array(kinds), pa.array(kinds).dictionary_encode(), pa.array(kinds, pa.large_string())):
        assert aligned(keyed(), with_kinds(given))[1] == [0, 1, 2, 3]
    assert aligned(keyed(), with_kinds(pa.array([0, 1, 2, 3], pa.int8())))[1] == [0, 1, 2, 3]


def test_kinds_that_are_all_inserts_cost_nothing():
    assert aligned(keyed(), with_kinds(["+I", "+I"]))[1] is None


@pytest.mark.parametrize("kinds", [["+I", "x"], ["+i"], [""], [None]])
def test_a_wrong_row_kind_is_refused(kinds):
    with pytest.raises(UsageError, match=r"\+I, -U, \+U, -D"):
        aligned(keyed(), with_kinds(pa.array(kinds, pa.string())))


def test_row_kinds_of_the_wrong_type_or_place_are_refused():
    with pytest.raises(UsageError, match="string column"):
        aligned(keyed(), with_kinds(pa.array([1.5])))
    with pytest.raises(UsageError, match="-?4"):
        aligned(keyed(), with_kinds(pa.array([4], pa.int8())))
    with pytest.raises(UsageError, match="primary key"):
        aligned(schema_of({"k": "INT", "v": "STRING"}), with_kinds(["+I"]))
    with pytest.raises(UsageError, match="rowkind.field"):
        aligned(keyed(**{"rowkind.field": "v"}), with_kinds(["+I"]))


def test_kinds_can_come_from_a_column_of_the_table():
    table = pa.table({"k": pa.array([1, 2], pa.int32()), "v": ["+I", "-D"]})
    values, kinds = aligned(keyed(**{"rowkind.field": "v"}), table)
    assert (values["v"], kinds) == (["+I", "-D"], [0, 3])


def test_options_drop_retractions():
    kinds = ["+I", "-U", "+U", "-D"]
    values, left = aligned(keyed(**{"ignore-delete": "true"}), with_kinds(kinds))
    assert (values["k"], left) == ([0, 2], [0, 2])
    values, left = aligned(keyed(**{"ignore-update-before": "true"}), with_kinds(kinds))
    assert (values["k"], left) == ([0, 2, 3], [0, 2, 3])
    values, left = aligned(keyed(**{"ignore-delete": "true"}), with_kinds(["-D", "+I"]))
    assert (values["k"], left) == ([1], None)


class Stream:
    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class Chunk:
    def __init__(self, batch):
        self.batch = batch

    def __arrow_c_array__(self, requested_schema=None):
        return self.batch.__arrow_c_array__(requested_schema)


def test_everything_with_an_arrow_interface_is_data():
    table = pa.table({"a": [1, 2]})
    batch = table.to_batches()[0]
    for data in (table, batch, table.to_reader(), Stream(table), Chunk(batch)):
        assert open_stream(data).read_all().equals(table)


def test_pandas_frames_lose_their_index():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2]}, index=[5, 9])
    assert open_stream(frame).read_all().column_names == ["a"]


def test_polars_frames_are_data():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": ["x", None], "b": [[1], None]})
    table = open_stream(frame).read_all()
    values, _ = aligned(schema_of({"a": "STRING", "b": {"type": "ARRAY", "element": "BIGINT"}}), table)
    assert values == {"a": ["x", None], "b": [[1], None]}


@pytest.mark.parametrize("data", [None, 1, "a", [1], {"a": [1]}, [{1: 1}], np.array([1]), pa.array([1]), object()])
def test_anything_else_is_refused(data):
    with pytest.raises(UsageError):
        open_stream(data).read_all()


def test_pieces_are_bounded_and_whole():
    batch = pa.record_batch([pa.array(np.arange(600_000).tolist())], ["a"])
    sizes = [piece.num_rows for piece in pieces(batch)]
    assert sum(sizes) == 600_000
    assert max(sizes) <= 262_144
    wide = pa.record_batch([pa.array(["x" * 1_000_000] * 200)], ["a"])
    assert max(piece.nbytes for piece in pieces(wide)) <= 64 << 20
    assert list(pieces(batch.slice(0, 0))) == []
