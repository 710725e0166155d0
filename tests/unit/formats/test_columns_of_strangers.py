"""Data files of other writers: columns that are not there, and types that hold the same values."""

from __future__ import annotations

import datetime
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from paimon_py import Catalog, CorruptionError, RenameColumn, Table, col
from paimon_py.formats.avro.format import AvroFormat
from paimon_py.formats.base import ReadSettings, WriteSettings
from paimon_py.formats.stored import check_absent
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field

ROWS = [{"k": n, "a": n * 10 if n % 2 else None, "s": None} for n in range(5)]
SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), ("a", pa.int32()), ("s", pa.string())])


def made(folder, form, rows=ROWS, schema=SCHEMA, **options):
    catalog = Catalog.open(folder)
    catalog.create_database("d")
    options = {"bucket": "-1", "file.format": form, "metadata.stats-mode": "none", **options}
    table = catalog.create_table("d.t", schema, options=options)
    table.write_arrow(pa.Table.from_pylist(rows, schema=table.scan().schema))
    return table


def data_file(table):
    (path,) = Path(table.location).glob("bucket-0/data-*")
    return path


def rewrite(table, columns, **renamed):
    """Write the data file anew with some of its columns."""
    path = data_file(table)
    data = table.scan(columns=columns).to_arrow().rename_columns([renamed.get(name, name) for name in columns])
    if path.suffix == ".parquet":
        pq.write_table(data, path)
    else:
        orc.write_table(data, path)
    return Table.open(table.location)


def without_field(table, name):
    """Write the data file anew without the fields of a name inside ROWs."""
    path = data_file(table)
    data = table.scan().to_arrow()
    kind = pa.schema([pa.field(each.name, _lacking(each.type, name)) for each in data.schema])
    rows = pa.Table.from_pylist([_cut(row, name) for row in data.to_pylist()], schema=kind)
    (pq if path.suffix == ".parquet" else orc).write_table(rows, path)
    return Table.open(table.location)


def _lacking(kind, name):
    if pa.types.is_struct(kind):
        return pa.struct([(each.name, _lacking(each.type, name)) for each in kind if each.name != name])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _lacking(kind.item_type, name))
    return pa.list_(_lacking(kind.value_type, name)) if pa.types.is_list(kind) else kind


def _cut(value, name):
    if isinstance(value, dict):
        return {key: _cut(part, name) for key, part in value.items() if key != name}
    return type(value)(_cut(part, name) for part in value) if isinstance(value, (list, tuple)) else value


INNER = pa.struct([("a", pa.int32()), ("b", pa.string()), ("c", pa.list_(pa.struct([("b", pa.int32()), ("d", pa.int8())])))])
NESTED = pa.schema([pa.field("k", pa.int64(), nullable=False), ("r", INNER), ("l", pa.list_(INNER)), ("m", pa.map_(pa.string(), INNER))])


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_a_field_of_a_row_that_a_file_does_not_hold_is_null(form, tmp_path):
    one = {"a": 1, "b": "x", "c": [{"b": 2, "d": 3}, None]}
    rows = [{"k": 1, "r": one, "l": [one, None], "m": [("y", one)]}, {"k": 2, "r": None, "l": None, "m": None}]
    table = without_field(made(tmp_path, form, rows, NESTED), "b")
    less = {"a": 1, "b": None, "c": [{"b": None, "d": 3}, None]}
    assert table.to_arrow().to_pylist() == [{"k": 1, "r": less, "l": [less, None], "m": [("y", less)]}, rows[1]]
    assert table.scan(where=col("r").is_null(), columns=["k"]).to_arrow().to_pylist() == [{"k": 2}]
    table.alter(RenameColumn(["r", "a"], "z"))
    table.compact(full=True)
    assert table.scan(columns=["r"]).to_arrow().to_pylist()[0] == {"r": {"z": 1, "b": None, "c": less["c"]}}


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_a_field_that_may_be_there_under_another_name_is_damage(form, tmp_path):
    kind = pa.struct([("a", pa.int32()), ("b", pa.string())])
    table = made(tmp_path, form, [{"r": {"a": 1, "b": "x"}}], pa.schema([("r", kind)]))
    other = pa.table({"r": pa.array([{"a": 1, "B": "x"}], pa.struct([("a", pa.int32()), ("B", pa.string())]))})
    (pq if form == "parquet" else orc).write_table(other, data_file(table))
    with pytest.raises(CorruptionError, match="has no field b, .* it has B instead"):
        Table.open(table.location).to_arrow()


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_a_column_that_a_file_does_not_hold_is_null(form, tmp_path):
    """As Java reads it, and as tables that were taken over from Hive leave it."""
    table = made(tmp_path, form)
    again = rewrite(table, ["k", "a"])
    assert again.scan(columns=["k", "a", "s"]).to_arrow().to_pylist() == ROWS
    assert again.scan(columns=["s"]).to_arrow().to_pylist() == [{"s": None}] * 5
    assert again.scan(where=col("s").is_null() & (col("k") > 2)).count() == 2
    assert again.scan(where=col("s") == "x").count() == 0


@pytest.mark.parametrize("stored", ["_SEQUENCE_NUMBER", "_VALUE_KIND", "_ROW_ID", "_KEY_k", "k", "strange", "_key_k", "_rowkind"])
def test_a_column_may_be_omitted_beside_those_of_the_format_alone(stored):
    field, settings = Field(1, "s", parse_type("STRING")), ReadSettings(schema_names=("k", "s"), may_lack=frozenset(["s"]))
    if stored in ("strange", "_key_k", "_rowkind"):
        with pytest.raises(CorruptionError, match=f"no column s.*{stored} instead"):
            check_absent("f", field, ["k", stored], settings)
    else:
        check_absent("f", field, ["k", stored], settings)


def test_avro_files_may_lack_columns_too():
    """By the format alone: the size of an Avro file is held against its entry."""
    fields = [Field(n, name, parse_type(kind)) for n, (name, kind) in enumerate([("k", "INT NOT NULL"), ("a", "INT"), ("s", "STRING")])]
    sink = io.BytesIO()
    writer = AvroFormat().create(sink, fields[:2], WriteSettings())
    writer.write(pa.record_batch({"k": pa.array([1, 2], pa.int32()), "a": pa.array([None, 5], pa.int32())}))
    writer.close()
    names = tuple(field.name for field in fields)

    def read(columns, may_lack):
        settings = ReadSettings(schema_names=names, may_lack=frozenset(may_lack))
        file = AvroFormat().open(io.BytesIO(sink.getvalue()), "f", fields, len(sink.getvalue()), settings)
        return [row for _, batch in file.positioned_batches(columns, batch_rows=1) for row in batch.to_pylist()]

    assert read(["k", "s"], ["s"]) == [{"k": 1, "s": None}, {"k": 2, "s": None}]
    assert read(["s"], ["s"]) == [{"s": None}, {"s": None}]
    with pytest.raises(CorruptionError, match="no column s"):
        read(["k", "s"], [])


@pytest.mark.parametrize("form", ["parquet", "orc"])
@pytest.mark.parametrize(
    ("columns", "renamed", "match"),
    [(["a", "s"], {}, "no column k"), (["k", "a", "s"], {"s": "S"}, "it has S instead"), (["k", "a", "s"], {"s": "r"}, "it has r instead")],
)
def test_a_column_that_may_be_there_under_another_name_is_damage(form, columns, renamed, match, tmp_path):
    with pytest.raises(CorruptionError, match=match):
        rewrite(made(tmp_path, form), columns, **renamed).to_arrow()


def test_parquet_times_of_nine_digits_may_be_stored_in_coarser_units(tmp_path):
    schema = pa.schema([("t", pa.timestamp("ns"))])
    time = datetime.datetime(2024, 1, 2, 3, 4, 5, 678000)
    table = made(tmp_path, "parquet", [{"t": time}, {"t": None}], schema)
    for unit, zone in (("us", None), ("ms", None), ("us", "UTC"), ("ns", "UTC")):
        data = pa.table({"t": pa.array([time, None], pa.timestamp(unit, zone))})
        pq.write_table(data, data_file(table))
        found = Table.open(table.location).to_arrow()["t"]
        assert found.type == pa.timestamp("ns")
        assert found.cast(pa.timestamp("ms")).to_pylist() == [time, None]


def test_parquet_times_of_fewer_digits_have_one_unit(tmp_path):
    """Java takes the unit from the column there: it reads the year 55972, and we do not."""
    table = made(tmp_path, "parquet", [{"t": datetime.datetime(2024, 1, 2)}], pa.schema([("t", pa.timestamp("us"))]))
    pq.write_table(pa.table({"t": pa.array([datetime.datetime(2024, 1, 2)], pa.timestamp("ms"))}), data_file(table))
    with pytest.raises(CorruptionError, match="a TIMESTAMP stored as"):
        Table.open(table.location).to_arrow()


@pytest.mark.parametrize("kind", [pa.uint32(), pa.uint16(), pa.int64()])
def test_integers_may_be_stored_without_sign_or_wider(kind, tmp_path):
    table = made(tmp_path, "parquet", [{"a": 7}, {"a": 0}], pa.schema([("a", pa.int32())]))
    pq.write_table(pa.table({"a": pa.array([7, 0], kind)}), data_file(table))
    assert Table.open(table.location).to_arrow()["a"].to_pylist() == [7, 0]
