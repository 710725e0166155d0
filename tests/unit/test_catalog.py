from __future__ import annotations

import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from paimon_py.catalog import Catalog
from paimon_py.errors import (
    AlreadyExistsError,
    DatabaseNotFoundError,
    OptionError,
    SchemaError,
    TableNotFoundError,
    UnsupportedError,
    UsageError,
)
from paimon_py.spec.new_schema import Schema
from paimon_py.spec.spark_types import columns_of_spark
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import Atomic, Root
from paimon_py.storage.memory_store import MemoryStore

COLUMNS = pa.schema(
    [("month", pa.int32()), ("id", pa.int64()), pa.field("note", pa.string(), metadata={"comment": "c"})]
)


@pytest.fixture
def catalog(tmp_path):
    catalog = Catalog.open(tmp_path / "warehouse")
    catalog.create_database("demo")
    return catalog


def test_the_warehouse_is_made_when_missing(tmp_path):
    Catalog.open(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()


def test_databases_are_directories_that_end_in_db(catalog):
    assert catalog.databases() == ["demo"]
    assert os.listdir(catalog.warehouse) == ["demo.db"]
    with pytest.raises(AlreadyExistsError):
        catalog.create_database("demo")
    catalog.create_database("demo", exist_ok=True)
    catalog.drop_database("demo")
    assert catalog.databases() == []
    with pytest.raises(DatabaseNotFoundError):
        catalog.drop_database("demo")
    catalog.drop_database("demo", missing_ok=True)


def test_a_table_has_the_schema_it_was_created_with(catalog):
    made = catalog.create_table(
        "demo.t", COLUMNS, primary_key=["month", "id"], partition_by=["month"], options={"bucket": "4"}, comment="hello"
    )
    table = catalog.table("demo.t")
    assert table.schema == made.schema
    assert [f"{field.name} {sql_type(field.type)}" for field in table.schema.fields] == [
        "month INT NOT NULL",
        "id BIGINT NOT NULL",
        "note STRING",
    ]
    assert table.schema.field("note").description == "c"
    assert (table.schema.primary_keys, table.schema.partition_keys) == (("month", "id"), ("month",))
    assert (table.options, table.comment, table.name) == ({"bucket": "4"}, "hello", "demo.t")
    assert table.location == f"{catalog.warehouse}/demo.db/t"
    assert catalog.tables("demo") == ["t"]


def test_every_paimon_type_can_be_said(catalog):
    schema = Schema(
        [("a", "CHAR(3) NOT NULL"), ("b", {"type": "MULTISET", "element": "STRING"}, "c"), ("d", "TIME(3)")]
    )
    assert catalog.create_table("demo.t", schema).schema.fields == schema.fields


def test_creating_twice_is_refused_unless_it_is_meant(catalog):
    first = catalog.create_table("demo.t", COLUMNS)
    with pytest.raises(AlreadyExistsError) as caught:
        catalog.create_table("demo.t", COLUMNS)
    assert caught.value.table == "demo.t"
    again = catalog.create_table("demo.t", pa.schema([("other", pa.int8())]), exist_ok=True)
    assert again.schema == first.schema


def test_of_several_creators_one_succeeds(catalog):
    def create(number):
        try:
            return catalog.create_table("demo.t", pa.schema([(f"c{number}", pa.int32())])).schema.names
        except AlreadyExistsError:
            return None

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(create, range(4)))
    winners = [names for names in results if names]
    assert len(winners) == 1
    assert catalog.table("demo.t").schema.names == winners[0]


def test_keys_and_defaults_come_from_options_too(tmp_path):
    catalog = Catalog.open(None, {"warehouse": str(tmp_path), "table-default.write-only": "true"})
    catalog.create_database("d")
    table = catalog.create_table("d.t", COLUMNS, options={"primary-key": "id", "bucket": "1"})
    assert table.schema.primary_keys == ("id",)
    assert table.options == {"write-only": "true", "bucket": "1"}


@pytest.mark.parametrize(
    ("arguments", "error", "reason"),
    [
        ({"options": {"bukcet": "4"}}, OptionError, "bucket"),
        ({"options": {"bucket": "abc"}}, OptionError, "whole number"),
        ({"options": {"bucket": 4}}, OptionError, "'4'"),
        ({"options": {"path": "/elsewhere"}}, OptionError, "path"),
        ({"options": {"auto-create": "true"}}, OptionError, "auto-create"),
        ({"primary_key": ["zz"]}, SchemaError, "zz"),
        ({"primary_key": "id"}, UsageError, "list"),
        ({"partition_by": [1]}, UsageError, "list"),
        ({"options": {"data-evolution.enabled": "true"}}, OptionError, "row-tracking"),
        ({"schema": pa.schema([("a", pa.uint8())])}, SchemaError, "int16"),
        ({"schema": pa.schema([])}, SchemaError, "at least one"),
        ({"schema": Schema([("a", "GEOMETRY")])}, UnsupportedError, "GEOMETRY"),
        ({"schema": "a INT"}, UsageError, "pyarrow.Schema"),
        ({"name": "t"}, UsageError, "database.table"),
        ({"name": "nope.t"}, DatabaseNotFoundError, "nope"),
        ({"name": "demo.t$files"}, UnsupportedError, r"\$files"),
        ({"name": "demo.t$branch_b"}, UsageError, "branch"),
        ({"name": "sys.t"}, UnsupportedError, "sys"),
        ({"name": "demo.../../x"}, UsageError, "name"),
        ({"name": "demo."}, UsageError, "empty"),
        ({"name": "demo.a/b"}, UsageError, "slash"),
        ({"name": "de\0mo.t"}, UsageError, "control"),
        ({"name": 7}, UsageError, "database.table"),
    ],
)
def test_a_wrong_creation_leaves_nothing_behind(catalog, arguments, error, reason):
    with pytest.raises(error, match=reason):
        catalog.create_table(**{"name": "demo.t", "schema": COLUMNS, **arguments})
    assert os.listdir(f"{catalog.warehouse}/demo.db") == []


@pytest.mark.parametrize("name", ["..", ".hidden", "a/b", "", "x" * 300, "a\nb", "sys"])
def test_hostile_database_names_are_refused(catalog, name):
    for call in (catalog.create_database, catalog.drop_database, catalog.tables):
        with pytest.raises(UsageError):
            call(name)


def test_what_is_not_there_is_said(catalog):
    with pytest.raises(TableNotFoundError, match="demo.t"):
        catalog.table("demo.t")
    with pytest.raises(DatabaseNotFoundError):
        catalog.table("nope.t")
    with pytest.raises(DatabaseNotFoundError):
        catalog.tables("nope")
    with pytest.raises(TableNotFoundError):
        catalog.drop_table("demo.t")
    catalog.drop_table("demo.t", missing_ok=True)
    with pytest.raises(TableNotFoundError):
        catalog.rename_table("demo.t", "demo.u")


def test_directories_that_are_no_tables_are_not_listed(catalog):
    os.makedirs(f"{catalog.warehouse}/demo.db/nothing/schema")
    assert catalog.tables("demo") == []
    with pytest.raises(TableNotFoundError):
        catalog.table("demo.nothing")


def test_dropping_removes_everything(catalog):
    catalog.create_table("demo.t", COLUMNS)
    with pytest.raises(UsageError, match="cascade"):
        catalog.drop_database("demo")
    catalog.drop_table("demo.t")
    assert os.listdir(f"{catalog.warehouse}/demo.db") == []
    catalog.create_table("demo.t", COLUMNS)
    catalog.drop_database("demo", cascade=True)
    assert os.listdir(catalog.warehouse) == []


@pytest.mark.parametrize("left", ["snapshot/snapshot-1", "branch/branch-b/schema/schema-0"])
def test_a_drop_that_was_interrupted_leaves_no_table_and_no_place_for_one(left):
    class Stopped(MemoryStore):
        def delete_tree(self, directory):
            raise KeyboardInterrupt

    store = Stopped()
    catalog = Catalog(store, "memory://w")
    catalog.create_database("d")
    catalog.create_table("d.t", COLUMNS)
    store.put(f"memory://w/d.db/t/{left}", b"{}")
    with pytest.raises(KeyboardInterrupt):
        catalog.drop_table("d.t")
    with pytest.raises(TableNotFoundError):
        catalog.table("d.t")
    with pytest.raises(AlreadyExistsError, match="remains"):
        catalog.create_table("d.t", COLUMNS)
    del Stopped.delete_tree
    catalog.drop_table("d.t")
    catalog.create_table("d.t", COLUMNS)


def test_a_table_can_get_another_name_and_database(catalog):
    catalog.create_database("other")
    catalog.create_table("demo.t", COLUMNS)
    catalog.create_table("demo.u", COLUMNS)
    with pytest.raises(AlreadyExistsError):
        catalog.rename_table("demo.t", "demo.u")
    with pytest.raises(DatabaseNotFoundError):
        catalog.rename_table("demo.t", "nope.t")
    catalog.rename_table("demo.t", "other.x")
    assert (catalog.tables("demo"), catalog.tables("other")) == (["u"], ["x"])
    assert catalog.table("other.x").schema.names == ("month", "id", "note")


@pytest.mark.parametrize("metastore", ["glue", "dlf"])
def test_other_catalogs_are_refused_by_name(tmp_path, metastore):
    with pytest.raises(UnsupportedError) as caught:
        Catalog.open(tmp_path, {"metastore": metastore})
    assert caught.value.feature == f"metastore={metastore}"


@pytest.mark.parametrize("path", [None, "", 7])
def test_a_catalog_needs_a_path(path):
    with pytest.raises(UsageError):
        Catalog.open(path)


def test_a_pickled_catalog_has_its_defaults_of_tables_without_secrets(tmp_path):
    options = {"table-default.file.format": "orc", "table-default.fs.s3a.secret.key": "sesame"}
    catalog = Catalog.open(tmp_path, options=options)
    data = pickle.dumps(catalog)
    again = pickle.loads(data)
    again.create_database("d")
    assert again.create_table("d.t", pa.schema([("a", pa.int64())])).options == {"file.format": "orc"}
    assert b"sesame" not in data


def test_tables_get_the_defaults_of_a_catalog_and_none_of_its_other_options(tmp_path):
    catalog = Catalog.open(tmp_path, options={"table-default.file.format": "orc", "fs.s3a.connection.maximum": "9"})
    catalog.create_database("d")
    assert catalog.create_table("d.t", pa.schema([("a", pa.int64())])).options == {"file.format": "orc"}


def test_catalogs_can_be_printed_and_pickled(catalog):
    catalog.create_table("demo.t", COLUMNS)
    again = pickle.loads(pickle.dumps(catalog))
    assert again.tables("demo") == ["t"]
    assert repr(catalog) == f"Catalog({catalog.warehouse!r})"


def test_stores_without_directories_keep_an_empty_database():
    class Flat(MemoryStore):
        def make_directory(self, path):
            pass

    catalog = Catalog(Flat(), "memory://w")
    catalog.create_database("d")
    assert catalog.databases() == ["d"]
    assert catalog.tables("d") == []
    with pytest.raises(AlreadyExistsError):
        catalog.create_database("d")
    catalog.drop_database("d")
    assert catalog.databases() == []


def test_a_path_without_a_warehouse_is_refused_where_none_may_be_made(tmp_path):
    from paimon_py import NotFoundError

    with pytest.raises(NotFoundError, match="the warehouse .* does not exist"):
        Catalog.open(tmp_path / "nowhere", create=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(NotFoundError, match="the warehouse .* does not exist"):
        Catalog.open(tmp_path / "file", create=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]
    Catalog.open(tmp_path / "here")
    assert Catalog.open(tmp_path / "here", create=False).databases() == []


def test_frames_are_schemas_of_new_tables(tmp_path):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("d")
    rows = {"k": [1, 2], "v": ["a", None]}
    frames = [pandas.DataFrame(rows), polars.DataFrame(rows), pa.table(rows), pa.RecordBatch.from_pydict(rows)]
    for number, frame in enumerate(frames):
        table = catalog.create_table(f"d.t{number}", frame)
        assert [sql_type(field.type) for field in table.schema.fields] == ["BIGINT", "STRING"]
        assert table.scan().count() == 0
        table.write_arrow(frame)
        assert table.refresh().to_arrow().sort_by("k").to_pydict() == rows


def test_columns_of_spark_are_read_from_its_json():
    def of(kind, **metadata):
        return columns_of_spark({"fields": [{"name": "c", "type": kind, "nullable": False, "metadata": metadata}]})[0]

    texts = {
        "integer": "INT", "decimal(10,2)": "DECIMAL(10, 2)", "timestamp": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
        "timestamp_ntz": "TIMESTAMP(6)", "byte": "TINYINT", "varchar(7)": "VARCHAR(7)", "char(3)": "CHAR(3)",
        "time(6)": "TIME(3)",
    }  # fmt: skip
    for kind, text in texts.items():
        assert sql_type(of(kind)[1]) == text
    assert of("string", __CHAR_VARCHAR_TYPE_STRING="varchar(5)", comment="why") == ("c", Atomic(Root.VARCHAR, length=5), "why")
    inner = {"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": False, "metadata": {}}]}
    nested = {"type": "map", "keyType": "string", "valueType": {"type": "array", "elementType": inner, "containsNull": True}}
    assert sql_type(of(nested)[1]) == "MAP<STRING NOT NULL, ARRAY<ROW<x BIGINT>>>"
    for kind in ("void", "interval day to second", "variant", "decimal(3,-2)", {"type": "udt"}):
        with pytest.raises(SchemaError, match="column 'c'"):
            of(kind)


@pytest.mark.parametrize("given", [None, {}, {"bucket": "1"}, {"file.format": "orc"}])
def test_options_of_a_table_come_before_the_defaults_of_its_catalog(given):
    catalog = Catalog(MemoryStore(), "/w", table_defaults={"bucket": "3", "write-only": "true"})
    catalog.create_database("d")
    table = catalog.create_table("d.t", Schema([("k", "INT NOT NULL")]), primary_key=["k"], options=given)
    assert table.options == {"bucket": "3", "write-only": "true", **(given or {})}
