"""Arguments that say nearly what was meant: flags as texts, objects in the place of their ids, ages as numbers."""

from __future__ import annotations

import uuid
from datetime import date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from unit.public import stored

from paimon_py import (
    BranchNotFoundError,
    Catalog,
    Changes,
    Schema,
    Table,
    TagNotFoundError,
    UpdateColumnNullability,
    UsageError,
    col,
)

KEYED = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])
PARTED = pa.schema([("k", pa.int64()), ("p", pa.date32())])
ROWS = pa.table({"k": [1, 2], "v": ["a", "b"]})
DAY = timedelta(1)


class Shop:
    """A catalog of one table with two snapshots, a tag and a branch; wrong calls leave it as it is."""

    def __init__(self):
        self.c = Catalog.open(f"memory://arguments-{uuid.uuid4()}")
        self.c.create_database("d")
        self.t = self.c.create_table("d.t", KEYED, primary_key=["k"], options={"bucket": "1"})
        self.t.write_arrow(ROWS)
        self.t.write_arrow(ROWS)
        self.t.create_tag("good")
        self.t.create_branch("b")
        self.p = self.c.create_table("d.p", PARTED, partition_by=["p"])
        self.stored = self.t.snapshot()
        self.tag = next(tag for tag in self.t.tags() if tag.name == "good")
        self.step = next(self.t.stream(from_="full", until="now"))

    def seen(self):
        return self.c.databases(), self.c.tables("d"), [stored(table._root.store, table.location) for table in (self.t, self.p)]


@pytest.fixture(scope="module")
def shop():
    made = Shop()
    before = made.seen()
    yield made
    assert made.seen() == before


FLAGS = {
    "create": lambda s: Catalog.open("memory://never", create="no"),
    "exist_ok": lambda s: s.c.create_table("d.t", KEYED, exist_ok="no"),
    "exist_ok of a database": lambda s: s.c.create_database("d", exist_ok=1),
    "cascade": lambda s: s.c.drop_database("d", cascade="false"),
    "missing_ok": lambda s: s.c.drop_database("none", missing_ok="false"),
    "full": lambda s: s.t.compact(full="no"),
    "dry_run": lambda s: s.t.remove_orphans(dry_run=np.True_),
    "nullable": lambda s: s.t.alter(UpdateColumnNullability("v", "no")),
    "overwrite": lambda s: s.t.writer(overwrite={"k": 1}),
}


@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_is_true_or_false(shop, name):
    with pytest.raises(UsageError, match=f"{name.split()[0]}.* is True or False, not"):
        FLAGS[name](shop)


OBJECTS = {
    "scan of a snapshot": (lambda s: s.t.scan(snapshot_id=s.stored), ".id of the Snapshot"),
    "scan of a tag as an id": (lambda s: s.t.scan(snapshot_id=s.tag), ".name of the Tag"),
    "scan of a tag": (lambda s: s.t.scan(tag=s.tag), ".name of the Tag"),
    "snapshot": (lambda s: s.t.snapshot(s.stored), ".id of the Snapshot"),
    "rollback to a snapshot": (lambda s: s.t.rollback_to(s.stored), ".id of the Snapshot"),
    "rollback to a tag": (lambda s: s.t.rollback_to(s.tag), ".name of the Tag"),
    "changes": (lambda s: s.t.changes(s.stored, 2), ".id of the Snapshot"),
    "stream": (lambda s: s.t.stream(from_=s.step), ".position of the Step"),
    "until": (lambda s: s.t.stream(until=s.stored), ".id of the Snapshot"),
    "branch": (lambda s: s.t.create_branch("x", from_=s.tag), ".name of the Tag"),
    "table of a table": (lambda s: s.c.table(s.t), ".name of the Table"),
    "repair": (lambda s: s.c.repair(s.t), ".name of the Table"),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_in_the_place_of_its_id_is_told_which_part_is_meant(shop, name):
    call, words = OBJECTS[name]
    with pytest.raises(UsageError) as caught:
        call(shop)
    assert f"write {words}" in str(caught.value)


AGES = {
    "snapshots": lambda s, age: s.t.expire_snapshots(older_than=age),
    "changelogs": lambda s, age: s.t.expire_changelogs(older_than=age),
    "tags": lambda s, age: s.t.expire_tags(older_than=age),
    "partitions": lambda s, age: s.p.expire_partitions(older_than=age),
    "orphans": lambda s, age: s.t.remove_orphans(older_than=age),
}


@pytest.mark.parametrize("name", AGES)
@pytest.mark.parametrize("age", [7, 86_400, np.int64(604_800_000)])
def test_an_age_as_a_number_is_no_time(shop, name, age):
    with pytest.raises(UsageError, match=r"for an age write timedelta\(days=…\)"):
        AGES[name](shop, age)


@pytest.mark.parametrize("name", AGES)
def test_ages_of_numpy_and_pandas_are_ages(shop, name):
    call = AGES[name]
    of_numpy, of_pandas, of_python = (call(shop, age) for age in (np.timedelta64(40, "D"), pd.Timedelta(days=40), 40 * DAY))
    assert type(of_numpy) is type(of_pandas) is type(of_python)
    limits = [getattr(told, "older_than_millis", 0) for told in (of_numpy, of_pandas, of_python)]
    assert limits == sorted(limits) and limits[2] - limits[0] < 3_600_000
    with pytest.raises(UsageError, match="older_than"):
        call(shop, np.timedelta64("NaT"))


WRONG = {
    "changes of lists": (lambda s: Changes.concat([b"x"]), UsageError, "as writer.changes() returns them"),
    "changes of one": (lambda s: Changes.concat(s.t.writer().changes()), UsageError, "a list of changes"),
    "Table('x')": (lambda s: Table("x"), UsageError, "write Table.open(path)"),
    "open a table": (lambda s: Table.open(s.t), UsageError, "the path or URL of the directory of a table"),
    "schema of a table": (lambda s: s.c.create_table("d.x", s.t.schema), UsageError, "Schema(schema.fields)"),
    "tag of digits": (lambda s: s.t.scan(tag="12").count(), TagNotFoundError, "a snapshot is named by a number, 12"),
    "tag of a day": (lambda s: s.t.rollback_to("2024-01-31"), TagNotFoundError, "a time is a datetime or a date"),
    "branch": (lambda s: s.t.branch(3), UsageError, "a branch name must be a string"),
    "no branch": (lambda s: s.t.branch("x"), BranchNotFoundError, "no branch 'x'"),
    "read": (lambda s: s.step.read(s.step), UsageError, "one of step.splits()"),
    "merge on": (lambda s: s.t.upsert(ROWS, on=3), UsageError, 'on=["k"] names the columns'),
    "rows of None": (lambda s: s.t.write_arrow([None]), UsageError, "rows are mappings"),
    "nothing as rows": (lambda s: s.t.write_arrow(iter([None])), UsageError, "the first item is None"),
    "index": (lambda s: s.t.write_arrow(ROWS.to_pandas().set_index("k")), UsageError, "give frame.reset_index()"),
    "rollback to True": (lambda s: s.t.rollback_to(True), UsageError, "target is a snapshot id"),
    "catalog[…]": (lambda s: s.c["d.t"], TypeError, "write table('db.t')"),
    "table[…]": (lambda s: s.t["k"], TypeError, "write scan(columns=[…])"),
    "scan[…]": (lambda s: s.t.scan()["k"], TypeError, "write columns=[…] of table.scan"),
    "col[…]": (lambda s: col("a")["b"], TypeError, "write col('a', 'b')"),
    "for in table": (lambda s: list(s.t), TypeError, "not iterable"),
    "for in scan": (lambda s: list(s.t.scan()), TypeError, "not iterable"),
    "in col": (lambda s: 1 in col("a"), TypeError, "not iterable"),
    "upper": (lambda s: col("a").upper(), AttributeError, "sql('upper(a)')"),
    "desc": (lambda s: col("a").desc(), AttributeError, "order_by=('a', 'descending')"),
    "to_polars": (lambda s: s.t.to_polars(lazy=True), TypeError, "scan().to_polars(lazy=True)"),
    "no name": (lambda s: s.t.scan(["k"]), TypeError, "write the name of an argument before its value: scan("),
    "schema with a key": (lambda s: Schema([("a", "INT")], primary_key=["a"]), TypeError, "primary_key=[…] of create_table"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_near_misses_are_told_what_is_meant(shop, name):
    call, error, words = WRONG[name]
    with pytest.raises(error) as caught:
        call(shop)
    assert type(caught.value) is error and words in str(caught.value)


def test_days_and_times_of_numpy_are_times_everywhere(shop):
    before, after = date(1999, 12, 31), date(2100, 1, 1)
    assert shop.t.changes(before, after).count() == shop.t.changes(0, 2).count()
    assert shop.t.changes(np.datetime64("1999-12-31"), np.datetime64("2100-01-01T00:00")).count() == 4
    assert [step.position for step in shop.t.stream(from_=before, until="now")] == [
        step.position for step in shop.t.stream(from_=datetime(1999, 12, 31, tzinfo=timezone.utc), until="now")
    ]
    assert list(shop.t.stream(from_="earliest", until=before)) == list(shop.t.stream(from_=3, until=np.datetime64(before)))
    other = shop.c.create_table("d.back", KEYED)
    other.write_arrow(ROWS)
    assert other.rollback_to(after).snapshot_id == 1
    shop.c.drop_table("d.back")
