"""Java reads tables whose files were imported by reference, changes them, and we read them again."""

from __future__ import annotations

import datetime
import decimal

import pyarrow as pa
import pytest
from unit.imports.source import partitioned, rows, state, write_avro, write_orc, write_parquet
from values import canonical_rows, difference, ours

from paimon_py import Catalog
from paimon_py.spec.type_text import print_type

pytestmark = pytest.mark.java


def columns_of(table):
    return [[field.name, print_type(field.type)] for field in table.schema.fields]


def same(session, catalog, name, **extra):
    """Whether Java reads what we read."""
    table = catalog.table(name)
    columns = columns_of(table)
    step = {"op": "read", "table": name, **extra}
    theirs = canonical_rows(columns, session.run(catalog.warehouse, [step], check=True)[0]["result"])
    return difference(columns, ours(columns, table.scan().to_arrow()), theirs)


@pytest.fixture
def catalog(tmp_path):
    made = Catalog.open(str(tmp_path / "warehouse"))
    made.create_database("db")
    return made


@pytest.mark.parametrize("version", ["2.0.0", "1.4.2"])
@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
def test_java_reads_and_changes_what_was_imported_by_reference(java, catalog, tmp_path, form, version):
    source = tmp_path / "lake"
    if form == "avro":
        for at, day in enumerate(("a", "b")):
            write_avro(source / f"dt={day}" / "x.avro", at * 3)
    else:
        partitioned(source, {"orc": write_orc, "parquet": write_parquet}[form], form)
    catalog.import_files("db.t", source)
    before = state(source)
    assert same(java(version), catalog, "db.t") is None
    row = {"id": 99, "s": "new", "dt": "2024-01-09"}
    java(version).run(catalog.warehouse, [{"op": "write", "table": "db.t", "rows": [row], "id": 1}], check=True)
    assert same(java(version), catalog, "db.t") is None
    assert 99 in catalog.table("db.t").to_arrow()["id"].to_pylist()
    catalog.table("db.t").delete("id = 0")
    assert same(java(version), catalog, "db.t") is None
    catalog.table("db.t").compact(full=True)
    assert same(java(version), catalog, "db.t") is None
    assert state(source) == before


def test_java_reads_columns_that_files_lack_and_nested_ones(java, catalog, tmp_path):
    nested = pa.table({
        "id": pa.array([1, 2], pa.int64()), "l": pa.array([[1, None], None], pa.list_(pa.int32())),
        "r": pa.array([{"x": 1, "y": "a"}, None], pa.struct([("x", pa.int32()), ("y", pa.string())])),
        "m": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
        "deep": pa.array([[{"k": [1.5]}], []], pa.list_(pa.struct([("k", pa.list_(pa.float64()))]))),
    })  # fmt: skip
    write_parquet(tmp_path / "n" / "a.parquet", nested)
    write_parquet(tmp_path / "n" / "b.parquet", nested.select(["id"]))
    catalog.import_files("db.n", tmp_path / "n")
    assert same(java("2.0.0"), catalog, "db.n") is None


def test_java_reads_the_types_of_other_writers(java, catalog, tmp_path):
    moments = [datetime.datetime(1969, 12, 31, 23, 59, 59, 250_000), datetime.datetime(2024, 2, 29, 1, 2, 3, 456_789), None]
    table = pa.table({
        "b": [True, False, None], "i1": pa.array([1, -1, None], pa.int8()), "i2": pa.array([300, -1, None], pa.int16()),
        "i4": pa.array([1, 2, None], pa.int32()), "f": pa.array([1.5, -0.0, None], pa.float32()), "g": [1.5, 2.5, None],
        "big": pa.array([decimal.Decimal("12345678901234567890.123"), decimal.Decimal("-1.5"), None], pa.decimal128(30, 3)),
        "small": pa.array([decimal.Decimal("1.25"), decimal.Decimal("-1.50"), None], pa.decimal128(7, 2)),
        "d": pa.array([datetime.date(1960, 1, 1), datetime.date(2024, 2, 29), None]),
        "ms": pa.array([moments[0], moments[0], None], pa.timestamp("ms")), "us": pa.array(moments, pa.timestamp("us")),
        "z": pa.array(moments, pa.timestamp("us", "UTC")), "x": pa.array([b"\x00\xff", b"", None], pa.binary()),
        "large": pa.array(["a", "b", None], pa.large_string()), "word": pa.array(["a", "b", None]).dictionary_encode(),
    })  # fmt: skip
    for settings in ({}, {"compression": "gzip", "data_page_version": "2.0"}, {"store_decimal_as_integer": True, "use_dictionary": False}):
        write_parquet(tmp_path / "t" / f"{len(settings)}.parquet", table, **settings)
    catalog.import_files("db.t", tmp_path / "t")
    assert same(java("2.0.0"), catalog, "db.t") is None
    write_parquet(tmp_path / "int96" / "a.parquet", pa.table({"t": pa.array(moments, pa.timestamp("ns"))}), use_deprecated_int96_timestamps=True)
    catalog.import_files("db.u", tmp_path / "int96")
    assert same(java("2.0.0"), catalog, "db.u") is None


def test_java_reads_partition_keys_of_types(java, catalog, tmp_path):
    write_parquet(tmp_path / "l" / "day=2024-01-31" / "n=7" / "what=a%2Fb" / "x.parquet", rows(0).drop(["n"]))
    catalog.import_files("db.t", tmp_path / "l", partition_by={"day": "DATE", "n": "INT", "what": "STRING"})
    assert same(java("2.0.0"), catalog, "db.t") is None
    java("2.0.0").run(catalog.warehouse, [{"op": "drop", "table": "db.t"}], check=True)
    assert [path.name for path in (tmp_path / "l").rglob("*.parquet")] == ["x.parquet"]


def test_java_reads_files_of_delta_and_iceberg(java, catalog, tmp_path):
    deltalake = pytest.importorskip("deltalake")
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    table = rows(0).append_column("day", pa.array([datetime.date(2024, 1, at) for at in (1, 1, 2)]))
    deltalake.write_deltalake(str(tmp_path / "delta"), table, partition_by=["day"])
    assert catalog.import_delta("db.d", tmp_path / "delta").by_reference
    names = sql.SqlCatalog("x", uri=f"sqlite:///{tmp_path}/names.db", warehouse=f"file://{tmp_path}/ice")
    names.create_namespace("n")
    source = names.create_table("n.t", schema=table.schema)
    with source.update_spec() as spec:
        spec.add_identity("day")
    source.append(table)
    assert catalog.import_iceberg("db.i", source).by_reference
    names.close()
    for name in ("db.d", "db.i"):
        assert same(java("2.0.0"), catalog, name) is None
