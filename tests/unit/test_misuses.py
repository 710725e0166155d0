"""Calls that people get wrong, each with the class of the error and the words that say what to do.

The first part has the misuses that were asked for by name, those of a new user's first day; what is asserted elsewhere is
not repeated (`test_no_surprises.py`, `test_raw_errors.py`, `test_missing_extras.py`). The second part has what people who
know pyiceberg, deltalake, pypaimon or pandas try.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import pathlib
import re
import subprocess
import sys
import uuid
from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from unit.public import stored

import paimon_py
import paimon_py.types
from paimon_py import (
    AddColumn,
    Catalog,
    CommitResult,
    OptionError,
    RenameColumn,
    ResourceError,
    Schema,
    SchemaError,
    SetOption,
    SnapshotNotFoundError,
    Table,
    TableNotFoundError,
    UnsupportedError,
    UsageError,
    col,
)

KEYED = pa.schema([
    pa.field("k", pa.int64(), nullable=False), ("v", pa.string()), ("n", pa.int32()), ("t", pa.timestamp("us")),
])  # fmt: skip
PARTED = pa.schema([("k", pa.int64()), ("p", pa.date32())])


@pytest.fixture(scope="module")
def shop():
    """A catalog of two tables, which the wrong calls leave as they are."""
    catalog = Catalog.open(f"memory://misuses-{uuid.uuid4()}")
    catalog.create_database("d")
    keyed = catalog.create_table("d.t", KEYED, primary_key=["k"], options={"bucket": "1"})
    keyed.write_arrow(pa.table({"k": [1, 2], "v": ["a", "b"], "n": pa.array([1, 2], pa.int32())}))
    parted = catalog.create_table("d.p", PARTED, partition_by=["p"])
    parted.write_arrow(pa.table({"k": [1], "p": [date(2024, 1, 1)]}))
    store, places = keyed._root.store, (keyed.location, parted.location)
    before = [stored(store, place) for place in places]
    yield Shop(catalog, keyed, parted)
    assert [stored(store, place) for place in places] == before
    assert catalog.tables("d") == ["p", "t"]


class Shop:
    def __init__(self, catalog, keyed, parted):
        self.c, self.t, self.p = catalog, keyed, parted


# -- asked for by name ---------------------------------------------------------------------------------------------------


def stale(shop):
    table, other = shop.c.create_table("d.s", KEYED, exist_ok=True), shop.c.table("d.s")
    try:
        other.alter(RenameColumn("v", "w"), AddColumn("x", pa.int64()))
        table.scan(columns=["x"])
    finally:
        shop.c.drop_table("d.s")


class _SparkFrame:
    """What a DataFrame of Spark looks like from outside."""


_SparkFrame.__module__ = "pyspark.sql.dataframe"
_SparkFrame.__name__ = _SparkFrame.__qualname__ = "DataFrame"

ASKED = {
    "spark: a table": (lambda s: paimon_py.convert_from_spark(s.t), UsageError, "takes a DataFrame of Spark, not Table"),
    "spark: written": (lambda s: s.t.write_arrow(_SparkFrame()), UsageError, "convert_from_spark(df) makes Arrow data"),
    "stale columns": (stale, UsageError, "table.refresh()"),
    "before all": (lambda s: s.t.scan(timestamp="1999-12-31").count(), SnapshotNotFoundError, "at 1999-12-3"),
    "not yet a time": (lambda s: s.t.scan(timestamp="last week"), UsageError, "a string such as 2024-01-31T10:00:00"),
    "NaT": (lambda s: s.t.scan(timestamp=np.datetime64("NaT")), UsageError, "timestamp must be a datetime"),
    "NA": (lambda s: col("v") == pd.NA, UsageError, 'write col("v").is_null()'),
    "Arrow type": (lambda s: s.t.alter(AddColumn("x", int)), SchemaError, "a type of pyarrow or of paimon_py"),
    "table name": (lambda s: s.c.table("d.tt"), TableNotFoundError, "did you mean"),
    "column name": (lambda s: s.t.scan(where="nn = 1"), UsageError, "did you mean 'n'?"),
    "expression as text": (lambda s: s.t.update("k = 1", {"v": "upper(v)"}), UsageError, 'sql("upper(v)")'),
    "sum as text": (lambda s: s.t.update("k = 1", {"n": "n + 1"}), SchemaError, 'sql("n + 1") calculates'),
    "narrowing": (lambda s: s.t.alter(paimon_py.UpdateColumnType("n", "SMALLINT")), SchemaError, "allow_narrowing=True"),
    "text as columns": (lambda s: s.t.scan(columns="k"), UsageError, "columns=['k']"),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_new_users_met_is_answered_with_the_way_out(shop, name):
    call, error, words = ASKED[name]
    with pytest.raises(error) as caught:
        call(shop)
    assert words in str(caught.value)


def test_times_may_be_days_and_those_of_numpy(shop):
    far = shop.t.scan(timestamp="2100-01-01").count()
    assert shop.t.scan(timestamp=date(2100, 1, 1)).count() == far
    assert shop.t.scan(timestamp=np.datetime64("2100-01-01T00:00:00.000000001")).count() == far
    from paimon_py.scan.moments import millis_of

    midnight = datetime(2024, 1, 31)  # noqa: DTZ001 - local time is meant
    assert millis_of("t", date(2024, 1, 31)) == millis_of("t", np.datetime64("2024-01-31")) == millis_of("t", midnight)


_WITHOUT_SPARK = """
import sys
sys.modules["pyspark"] = None
import pyarrow, paimon_py
lacking = [name for name in paimon_py.__all__ if not hasattr(paimon_py, name)]
assert lacking == [], lacking
try:
    paimon_py.convert_to_spark(pyarrow.table({"a": [1]}))
except paimon_py.UsageError as error:
    print(error)
"""


def test_the_package_can_be_asked_for_its_names_without_spark():
    done = subprocess.run([sys.executable, "-c", _WITHOUT_SPARK], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "pip install" in done.stdout and "paimon-py[spark]" in done.stdout


def test_help_of_every_public_name_can_be_read():
    for name in ("CommitResult", "Table", "Snapshot", "AddColumn", "Changes", "Split"):
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            help(getattr(paimon_py, name, None) or getattr(paimon_py.types, name, CommitResult))
        assert len(shown.getvalue()) > 200, name
    assert "snapshot_id" in inspect.getdoc(CommitResult)


def public_callables():
    for name in paimon_py.__all__:
        value = getattr(paimon_py, name)
        yield name, value
        if inspect.isclass(value) and not issubclass(value, BaseException):
            for method, member in inspect.getmembers(value):
                if not method.startswith("_") and callable(member) and member.__module__.startswith("paimon_py"):
                    yield f"{name}.{method}", member


def test_every_public_name_has_a_signature_that_can_be_read():
    lost = []
    for name, value in public_callables():
        try:
            if callable(value):
                inspect.signature(value)
        except (ValueError, TypeError, NameError) as error:
            lost.append((name, error))
    assert lost == []


# -- of a second day, with other libraries in mind --------------------------------------------------------------------------

OTHERS = {
    "c.get_table": (lambda s: s.c.get_table("d.t"), "write table('db.t')"),
    "c.load_table": (lambda s: s.c.load_table("d.t"), "write table('db.t')"),
    "c.list_tables": (lambda s: s.c.list_tables("d"), "write tables('db')"),
    "c.list_namespaces": (lambda s: s.c.list_namespaces(), "write databases()"),
    "c.databses": (lambda s: s.c.databses(), "did you mean 'databases'?"),
    "t.append": (lambda s: s.t.append(pa.table({"k": [1]})), "write write_arrow(data)"),
    "t.overwrite": (lambda s: s.t.overwrite(pa.table({"k": [1]})), "write write_arrow(data, overwrite={})"),
    "t.log": (lambda s: s.t.log(), "write history()"),
    "t.version": (lambda s: s.t.version(), "write snapshot()"),
    "t.vacuum": (lambda s: s.t.vacuum(), "write expire_snapshots() and remove_orphans()"),
    "t.optimize": (lambda s: s.t.optimize.compact(), "write compact()"),
    "t.columns": (lambda s: s.t.columns, "write schema.names"),
    "t.new_read_builder": (lambda s: s.t.new_read_builder(), "write scan(columns=[…], where=…)"),
    "t.new_batch_write_builder": (lambda s: s.t.new_batch_write_builder(), "write writer()"),
    "t.to_pyarrow_table": (lambda s: s.t.to_pyarrow_table(), "write to_arrow()"),
    "scan.filter": (lambda s: s.t.scan().filter("k = 1"), "write where=… of table.scan"),
    "scan.select": (lambda s: s.t.scan().select("k"), "write columns=[…] of table.scan"),
    "scan.plan_files": (lambda s: s.t.scan().plan_files(), "write splits() or explain()"),
    "scan.to_pylist": (lambda s: s.t.scan().to_pylist(), "write to_arrow().to_pylist()"),
    "writer.commit": (lambda s: s.t.writer().commit(), "pass them to table.commit(…)"),
    "writer.prepare_commit": (lambda s: s.t.writer().prepare_commit(), "write changes()"),
    "stream.acknowledge": (lambda s: s.t.stream().acknowledge(), "write poll().acknowledge()"),
    "col.is_in": (lambda s: col("k").is_in([1]), "write isin([…])"),
    "col.isnull": (lambda s: col("k").isnull(), "write is_null()"),
    "col.startswith": (lambda s: col("v").startswith("a"), "write starts_with('x')"),
    "load_catalog": (lambda s: paimon_py.load_catalog("x"), "write Catalog.open(warehouse)"),
    "Tabel": (lambda s: paimon_py.Tabel, "did you mean 'Table'?"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_names_of_other_libraries_are_answered_with_ours(shop, name):
    call, words = OTHERS[name]
    with pytest.raises(AttributeError) as caught:
        call(shop)
    assert words in str(caught.value)


def test_names_that_nobody_gives_are_no_advice(shop):
    assert not hasattr(shop.t, "_ipython_canary_method_should_not_exist_")
    assert not hasattr(shop.t.scan(), "__array_interface__")
    with pytest.raises(AttributeError) as caught:
        _ = shop.t.xyzzy
    assert str(caught.value) == "'Table' object has no attribute 'xyzzy'"


def test_a_property_that_fails_says_why_and_not_that_it_is_not_there(shop, monkeypatch):
    def broken(self):
        return None.missing

    monkeypatch.setattr(Table, "options", property(broken))
    with pytest.raises(AttributeError) as caught:
        _ = shop.t.options
    assert str(caught.value) == "'NoneType' object has no attribute 'missing'"


@pytest.mark.parametrize("verb", ["remove_orphans_spark", "expire_snapshots_spark"])
@pytest.mark.parametrize("given", [None, "", 0, "no"])
def test_executors_delete_nothing_for_a_dry_run_that_is_no_flag(shop, verb, given):
    pytest.importorskip("pyspark")
    with pytest.raises(UsageError) as caught:
        getattr(paimon_py, verb)(shop.t, dry_run=given)
    assert str(caught.value) == f"dry_run is True or False, not {given!r}"


ARGUMENTS = {
    "primary_keys": (lambda s: s.c.create_table("d.x", KEYED, primary_keys=["k"]), "write primary_key=[…]"),
    "partition_keys": (lambda s: s.c.create_table("d.x", KEYED, partition_keys=["k"]), "write partition_by=[…]"),
    "row_filter": (lambda s: s.t.scan(row_filter="k = 1"), "write where=…"),
    "filter": (lambda s: s.t.scan(filter="k = 1"), "write where=…"),
    "selected_fields": (lambda s: s.t.scan(selected_fields=["k"]), "write columns=[…]"),
    "version": (lambda s: s.t.scan(version=1), "write snapshot_id=…"),
    "colums": (lambda s: s.t.scan(colums=["k"]), "write columns=…"),
    "mode": (lambda s: s.t.write_arrow(pa.table({"k": [1]}), mode="overwrite"), "write overwrite={} for the whole table"),
    "set": (lambda s: s.t.update("k = 1", set={"v": "x"}), "update(where, {'c': 1})"),
    "from": (lambda s: s.t.stream(**{"from": "latest"}), "write from_=…"),
    "retain_last": (lambda s: s.t.expire_snapshots(retain_last=2), "write retain_min=… and retain_max=…"),
    "warehouse": (lambda s: Catalog.open(warehouse="x"), "write the warehouse as the first argument"),
    "columns of to_pandas": (lambda s: s.t.to_pandas(columns=["k"]), "write scan(columns=…).to_pandas()"),
    "nothing to delete": (lambda s: s.t.delete(), "arguments: where, user, identifier, progress"),
    "predicate of a merge": (lambda s: s.t.merge([{"k": 1}], predicate="k = k"), "arguments: source, on, when_matched_update"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_of_other_libraries_are_answered_with_ours(shop, name):
    call, words = ARGUMENTS[name]
    with pytest.raises(TypeError) as caught:
        call(shop)
    assert words in str(caught.value)
    assert "write where=…" not in str(caught.value) or "filter" in name


def test_a_mistake_inside_a_call_is_told_as_it_is(shop):
    def wrong(done, total, what):
        raise TypeError(f"a mistake of its own: {what}")

    with pytest.raises(TypeError) as caught:
        shop.c.create_table("d.x", KEYED, exist_ok=True).write_arrow(pa.table({"k": [1]}), progress=wrong)
    shop.c.drop_table("d.x")
    assert str(caught.value) == "a mistake of its own: rows"


class _Rows:
    def __init__(self, index):
        self.index = index


ROW = {"k": 1, "p": date(2024, 1, 1)}
WRONG = {
    "option True": (lambda s: Catalog.open("memory://x", {"lock.enabled": True}), OptionError, "write 'true'"),
    "option 4": (lambda s: s.t.alter(SetOption("bucket", 4)), OptionError, "not 4; write '4'"),
    "option None": (lambda s: s.c.create_table("d.x", KEYED, options={"bucket": None}), OptionError, "leave it out"),
    "Catalog(path)": (lambda s: Catalog("/tmp/x"), UsageError, "Catalog.open('/tmp/x') opens one"),
    "Catalog(path, options)": (lambda s: Catalog("/tmp/x", {}), UsageError, "Catalog.open('/tmp/x') opens one"),
    "Catalog.open({})": (lambda s: Catalog.open({"warehouse": "x"}), UsageError, "the path or URL of a warehouse, not dict"),
    "metastore": (lambda s: Catalog.open("memory://x", {"metastore": "glue"}), UnsupportedError, "'hive', 'jdbc', 'rest'"),
    "one part": (lambda s: s.c.table("t"), UsageError, "the name of a table is 'database.table'"),
    "tuple": (lambda s: s.c.table(("d", "t")), UsageError, "the name of a table is 'database.table'"),
    "schema as text": (lambda s: s.c.create_table("d.x", "a INT"), UsageError, '{"id": "BIGINT", "name": "STRING"}'),
    "Schema of Arrow": (lambda s: Schema([("a", pa.int32())]), SchemaError, "write a type as text here"),
    "Schema of int": (lambda s: Schema({"a": int}), SchemaError, "a type is text such as 'INT NOT NULL'"),
    "pk as text": (lambda s: s.c.create_table("d.x", KEYED, primary_key="k"), UsageError, "write ['k']"),
    "engine": (lambda s: s.c.create_table("d.x", KEYED, options={"merge_engine": "x"}), OptionError, "'merge-engine'"),
    "write None": (lambda s: s.t.write_arrow(None), UsageError, "None is not Arrow data"),
    "write path": (lambda s: s.t.write_arrow("x.parquet"), UsageError, "pyarrow.parquet.read_table(path)"),
    "write Path": (lambda s: s.t.write_arrow(pathlib.Path("x.parquet")), UsageError, "pyarrow.parquet.read_table(path)"),
    "write dict": (lambda s: s.t.write_arrow({"k": [1]}), UsageError, "pyarrow.table(data) makes a table"),
    "write tuples": (lambda s: s.t.write_arrow([(1, "a")]), UsageError, "rows are mappings from column names"),
    "write numbers": (lambda s: s.t.write_arrow(i for i in range(3)), UsageError, "the first item is 0"),
    "write Series": (lambda s: s.t.write_arrow(pd.Series([1], name="k")), UsageError, "give columns names"),
    "write array": (lambda s: s.t.write_arrow(pa.array([1])), UsageError, "give columns names"),
    "write object": (lambda s: s.t.write_arrow(_Rows(1)), UsageError, "is not Arrow data"),
    "write zones": (lambda s: s.t.write_arrow(pd.DataFrame({"k": [1], "t": [pd.Timestamp("2024-01-01", tz="UTC")]})),
                    SchemaError, "local_timestamp(column)"),
    "overwrite=True": (lambda s: s.t.write_arrow([{"k": 1}], overwrite=True), UsageError, 'takes {"month": 3}'),
    "overwrite key": (lambda s: s.p.write_arrow([ROW], overwrite={"month": 1}), UsageError, "its keys: p"),
    "commit(writer)": (lambda s: s.t.commit(s.t.writer()), UsageError, "what writer.changes() returns"),
    "commit(None)": (lambda s: s.t.commit(None), UsageError, "what writer.changes() returns"),
    "update: pyarrow": (lambda s: s.t.update("k = 1", {"n": pc.field("n")}), SchemaError, "expressions of pyarrow are not supported"),
    "update: polars": (lambda s: s.t.update("k = 1", {"n": pl.col("n") + 1}), SchemaError, "of polars are not supported"),
    "where: pyarrow": (lambda s: s.t.scan(where=pc.field("k") == 1), UsageError, 'a predicate such as col("a") > 3'),
    "where: and": (lambda s: s.t.scan(where=(col("k") == 1 and col("n") == 1)), UsageError, "combine with `&`"),
    "where: None": (lambda s: s.t.scan(where=col("v") == None), UsageError, "is_null()"),  # noqa: E711
    "where: quotes": (lambda s: s.t.scan(where='v = "a"'), UsageError, "'single quotes'"),
    "split None": (lambda s: s.t.scan().read(None), UsageError, "read takes one of scan.splits()"),
    "alter(list)": (lambda s: s.t.alter([AddColumn("x", "INT")]), UsageError, "alter(*changes)"),
    "alter(dict)": (lambda s: s.t.alter({"bucket": "2"}), UsageError, "SetOption(name, text)"),
    "alter(text)": (lambda s: s.t.alter("ADD COLUMN x INT"), UsageError, "AddColumn('x', 'INT')"),
    "dry_run=None": (lambda s: s.t.remove_orphans(dry_run=None), UsageError, "dry_run is True or False"),
    "dry_run='no'": (lambda s: s.t.expire_snapshots(dry_run="no"), UsageError, "dry_run is True or False"),
    "dry_run=0": (lambda s: s.c.remove_orphans(dry_run=0), UsageError, "dry_run is True or False"),
    "dry_run=''": (lambda s: s.t.expire_changelogs(dry_run=""), UsageError, "dry_run is True or False"),
    "progress=True": (lambda s: s.t.compact(progress=True), UsageError, "progress is a function"),
    "lookup": (lambda s: s.t.lookup(1), UsageError, "keys as {'k': …}"),
    "retain": (lambda s: s.t.create_tag("q", retain="a week"), UsageError, "a timedelta above 0"),
    "limit": (lambda s: s.t.scan(limit="3"), UsageError, "a whole number of rows"),
    "snapshot": (lambda s: s.t.scan(snapshot_id="1"), UsageError, "a whole number"),
    "system": (lambda s: s.c.table("d.t$snapshot"), UsageError, "did you mean $snapshots?"),
    "drop": (lambda s: s.p.drop_partitions(["p=2024-01-01"]), UsageError, 'such as [{"month": 3}]'),
    "older_than": (lambda s: s.t.expire_snapshots(older_than="a week"), UsageError, "older_than must be an age such as '7d'"),
    "age below 0": (lambda s: s.t.remove_orphans(older_than=timedelta(-1)), UsageError, "is not in the past"),
    "env=4": (lambda s: Catalog.open("memory://x", env=4), UsageError, "such as Env(threads=4)"),
    "env of a table": (lambda s: Table.open(s.t.location, env="x"), UsageError, "such as Env(threads=4)"),
    "write a class": (lambda s: s.t.write_arrow(pa.Table), UsageError, "is a class without rows"),
    "duckdb": (lambda s: s.t.scan().to_duckdb(None, "x"), UsageError, "to_duckdb(duckdb.connect(), 'flights')"),
    "types_mapper": (lambda s: s.t.to_pandas(types_mapper="x"), UsageError, "a function such as pandas.ArrowDtype"),
    "not a table": (lambda s: Table.open("memory://nobody/d.db/t"), TableNotFoundError, "it has no schema"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_values_are_told_what_would_be_right(shop, name):
    call, error, words = WRONG[name]
    with pytest.raises(error) as caught:
        call(shop)
    assert type(caught.value) is error and words in str(caught.value)


def test_missing_values_of_pandas_are_null_in_rows(shop):
    table = shop.c.create_table("d.na", KEYED, primary_key=["k"], options={"bucket": "1"})
    table.write_arrow([{"k": 1, "v": pd.NA, "n": pd.NA, "t": pd.NaT}, {"k": 2, "v": "a", "n": np.int64(3), "t": pd.Timestamp("2024-01-01")}])
    rows = table.to_arrow().to_pylist()
    shop.c.drop_table("d.na")
    assert rows == [{"k": 1, "v": None, "n": None, "t": None}, {"k": 2, "v": "a", "n": 3, "t": datetime(2024, 1, 1)}]  # noqa: DTZ001


def test_a_schema_may_be_a_mapping():
    assert Schema({"a": "INT", "b": "STRING"}) == Schema([("a", "INT"), ("b", "STRING")])

def test_advice_names_what_is_there():
    from paimon_py.api_hints import ARGUMENTS, ATTRIBUTES
    from paimon_py.expr.column import Column
    from paimon_py.write.session import Writer

    owners = {"Catalog": Catalog, "Table": Table, "Scan": paimon_py.Scan, "Writer": Writer, "Stream": paimon_py.Stream, "Column": Column}
    assert {*owners, "paimon_py"} == set(ATTRIBUTES)
    dead, wrong = [], []
    for name, ways in ATTRIBUTES.items():
        owner = owners.get(name, paimon_py)
        own = set(dir(owner))
        dead += [(name, other) for other in ways if other in own and owner is not paimon_py]
        for other, way in ways.items():
            called = re.match(r"[a-z_]+", way)
            if owner is not paimon_py and called and re.match(r"[a-z_]+[(.]|[a-z_]+$", way) and called[0] not in own:
                wrong.append((name, other, way))
    assert (dead, wrong) == ([], [])
    known = {parameter for _, value in public_callables() if callable(value) for parameter in inspect.signature(value).parameters}
    assert [name for name in ARGUMENTS.values() if (found := re.match(r"([a-z_]+)=", name)) and found[1] not in known] == []


def test_memory_that_runs_out_while_rows_are_written_is_an_error_of_ours(shop):
    def batches():
        raise MemoryError("Unable to allocate 15.3 MiB")
        yield

    table = shop.c.create_table("d.memory", KEYED, exist_ok=True)
    with pytest.raises(ResourceError, match=r"needs more memory than this process gets: Unable to allocate 15.3 MiB"):
        table.write_arrow(batches())
    assert table.snapshot() is None
    shop.c.drop_table("d.memory")
