"""Files of the formats `vortex`, `lance` and `mosaic`, which packages of their own read and write."""

from __future__ import annotations

import datetime
import decimal
import io
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from paimon_py import AddColumn, Catalog, CorruptionError, Schema, SchemaError, StorageError, UnsupportedError, col
from paimon_py.env import TemporarySpill
from paimon_py.formats.base import ReadSettings, WriteSettings
from paimon_py.formats.packaged.opened import load_package
from paimon_py.formats.packaged.written import packaged_encoder
from paimon_py.formats.registry import by_extension, format_of
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field

ROWS = 20_000
TYPES = {
    "i": "BIGINT", "s": "STRING", "y": "BYTES", "b": "BOOLEAN", "d": "DOUBLE", "n": "DECIMAL(18, 3)", "w": "DATE",
    "t": "TIMESTAMP(6)", "z": "TIMESTAMP(3) WITH LOCAL TIME ZONE", "a": "ARRAY<INT>", "r": "ROW<x INT, y STRING>",
    "e": "VECTOR<FLOAT, 2>",
}  # fmt: skip
FIELDS = tuple(Field(n, name, parse_type(kind)) for n, (name, kind) in enumerate(TYPES.items()))


def rows(count: int) -> pa.Table:
    when = datetime.datetime(2024, 1, 1)
    made = [
        {
            "i": n, "s": None if n % 7 == 0 else f"é{n % 50}", "y": bytes([n % 256]) * (n % 3), "b": n % 2 == 0,
            "d": n / 8, "n": decimal.Decimal(n).scaleb(-3), "w": datetime.date(1970, 1, 1) + datetime.timedelta(n),
            "t": when + datetime.timedelta(microseconds=n), "z": (when + datetime.timedelta(milliseconds=n)).replace(tzinfo=datetime.timezone.utc),
            "a": None if n % 5 == 0 else [n, None], "r": None if n % 11 == 0 else {"x": n, "y": "r"}, "e": [n, 0.5],
        }
        for n in range(count)
    ]  # fmt: skip
    kinds = [
        pa.int64(), pa.string(), pa.binary(), pa.bool_(), pa.float64(), pa.decimal128(18, 3), pa.date32(), pa.timestamp("us"),
        pa.timestamp("ms", "UTC"), pa.list_(pa.int32()), pa.struct([("x", pa.int32()), ("y", pa.string())]), pa.list_(pa.float32(), 2),
    ]  # fmt: skip
    return pa.Table.from_pylist(made, pa.schema(list(zip(TYPES, kinds))))


def write_vortex(table: pa.Table, path: str) -> None:
    vortex = pytest.importorskip("vortex", reason="needs paimon-py[vortex]")
    vortex.io.write(table, path)


def write_lance(table: pa.Table, path: str) -> None:
    lance = pytest.importorskip("lance.file", reason="needs paimon-py[lance]")
    with lance.LanceFileWriter(path, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=3000):
            writer.write_batch(batch)


FORMATS = {"vortex": write_vortex, "lance": write_lance}


@pytest.fixture(params=FORMATS)
def file(request, tmp_path):
    """A name, the rows of the file, and its path."""
    path, table = str(tmp_path / f"f.{request.param}"), rows(ROWS)
    FORMATS[request.param](table, path)
    return request.param, table, path


def opened(name: str, source, path: str, fields=FIELDS, **settings):
    size = len(source.getvalue()) if isinstance(source, io.BytesIO) else pa.OSFile(path).size()
    known = ReadSettings(**{"schema_names": tuple(TYPES), **settings})
    return format_of(name).open(source, path, fields, size, known)


def stored(path: str) -> io.BytesIO:
    with open(path, "rb") as source:
        return io.BytesIO(source.read())


@pytest.mark.parametrize("is_local", [True, False])
def test_all_types_are_read_in_order(file, is_local):
    name, table, path = file
    source = pa.OSFile(path) if is_local else stored(path)
    with_rows = opened(name, source, path)
    assert with_rows.row_count == ROWS
    position, found = 0, []
    for start, batch in with_rows.positioned_batches(list(reversed(TYPES)), batch_rows=1500):
        assert start == position and batch.num_rows <= 1500
        position += batch.num_rows
        found.append(batch)
    with_rows.close()
    assert pa.Table.from_batches(found).select(list(TYPES)).to_pylist() == table.to_pylist()
    assert found[0].schema.field("s").type == pa.string() and found[0].schema.field("y").type == pa.binary()


def test_wanted_positions_are_read_by_parts(file):
    name, table, path = file
    with_rows = opened(name, stored(path), path)
    wanted = BitMap([3, 17_000, 19_999])
    found = list(with_rows.positioned_batches(["i", "s"], batch_rows=4096, rows=wanted))
    got = {start + at: row for start, batch in found for at, row in enumerate(batch.to_pylist())}
    assert set(wanted) <= set(got) and len(got) < ROWS
    assert all(row == table.select(["i", "s"]).slice(at, 1).to_pylist()[0] for at, row in got.items())
    assert list(with_rows.parts(None, wanted).has_wanted) == [True, False, True]
    assert sum(batch.num_rows for _, batch in with_rows.positioned_batches([], batch_rows=9000)) == ROWS


def test_columns_that_the_file_lacks_are_null(file):
    name, _, path = file
    more = Field(99, "more", parse_type("ARRAY<STRING>"))
    known = {"schema_names": (*TYPES, "more"), "may_lack": frozenset(["more"])}
    with_rows = opened(name, stored(path), path, (*FIELDS, more), **known)
    for columns in (["i", "more"], ["more"]):
        (_, batch), *_ = with_rows.positioned_batches(columns, batch_rows=10)
        assert batch.schema.names == columns and batch.column("more").null_count == 10
    strict = opened(name, stored(path), path, (*FIELDS, more), schema_names=(*TYPES, "more"))
    with pytest.raises(CorruptionError, match="has no column more"):
        list(strict.positioned_batches(["more"], batch_rows=10))
    other = opened(name, stored(path), path, (Field(0, "i", parse_type("STRING")),))
    with pytest.raises(CorruptionError, match=r"is damaged: a VARCHAR stored as int64"):
        list(other.positioned_batches(["i"], batch_rows=10))


@pytest.mark.parametrize("keep", [0, 20, 1000])
def test_files_that_are_cut_off_are_damaged(file, keep):
    name, _, path = file
    with pytest.raises(CorruptionError, match=f"f.{name} is damaged"):
        opened(name, io.BytesIO(stored(path).getvalue()[:keep]), path)


def test_a_copy_is_made_for_a_file_that_is_not_local_and_deleted(tmp_path):
    path, table = str(tmp_path / "f.lance"), rows(50)
    write_lance(table, path)
    made = tmp_path / "spill"
    made.mkdir()
    with_rows = opened("lance", stored(path), "s3://b/f.lance", spill=TemporarySpill(str(made)))
    assert [file.stat().st_size for file in made.rglob("run-*")] == [len(stored(path).getvalue())]
    assert sum(batch.num_rows for _, batch in with_rows.positioned_batches(["i"], batch_rows=20)) == 50
    with_rows.close()
    assert not list(made.rglob("run-*"))


class Failing(io.BytesIO):
    """A store whose connection breaks after some reads."""

    reads = 0

    def read(self, size=-1):
        self.reads += 1
        if self.reads > 1:
            raise StorageError("the connection broke", path="x", operation="read")
        return super().read(size)


def test_errors_of_the_store_are_passed_on(tmp_path):
    path = str(tmp_path / "f.vortex")
    write_vortex(pa.table({"i": np.random.default_rng(1).integers(0, 2**60, 50_000)}), path)
    with_rows = opened("vortex", Failing(stored(path).getvalue()), path)
    with pytest.raises(StorageError, match="the connection broke"):
        list(with_rows.positioned_batches(["i"], batch_rows=100))


@pytest.mark.parametrize("name, module", [("vortex", "vortex"), ("lance", "lance.file")])
def test_a_missing_package_is_named_with_its_command(name, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UnsupportedError, match=rf"pip install 'paimon-py\[{name}\]'") as caught:
        by_extension(f"f.{name}").open(io.BytesIO(b""), f"f.{name}", (), 0, ReadSettings())
    assert caught.value.feature == f"file.format={name}"


@pytest.mark.parametrize("name, module", [("vortex", "vortex.io"), ("lance", "lance.file"), ("mosaic", "mosaic")])
def test_writing_without_the_package_names_its_command(name, module, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, module, None)
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("d")
    table = catalog.create_table("d.t", pa.schema([("i", pa.int64())]), options={"file.format": name})
    with pytest.raises(UnsupportedError, match=rf"pip install 'paimon-py\[{name}\]'"):
        table.write_arrow(pa.table({"i": [1]}))


@pytest.mark.parametrize("name, column", [("vortex", "MAP<STRING, INT>"), ("lance", "ARRAY<MULTISET<INT>>"),
                                          ("vortex", "VARIANT"), ("mosaic", "ROW<a INT>"), ("mosaic", "VECTOR<FLOAT, 2>")])  # fmt: skip
def test_types_that_a_format_lacks_are_refused_when_the_table_is_made(name, column, tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("d")
    schema = Schema([("i", "INT"), ("c", column)])
    with pytest.raises(SchemaError, match=f"column 'c': {name} files cannot hold"):
        catalog.create_table("d.t", schema, options={"file.format": name})
    with pytest.raises(UnsupportedError, match=f"file.format={name} and metadata.iceberg.storage"):
        options = {"file.format": name, "metadata.iceberg.storage": "table-location"}
        catalog.create_table("d.t", Schema([("i", "INT")]), options=options)


EVOLVES = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "deletion-vectors.enabled": "true"}


@pytest.mark.parametrize("name", FORMATS)
def test_all_verbs_write_files_of_the_format(name, tmp_path):
    pytest.importorskip({"vortex": "vortex", "lance": "lance"}[name], reason=f"needs paimon-py[{name}]")
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("d")
    options = {**EVOLVES, "bucket": "-1", "file.format": name, "vector.file.format": name, "compaction.min.file-num": "2"}
    schema = Schema([("i", "INT"), ("s", "STRING"), ("a", "ARRAY<INT>"), ("e", "VECTOR<FLOAT, 2>")])
    table = catalog.create_table("d.t", schema, options=options)
    for start in (0, 10):
        table.write_arrow(pa.table({
            "i": pa.array(range(start, start + 10), pa.int32()), "s": [f"s{n}" for n in range(start, start + 10)],
            "a": pa.array([[n, None] for n in range(start, start + 10)], pa.list_(pa.int32())),
            "e": pa.array([[n, 0.5] for n in range(start, start + 10)], pa.list_(pa.float32(), 2)),
        }))  # fmt: skip
    table.update_rows(pa.table({"_ROW_ID": [3, 12], "s": ["three", "twelve"]}))
    table.delete(col("i") == 5)
    table.alter(AddColumn("n", "BIGINT"))
    table.backfill({"n": col("i")})
    table.compact()
    found = {row["i"]: row for row in table.to_arrow().to_pylist()}
    assert sorted(found) == [n for n in range(20) if n != 5]
    names = {3: "three", 12: "twelve"}
    for n, row in found.items():
        assert row == {"i": n, "s": names.get(n, f"s{n}"), "a": [n, None], "e": [n, 0.5], "n": n}
    assert {row["file_path"].rpartition(".")[2] for row in table.system("files").to_arrow().to_pylist()} == {name}
    assert [row["i"] for row in table.scan(columns=["i"], where=col("n") > 17).to_arrow().to_pylist()] == [18, 19]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("engine", ["deduplicate", "aggregation"])
def test_keyed_tables_merge_files_of_the_format(name, engine, tmp_path):
    pytest.importorskip({"vortex": "vortex", "lance": "lance"}[name], reason=f"needs paimon-py[{name}]")
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("d")
    options = {"bucket": "2", "file.format": name, "merge-engine": engine, "changelog-producer": "lookup", "fields.v.aggregate-function": "sum"}
    schema = Schema([("k", "STRING"), ("v", "BIGINT")])
    table = catalog.create_table("d.t", schema, primary_key=["k"], options=options)
    keys = pa.array([f"k{n}" for n in range(50)])
    for factor in (1, 10):
        table.write_arrow(pa.table({"k": keys, "v": pa.array([factor * n for n in range(50)], pa.int64())}))
    table.compact(full=True)
    times = 10 if engine == "deduplicate" else 11
    assert {row["k"]: row["v"] for row in table.to_arrow().to_pylist()} == {f"k{n}": times * n for n in range(50)}
    assert table.lookup({"k": "k7"}).to_pylist() == [{"k": "k7", "v": 7 * times}]


def test_errors_of_a_package_for_rows_are_ours():
    sink = io.BytesIO()
    class Broken:
        def write(self, batch):
            raise RuntimeError("a panic\nBacktrace:")

        def close(self): ...

        def abort(self): ...

    writer = packaged_encoder("vortex", FIELDS[:1], WriteSettings(), lambda path, schema: Broken())(sink)
    with pytest.raises(SchemaError, match="rows cannot be written as vortex: a panic$"):
        writer.write(pa.record_batch({"i": [1]}))
    writer.abort()
    assert not sink.getvalue()


def test_a_directory_with_the_name_of_a_package_is_not_the_package(tmp_path, monkeypatch):
    (tmp_path / "package_of_a_format").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UnsupportedError, match=r"needs a package that is not installed: pip install 'paimon-py\[mosaic\]'"):
        load_package("package_of_a_format", "mosaic")
