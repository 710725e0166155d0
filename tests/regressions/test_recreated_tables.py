"""A table object outlives its table: it was dropped, renamed or created anew by somebody else meanwhile."""

from __future__ import annotations

import os
import pickle

import pyarrow as pa
import pytest

from paimon_py import AddColumn, Catalog, CommitConflictError, TableNotFoundError, UsageError
from paimon_py.spec.layout import schema_path

OLD = pa.schema([("k", pa.int32()), ("v", pa.int32())])
NEW = pa.schema([("v", pa.string()), ("k", pa.int32())])
KINDS = {"keyed": ({"bucket": "1"}, ["k"]), "append": ({}, []), "dynamic": ({"bucket": "-1"}, ["k"])}


def data(*keys):
    return pa.table({"k": pa.array(keys, pa.int32()), "v": pa.array(keys, pa.int32())})


def catalog_at(tmp_path):
    return Catalog.open(str(tmp_path))


@pytest.fixture(params=KINDS)
def opened(request, tmp_path):
    """How to create the table, a table object with rows, and a writer of it with more."""
    options, key = KINDS[request.param]
    names = catalog_at(tmp_path)
    names.create_database("db")

    def create(columns):
        return catalog_at(tmp_path).create_table("db.t", columns, primary_key=key, options=options)

    create(OLD)
    table = names.table("db.t")
    table.write_arrow(data(1, 2))
    writer = table.writer()
    writer.write_arrow(data(3))
    return create, table, writer


def files(tmp_path):
    return sorted(os.path.join(place, name) for place, _, names in os.walk(tmp_path) for name in names)


def test_nobody_writes_old_columns_into_a_table_that_was_created_anew(opened, tmp_path):
    create, table, writer = opened
    other = pickle.loads(pickle.dumps(table))
    catalog_at(tmp_path).drop_table("db.t")
    rows = pa.table({"v": ["a", "b"], "k": pa.array([1, 5], pa.int32())})
    create(NEW).write_arrow(rows)
    before = files(tmp_path)
    for call in (lambda: table.write_arrow(data(9)), lambda: table.alter(AddColumn("x", "INT")), lambda: table.truncate()):
        with pytest.raises(TableNotFoundError, match="created again"):
            call()
    with pytest.raises(CommitConflictError, match="another table now"):
        other.write_arrow(data(9))
    assert files(tmp_path) == before
    with pytest.raises((TableNotFoundError, UsageError)):
        table.commit(writer.changes())
    fresh = catalog_at(tmp_path).table("db.t")
    assert fresh.schema.id == 0 and fresh.scan().to_arrow().sort_by("k").to_pydict() == rows.to_pydict()


def test_a_table_that_was_renamed_is_gone_and_leaves_no_remains_at_its_old_name(opened, tmp_path):
    create, table, writer = opened
    names = catalog_at(tmp_path)
    names.rename_table("db.t", "db.u")
    before = files(tmp_path)
    calls = {
        "scan": lambda: table.scan().to_arrow(),
        "count": lambda: table.scan().count(),
        "snapshot": lambda: table.snapshot(),
        "writer": lambda: table.writer(),
        "write": lambda: table.write_arrow(data(9)),
        "delete": lambda: table.delete("k = 1"),
        "truncate": lambda: table.truncate(),
        "compact": lambda: table.compact(full=True),
        "alter": lambda: table.alter(AddColumn("x", "INT")),
    }
    if table.schema.primary_keys:
        calls["lookup"] = lambda: table.lookup([1])
    for name, call in calls.items():
        with pytest.raises(TableNotFoundError):
            call()
            pytest.fail(f"{name} did not notice")
    with pytest.raises(TableNotFoundError):
        writer.changes()
    writer.abort()
    assert files(tmp_path) == before
    assert names.table("db.u").scan().to_arrow().sort_by("k").to_pydict() == data(1, 2).to_pydict()


def test_a_schema_that_was_rolled_back_and_replaced_is_not_written_with(tmp_path):
    """Java's rollback deletes later schemas, and the next change takes their id."""
    names = catalog_at(tmp_path)
    names.create_database("db")
    names.create_table("db.t", OLD)
    table = names.table("db.t")
    table.alter(AddColumn("x", "INT"))
    table.write_arrow(data(1))
    other = catalog_at(tmp_path).table("db.t")
    os.unlink(schema_path(other.location, 1))
    catalog_at(tmp_path).table("db.t").alter(AddColumn("longer", "STRING"))
    for late in (table, other):
        with pytest.raises((TableNotFoundError, CommitConflictError), match="has changed"):
            late.write_arrow(data(2))
    assert catalog_at(tmp_path).table("db.t").schema.names == ("k", "v", "longer")


def test_nobody_commits_to_a_branch_that_was_created_anew(tmp_path):
    names = catalog_at(tmp_path)
    names.create_database("db")
    table = names.create_table("db.t", OLD, primary_key=["k"], options={"bucket": "1"})
    table.write_arrow(data(1))
    branch = table.create_branch("b")
    branch.write_arrow(data(2))
    writer = branch.writer()
    writer.write_arrow(data(3))
    changes = writer.changes()
    table.delete_branch("b")
    new = table.create_branch("b")
    new.write_arrow(data(4))
    calls = [
        lambda: branch.write_arrow(data(9)), lambda: branch.commit(changes), lambda: branch.rollback_to(1), lambda: branch.compact(full=True),
        lambda: branch.create_tag("x"), lambda: branch.alter(AddColumn("x", "INT")), lambda: branch.stream().poll(),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(TableNotFoundError, match="the branch was deleted and created again.*; open it again"):
            call()
    assert sorted(new.to_arrow()["k"].to_pylist()) == [1, 4]
    assert table.fast_forward("b").new_ids == (2,)
    assert new.write_arrow(data(5)).snapshot_id == 3
