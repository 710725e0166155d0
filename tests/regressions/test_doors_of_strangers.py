"""Rows and files that came through doors which nobody had tried: found on 2026-11-28 with odd arrays, files and schemas."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_py import BlobRef, Catalog, CorruptionError, Schema, SchemaError, UnsupportedError, UsageError, col
from paimon_py.cdc import Event, Sink

INTS = pa.array([1, 2, 3], pa.int32())
FIXED = pa.array([[1.5, None], None, [2.5, 3.5]], pa.list_(pa.float32(), 2))
VIEWS = pa.ListViewArray.from_arrays(pa.array([1, 0, 0], pa.int32()), pa.array([2, 1, 0], pa.int32()), INTS)
UUIDS = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16, None, b"b" * 16], pa.binary(16)))
TEXTS = pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(["{}", None, "[1]"]))
OF_OTHERS = {
    "lists of a fixed size": FIXED,
    "views of lists": VIEWS,
    "uuids": UUIDS,
    "texts of JSON": TEXTS,
    "uuids in lists": pa.ListArray.from_arrays([0, 2, 2, 3], UUIDS),
    "lists in rows": pa.StructArray.from_arrays([FIXED, VIEWS], names=["a", "b"]),
    "instants by clocks elsewhere": pa.array([1, None, 3], pa.timestamp("us", "Asia/Tokyo")),
    "instants ahead of UTC": pa.array([1000, None, 3000], pa.timestamp("s", "+05:30")),
    "instants in lists": pa.array([[1], None, [2, None]], pa.list_(pa.timestamp("ms", "America/New_York"))),
    "bytes as booleans": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, None, 1], pa.int8())),
}
DOORS = {
    "write": lambda table, data: table.write_arrow(data),
    "overwrite": lambda table, data: table.write_arrow(data, overwrite={}),
    "merge": lambda table, data: table.merge(data, on=["k"], when_not_matched_insert=True),
}


@pytest.fixture
def catalog(tmp_path):
    made = Catalog.open(str(tmp_path / "warehouse"))
    made.create_database("db")
    return made


def plain(array):
    """The values as any reader sees them, whatever Arrow makes of them."""
    return [value.bytes if hasattr(value, "bytes") else value for value in array.to_pylist()]


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("name", [name for name in OF_OTHERS if name not in ("bytes as booleans", "uuids in lists")])
def test_an_import_is_read_again_whatever_arrow_called_its_types(catalog, tmp_path, name, copy):
    """Files that were taken by reference could not be read ("is damaged"), and no copy of them was made."""
    source = tmp_path / "files"
    source.mkdir()
    pq.write_table(pa.table({"k": INTS, "c": OF_OTHERS[name]}), source / "a.parquet")
    assert catalog.import_files("db.t", source, copy=copy).rows == 3
    table = catalog.table("db.t")
    assert table.to_arrow()["c"].to_pylist() == plain(OF_OTHERS[name])
    assert table.scan(where=col("c").is_null()).count() == OF_OTHERS[name].null_count
    table.compact(full=True)
    assert table.refresh().to_arrow()["c"].to_pylist() == plain(OF_OTHERS[name])


@pytest.mark.parametrize(("name", "kind"), [("bytes as booleans", "TINYINT"), ("uuids in lists", "ARRAY<BINARY(16)>")])
def test_the_storage_of_other_types_is_read(catalog, tmp_path, name, kind):
    source = tmp_path / "files"
    source.mkdir()
    pq.write_table(pa.table({"k": INTS, "c": OF_OTHERS[name]}), source / "a.parquet")
    table = catalog.create_table("db.t", Schema([("k", "INT"), ("c", kind)]))
    catalog.import_files("db.t", source)
    storage = [0, None, 1] if "bytes" in name else [[b"a" * 16, None], [], [b"b" * 16]]
    assert table.refresh().to_arrow()["c"].to_pylist() == storage


@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("door", DOORS)
def test_seconds_that_no_file_holds_are_refused_by_their_column(catalog, door, form):
    options = {"file.format": form}
    table = catalog.create_table("db.t", Schema([("k", "INT"), ("at", "ARRAY<TIMESTAMP(0)>"), ("c", "TIMESTAMP(0)")]), options=options)
    for name, values in (("c", pa.array([1, 2**62, None], pa.timestamp("s"))), ("c", pa.array([1, -(2**63), 5], pa.timestamp("s"))), ("at", pa.array([[1], [2**62], None], pa.list_(pa.timestamp("s"))))):
        with pytest.raises(SchemaError, match=rf"column {name}.*\(row 1\b.* does not fit TIMESTAMP\(0\)") as error:
            DOORS[door](table, pa.table({"k": INTS, name: values}))
        assert error.value.fields == (name,)
    assert table.refresh().snapshot() is None
    assert table.remove_orphans(older_than=0, dry_run=True).files == 0
    ends = [(2**63 - 1) // 1000 - 1, None, 1 - (2**63 - 1) // 1000]
    DOORS[door](table, pa.table({"k": INTS, "c": pa.array(ends, pa.timestamp("s"))}))
    assert table.refresh().to_arrow()["c"].combine_chunks().view(pa.int64()).to_pylist() == ends


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 9223372036854775000, -9223372036854775000])
def test_what_orc_cannot_give_back_is_not_taken(catalog, value):
    """The last second of 64 bits was committed to ORC, and the file was damaged for its reader."""
    table = catalog.create_table("db.t", Schema([("c", "TIMESTAMP(3)")]), options={"file.format": "orc"})
    with pytest.raises(UnsupportedError, match="ORC timestamps outside the years"):
        table.write_arrow(pa.table({"c": pa.array([0, value], pa.timestamp("ms"))}))
    assert table.refresh().snapshot() is None
    kept = [9223372036854774000, -9223372036854774000]
    table.write_arrow(pa.table({"c": pa.array(kept, pa.timestamp("ms"))}))
    assert table.refresh().to_arrow()["c"].combine_chunks().view(pa.int64()).to_pylist() == kept


@pytest.mark.parametrize("digits", [6, 9])
def test_the_first_and_last_times_of_64_bits_are_overwritten_and_found(catalog, digits):
    """Statistics with times of the last millisecond were called damaged, after rows with them had been taken."""
    unit, ends = "us" if digits == 6 else "ns", [2**63 - 1, -(2**63), 1]
    data = pa.table({"k": INTS, "c": pa.array(ends, pa.timestamp(unit))})
    table = catalog.create_table("db.t", Schema([("k", "INT NOT NULL"), ("c", f"TIMESTAMP({digits}) NOT NULL")]), primary_key=["c"], options={"bucket": "1"})
    table.write_arrow(data)
    with table.writer(overwrite=True) as writer:
        writer.write_arrow(data)
        table.commit(writer.changes())
    table.compact(full=True)
    table.write_arrow(data)
    assert sorted(table.refresh().scan(where="k > 0").to_arrow()["c"].combine_chunks().view(pa.int64()).to_pylist()) == sorted(ends)


@pytest.mark.parametrize(
    ("kind", "text"),
    [("DOUBLE", "0.12345678901234567890"), ("DOUBLE", "123456789012345678"), ("DOUBLE", "1E+400"), ("DOUBLE", "1E-400"), ("FLOAT", "0.3333333333"), ("ARRAY<DOUBLE>", "0.12345678901234567890")],
)
def test_decimals_with_more_digits_than_a_float_shows_are_refused(catalog, kind, text):
    table = catalog.create_table("db.t", Schema([("c", kind)]))
    value = Decimal(text)
    for door in (table.write_arrow, lambda rows: table.write_arrow(rows, overwrite={})):
        with pytest.raises(SchemaError, match=r"column c: .*more digits than the column stores"):
            door([{"c": [value] if "ARRAY" in kind else value}])
    assert table.refresh().snapshot() is None


@pytest.mark.parametrize(("kind", "text"), [("DOUBLE", "0.1"), ("DOUBLE", "-12345.678901234"), ("FLOAT", "0.1"), ("DOUBLE", "1E+22"), ("FLOAT", "-0.0"), ("DOUBLE", "Infinity")])
def test_decimals_that_a_float_shows_are_taken(catalog, kind, text):
    table = catalog.create_table("db.t", Schema([("c", kind)]))
    exact = Decimal(float(text)) if kind == "DOUBLE" else Decimal(text)
    table.write_arrow([{"c": Decimal(text)}, {"c": exact}])
    assert table.to_arrow()["c"].to_pylist() == [pa.scalar(float(text), pa.float32() if kind == "FLOAT" else pa.float64()).as_py()] * 2


def unsigned(number, value, declared):
    parameters = {"parameters": {"__debezium.source.column.type": declared}} if declared else {}
    fields = [{"field": "id", "type": "int32"}, {"field": "v", "type": "int64", **parameters}]
    payload = {"op": "c", "before": None, "after": {"id": number, "v": value}, "source": {"table": "t"}}
    text = json.dumps({"schema": {"fields": [{"field": "after", "fields": fields}]}, "payload": payload})
    return Event(text.encode(), json.dumps({"schema": {"fields": fields[:1]}, "payload": {"id": number}}).encode())


@pytest.mark.parametrize(("declared", "dead"), [("BIGINT UNSIGNED", 1), ("bigint unsigned zerofill", 1), ("BIGINT", 0), (None, 0)])
def test_an_unsigned_number_that_the_connector_cut_is_a_dead_letter_where_the_source_tells_its_type(catalog, declared, dead):
    sink = Sink(catalog, "lake", user="u")
    done = sink.write([unsigned(1, 5, declared), unsigned(2, -1, declared), unsigned(3, None, declared)], identifier=1)
    assert done.dead == dead
    assert catalog.table("lake.t").to_arrow().sort_by("id")["v"].to_pylist() == [5, *([] if dead else [-1]), None]
    if dead:
        (reason,) = catalog.table("lake.cdc_dead_letters").to_arrow()["reason"].to_pylist()
        assert "column 'v': -1" in reason and "bigint.unsigned.handling.mode=precise" in reason


def test_a_key_of_other_columns_in_a_later_schema_is_told(catalog, tmp_path):
    table = catalog.create_table("db.t", Schema([("k", "INT NOT NULL"), ("s", "STRING NOT NULL")]), primary_key=["k"], options={"bucket": "1"})
    table.write_arrow([{"k": 1, "s": "x"}])
    folder = Path(table.location.removeprefix("file:")) / "schema"
    schema = json.loads((folder / "schema-0").read_text())
    (folder / "schema-1").write_text(json.dumps({**schema, "id": 1, "primaryKeys": ["k", "s"]}))
    with pytest.raises(CorruptionError, match=r"schema 0 has the primary key \['k'\], and schema 1 has \['k', 's'\]"):
        catalog.table("db.t").to_arrow()


ENDS = pa.array([2, 3], pa.int16())
RUNS = {
    "dictionaries": ("STRING", pa.DictionaryArray.from_arrays([0, None], ["a"]), ["a", "a", None]),
    "views of texts": ("STRING", pa.array(["a", None], pa.string_view()), ["a", "a", None]),
    "lists": ("ARRAY<BIGINT>", pa.array([[1], None]), [[1], [1], None]),
    "uuids": ("BYTES", UUIDS[:2], [b"a" * 16, b"a" * 16, None]),
    "runs": ("BIGINT", pa.RunEndEncodedArray.from_arrays([1, 2], [5, 6]), [5, 5, 6]),
}


@pytest.mark.parametrize("name", RUNS)
def test_runs_of_any_type_are_decoded(catalog, name):
    """Seen on 2026-11-29: Arrow itself decodes runs of plain types only, and its error was passed on."""
    kind, values, expected = RUNS[name]
    data = pa.table({"c": pa.RunEndEncodedArray.from_arrays(ENDS, values)})
    table = catalog.create_table("db.runs", Schema({"c": kind}))
    table.write_arrow(data)
    table.write_arrow(data.slice(1))
    assert table.to_arrow()["c"].to_pylist() == [*expected, *expected[1:]]


REFERENCES = [(None, 0, None), ("\ud800", 0, None), ("a", -1, None), ("a", 1 << 70, None), ("a", "1", None), ("a", 0, -5), ("a", 0, 1.5)]


@pytest.mark.parametrize("given", REFERENCES)
def test_references_that_no_table_can_hold_are_not_made(given):
    """Seen on 2026-11-29: a negative offset was committed, and no read of the row came to an end."""
    with pytest.raises(UsageError, match="BlobRef|a reference to a BLOB"):
        BlobRef(*given)


def test_blobs_of_files_that_end_before_or_are_closed_are_refused(catalog, tmp_path):
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "bucket": "-1"}
    table = catalog.create_table("db.blobs", Schema({"id": "INT", "b": "BLOB"}), options=options)
    (tmp_path / "five").write_bytes(b"12345")
    closed = (tmp_path / "five").open("rb")
    closed.close()
    for source in (BlobRef(str(tmp_path / "five"), 9), BlobRef(str(tmp_path / "five"), 2, 4), closed):
        with pytest.raises(UsageError, match=r"five has no|closed file"):
            table.write_arrow([{"id": 1, "b": source}])
    table.write_arrow([{"id": 1, "b": BlobRef(str(tmp_path / "five"), 2)}])
    assert table.to_arrow()["b"].to_pylist() == [b"345"]


def test_names_and_queries_that_are_no_text_are_refused(catalog):
    """Seen on 2026-11-29: pandas, pyarrow and DuckDB raised errors of their own."""
    table = catalog.create_table("db.names", Schema({"k": "INT", "v": "VARIANT"}))
    table.write_arrow([{"k": 1, "v": pandas.NaT}, {"k": 2, "v": [pandas.NaT]}])
    assert table.to_arrow()["v"].is_valid().to_pylist() == [False, True]
    for name in (pandas.NA, pa.scalar(1 << 62, pa.timestamp("s"))):
        with pytest.raises(UsageError, match="names of columns"):
            table.update("k = 1", {name: 1})
    with pytest.raises(UsageError, match="query"):
        catalog.sql("\ud800")
    with pytest.raises(SchemaError, match="finer than a microsecond"):
        table.write_arrow([{"k": 1, "v": [pandas.Timestamp(1)]}])
