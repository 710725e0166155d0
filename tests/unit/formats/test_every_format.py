"""What holds for all formats alike."""

import gc
import io
import random
from importlib.util import find_spec

import pyarrow as pa
import pytest
from unit.formats.samples import batches_of, every_type, fields_of, holds, make_batch, open_bytes, read, rows_of, write

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.errors import CorruptionError, OptionError, SchemaError, StorageError, UnsupportedError
from paimon_py.formats.base import WriteSettings
from paimon_py.formats.registry import by_extension, format_of

FORMATS = ("parquet", "orc", "avro")
formats = pytest.mark.parametrize("name", FORMATS)
PACKAGES = {"vortex": "vortex", "lance": "lance", "mosaic": "mosaic"}
PACKAGED = [
    pytest.param(name, marks=pytest.mark.skipif(find_spec(module) is None, reason=f"needs paimon-py[{name}]"))
    for name, module in PACKAGES.items()
]
all_formats = pytest.mark.parametrize("name", [*FORMATS, *PACKAGED])


@all_formats
def test_every_type_comes_back_as_it_was_written(name):
    fields = every_type(name)
    batches = [make_batch(fields, name, seed, 60) for seed in (1, 2)]
    data, _ = write(name, fields, batches)
    table = read(name, data, fields)
    table.validate(full=True)
    assert table.schema.equals(batches[0].schema)
    assert rows_of(table) == rows_of(pa.Table.from_batches(batches))


@all_formats
def test_slices_of_batches_write_their_own_rows(name):
    fields = every_type(name)
    batch = make_batch(fields, name, 7, 90)
    pieces = [batch.slice(13, 5), batch.slice(50, 31), batch.slice(0, 1)]
    data, _ = write(name, fields, pieces)
    assert rows_of(read(name, data, fields)) == rows_of(pa.Table.from_batches(pieces))


@all_formats
def test_nulls_may_hide_anything(name):
    fields = fields_of("ARRAY<TIMESTAMP(6)>", "ROW<t TIMESTAMP(6)>", "INT")
    old = pa.array([-1, -2, 5, -3], pa.int64()).view(pa.timestamp("us"))
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 3, 4], pa.int32()), old, mask=pa.array([True, False, True]))
    rows = pa.StructArray.from_arrays(
        [old.slice(1)], fields=[pa.field("t", old.type)], mask=pa.array([True, False, True])
    )
    numbers = pa.array([None, 1, None], pa.int32())
    batch = pa.RecordBatch.from_arrays([lists, rows, numbers], ["c0", "c1", "c2"])
    fields = [field for field in fields if holds(name, field)]
    batch = batch.select([field.name for field in fields])
    data, _ = write(name, fields, [batch])
    assert rows_of(read(name, data, fields)) == rows_of(pa.Table.from_batches([batch]))


@pytest.mark.parametrize("name", [*FORMATS, *PACKAGED[:2]])
def test_a_null_row_needs_no_values_for_its_not_null_fields(name):
    """Found by writing a table without a column of type ROW<x INT NOT NULL>: Arrow has nulls below the NULL row."""
    kinds = ("INT", "STRING", "TIMESTAMP(3)", "BOOLEAN", "DECIMAL(30, 2)", "ROW<z BIGINT NOT NULL> NOT NULL")
    row = "ROW<" + ", ".join(f"f{i} {kind.removesuffix(' NOT NULL')} NOT NULL" for i, kind in enumerate(kinds)) + ">"
    fields = fields_of(row, f"ARRAY<{row}>", f"MAP<STRING, {row}>")
    arrow = [to_arrow_type(field.type) for field in fields]
    full = make_batch(fields_of(row + " NOT NULL"), name, 3, 6)["c0"].cast(arrow[0])
    mixed = full.filter(pa.array([True, False] * 3)).to_pylist()
    columns = [
        pa.concat_arrays([pa.nulls(2, arrow[0]), full, pa.nulls(1, arrow[0])]),
        pa.array([None, [], [None, mixed[0]], [None], [mixed[1]] * 2, None, [None, None], [mixed[2]], []], arrow[1]),
        pa.array([None, [], [("a", None), ("b", mixed[0])], None, [("c", None)], [], None, [], []], arrow[2]),
    ]
    batch = pa.RecordBatch.from_arrays(columns, ["c0", "c1", "c2"])
    fields = [field for field in fields if holds(name, field)]
    batch = batch.select([field.name for field in fields])
    for given in (batch, batch.slice(1, 7)):
        assert rows_of(read(name, write(name, fields, [given])[0], fields)) == rows_of(pa.Table.from_batches([given]))


@all_formats
def test_batches_are_no_larger_than_asked_and_positions_count_rows(name):
    fields = fields_of("INT")
    batch = pa.record_batch({"c0": pa.array(range(1000), pa.int32())})
    data, _ = write(name, fields, [batch])
    opened = open_bytes(name, data, fields)
    found = list(opened.positioned_batches(["c0"], batch_rows=64))
    assert max(piece.num_rows for _, piece in found) <= 64
    for position, piece in found:
        assert piece.column(0)[0].as_py() == position
    assert sum(piece.num_rows for _, piece in found) == 1000
    assert opened.row_count in (1000, None)


@all_formats
def test_columns_come_in_the_order_asked(name):
    written = fields_of("INT NOT NULL", "STRING")
    batch = make_batch(written, name, 1, 10)
    data, _ = write(name, written, [batch])
    table = read(name, data, written, ["c1", "c0"])
    assert table.column_names == ["c1", "c0"]
    assert table["c1"].to_pylist() == batch.column("c1").to_pylist()


@formats
@pytest.mark.parametrize("lost", ["ARRAY<BIGINT> NOT NULL", "MAP<INT, ROW<a INT>>", "STRING"])
def test_a_column_that_its_schema_has_and_the_file_lacks_is_corruption(name, lost):
    written = fields_of("INT NOT NULL", "STRING")
    data, _ = write(name, written, [make_batch(written, name, 1, 10)])
    fields = fields_of("INT NOT NULL", "STRING", lost)
    for columns in (["c2"], ["c2", "c0"]):
        with pytest.raises(CorruptionError, match="has no column c2") as caught:
            read(name, data, fields, columns)
        assert caught.value.path == "/t/f"
    if name != "avro":
        assert open_bytes(name, data, fields[:2]).row_count == 10


@all_formats
def test_no_columns_still_have_rows(name):
    fields = fields_of("INT")
    data, _ = write(name, fields, [pa.record_batch({"c0": pa.array(range(100), pa.int32())})])
    assert sum(b.num_rows for b in batches_of(open_bytes(name, data, fields), [], batch_rows=30)) == 100


@formats
def test_a_row_field_that_its_schema_has_and_the_file_lacks_is_null_or_corruption(name):
    written = fields_of("ROW<a INT, b INT>")
    data, _ = write(
        name,
        written,
        [pa.record_batch({"c0": pa.array([{"a": 1, "b": 2}], pa.struct([("a", pa.int32()), ("b", pa.int32())]))})],
    )
    assert read(name, data, fields_of("ROW<b INT>"))["c0"].to_pylist() == [{"b": 2}]
    assert read(name, data, fields_of("ROW<b INT, c STRING, a INT>"))["c0"].to_pylist() == [{"b": 2, "c": None, "a": 1}]
    for kind in ("ROW<b INT, c STRING>", "ROW<c INT>", "ROW<a INT, b INT, c INT NOT NULL>"):
        with pytest.raises(CorruptionError, match="has no field c") as caught:
            read(name, data, fields_of(kind))
        assert caught.value.path == "/t/f"


LAYOUTS = [("DECIMAL(9, 2)", "DECIMAL(9, 3)"), ("DECIMAL(9, 2)", "INT"), ("TIMESTAMP(3)", "TIMESTAMP(6)"), ("TIMESTAMP(6)", "BIGINT")]
LAYOUTS += [("DATE", "TIMESTAMP(3)"), ("STRING", "DECIMAL(20, 2)"), ("DOUBLE", "BIGINT"), ("MAP<INT, STRING>", "ARRAY<INT>")]


@pytest.mark.parametrize("name", ["parquet", "orc"])
@pytest.mark.parametrize(("kind", "stored"), LAYOUTS)
@pytest.mark.parametrize("around", ["{}", "ARRAY<{}>", "ROW<a {}>", "MAP<INT, {}>"])
def test_a_column_whose_layout_would_be_read_as_other_values_is_corruption(name, kind, stored, around):
    if name == "orc" and kind.startswith("TIMESTAMP") and stored.startswith("TIMESTAMP"):
        pytest.skip("ORC has one layout for all timestamps")
    written = fields_of(around.format(stored))
    data, _ = write(name, written, [make_batch(written, name, 2, 10)])
    with pytest.raises(CorruptionError, match="stored as") as caught:
        read(name, data, fields_of(around.format(kind)))
    assert caught.value.path == "/t/f"


@all_formats
def test_a_file_without_rows_is_a_file(name):
    fields = every_type(name)
    data, bounds = write(name, fields, [])
    assert read(name, data, fields) is None
    assert all(bound.min is None and bound.max is None for bound in bounds)


@all_formats
def test_bounds_cover_the_rows_and_count_nulls(name):
    fields = fields_of("INT", "STRING", "DECIMAL(20, 2)", "TIMESTAMP(3)", "BOOLEAN", "ARRAY<INT>")
    batches = [make_batch(fields, name, seed, 50) for seed in (3, 4)]
    table = pa.Table.from_batches(batches)
    _, bounds = write(name, fields, batches)
    for column, bound in list(zip(table.columns, bounds, strict=True))[:5]:
        values = [value for value in column.to_pylist() if value is not None]
        assert (bound.min.as_py(), bound.max.as_py()) == (min(values), max(values))
        assert bound.min.type == column.type
        assert bound.null_count == column.null_count
    assert bounds[5].min is None and bounds[5].max is None
    assert bounds[5].null_count == (None if name == "parquet" else table["c5"].null_count)


@all_formats
def test_floats_have_bounds_unless_there_is_a_nan(name):
    fields = fields_of("DOUBLE", "FLOAT", "DOUBLE")
    batches = [
        pa.record_batch({"c0": [1.5, None], "c1": pa.array([0.0, None], pa.float32()), "c2": [3.0, 4.0]}),
        pa.record_batch(
            {"c0": [float("nan"), 2.0], "c1": pa.array([0.0, 0.0], pa.float32()), "c2": [float("-inf"), 2.0]}
        ),
    ]
    _, bounds = write(name, fields, batches)
    assert (bounds[0].min, bounds[0].max, bounds[0].null_count) == (None, None, 1)
    assert (str(bounds[1].min), str(bounds[1].max)) == ("-0.0", "0.0")
    assert (bounds[2].min.as_py(), bounds[2].max.as_py()) == (float("-inf"), 4.0)


@all_formats
def test_columns_without_wanted_bounds_have_none(name):
    fields = fields_of("INT", "INT")
    batch = pa.record_batch({"c0": pa.array([1, None], pa.int32()), "c1": pa.array([1, 2], pa.int32())})
    _, bounds = write(name, fields, [batch], without_stats=frozenset({"c0"}))
    assert bounds[0].min is None and bounds[0].null_count == 1
    assert bounds[1].max.as_py() == 2


@all_formats
def test_null_in_a_not_null_column_is_refused(name):
    fields = fields_of("INT NOT NULL")
    writer = format_of(name).create(io.BytesIO(), fields, WriteSettings())
    with pytest.raises(SchemaError) as error:
        writer.write(pa.record_batch({"c0": pa.array([1, None], pa.int32())}))
    assert error.value.fields == ("c0",)
    writer.abort()


@all_formats
def test_after_abort_nothing_reaches_the_sink(name):
    fields = every_type(name)
    sink = io.BytesIO()
    writer = format_of(name).create(sink, fields, WriteSettings())
    writer.write(make_batch(fields, name, 1, 10))
    writer.abort()
    before = sink.getvalue()
    del writer
    gc.collect()
    assert sink.getvalue() == before


@all_formats
def test_an_error_of_the_sink_is_raised_as_it_is(name):
    fields = fields_of("INT")

    class Full(io.BytesIO):
        def write(self, data):
            raise StorageError("disk full", operation="write")

    sink = Full()
    writer = format_of(name).create(sink, fields, WriteSettings())
    with pytest.raises(StorageError, match="disk full"):
        writer.write(pa.record_batch({"c0": pa.array([1], pa.int32())}))
        writer.close()
    writer.abort()
    del writer
    gc.collect()


@formats
def test_an_error_of_the_source_is_raised_as_it_is(name):
    fields = fields_of("INT")
    data, _ = write(name, fields, [pa.record_batch({"c0": pa.array([1], pa.int32())})])

    class Broken(io.BytesIO):
        def read(self, size=-1):
            raise StorageError("connection lost", operation="read", transient=True)

    with pytest.raises(StorageError, match="connection lost"):
        list(batches_of(format_of(name).open(Broken(data), "/f", fields, len(data)), ["c0"], batch_rows=10))


@formats
def test_a_file_cut_anywhere_is_damaged(name):
    fields = fields_of("INT", "STRING", "ARRAY<INT>")
    data, _ = write(name, fields, [make_batch(fields, name, 1, 200)])
    for length in [*range(0, 40), *range(40, len(data), 37), len(data) - 1]:
        with pytest.raises(CorruptionError) as error:
            opened = format_of(name).open(io.BytesIO(data[:length]), "/t/cut", fields, len(data))
            list(batches_of(opened, ["c0", "c1", "c2"], batch_rows=100))
        assert error.value.path == "/t/cut"


@pytest.mark.parametrize("name", ["parquet", "avro"])
def test_a_flipped_bit_among_the_values_is_noticed_or_harmless(name):
    fields = fields_of("INT", "STRING", "DOUBLE", "DECIMAL(30, 2)")
    data, _ = write(name, fields, [make_batch(fields, name, 1, 300)])
    right = rows_of(read(name, data, fields))
    first, last = data.index(b"avro.codec") + 40 if name == "avro" else 4, len(data)
    if name == "parquet":
        last -= 8 + int.from_bytes(data[-8:-4], "little")
    noticed = 0
    for position in range(first, last, (last - first) // 250):
        flipped = bytearray(data)
        flipped[position] ^= 1 << position % 8
        try:
            assert rows_of(read(name, bytes(flipped), fields)) == right
        except CorruptionError as error:
            assert error.path == "/t/f"
            noticed += 1
    assert noticed > 200


@formats
def test_junk_is_damaged(name):
    for junk in (b"", b"PAR1", b"Obj\x01", b"ORC", b"PAR1" * 10, b"\xff" * 500, b"Obj\x01" + b"\xff" * 50):
        with pytest.raises(CorruptionError):
            opened = format_of(name).open(io.BytesIO(junk), "/junk", fields_of("INT"), len(junk))
            list(batches_of(opened, ["c0"], batch_rows=1))


@formats
def test_values_of_another_type_are_damage(name):
    data, _ = write(name, fields_of("STRING"), [pa.record_batch({"c0": ["x"]})])
    with pytest.raises(CorruptionError):
        read(name, data, fields_of("ARRAY<INT>"))
    with pytest.raises(CorruptionError):
        read(name, data, fields_of("INT"))


@formats
def test_levels_of_zstd_are_heard(name):
    dice = random.Random(5)
    words = [f"word {dice.randrange(4000)} {dice.randrange(60)}" for _ in range(20_000)]
    batch = pa.record_batch({"c0": words})
    sizes = {}
    for level in (-5, 1, 3, 19, 99):
        data, _ = write(name, fields_of("STRING"), [batch], compression="zstd", zstd_level=level)
        sizes[level] = len(data)
        assert read(name, data, fields_of("STRING"))["c0"].to_pylist() == words
    assert len(set(sizes.values())) > 1
    if name != "orc":  # there are two levels only
        assert sizes[-5] > sizes[1] > sizes[19] == sizes[99]


@formats
def test_unknown_codecs_are_refused_by_option(name):
    with pytest.raises(OptionError) as error:
        format_of(name).create(io.BytesIO(), fields_of("INT"), WriteSettings(compression="zsdt"))
    assert error.value.option == "file.compression"
    assert error.value.value == "zsdt"


@all_formats
def test_size_estimate_and_rows_grow(name):
    fields = fields_of("BIGINT", "STRING")
    sink = io.BytesIO()
    writer = format_of(name).create(sink, fields, WriteSettings())
    batch = pa.record_batch({"c0": list(range(20_000)), "c1": [f"value {n}" for n in range(20_000)]})
    sizes = []
    for _ in range(8):
        writer.write(batch)
        sizes.append(writer.bytes_written)
    assert writer.row_count == 160_000
    assert sizes[0] > 0
    writer.close()
    assert writer.bytes_written >= len(sink.getvalue()) * 0.5
    assert sizes[-1] < batch.nbytes * 9


def test_formats_are_found_by_name_and_by_extension():
    assert format_of("Parquet").name == "parquet"
    assert by_extension("data-1.zstd.orc").name == "orc"
    assert by_extension("data--u-x-s-0-w-1.avro").name == "avro"
    with pytest.raises(UnsupportedError, match="csv"):
        format_of("csv")
    with pytest.raises(OptionError):
        format_of("parket")
    with pytest.raises(CorruptionError):
        by_extension("data-1")
