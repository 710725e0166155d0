"""Java's RESTCatalog and ours on Java's own server, in turns; and what the stand-in of the tests says, beside what Java's says."""

from __future__ import annotations

import json
import urllib.request

import pyarrow as pa
import pytest
from catalogs.rest_server import VERSIONS, running_server
from turns import SCHEMA, Turns
from unit.catalogs.rest_stub import TOKEN, StubServer

from paimon_py import AddColumn, Catalog, SetOption
from paimon_py.spec.schema_changes import UpdateComment

pytest.importorskip("urllib3")
pytestmark = [pytest.mark.full, pytest.mark.server]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("server, version", [("1.4.2", "2.0.0"), ("1.4.2", "1.4.2"), ("2.0.0", "2.0.0")])
def test_both_change_the_tables_of_a_server(java, tmp_path, server, version, seed):
    """A client of Java 1.4 cannot go on with a table of a server of 2.0: it does not say what it planned on."""
    with running_server(tmp_path / "rest", server) as options:
        Catalog.open("warehouse", options).create_database("db")
        turns = Turns(java(version), "warehouse", {**options, "warehouse": "warehouse"}, lambda: Catalog.open("warehouse", options), seed)
        turns.take(14)


@pytest.mark.parametrize("server", VERSIONS)
def test_java_takes_branches_tags_and_rollbacks_of_ours(java, tmp_path, server):
    with running_server(tmp_path / "rest", server) as options:
        catalog = Catalog.open("warehouse", options)
        catalog.create_database("db")
        table = catalog.create_table("db.t", SCHEMA, primary_key=["k"], options={"bucket": "1", "write-only": "true"})
        turns = Turns(java("2.0.0"), "warehouse", {**options, "warehouse": "warehouse"}, lambda: catalog, 0)
        turns.rows["db.t"] = {}
        for _ in range(2):
            turns._write("o")
            turns._write("j")
        table.create_tag("four")
        kept = dict(turns.rows["db.t"])
        turns._write("j")
        table.rollback_to("four")
        turns.rows["db.t"] = kept
        turns.check()
        turns._write("j")
        turns._write("o")
        turns.check()
        table.alter(AddColumn("w", "INT"), SetOption("snapshot.num-retained.max", "50"), UpdateComment("of ours"))
        turns.wide.add("db.t")
        turns._write("j")
        turns.check()
        # the last thing, since this server lets the hint of main name the snapshots of its branches, which Java believes
        table.create_tag("now")
        branch = table.create_branch("b", "now")
        branch.write_arrow(pa.Table.from_pylist([{"k": 100, "v": "b", "w": None}], table.scan().to_arrow().schema))
        read = turns.step(op="read", table="db.t$branch_b")
        assert len(read) == len(turns.rows["db.t"]) + 1 and table.scan().count() == len(turns.rows["db.t"])


def test_java_reads_and_writes_a_table_that_we_replaced(java, tmp_path):
    with running_server(tmp_path / "rest", "2.0.0") as options:
        catalog = Catalog.open("warehouse", options)
        catalog.create_database("db")
        catalog.create_table("db.t", SCHEMA, primary_key=["k"], options={"bucket": "1"})
        turns = Turns(java("2.0.0"), "warehouse", {**options, "warehouse": "warehouse"}, lambda: catalog, 0)
        turns.rows["db.t"] = {}
        turns._write("o")
        turns._write("j")
        wide = pa.schema([("id", pa.int64()), ("n", pa.int32())])
        table = catalog.replace_table("db.t", wide, primary_key=["id"], options={"bucket": "2"})
        assert turns.step(op="read", table="db.t") == []
        turns.step(op="write", table="db.t", rows=[{"id": 1, "n": 1}, {"id": 2, "n": 2}])
        table.refresh()
        table.write_arrow(pa.table({"id": [2, 3], "n": pa.array([20, 30], pa.int32())}))
        there = turns.step(op="read", table="db.t")
        ours = sorted(catalog.table("db.t").scan().to_arrow().to_pylist(), key=lambda row: row["id"])
        assert ours == [{"id": 1, "n": 1}, {"id": 2, "n": 20}, {"id": 3, "n": 30}] and len(there) == 3


def ask(uri, token, method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{uri}{path}", data=data, method=method, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


SCRIPT = [
    ("GET", "/v1/config?warehouse=warehouse", None),
    ("POST", "/v1/paimon/databases", {"name": "d", "options": {"a": "b"}}),
    ("POST", "/v1/paimon/databases", {"name": "d", "options": {}}),
    ("GET", "/v1/paimon/databases", None),
    ("GET", "/v1/paimon/databases/d", None),
    ("GET", "/v1/paimon/databases/x", None),
    ("GET", "/v1/paimon/databases/x/tables", None),
    ("POST", "/v1/paimon/databases/d/tables", {"identifier": {"database": "d", "object": "t"}, "schema": {
        "fields": [{"id": 0, "name": "k", "type": "INT NOT NULL"}, {"id": 1, "name": "v", "type": "STRING", "description": "c"}],
        "partitionKeys": [], "primaryKeys": ["k"], "options": {"bucket": "1"}, "comment": "hi"}}),
    ("POST", "/v1/paimon/databases/d/tables", {"identifier": {"database": "d", "object": "t"}, "schema": {
        "fields": [{"id": 0, "name": "k", "type": "INT NOT NULL"}], "partitionKeys": [], "primaryKeys": [], "options": {}, "comment": None}}),
    ("GET", "/v1/paimon/databases/d/tables", None),
    ("GET", "/v1/paimon/databases/d/tables?maxResults=1", None),
    ("GET", "/v1/paimon/databases/d/tables/t", None),
    ("GET", "/v1/paimon/databases/d/tables/x", None),
    ("GET", "/v1/paimon/databases/d/tables/t/snapshot", None),
    ("GET", "/v1/paimon/databases/d/tables/t/branches", None),
    ("GET", "/v1/paimon/databases/d/tables/t/partitions", None),
    ("POST", "/v1/paimon/databases/d/tables/t/rollback", {"instant": {"type": "snapshot", "snapshotId": 9}, "fromSnapshot": None}),
    ("POST", "/v1/paimon/databases/d/tables/t/rollback", {"instant": {"type": "tag", "tagName": "x"}, "fromSnapshot": None}),
    ("POST", "/v1/paimon/databases/d/tables/t/branches", {"branch": "b", "fromTag": "nobody"}),
    ("POST", "/v1/paimon/databases/d/tables/t/branches", {"branch": "b", "fromTag": None}),
    ("POST", "/v1/paimon/databases/d/tables/t/branches", {"branch": "b", "fromTag": None}),
    ("GET", "/v1/paimon/databases/d/tables/t/branches", None),
    ("DELETE", "/v1/paimon/databases/d/tables/t/branches/b", None),
    ("DELETE", "/v1/paimon/databases/d/tables/t/branches/b", None),
    ("POST", "/v1/paimon/databases/d/tables/t", {"changes": [
        {"action": "addColumn", "fieldNames": ["x"], "dataType": "INT", "comment": None, "move": {"fieldName": "x", "referenceFieldName": None, "type": "FIRST"}},
        {"action": "setOption", "key": "a", "value": "b"}]}),
    ("GET", "/v1/paimon/databases/d/tables/t", None),
    ("POST", "/v1/paimon/tables/rename", {"source": {"database": "d", "object": "x"}, "destination": {"database": "d", "object": "y"}}),
    ("DELETE", "/v1/paimon/databases/d/tables/t", None),
    ("DELETE", "/v1/paimon/databases/d/tables/t", None),
    ("DELETE", "/v1/paimon/databases/d", None),
    ("DELETE", "/v1/paimon/databases/d", None),
]  # fmt: skip


def known(body):
    """An answer without what differs by chance: ids, places, and the words of messages."""
    if not body:
        return None
    value = json.loads(body)
    return {name: item for name, item in value.items() if name not in ("id", "path", "message", "location")}


@pytest.mark.parametrize("server", VERSIONS)
def test_the_stand_in_says_what_the_server_of_java_says(tmp_path, server):
    stub, differ = StubServer(), []
    with running_server(tmp_path / "rest", server) as options:
        for method, path, body in SCRIPT:
            status, said = ask(options["uri"], options["token"], method, path, body)
            data = None if body is None else json.dumps(body).encode()
            ours = stub.send(method, f"http://stub{path}", {"Authorization": f"Bearer {TOKEN}"}, data)
            if (status, known(said)) != (ours.status, known(ours.body)):
                differ.append((method, path, (status, said), (ours.status, ours.body)))
    assert differ == []
