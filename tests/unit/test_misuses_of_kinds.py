"""Arguments of the wrong kind: every value of another library is refused by name, and no file is touched.

A flag, a name, a list of names, an age or a function is told from everything else before anything is asked of the value:
frames, arrays and expressions have no truth, and some have no equality.
"""

from __future__ import annotations

import pathlib
import time
from datetime import date, timedelta

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from unit.public import stored

from paimon_py import (
    Catalog,
    Changes,
    OptionError,
    PaimonError,
    RemoveOption,
    Schema,
    SchemaError,
    SetOption,
    Table,
    UsageError,
    col,
)
from paimon_py.storage.memory_store import MemoryStore

KEYED = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])
PARTED = pa.schema([("k", pa.int64()), ("p", pa.date32())])
ROWS = [{"k": 1, "v": "a"}]


class Shop:
    """A catalog of tables of three kinds; wrong calls leave each file as it is."""

    def __init__(self):
        self.store = MemoryStore()
        self.c = Catalog(self.store, "/w")
        self.c.create_database("d")
        self.t = self.c.create_table("d.t", KEYED, primary_key=["k"], options={"bucket": "1"})
        self.t.write_arrow(ROWS)
        self.t.create_tag("good")
        self.p = self.c.create_table("d.p", PARTED, partition_by=["p"])
        self.p.write_arrow([{"k": 1, "p": date(2024, 1, 1)}])
        self.s = self.c.create_table("d.s", KEYED, primary_key=["k"], options={"bucket": "-1"})

    def files(self):
        return stored(self.store, "/w")


@pytest.fixture(scope="module")
def shop():
    return Shop()


def odd():
    """What newcomers have at hand, by a name for it."""
    return {
        "series": pd.Series([1, 2]), "frame": pd.DataFrame({"k": [1]}), "NA": pd.NA, "array": np.array([1, 2]),
        "plane": np.zeros((2, 2)), "records": np.array([(1,)], dtype=[("k", "i8")]), "polars": pl.DataFrame({"k": [1]}),
        "nulls": pl.DataFrame({"k": [None]}), "column": pl.Series([1]), "lazy": pl.LazyFrame({"k": [1]}), "expression": pl.col("k") == 1,
        "arrow": pa.table({"k": [1]}), "scalar": pa.scalar(1), "filter": pc.field("k") == 1, "buffer": pa.py_buffer(b"x"),
        "number": 5, "object": object(), "function": len, "path": pathlib.Path("k"), "day": date(2024, 1, 1), "predicate": col("k") == 1,
    }  # fmt: skip


NAMES_OF_COLUMNS = {"series", "array", "plane", "records", "NA", "number", "object", "function", "path", "day", "scalar"}
LISTS = {
    "primary_key": (lambda s, v: s.c.create_table("d.x", KEYED, primary_key=v), "primary_key is a list of column names, not"),
    "partition_by": (lambda s, v: s.c.create_table("d.x", KEYED, partition_by=v), "partition_by is a list of column names, not"),
    "columns": (lambda s, v: s.t.scan(columns=v).to_arrow(), "columns must be a list of names, not"),
    "columns of changes": (lambda s, v: s.t.changes(0, 1, columns=v).to_arrow(), "columns must be a list of names, not"),
    "columns of a stream": (lambda s, v: s.t.stream(columns=v).poll(), "columns must be a list of names, not"),
    "columns of a lookup": (lambda s, v: s.t.lookup([1], columns=v), "columns must be a list of names, not"),
    "columns of statistics": (lambda s, v: s.t.analyze(v), "columns must be a list of names, not"),
    "columns of a system table": (lambda s, v: s.t.system("files").scan(columns=v).to_arrow(), "columns must be a list of names, not"),
    "order_by": (lambda s, v: s.p.compact(order_by=v), "takes a list of columns such as"),
}
FLAGS = {
    "missing_ok": lambda s, v: s.c.drop_table("d.t", missing_ok=v),
    "full": lambda s, v: s.p.compaction_tasks(full=v),
    "all_columns": lambda s, v: s.t.analyze(all_columns=v),
    "deep": lambda s, v: s.t.doctor(deep=v),
    "analyze": lambda s, v: s.t.scan().explain(analyze=v),
    "lazy": lambda s, v: s.t.scan().to_polars(lazy=v),
    "in_order": lambda s, v: s.t.scan().to_reader(in_order=v),
    "in_order of a step": lambda s, v: s.t.stream(from_=1).poll().to_reader(in_order=v),
    "analyze of a system table": lambda s, v: s.t.system("files").scan().explain(analyze=v),
}
FUNCTIONS = {
    "doctor": lambda s, v: s.t.doctor(progress=v),
    "orphans of all tables": lambda s, v: s.c.remove_orphans(progress=v),
}
TEXTS = {
    "database": (lambda s, v: s.c.create_database(v), "a database name is a string, not"),
    "database to drop": (lambda s, v: s.c.drop_database(v, cascade=True), "a database name is a string, not"),
    "database of tables": (lambda s, v: s.c.tables(v), "a database name is a string, not"),
    "strategy": (lambda s, v: s.p.compact(order_by=["k"], strategy=v), "a clustering strategy is one of order, zorder, hilbert and auto, not"),
    "missing": (lambda s, v: s.t.lookup([1], missing=v), 'missing must be "drop" or "null", not'),
    "restrict": (lambda s, v: s.p.writer().restrict(v), 'restrict takes a partition such as {"month": 3}, not'),
    "discard": (lambda s, v: s.t.writer().discard(v), "discard takes what writer.changes() returned, not"),
    "options": (lambda s, v: Table.open("/w", v), "options map names to strings, got"),
    "overwrite": (lambda s, v: s.t.write_arrow(ROWS, overwrite=v), 'overwrite takes {"month": 3}, {} or "dynamic", not'),
    "overwrite of a commit": (lambda s, v: s.t.commit(changes(), overwrite=v), 'overwrite takes {"month": 3}, {} or "dynamic", not'),
    "store": (lambda s, v: Catalog(v, "/w"), "Catalog takes a store and the directory of a warehouse"),
    "metastore": (lambda s, v: Catalog.of(v), "Catalog.of takes an open metastore, not"),
}  # fmt: skip


def changes():
    from paimon_py.spec.snapshot import Base

    return Changes(schema_id=0, base=Base(1), buckets=())


def refused(shop, call, words, values):
    """How calls with each value fail that do not fail as they should."""
    before, wrong = shop.files(), {}
    for name, value in values.items():
        try:
            wrong[name] = call(shop, value)
        except PaimonError as error:
            if type(error) is not UsageError or words not in str(error):
                wrong[name] = error
    assert shop.files() == before
    return wrong


@pytest.mark.parametrize("name", LISTS)
def test_a_list_of_names_is_told_from_all_else(shop, name):
    call, words = LISTS[name]
    values = {each: value for each, value in odd().items() if each in NAMES_OF_COLUMNS}
    assert refused(shop, call, words, values) == {}
    assert refused(shop, call, "which has no order", {"set": {"k", "v"}, "frozen": frozenset(["k"])}) == {}


@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_is_told_from_all_else(shop, name):
    assert refused(shop, FLAGS[name], f"{name.split()[0]} is True or False, not", {**odd(), "text": "no", "none": None, "": ""}) == {}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_progress_is_told_from_all_else(shop, name):
    values = {each: value for each, value in {**odd(), "zero": 0, "empty": [], "yes": True}.items() if not callable(value)}
    assert refused(shop, FUNCTIONS[name], "progress is a function", values) == {}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_or_a_value_of_ours_is_told_from_all_else(shop, name):
    call, words = TEXTS[name]
    assert refused(shop, call, words, odd()) == {}


LITERALS = {
    "==": lambda s, v: s.t.scan(where=col("k") == v),
    "isin": lambda s, v: s.t.scan(where=col("k").isin([v])),
    "drop": lambda s, v: s.p.drop_partitions([{"p": v}]),
    "overwrite": lambda s, v: s.p.write_arrow([{"k": 1, "p": date(2024, 1, 1)}], overwrite={"p": v}),
}


@pytest.mark.parametrize("name", LITERALS)
def test_what_no_column_can_be_compared_with_is_refused(shop, name):
    values = {each: value for each, value in odd().items() if each not in ("scalar", "number", "NA", "day")}
    assert refused(shop, LITERALS[name], "compare", values) == {}


@pytest.mark.parametrize("moment", [time.time_ns, lambda: time.time_ns() // 1000, lambda: 2**70], ids=["nanos", "micros", "huge"])
@pytest.mark.parametrize(
    "call",
    [
        lambda s, v: s.t.scan(timestamp=v),
        lambda s, v: s.t.expire_snapshots(older_than=v),
        lambda s, v: s.t.expire_tags(older_than=v),
        lambda s, v: s.p.expire_partitions(older_than=v),
        lambda s, v: s.t.remove_orphans(older_than=v, dry_run=False),
    ],
    ids=["scan", "snapshots", "tags", "partitions", "orphans"],
)
def test_nano_and_microseconds_are_no_milliseconds(shop, call, moment):
    assert refused(shop, call, "is after the year 9999: a number counts milliseconds since the epoch", {"it": moment()}) == {}


AGES = {
    "snapshots": lambda s, v: s.t.expire_snapshots(older_than=v),
    "changelogs": lambda s, v: s.t.expire_changelogs(older_than=v),
    "tags": lambda s, v: s.t.expire_tags(older_than=v),
    "partitions": lambda s, v: s.p.expire_partitions(older_than=v),
    "orphans": lambda s, v: s.t.remove_orphans(older_than=v, dry_run=False),
    "consumers": lambda s, v: s.t.expire_consumers(v),
}


@pytest.mark.parametrize("name", AGES)
def test_an_age_far_below_zero_would_take_everything_and_is_refused(shop, name):
    ages = {"week": timedelta(days=-7), "pandas": pd.Timedelta(days=-7), "numpy": np.timedelta64(-7, "D"), "least": timedelta.min}
    assert refused(shop, AGES[name], "is not in the past", ages) == {}


OTHERS = {
    "a field as a schema": (lambda s: s.c.create_table("d.x", pa.field("k", pa.int64())), UsageError, "or a paimon_py.Schema, not Field"),
    "a type as a schema": (lambda s: s.c.create_table("d.x", pa.int64()), UsageError, "is a pyarrow.Schema or a paimon_py.Schema"),
    "keys of a plane": (lambda s: s.t.lookup(np.zeros((2, 2))), SchemaError, "key column 'k': "),
    "keys without dimension": (lambda s: s.t.lookup(np.array(1)), SchemaError, "key column 'k': "),
    "keys of records": (lambda s: s.t.lookup(np.array([(1,)], dtype=[("k", "i8")])), SchemaError, "key column 'k'"),
    "writers": (lambda s: s.s.writer_numbers(ROWS, 2**31), UsageError, "there are at most 2147483647 writers, not 2147483648"),
    "share": (lambda s: s.s.writer(share=(0, 2**70)), UsageError, "there are at most 2147483647 writers"),
    "name of a column": (lambda s: s.t.write_arrow([{"k": 1, "\ud800": 1}]), UsageError, "the name of a column is a string, not"),
    "name to join by": (lambda s: s.t.merge(ROWS, {"k": "\ud800"}, when_matched_update=True), UsageError, "column of the source is a string"),
    "changes": (lambda s: Changes.concat([None]), UsageError, "concat takes a list of changes"),
    "option to remove": (lambda s: s.t.alter(RemoveOption(["a"])), OptionError, "an option's name is a string"),
    "option": (lambda s: s.t.alter(SetOption("a.b", "\ud800")), OptionError, "option 'a.b' is not valid Unicode: '\\ud800'"),
    "option of a new table": (lambda s: s.c.create_table("d.x", KEYED, options={"a": "\ud800"}), OptionError, "option 'a' is not valid Unicode"),
    "view": (lambda s: s.t.scan().to_duckdb(duckdb.connect(), ""), UsageError, "to_duckdb takes a connection and a name"),
    "scheme": (lambda s: Table.open("foo://x/t"), UsageError, "unknown URL scheme foo://; those of stores are s3, gs, abfss, oss, hdfs and memory"),
    "schema of numbers": (lambda s: Schema(5), UsageError, "columns come as a list"),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_other_kinds_are_told_apart(shop, name):
    call, error, words = OTHERS[name]
    before = shop.files()
    with pytest.raises(error) as caught:
        call(shop)
    assert type(caught.value) is error and words in str(caught.value)
    assert shop.files() == before
