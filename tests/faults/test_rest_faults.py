"""Every call of a REST server failing once, in every way: nothing is lost, nothing is done twice, and errors say what is known."""

from __future__ import annotations

import pyarrow as pa
import pytest
from unit.catalogs.rest_stub import StubServer, catalog_of

from paimon_py import AddColumn, AlreadyExistsError, CommitUnknownError, NotFoundError, PaimonError, Schema, UsageError
from paimon_py.errors import StorageUnknownError

FAULTS = ("unsent", "before", "after", "500 before", "500 after", "503 before", "503 after", "garbled", "empty")
COLUMNS = Schema([("k", "BIGINT NOT NULL"), ("v", "STRING")])


def rows(*keys):
    return pa.table({"k": list(keys), "v": [f"v{key}" for key in keys]})


def prepared():
    """A server with a table of two snapshots, a tag, and a branch that went on."""
    server = StubServer()
    catalog = catalog_of(server)
    catalog.create_database("d")
    catalog.create_database("empty")
    table = catalog.create_table("d.t", COLUMNS, primary_key=["k"], options={"bucket": "1"})
    table.write_arrow(rows(1))
    table.create_tag("one")
    table.create_branch("b", "one").write_arrow(rows(7))
    table.write_arrow(rows(2))
    return server, catalog


OPERATIONS = {
    "create database": (lambda c: c.create_database("e"), lambda s: "e" in s.databases),
    "drop database": (lambda c: c.drop_database("empty"), lambda s: "empty" not in s.databases),
    "create table": (lambda c: c.create_table("d.u", COLUMNS, comment="c"), lambda s: "d.u" in s.tables),
    "rename": (lambda c: c.rename_table("d.t", "d.u"), lambda s: "d.u" in s.tables and "d.t" not in s.tables),
    "drop table": (lambda c: c.drop_table("d.t"), lambda s: "d.t" not in s.tables),
    "alter": (lambda c: c.table("d.t").alter(AddColumn("x", "INT")), lambda s: s.table_root("d.t").schemas.ids() == [0, 1]),
    "rollback": (lambda c: c.table("d.t").rollback_to(1), lambda s: s.latest["d.t"].id == 1),
    "rollback to a tag": (lambda c: c.table("d.t").rollback_to("one"), lambda s: s.latest["d.t"].id == 1),
    "create branch": (lambda c: c.table("d.t").create_branch("c", "one"), lambda s: "d.t$branch_c" in s.tables),
    "delete branch": (lambda c: c.table("d.t").delete_branch("b"), lambda s: "d.t$branch_b" not in s.tables),
    "fast forward": (
        lambda c: c.table("d.t").fast_forward("b", discard=True), lambda s: s.latest["d.t"] == s.latest["d.t$branch_b"],
    ),
}  # fmt: skip


def calls_of(act):
    server, catalog = prepared()
    before = len(server.calls)
    act(catalog)
    return len(server.calls) - before


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_a_verb_is_executed_once_or_reports_an_unknown_outcome(name):
    act, is_done = OPERATIONS[name]
    count = calls_of(act)
    assert count > 0
    for number in range(count):
        for fault in FAULTS:
            server, catalog = prepared()
            server.faults = [None] * number + [fault]
            case = (name, number, fault)
            try:
                act(catalog)
            except PaimonError as error:
                assert not is_done(server) or isinstance(error, StorageUnknownError), (case, repr(error))
                server.faults = []
                try:
                    act(catalog)
                except (AlreadyExistsError, NotFoundError, UsageError):
                    assert is_done(server), case
            assert is_done(server), case


def keys(catalog):
    return sorted(catalog.table("d.t").scan().to_arrow()["k"].to_pylist())


WRITES = {
    "append": lambda table: committed(table, rows(3)),
    "overwrite": lambda table: table.write_arrow(rows(3), overwrite={}),
    "delete": lambda table: table.delete("k = 2"),
}
WANTED = {"append": [1, 2, 3], "overwrite": [3], "delete": [1]}


def committed(table, data):
    with table.writer() as writer:
        writer.write_arrow(data)
        changes = writer.changes()
    return table.commit(changes, user="u", identifier=9)


@pytest.mark.parametrize("name", sorted(WRITES))
def test_a_commit_is_published_once_even_if_answers_are_lost(name):
    write = WRITES[name]
    server, catalog = prepared()
    table, before = catalog.table("d.t"), len(server.calls)
    write(table)
    count = len(server.calls) - before
    for number in range(count):
        for fault in FAULTS:
            server, catalog = prepared()
            table = catalog.table("d.t")
            server.faults = [None] * number + [fault]
            case, newest = (name, number, fault), server.latest["d.t"].id
            try:
                write(table)
                assert keys(catalog) == WANTED[name], case
            except CommitUnknownError as error:
                server.faults = []
                table.commit(error.changes, user=error.user, identifier=error.identifier, overwrite={} if name == "overwrite" else None)
            except PaimonError as error:
                assert keys(catalog) == [1, 2], (case, repr(error))
                assert server.latest["d.t"].id == newest, case
                write(table)
            assert keys(catalog) == WANTED[name], case
            assert server.latest["d.t"].id == newest + 1, case


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "unsent"])
def test_a_server_that_keeps_failing_is_not_taken_for_a_refusal(fault):
    server, catalog = prepared()
    table, commit = catalog.table("d.t"), server.commit

    def and_from_now_on(*given):
        said = commit(*given)
        server.then, server.faults = fault if "before" not in fault else "after", [fault] * 1000
        return said

    server.commit = and_from_now_on
    with pytest.raises(CommitUnknownError) as caught:
        table.write_arrow(rows(3))
    server.faults, server.commit = [], commit
    error = caught.value
    assert table.commit(error.changes, user=error.user, identifier=error.identifier).already_committed
    assert keys(catalog) == [1, 2, 3] and [snapshot.id for snapshot in table.snapshots()] == [1, 2, 3]


@pytest.mark.parametrize("fault", ["after", "500 after", "503 after", "garbled", "empty"])
def test_our_commit_is_found_after_later_commits_of_others(fault):
    """The answer is lost, and before the history is looked at others commit on top."""
    server, catalog = prepared()
    table, other, commit = catalog.table("d.t"), catalog.table("d.t"), server.commit

    def and_then_others(*given):
        server.commit = commit
        said = commit(*given)
        other.write_arrow(rows(8))
        server.then = fault
        return said

    server.commit = and_then_others
    assert table.write_arrow(rows(3)).snapshot_id == 3
    assert keys(catalog) == [1, 2, 3, 8] and [snapshot.id for snapshot in table.snapshots()] == [1, 2, 3, 4]


@pytest.mark.parametrize("fault", ["before", "500 before", "503 before"])
def test_a_commit_that_never_came_gives_way_to_others(fault):
    server, catalog = prepared()
    table, other, commit = catalog.table("d.t"), catalog.table("d.t"), server.commit

    def others_first(*given):
        server.commit = commit
        other.write_arrow(rows(8))
        server.then = fault.replace("before", "after")
        return {"success": False}

    server.commit = others_first
    assert table.write_arrow(rows(3)).snapshot_id == 4
    assert keys(catalog) == [1, 2, 3, 8]


def test_a_delayed_call_changes_nothing():
    """The server seems not to have taken the commit, takes it when it is offered again, and then the first call comes."""
    server, catalog = prepared()
    table, commit, late = catalog.table("d.t"), server.commit, []

    def slow(*given):
        server.commit, server.then = commit, "after"
        late.append(given)
        return {"success": True}

    server.commit = slow
    assert table.write_arrow(rows(3)).snapshot_id == 3
    assert commit(*late[0]) == {"success": False}
    assert keys(catalog) == [1, 2, 3] and [snapshot.id for snapshot in table.snapshots()] == [1, 2, 3]
