"""A catalog over a REST server: databases, tables, schema changes, commits, rollbacks and branches by the server."""

from __future__ import annotations

import json
import pickle
import uuid

import pyarrow as pa
import pytest
from unit.catalogs.rest_stub import StubServer, catalog_of, metastore_of

from paimon_py import (
    AddColumn,
    AlreadyExistsError,
    BranchNotFoundError,
    CommitConflictError,
    DatabaseNotFoundError,
    DropColumn,
    OptionError,
    PaimonWarning,
    RemoveOption,
    RenameColumn,
    Schema,
    SetOption,
    StorageError,
    TableNotFoundError,
    TagNotFoundError,
    UnsupportedError,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
    UsageError,
)
from paimon_py.errors import StorageUnknownError
from paimon_py.metastores.metastore import TableName
from paimon_py.spec.schema_changes import After, Before, First, Last

COLUMNS = Schema([("p", "INT"), ("k", "BIGINT NOT NULL"), ("v", "STRING", "a comment")])


def rows(*keys, part=1):
    return pa.table({"p": pa.array([part] * len(keys), pa.int32()), "k": list(keys), "v": [f"v{key}" for key in keys]})


@pytest.fixture
def server():
    return StubServer()


@pytest.fixture
def catalog(server):
    made = catalog_of(server)
    made.create_database("d")
    return made


@pytest.fixture
def table(catalog):
    return catalog.create_table("d.t", COLUMNS, primary_key=["k", "p"], partition_by=["p"], options={"bucket": "1"}, comment="hi")


def keys(table, **options):
    return sorted(table.scan(**options).to_arrow()["k"].to_pylist())


# -- databases and tables -----------------------------------------------------------------------------------------------


def test_databases_are_managed_by_the_server(server, catalog):
    catalog.create_database("e", comment="c", options={"a": "b"})
    assert catalog.databases() == ["d", "e"] and server.databases["e"] == {"a": "b", "comment": "c"}
    catalog.create_database("e", exist_ok=True)
    with pytest.raises(AlreadyExistsError):
        catalog.create_database("e")
    catalog.drop_database("e")
    with pytest.raises(DatabaseNotFoundError):
        catalog.drop_database("e")
    with pytest.raises(DatabaseNotFoundError):
        catalog.tables("e")
    assert catalog.databases() == ["d"]


def test_lists_have_pages(server, catalog):
    server.page_size = 2
    for name in "abcde":
        catalog.create_table(f"d.{name}", COLUMNS)
    before = len(server.calls)
    server.tables["d.f"] = {**server.tables["d.a"], "type": "format-table"}
    server.tables["d.m"] = {**server.tables["d.a"], "type": "materialized-table"}
    assert catalog.tables("d") == [*"abcde", "m"]
    assert len([call for call in server.calls[before:] if call.endswith("/tables")]) == 4


def test_tables_are_created_by_the_server(server, table, catalog):
    assert (table.schema.primary_keys, table.comment, table.options) == (("k", "p"), "hi", {"bucket": "1"})
    assert table.location == f"{server.root}/d.db/t"
    again = catalog.create_table("d.t", Schema([("other", "INT")]), exist_ok=True)
    assert again.schema.names == ("p", "k", "v")
    with pytest.raises(AlreadyExistsError):
        catalog.create_table("d.t", COLUMNS)
    with pytest.raises(DatabaseNotFoundError):
        catalog.create_table("x.t", COLUMNS)
    with pytest.raises(TableNotFoundError):
        catalog.table("d.u")
    with pytest.raises(DatabaseNotFoundError):
        catalog.table("x.u")


def test_table_defaults_of_the_server_apply_to_new_tables(server):
    server.config["defaults"]["table-default.bucket"] = "3"
    catalog = catalog_of(server)
    catalog.create_database("d")
    assert catalog.create_table("d.t", COLUMNS, primary_key=["k"]).options["bucket"] == "3"
    assert catalog.create_table("d.u", COLUMNS, primary_key=["k"], options={"bucket": "1"}).options["bucket"] == "1"


def test_names_are_encoded_in_paths(server, catalog):
    catalog.create_database("a b~c")
    catalog.create_table("a b~c.tä ble", COLUMNS).write_arrow(rows(1))
    assert keys(catalog.table("a b~c.tä ble")) == [1]
    assert "GET /v1/paimon/databases/a+b%7Ec/tables/t%C3%A4+ble" in server.calls
    odd = ["a+b", "a&b=c;d", "日本 語", "'q\"", "a,b"]
    for number, name in enumerate(odd):
        catalog.create_table(f"d.{name}", COLUMNS).write_arrow(rows(number))
    assert catalog.tables("d") == sorted(odd)
    assert [keys(catalog.table(f"d.{name}")) for name in odd] == [[number] for number in range(len(odd))]
    for name in odd:
        catalog.rename_table(f"d.{name}", f"d.{name}2")
        catalog.drop_table(f"d.{name}2")
    assert catalog.tables("d") == []
    for name in ("a/b", "50%", "a#b", "..", "a\\b"):
        asked = len(server.calls)
        with pytest.raises(UsageError, match="table name"):
            catalog.create_table(f"d.{name}", COLUMNS)
        assert len(server.calls) == asked


def test_a_prefix_is_one_part_of_the_path(server):
    server.config["defaults"]["prefix"] = "lake/ä %"
    made = metastore_of(server).client
    assert made.path("databases", "d/e") == "/v1/lake%2F%C3%A4+%25/databases/d%2Fe"
    del server.config["defaults"]["prefix"]
    assert metastore_of(server).client.path("databases") == "/v1/databases"


def test_tables_are_renamed_and_dropped_by_the_server(server, catalog, table):
    table.write_arrow(rows(1))
    catalog.rename_table("d.t", "d.u")
    assert catalog.tables("d") == ["u"] and keys(catalog.table("d.u")) == [1]
    with pytest.raises(TableNotFoundError):
        catalog.rename_table("d.t", "d.w")
    with pytest.raises(TableNotFoundError):
        table.write_arrow(rows(2))
    catalog.create_table("d.t", COLUMNS)
    with pytest.raises(AlreadyExistsError):
        catalog.rename_table("d.u", "d.t")
    catalog.drop_table("d.u")
    with pytest.raises(TableNotFoundError):
        catalog.drop_table("d.u")
    catalog.drop_table("d.u", missing_ok=True)
    catalog.drop_database("d", cascade=True)
    assert server.tables == {} and server.databases == {}


def test_missing_permissions_are_named(server, catalog, table):
    server.forbidden.add("d.t")
    with pytest.raises(StorageError, match="do not permit this"):
        catalog.table("d.t")
    with pytest.raises(StorageError, match="do not permit this"):
        table.write_arrow(rows(1))
    server.token = "another"
    with pytest.raises(StorageError, match="does not accept these credentials"):
        catalog.databases()


@pytest.mark.parametrize("kind", ["format-table", "object-table", "iceberg-table", "lance-table"])
def test_tables_of_other_kinds_are_refused_by_name(catalog, server, kind):
    catalog.create_table("d.t", COLUMNS)
    server.on_table = lambda *_: {"name": "t", "path": "memory://x/y", "schema": {"options": {"type": kind}}}
    with pytest.raises(UnsupportedError, match=kind):
        catalog.table("d.t")


@pytest.mark.parametrize("by_id", [False, True])
def test_tables_with_restricted_rows_are_refused(catalog, server, table, by_id):
    table.write_arrow(rows(1))
    asked = server.on_table("GET", "d.t", None)
    asked["schema"]["options"]["query-auth.enabled"] = "TRUE"
    server.on_table = lambda *_: asked
    with pytest.raises(UnsupportedError, match=r"'d.t' has query-auth.enabled = true"):
        catalog.table_by_id(asked["id"]) if by_id else catalog.table("d.t")
    for name in ("d.t$files", "d.t$branch_b"):
        with pytest.raises(UnsupportedError, match=r"query-auth.enabled"):
            catalog.table(name)


def test_options_are_checked_before_any_request(catalog, server):
    with pytest.raises(OptionError, match="branch 'b' does not exist"):
        catalog.create_table("d.u", COLUMNS, options={"scan.fallback-branch": "b"})
    assert "d.u" not in server.tables
    with pytest.warns(PaimonWarning, match="visibility-callback.enabled"):
        table = catalog.create_table("d.u", COLUMNS, options={"visibility-callback.enabled": "true"})
    table.write_arrow(rows(1))


def test_repair_is_refused_by_name(catalog):
    with pytest.raises(UnsupportedError, match="does not support repair of 'd.t'"):
        catalog.repair("d.t")


def test_an_external_table_publishes_its_snapshots_itself(server, catalog):
    from paimon_py import Catalog

    place = f"memory://elsewhere-{uuid.uuid4()}/w"
    other = Catalog.open(place)
    other.create_database("e")
    other.create_table("e.t", COLUMNS).write_arrow(rows(1))
    server.tables["d.x"] = {"id": "7", "path": f"{place}/e.db/t", "isExternal": True}
    table = catalog.table("d.x")
    before = len(server.calls)
    table.write_arrow(rows(2))
    assert keys(table) == keys(other.table("e.t")) == [1, 2]
    assert server.calls[before:] == []
    catalog.drop_table("d.x")
    assert keys(other.table("e.t")) == [1, 2]


# -- what only a server answers -----------------------------------------------------------------------------------------


def test_a_table_is_found_by_its_id(server, catalog, table):
    table.write_arrow(rows(1))
    number = server.tables["d.t"]["id"]
    catalog.rename_table("d.t", "d.u")
    found = catalog.table_by_id(number)
    found.write_arrow(rows(2))
    assert keys(found) == [1, 2] and "d.u" in repr(found)
    for nobody in ("x", "a/b"):
        with pytest.raises(TableNotFoundError):
            catalog.table_by_id(nobody)
    with pytest.raises(UsageError):
        catalog.table_by_id(7)


@pytest.mark.parametrize("fault", [None, "after", "500 after"])
def test_a_table_is_replaced_by_the_server(server, catalog, table, fault):
    table.write_arrow(rows(1, 2))
    wide = Schema([("p", "INT NOT NULL"), ("id", "BIGINT NOT NULL"), ("w", "DOUBLE")])
    server.faults = [None, fault]
    made = catalog.replace_table("d.t", wide, primary_key=["id", "p"], partition_by=["p"], options={"bucket": "2"}, comment="new")
    assert server.calls.count("POST /v1/paimon/databases/d/tables/t/replace") == 1
    assert (made.schema.id, made.schema.names, made.schema.comment, made.options["bucket"]) == (1, ("p", "id", "w"), "new", "2")
    assert made.scan().count() == 0
    assert made.write_arrow(pa.table({"p": pa.array([1], pa.int32()), "id": [7], "w": [0.5]})).snapshot_id == 3
    assert catalog.table("d.t").scan().to_arrow()["id"].to_pylist() == [7] and keys(made, snapshot_id=1) == [1, 2]
    with pytest.raises(UnsupportedError, match="changing partition keys"):
        catalog.replace_table("d.t", wide, primary_key=["id"])
    with pytest.raises(TableNotFoundError):
        catalog.replace_table("d.nobody", wide)
    with pytest.raises(UsageError, match="does not take a branch"):
        catalog.replace_table("d.t$branch_b", wide)
    server.replaces_nothing = True
    with pytest.raises(UnsupportedError, match="this server does not replace tables"):
        catalog.replace_table("d.t", wide)


def test_a_replacement_that_cannot_be_verified_is_an_unknown_outcome(server, catalog, table):
    server.faults = [None, "before"]
    with pytest.raises(StorageUnknownError, match="it is not known whether"):
        catalog.replace_table("d.t", COLUMNS, primary_key=["k", "p"], partition_by=["p"], options={"bucket": "1"}, comment="hi")


@pytest.mark.parametrize("fault", [None, "after"])
def test_an_existing_table_can_be_registered(server, catalog, table, fault):
    table.write_arrow(rows(1))
    server.faults = [fault]
    found = catalog.register_table("d.again", table.location)
    assert keys(found) == [1]
    with pytest.raises(AlreadyExistsError):
        catalog.register_table("d.t", table.location)
    with pytest.raises(DatabaseNotFoundError):
        catalog.register_table("nowhere.t", table.location)
    with pytest.raises(UsageError):
        catalog.register_table("d.u", "")
    for url in ("s3://k:sesame@b/x", "https://h/x?sig=sesame"):
        with pytest.raises(UsageError, match="must not contain a password or a query") as caught:
            catalog.register_table("d.u", url)
        assert "sesame" not in str(caught.value)


def test_partitions_are_counted_by_the_server(server, catalog):
    table = catalog.create_table("d.u", COLUMNS, partition_by=["p"], options={"metastore.partitioned-table": "true"})
    table.write_arrow(rows(1, 2))
    table.write_arrow(rows(3, part=2))
    table.write_arrow(rows(4))
    catalog.mark_partitions_done("d.u", [{"p": "2"}])
    found = {one.spec["p"]: one for one in catalog.partitions("d.u")}
    assert {key: (one.record_count, one.file_count, one.done) for key, one in found.items()} == {"1": (3, 2, False), "2": (1, 1, True)}
    assert {str(one.partition["p"]): one.file_size_in_bytes for one in table.partitions()} == {key: one.file_size_in_bytes for key, one in found.items()}
    with pytest.raises(TableNotFoundError):
        catalog.partitions("d.nobody")
    for wrong in ([], [{}], [{"p": 2}], {"p": "2"}, None):
        with pytest.raises(UsageError):
            catalog.mark_partitions_done("d.u", wrong)


def test_a_server_without_partition_statistics_is_refused_by_name(catalog, table):
    with pytest.raises(UnsupportedError, match=r"call Table\.partitions"):
        catalog.partitions("d.t")
    with pytest.raises(UnsupportedError, match="501"):
        catalog.mark_partitions_done("d.t", [{"p": "1"}])


def test_options_of_a_database_change(server, catalog):
    catalog.create_database("e", comment="c", options={"a": "b"})
    catalog.alter_database("e", options={"x": "y"}, remove=["a", "comment"])
    assert server.databases["e"] == {"x": "y"}
    server.faults = ["after"]
    catalog.alter_database("e", options={"x": "z"}, remove=["nobody"])
    assert server.databases["e"] == {"x": "z"}
    with pytest.raises(DatabaseNotFoundError):
        catalog.alter_database("nowhere", options={"x": "y"})
    with pytest.raises(UsageError, match="needs options to set"):
        catalog.alter_database("e")


def test_catalogs_without_a_server_are_refused_by_name(tmp_path):
    from paimon_py import Catalog

    plain = Catalog.open(tmp_path / "w")
    for verb in (plain.table_by_id, plain.partitions, lambda name: plain.alter_database(name, remove=["a"])):
        with pytest.raises(UnsupportedError, match="has no server"):
            verb("d.t")


# -- schemas ------------------------------------------------------------------------------------------------------------


def test_every_change_reaches_the_server(table, server):
    table.write_arrow(rows(1))
    table.alter(
        AddColumn("a", "INT", "of a", First()), AddColumn("b", "ROW<x INT, y STRING>"), AddColumn("c", "DECIMAL(5, 2) NOT NULL".removesuffix(" NOT NULL"), position=After("a")),
        AddColumn(["b", "z"], "DOUBLE", position=After("x")), SetOption("snapshot.num-retained.max", "19"), UpdateComment("new"),
    )  # fmt: skip
    table.alter(
        RenameColumn("a", "a2"), UpdateColumnType("a2", "BIGINT", keep_nullability=True), UpdateColumnComment("v", "said"),
        UpdateColumnDefault("v", "x"), UpdateColumnPosition("c", Last()), UpdateColumnPosition("b", Before("v")),
        RemoveOption("snapshot.num-retained.max"), DropColumn(["b", "y"]), UpdateColumnNullability("a2", True),
    )  # fmt: skip
    assert [(field.name, str(field.type)) for field in table.schema.fields if field.name in ("a2", "c")]
    assert table.schema.names == ("a2", "p", "k", "b", "v", "c") and table.schema.id == 2 and table.comment == "new"
    told = server.table_root("d.t").schemas.latest()
    assert told == table.schema and told.field("v").default == "x" and told.field("v").description == "said"
    assert keys(table) == [1] and "snapshot.num-retained.max" not in table.options


def test_an_invalid_change_is_not_sent(table, server):
    before = [call for call in server.calls if call.startswith("POST")]
    with pytest.raises(UsageError):
        table.alter(DropColumn("k"))
    assert [call for call in server.calls if call.startswith("POST")] == before


# -- snapshots ----------------------------------------------------------------------------------------------------------


def test_commits_are_published_by_the_server(table, server, catalog):
    table.write_arrow(rows(1, 2))
    table.write_arrow(rows(2, 3, part=2))
    table.write_arrow(rows(9), overwrite={"p": 1})
    assert server.latest["d.t"].id == 3 and table.snapshot().id == 3
    assert keys(catalog.table("d.t")) == [2, 3, 9]
    told = {spec: [(row["recordCount"], row["fileCount"]) for row in rows] for spec, rows in server.partitions["d.t"].items()}
    assert told == {'{"p": "1"}': [(2, 1), (-1, 0)], '{"p": "2"}': [(2, 1)]}
    first = server.partitions["d.t"]['{"p": "1"}'][0]
    assert first["totalBuckets"] == 1 and first["fileSizeInBytes"] > 0 and first["lastFileCreationTime"] == server.clock.millis()


def test_statistics_use_the_partition_values_of_directory_names(server, catalog):
    table = catalog.create_table("d.u", Schema([("s", "STRING"), ("d", "DATE"), ("n", "INT")]), partition_by=["s", "d"])
    table.write_arrow(pa.table({"s": ["a=/b", None, " "], "d": pa.array([1, None, 2], pa.date32()), "n": pa.array([1, 2, 3], pa.int32())}))
    specs = [json.loads(text) for text in server.partitions["d.u"]]
    nobody = "__DEFAULT_PARTITION__"
    assert sorted(specs, key=str) == sorted([{"s": "a=/b", "d": "1"}, {"s": nobody, "d": nobody}, {"s": nobody, "d": "2"}], key=str)


def test_two_writers_alternate(table, catalog, server):
    other = catalog.table("d.t")
    for number in range(3):
        table.write_arrow(rows(number))
        other.write_arrow(rows(10 + number))
    assert keys(table) == [0, 1, 2, 10, 11, 12]


def test_the_latest_snapshot_is_the_servers(table, server):
    table.write_arrow(rows(1))
    first = server.latest["d.t"]
    table.write_arrow(rows(2))
    server.latest["d.t"] = first
    assert table.snapshot().id == 1 and keys(table) == [1]


def test_a_recreated_table_is_another_table(table, catalog):
    changes = None
    with table.writer() as writer:
        writer.write_arrow(rows(1))
        changes = writer.changes()
    catalog.drop_table("d.t")
    catalog.create_table("d.t", COLUMNS, primary_key=["k", "p"], partition_by=["p"], options={"bucket": "1"})
    with pytest.raises((TableNotFoundError, CommitConflictError)):
        table.commit(changes)
    assert catalog.table("d.t").snapshot() is None


def test_rollbacks_are_executed_by_the_server(table, server):
    for key in (1, 2, 3):
        table.write_arrow(rows(key))
        table.create_tag(f"t{key}")
    done = table.rollback_to(2)
    assert (done.snapshot_id, done.snapshot_ids, done.tags) == (2, (3,), ("t3",))
    assert server.latest["d.t"].id == 2 and keys(table) == [1, 2]
    assert table.rollback_to("t1").snapshot_ids == (2,) and keys(table) == [1]
    table.write_arrow(rows(4))
    assert keys(table) == [1, 4]


def test_branches_are_managed_by_the_server(table, server, catalog):
    table.write_arrow(rows(1))
    table.create_tag("t1")
    branch = table.create_branch("b", "t1")
    branch.write_arrow(rows(2))
    table.write_arrow(rows(3))
    assert server.latest["d.t$branch_b"].id == 2 and table.branches() == ["b"]
    assert keys(catalog.table("d.t$branch_b")) == [1, 2] and keys(table) == [1, 3]
    branch.alter(AddColumn("x", "INT"))
    assert len(catalog.table("d.t").schema.names) == 3 and len(table.branch("b").schema.names) == 4
    with pytest.raises(CommitConflictError, match="snapshot 2, which"):
        table.fast_forward("b")
    done = table.fast_forward("b", discard=True)
    assert (done.snapshot_id, done.gone_ids, done.new_ids) == (2, (2,), (2,)) and keys(catalog.table("d.t")) == [1, 2]
    with pytest.raises(AlreadyExistsError):
        table.create_branch("b")
    with pytest.raises(TagNotFoundError):
        table.create_branch("c", "nobody")
    with pytest.raises(UnsupportedError, match="creates branches from tags"):
        table.create_branch("c", 1)
    with pytest.raises(UnsupportedError, match="does not support renaming"):
        table.rename_branch("b", "c")
    table.delete_branch("b")
    assert table.branches() == []
    with pytest.raises(BranchNotFoundError):
        table.delete_branch("b")


def test_remains_of_a_branch_unknown_to_the_server_are_harmless(table, server):
    table.write_arrow(rows(1))
    table.create_branch("b")
    table.branch("b").write_arrow(rows(2))
    branch = table.branch("b")
    del server.tables["d.t$branch_b"], server.latest["d.t$branch_b"]
    assert branch.snapshot() is None and keys(table) == [1]
    with pytest.raises(TableNotFoundError):
        branch.write_arrow(rows(3))
    table.remove_orphans(older_than=0, dry_run=True)
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert keys(table) == [1]


def test_a_pickled_catalog_contains_no_token(server, table):
    catalog = catalog_of(server)
    data = pickle.dumps([catalog, catalog.table("d.t"), catalog.table("d.t").scan()])
    assert b"sesame" not in data
    there = pickle.loads(data)[0]
    with pytest.raises(UsageError, match="pickles contain no tokens"):
        there.databases()
    assert "sesame" not in repr(catalog) + repr(catalog._metastore) + repr(table) + repr(table._root.registration)


def test_a_root_knows_its_table_by_name(server, table):
    metastore = metastore_of(server)
    assert metastore.find(TableName("d", "nobody")) is None
    assert metastore.find(TableName("d", "t")).registration.table.id == server.tables["d.t"]["id"]
