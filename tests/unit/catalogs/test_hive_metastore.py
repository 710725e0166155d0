"""A catalog over a metastore: records as Java writes them, and what is left when a server fails at any call."""

from __future__ import annotations

import pickle
import types
import warnings

import pyarrow as pa
import pytest
from unit.catalogs.hive_stub import Refuse, StubMetastore
from unit.public import env

from paimon_py import (
    AddColumn,
    AlreadyExistsError,
    Catalog,
    DatabaseNotFoundError,
    DropColumn,
    OptionError,
    PaimonError,
    PaimonWarning,
    RemoveOption,
    Schema,
    SchemaError,
    SetOption,
    StorageError,
    TableNotFoundError,
    UnsupportedError,
    UsageError,
)
from paimon_py.errors import StorageUnknownError
from paimon_py.metastores.hive import thrift, verbs
from paimon_py.metastores.hive.calls import ALREADY_EXISTS
from paimon_py.metastores.hive.places import Places
from paimon_py.metastores.hive.renaming import _check_move
from paimon_py.storage.local_store import LocalStore
from paimon_py.storage.memory_store import MemoryStore

COLUMNS = pa.schema([("p", pa.string()), ("k", pa.int64()), ("v", pa.string())])
KEYED = {"primary_key": ["p", "k"], "partition_by": ["p"]}
PARTITIONED = {"bucket": "1", "metastore.partitioned-table": "true"}
ROWS = pa.table({"p": ["a", "b/c"], "k": [1, 2], "v": ["x", "y"]})


@pytest.fixture
def stub():
    made = StubMetastore()
    yield made
    made.close()


@pytest.fixture
def opened(stub, tmp_path):
    def opening(**options):
        named = {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
        settings = {"metastore": "hive", "uri": stub.uri, "fs.local.fsync": "false", **named}
        catalog = Catalog.open(tmp_path / "w", settings, env=env())
        catalog.create_database("d", exist_ok=True)
        return catalog

    return opening


@pytest.fixture
def catalog(opened):
    return opened()


@pytest.fixture(params=[2, 3, 4])
def any_version(stub, request):
    stub.version = request.param
    return request.param


def test_a_table_works_in_every_version_of_hive(any_version, opened, stub):
    catalog = opened()
    assert catalog.databases() == ["d", "default"]
    table = catalog.create_table("d.t", COLUMNS, **KEYED, options={"bucket": "1"}, comment="ours")
    table.write_arrow(ROWS)
    assert catalog.tables("d") == ["t"]
    assert catalog.table("d.t").scan().count() == 2
    with pytest.raises(AlreadyExistsError):
        catalog.create_table("d.t", COLUMNS)
    assert catalog.create_table("d.t", COLUMNS, exist_ok=True).scan().count() == 2
    catalog.rename_table("d.t", "d.u")
    assert catalog.tables("d") == ["u"]
    assert catalog.table("d.u").scan().count() == 2
    assert catalog.table("d.u").location.endswith("/d.db/u")
    with pytest.raises(TableNotFoundError):
        catalog.table("d.t")
    catalog.drop_table("d.u")
    assert catalog.tables("d") == []
    catalog.drop_database("d")
    with pytest.raises(DatabaseNotFoundError):
        catalog.tables("d")


def test_a_record_is_what_java_writes(catalog, stub, tmp_path):
    columns = Schema([
        ("p", "STRING NOT NULL"), ("k", "BIGINT NOT NULL"), ("dec", "DECIMAL(12, 3)"), ("c", "CHAR(300)"), ("c2", "CHAR(7)"),
        ("vc", "VARCHAR(70000)"), ("vc2", "VARCHAR(9)"), ("b", "BINARY(4)"), ("tm", "TIME(3)"), ("ts", "TIMESTAMP(6)"),
        ("tz", "TIMESTAMP(3) WITH LOCAL TIME ZONE"), ("r", "ROW<X INT, y ARRAY<MAP<STRING, TINYINT>>>"),
        ("ms", "MULTISET<DOUBLE>"), ("s", "SMALLINT", "two\nlines " + "x" * 300), ("f", "FLOAT"), ("bo", "BOOLEAN"), ("d", "DATE"),
    ])  # fmt: skip
    catalog.create_table(
        "d.t", columns, primary_key=["p", "k"], partition_by=["p"], comment="ours", options={"bucket": "2"}
    )
    record = stub.table("d.t")
    sd = thrift.inner(record, 7)
    assert stub.columns("d.t") == [
        ("p", "string"), ("k", "bigint"), ("dec", "decimal(12,3)"), ("c", "string"), ("c2", "char(7)"), ("vc", "string"),
        ("vc2", "varchar(9)"), ("b", "binary"), ("tm", "string"), ("ts", "timestamp"),
        ("tz", "timestamp with local time zone"), ("r", "struct<X:int,y:array<map<string,tinyint>>>"),
        ("ms", "map<double,int>"), ("s", "smallint"), ("f", "float"), ("bo", "boolean"), ("d", "date"),
    ]  # fmt: skip
    comment = thrift.text(thrift.items(sd, 1)[13], 3)
    assert comment.startswith("two lines x") and comment.endswith("x...") and len(comment) == 255
    assert thrift.text(sd, 2) == f"file:{tmp_path}/w/d.db/t"
    assert thrift.text(sd, 3) == "org.apache.paimon.hive.mapred.PaimonInputFormat"
    assert thrift.text(sd, 4) == "org.apache.paimon.hive.mapred.PaimonOutputFormat"
    assert thrift.text(thrift.inner(sd, 7), 2) == "org.apache.paimon.hive.PaimonSerDe"
    told = stub.parameters("d.t")
    assert {name: told[name] for name in ("table_type", "storage_handler", "primary-key", "partition", "bucket-key", "bucket", "comment")} == {
        "table_type": "PAIMON", "storage_handler": "org.apache.paimon.hive.PaimonStorageHandler", "primary-key": "p,k",
        "partition": "p", "bucket-key": "k", "bucket": "2", "comment": "ours",
    }  # fmt: skip
    assert thrift.items(record, 8) == [], "only partitions that are synchronised are partitions to Hive"


def test_without_sync_all_properties_only_hive_properties_are_stored(opened, stub):
    catalog = opened(sync_all_properties="false")
    options = {"bucket": "1", "hive.note": "x", "partition.expiration-time": "1 d"}
    catalog.create_table("d.t", COLUMNS, **KEYED, options=options)
    told = stub.parameters("d.t")
    assert told["note"] == "x" and told["partition.expiration-time"] == "1 d"
    assert "bucket" not in told and "primary-key" not in told


def test_commits_add_and_drop_partitions(catalog, stub, tmp_path):
    table = catalog.create_table("d.t", COLUMNS, **KEYED, options=PARTITIONED)
    assert [thrift.text(key, 1) for key in thrift.items(stub.table("d.t"), 8)] == ["p"]
    assert [name for name, _ in stub.columns("d.t")] == ["k", "v"]
    table.write_arrow(ROWS)
    table.write_arrow(ROWS.slice(0, 1))
    assert stub.partition_values("d.t") == [["a"], ["b/c"]]
    locations = [thrift.text(thrift.inner(one, 6), 2) for one in stub.partitions["d", "t"].values()]
    assert sorted(locations) == [f"file:{tmp_path}/w/d.db/t/p=a", f"file:{tmp_path}/w/d.db/t/p=b%2Fc"]
    table.drop_partitions([{"p": "a"}])
    assert stub.partition_values("d.t") == [["b/c"]]
    table.create_branch("b1")
    table.truncate()
    assert stub.partition_values("d.t") == [["b/c"]], "the branch may show the partition"
    again = pickle.loads(pickle.dumps(table))
    again.write_arrow(pa.table({"p": ["z", None], "k": [1, 2], "v": ["x", "y"]}).filter([True, False]))
    assert stub.partition_values("d.t") == [["b/c"], ["z"]]
    catalog.rename_table("d.t", "d.u")
    locations = [thrift.text(thrift.inner(one, 6), 2) for one in stub.partitions["d", "u"].values()]
    assert sorted(locations) == [f"file:{tmp_path}/w/d.db/u/p=b%2Fc", f"file:{tmp_path}/w/d.db/u/p=z"]


def test_tags_are_partitions_if_the_table_has_the_option(catalog, stub):
    table = catalog.create_table("d.t", COLUMNS, options={"metastore.tag-to-partition": "dt"})
    table.write_arrow(ROWS)
    table.create_tag("2024-05-14")
    table.create_tag("2024-05-15")
    table.delete_tag("2024-05-15")
    assert stub.partition_values("d.t") == [["2024-05-14"]]
    assert [thrift.text(key, 1) for key in thrift.items(stub.table("d.t"), 8)] == ["dt"]


TAGS_THAT_GO = {
    "delete": (lambda table: table.delete_tag("late"), ["early"]),
    "rename": (lambda table: table.rename_tag("late", "later"), ["early", "later"]),
    "roll back": (lambda table: table.rollback_to(1), ["early"]),
    "fast-forward": (lambda table: table.fast_forward("b", discard=True), ["early", "theirs"]),
    "purge": (lambda table: table.purge_files(), []),
}


@pytest.mark.parametrize("verb", TAGS_THAT_GO)
def test_tags_that_any_verb_deletes_leave_the_metastore(catalog, stub, verb):
    table = catalog.create_table("d.t", COLUMNS, options={"metastore.tag-to-partition": "dt"})
    table.write_arrow(ROWS)
    table.create_tag("early")
    branch = table.create_branch("b", from_="early")
    branch.write_arrow(ROWS)
    branch.create_tag("theirs")
    table.write_arrow(ROWS)
    table.create_tag("late")
    act, left = TAGS_THAT_GO[verb]
    act(table)
    assert sorted(tag.name for tag in table.tags()) == left
    assert sorted(values for (values,) in stub.partition_values("d.t")) == left


def test_a_record_is_updated_with_new_schemas_and_keeps_unknown_fields(catalog, stub):
    table = catalog.create_table("d.t", COLUMNS, options={"bucket": "-1"})
    table.alter(AddColumn("z", "INT"), SetOption("snapshot.num-retained.max", "20"))
    assert stub.columns("d.t")[-1] == ("z", "int")
    assert stub.parameters("d.t")["snapshot.num-retained.max"] == "20"
    table.alter(RemoveOption("snapshot.num-retained.max"))
    assert "snapshot.num-retained.max" not in stub.parameters("d.t")
    assert thrift.text(stub.table("d.t"), 99) == "of a later version"
    table.create_branch("b1")
    table.branch("b1").alter(AddColumn("only_here", "INT"))
    assert stub.columns("d.t")[-1] == ("z", "int")


def test_a_change_that_the_metastore_refuses_is_not_made(catalog, stub):
    table = catalog.create_table("d.t", COLUMNS)
    stub.refused_changes = True
    with pytest.raises(StorageError, match="nothing was changed.*disallow.incompatible"):
        table.alter(DropColumn("k"))
    assert catalog.table("d.t").schema.names == ("p", "k", "v")


def test_the_record_is_restored_if_a_change_cannot_be_published(catalog, stub):
    table = catalog.create_table("d.t", COLUMNS)
    with pytest.raises(UsageError):
        table.alter(AddColumn("v", "INT"))
    assert [name for name, _ in stub.columns("d.t")] == ["p", "k", "v"]


def test_external_tables_keep_their_data(opened, stub):
    catalog = opened(table__type="external")
    table = catalog.create_table("d.t", COLUMNS)
    table.write_arrow(ROWS)
    assert thrift.text(stub.table("d.t"), 12) == "EXTERNAL_TABLE" and stub.parameters("d.t")["EXTERNAL"] == "TRUE"
    catalog.drop_table("d.t")
    assert catalog.tables("d") == []
    with pytest.raises(SchemaError):
        catalog.create_table("d.t", Schema([("other", "INT")]))
    assert catalog.create_table("d.t", COLUMNS).scan().count() == 2
    catalog.rename_table("d.t", "d.u")
    assert catalog.table("d.u").location == table.location, "an external table stays where it lies"


def test_a_table_can_have_another_location(catalog, stub, tmp_path):
    table = catalog.create_table("d.t", COLUMNS, options={"path": f"{tmp_path}/elsewhere/x"})
    table.write_arrow(ROWS)
    assert table.location == f"{tmp_path}/elsewhere/x"
    assert thrift.text(stub.table("d.t"), 12) == "EXTERNAL_TABLE"
    assert catalog.table("d.t").scan().count() == 2
    catalog.drop_table("d.t")
    assert (tmp_path / "elsewhere" / "x" / "schema" / "schema-0").exists()


def test_locations_are_stored_in_properties_by_option(opened, stub, tmp_path):
    catalog = opened(location_in_properties="true")
    table = catalog.create_table("d.t", COLUMNS, **KEYED, options=PARTITIONED)
    table.write_arrow(ROWS)
    assert thrift.text(stub.databases["d"], 3) is None
    assert thrift.mapping(stub.databases["d"], 4)["paimon_location"] == f"file:{tmp_path}/w/d.db"
    assert stub.parameters("d.t")["paimon_location"] == f"file:{tmp_path}/w/d.db/t"
    assert thrift.text(thrift.inner(stub.table("d.t"), 7), 2) is None
    assert catalog.table("d.t").scan().count() == 2
    catalog.rename_table("d.t", "d.u")
    assert stub.parameters("d.u")["paimon_location"] == f"file:{tmp_path}/w/d.db/u"
    catalog.drop_database("d", cascade=True)
    assert not (tmp_path / "w" / "d.db").exists()


def test_a_database_can_have_another_location(catalog, stub, tmp_path):
    catalog.create_database("far", location=str(tmp_path / "far away%20"), comment="c", options={"a": "b"})
    assert thrift.text(stub.databases["far"], 3) == f"file:{tmp_path}/far away%20"
    assert thrift.text(stub.databases["far"], 2) == "c"
    assert thrift.mapping(stub.databases["far"], 4) == {"a": "b"}
    table = catalog.create_table("far.t", COLUMNS)
    table.write_arrow(ROWS)
    assert table.location == str(tmp_path / "far away%20" / "t")
    assert catalog.table("far.t").scan().count() == 2


def test_tables_of_other_formats_are_neither_listed_nor_changed(catalog, stub):
    stub.tables["d", "orc"] = {1: thrift.of_text("orc"), 2: thrift.of_text("d"), 7: (thrift.STRUCT, {}), 12: thrift.of_text("MANAGED_TABLE")}
    assert catalog.tables("d") == []
    with pytest.raises(TableNotFoundError, match="not of Paimon"):
        catalog.table("d.orc")
    with pytest.raises(AlreadyExistsError, match="not of Paimon"):
        catalog.create_table("d.orc", COLUMNS)
    with pytest.raises(UsageError, match="drop it with Hive"):
        catalog.drop_table("d.orc")
    with pytest.raises(UsageError, match="not empty"):
        catalog.drop_database("d", cascade=True)
    assert ("d", "orc") in stub.tables


def test_repair_registers_the_tables_in_the_warehouse(catalog, stub):
    table = catalog.create_table("d.t", COLUMNS, **KEYED, options=PARTITIONED)
    table.write_arrow(ROWS)
    stub.tables.clear(), stub.partitions.clear()
    del stub.databases["d"]
    assert catalog.databases() == ["default"]
    catalog.repair()
    assert catalog.tables("d") == ["t"]
    assert stub.partition_values("d.t") == [["a"], ["b/c"]]
    stub.tables["d", "t"] = {**stub.table("d.t"), 9: thrift.of_mapping({"table_type": "PAIMON"})}
    catalog.repair("d.t")
    assert stub.parameters("d.t")["bucket"] == "1"
    with pytest.raises(TableNotFoundError):
        catalog.repair("d.none")
    with pytest.raises(DatabaseNotFoundError):
        catalog.repair("none")


def test_a_table_is_not_renamed_into_another_store(catalog, stub, tmp_path):
    catalog.create_table("d.t", COLUMNS)
    catalog.create_database("far", location="memory://far/away")
    with pytest.raises(UnsupportedError, match="in another store"):
        catalog.rename_table("d.t", "far.t")
    assert catalog.tables("d") == ["t"]


def test_names_are_lower_case(catalog):
    with pytest.raises(UsageError, match="lower case"):
        catalog.create_database("Big")
    with pytest.raises(UsageError, match="lower case"):
        catalog.create_table("d.Big", COLUMNS)


# -- failures -------------------------------------------------------------------------------------------------------


def _run(catalog, stub):
    """Every verb that changes something, again and again until done, as a careful user would."""
    for attempt in range(3):
        try:
            if "t" not in catalog.tables("d"):
                try:
                    catalog.create_table("d.t", COLUMNS, **KEYED, options=PARTITIONED)
                except AlreadyExistsError:
                    catalog.repair("d.t")
            table = catalog.table("d.t")
            if "z" not in table.schema.names:
                table.alter(AddColumn("z", "INT"))
            return table
        except StorageError:
            continue
    raise AssertionError("three attempts failed")


@pytest.mark.parametrize("fault", ["reset", "lost", "half", "garbage", "failed"])
@pytest.mark.parametrize(
    "call", ["get_table_req", "create_table", "alter_table_with_environment_context", "get_all_tables", "get_database"]
)
def test_a_failing_server_loses_nothing(catalog, stub, call, fault):
    stub.fail(call, fault)
    table = _run(catalog, stub)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PaimonWarning)
        stub.fail("add_partitions_req", fault)
        table.write_arrow(ROWS)
    assert catalog.table("d.t").scan().count() == 2
    assert [name for name, _ in stub.columns("d.t")] == ["k", "v", "z"]
    catalog.repair("d.t")
    assert stub.partition_values("d.t") == [["a"], ["b/c"]]
    stub.fail("drop_table", fault)
    for _ in range(2):
        try:
            catalog.drop_table("d.t", missing_ok=True)
        except StorageError:
            continue
    assert catalog.tables("d") == []
    catalog.create_table("d.t", COLUMNS)


def test_after_a_lost_answer_the_current_state_is_read(catalog, stub):
    stub.fail("create_table", "lost")
    assert catalog.create_table("d.t", COLUMNS).scan().count() == 0
    stub.fail("alter_table_with_environment_context", "lost")
    catalog.table("d.t").alter(AddColumn("z", "INT"))
    stub.fail("alter_table_with_environment_context", "lost")
    catalog.rename_table("d.t", "d.u")
    stub.fail("drop_table", "lost")
    catalog.drop_table("d.u")
    stub.fail("create_database", "lost")
    catalog.create_database("e")
    stub.fail("drop_database", "lost")
    catalog.drop_database("e")
    assert catalog.databases() == ["d", "default"]


def test_a_request_that_may_still_arrive_is_an_unknown_outcome(catalog, stub, tmp_path):
    stub.fail("create_table", "reset")
    with pytest.raises(StorageUnknownError, match=r"repair\('d.t'\) registers"):
        catalog.create_table("d.t", COLUMNS)
    with pytest.raises(AlreadyExistsError, match="repair"):
        catalog.create_table("d.t", COLUMNS)
    catalog.repair("d.t")
    assert catalog.table("d.t").scan().count() == 0


def test_a_refused_table_leaves_no_files(catalog, stub, tmp_path):
    stub.fail("create_table", "failed")
    with pytest.raises(StorageError, match="database of the metastore is away"):
        catalog.create_table("d.t", COLUMNS)
    assert not (tmp_path / "w" / "d.db" / "t").exists()
    catalog.create_table("d.t", COLUMNS)


def test_a_commit_stands_if_its_partitions_cannot_be_reported(catalog, stub):
    table = catalog.create_table("d.t", COLUMNS, **KEYED, options=PARTITIONED)
    stub.fail("add_partitions_req", "failed")
    with pytest.warns(PaimonWarning, match=r"repair\('d.t'\)"):
        table.write_arrow(ROWS)
    assert catalog.table("d.t").scan().count() == 2
    catalog.repair("d.t")
    assert stub.partition_values("d.t") == [["a"], ["b/c"]]


def test_dropping_a_table_with_a_wrong_location_deletes_no_foreign_directory(catalog, stub, tmp_path):
    catalog.create_table("d.t", COLUMNS)
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "f").write_text("not yours")
    record = stub.table("d.t")
    record[7] = (thrift.STRUCT, {**thrift.inner(record, 7), 2: thrift.of_text(f"file:{tmp_path}/victim")})
    catalog.drop_table("d.t")
    assert (tmp_path / "victim" / "f").exists()


def test_an_interrupted_drop_is_completed_by_the_next_one(catalog, stub, tmp_path):
    table = catalog.create_table("d.t", COLUMNS)
    table.write_arrow(ROWS)
    (tmp_path / "w" / "d.db" / "t" / "schema" / "schema-0").unlink()
    del stub.tables["d", "t"]
    catalog.drop_table("d.t")
    assert not (tmp_path / "w" / "d.db" / "t").exists()
    with pytest.raises(TableNotFoundError):
        catalog.drop_table("d.t")


def test_other_servers_take_over_from_a_failed_one(tmp_path, stub):
    other = StubMetastore()
    other.databases, other.tables = stub.databases, stub.tables
    settings = {"metastore": "hive", "uri": f"thrift://127.0.0.1:1,{stub.uri},{other.uri}"}
    catalog = Catalog.open(tmp_path / "w", settings, env=env())
    catalog.create_database("d")
    catalog.create_table("d.t", COLUMNS)
    stub.close()
    assert catalog.tables("d") == ["t"]
    other.close()
    with pytest.raises(StorageError, match="no metastore of .* answered") as caught:
        catalog.tables("d")
    assert caught.value.transient


def test_a_restarted_server_is_called_again(catalog, stub):
    catalog.create_table("d.t", COLUMNS)
    stub.drop_connections()
    catalog.table("d.t").alter(AddColumn("z", "INT"))
    stub.drop_connections()
    catalog.rename_table("d.t", "d.u")
    assert stub.columns("d.u")[-1] == ("z", "int")


def test_a_server_that_is_not_a_metastore_is_an_error(tmp_path, stub):
    stub.fail("set_ugi", *["garbage"] * 4)
    with pytest.raises(StorageError, match="Hive Metastore"):
        Catalog.open(tmp_path / "w", {"metastore": "hive", "uri": stub.uri}, env=env())


# -- options --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"hive.metastore.sasl.enabled": "true"}, "SASL"),
        ({"security.kerberos.login.keytab": "/k"}, "Kerberos"),
        ({"hive.metastore.use.SSL": "true"}, "TLS"),
        ({"metastore.client.class": "com.aws.Glue"}, "only Hive's own protocol"),
        ({"hive.metastore.client.auth.mode": "PLAIN"}, "authentication"),
        ({"format-table.enabled": "true"}, "only Paimon tables"),
        ({"client-pool-cache.keys": "ugi"}, "connections"),
    ],
)
def test_unsupported_options_are_refused_by_name(tmp_path, options, match):
    with pytest.raises(UnsupportedError, match=match):
        Catalog.open(tmp_path / "w", {"metastore": "hive", "uri": "thrift://localhost:1", **options}, env=env())
    assert not (tmp_path / "w").exists()


def site_of(tmp_path, text):
    (tmp_path / "conf").mkdir(exist_ok=True)
    (tmp_path / "conf" / "hive-site.xml").write_text(text)
    return {"metastore": "hive", "hive-conf-dir": str(tmp_path / "conf")}


def with_properties(**properties):
    lines = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in properties.items())
    return f'<?xml version="1.0"?>\n<?xml-stylesheet href="c.xsl"?><configuration>{"".join(lines)}</configuration>'


def test_hive_site_supplies_missing_options(tmp_path, stub):
    host, port = stub.uri.removeprefix("thrift://").split(":")
    told = {
        "hive.metastore.uris": "thrift://${the.host}:${the.port}", "the.host": host, "the.port": port,
        "hive.metastore.sasl.enabled": "false", "hive.metastore.kerberos.principal": "hive/_HOST@REALM",
        "hive.metastore.client.socket.timeout": "20s", "javax.jdo.option.ConnectionPassword": "sesame", "un.known": "${env.X}",
    }  # fmt: skip
    options = site_of(tmp_path, with_properties(**told))
    catalog = Catalog.open(tmp_path / "w", options, env=env())
    catalog.create_database("d")
    catalog.create_table("d.t", pa.schema([("k", pa.int64())])).write_arrow(pa.table({"k": [1]}))
    assert catalog.table("d.t").scan().count() == 1
    assert "sesame" not in repr(catalog) + repr(catalog._metastore) + str(catalog._metastore.options)
    options["uri"] = "thrift://127.0.0.1:1"
    with pytest.raises(StorageError, match="127.0.0.1:1"):
        Catalog.open(tmp_path / "w", options, env=env()).databases()


def test_a_final_property_of_hive_site_cannot_be_overridden(tmp_path, stub):
    text = (
        f"<configuration><property><name>hive.metastore.uris</name><value>{stub.uri}</value><final>true</final></property>"
        "<property><name>hive.metastore.uris</name><value>thrift://other:1</value></property></configuration>"
    )
    assert Catalog.open(tmp_path / "w", site_of(tmp_path, text), env=env()).databases() is not None


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("<configuration>", "not a configuration of Hadoop"),
        ("<html/>", "root is <html>"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><configuration/>', "entities"),
        (with_properties(**{"hive.metastore.uris": "${hive.metastore.uris}"}), "refers to itself"),
        (with_properties(other="x"), "hive.metastore.uris in the hive-site.xml"),
    ],
)
def test_an_invalid_hive_site_is_refused(tmp_path, text, match):
    with pytest.raises(OptionError, match=match):
        Catalog.open(tmp_path / "w", site_of(tmp_path, text), env=env())
    assert not (tmp_path / "w").exists()


def test_a_missing_hive_site_is_named(tmp_path):
    with pytest.raises(OptionError, match=r"hive-conf-dir: .*none/hive-site.xml cannot be read"):
        Catalog.open(tmp_path / "w", {"metastore": "hive", "hive-conf-dir": str(tmp_path / "none")}, env=env())


def test_unsupported_settings_of_hive_site_are_refused(tmp_path):
    text = with_properties(**{"hive.metastore.uris": "thrift://h:1", "hive.metastore.sasl.enabled": "true"})
    with pytest.raises(UnsupportedError, match="SASL"):
        Catalog.open(tmp_path / "w", site_of(tmp_path, text), env=env())


@pytest.mark.parametrize(
    "options",
    [
        {"uri": ""}, {"uri": "localhost:9083"}, {"uri": "thrift://u:sesame@h:1"}, {"uri": "thrift://h:x"},
        {"table.type": "both"}, {"client-pool-size": "0"}, {"lock.enabled": "maybe"}, {"locaton-in-properties": "true"},
        {"hive.metastore.client.socket.timeout": "soon"}, {"lock.type": "zookeeper"},
    ],
)  # fmt: skip
def test_invalid_values_of_options_are_refused(tmp_path, options):
    with pytest.raises(OptionError) as caught:
        Catalog.open(tmp_path / "w", {"metastore": "hive", "uri": "thrift://localhost:1", **options}, env=env())
    assert "sesame" not in str(caught.value)
    assert not (tmp_path / "w").exists()


def test_no_secret_is_shown_or_sent(tmp_path, stub):
    settings = {"metastore": "hive", "uri": stub.uri, "s3.secret-key": "sesame", "hive.metastore.x.password": "sesame"}
    catalog = Catalog.open(tmp_path / "w", settings, env=env())
    catalog.create_database("d")
    table = catalog.create_table("d.t", COLUMNS)
    for thing in (catalog, table, catalog._metastore):
        assert b"sesame" not in pickle.dumps(thing) and "sesame" not in repr(thing)
    assert pickle.loads(pickle.dumps(catalog)).table("d.t").scan().count() == 0
    stub.close()
    with pytest.raises(PaimonError) as caught:
        catalog.tables("d")
    assert "sesame" not in str(caught.value)


# -- places ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "warehouse", "location", "path"),
    [
        ("/w", "/w", "file:/w/d.db/t", "/w/d.db/t"),
        ("/w", "/w", "file:///w/d.db/a%20b/", "/w/d.db/a%20b"),
        ("/w", "/w", "/w2/t", "/w2/t"),
        ("memory://b/w", "memory://b/w", "memory://b/w/d.db/t", "memory://b/w/d.db/t"),
        ("memory://b/w", "memory://b/w", "memory://b/w2/t", "memory://b/w2/t"),
    ],
)
def test_a_location_is_a_path(given, warehouse, location, path):
    store = MemoryStore()
    found, where = Places(store, warehouse, given, {}).open(location)
    assert (where, found is store) == (path, True) or where == path == "/w2/t"


def test_a_file_url_with_a_host_is_refused():
    with pytest.raises(UnsupportedError, match="names a host"):
        Places(MemoryStore(), "/w", "/w", {}).open("file://host/w/t")


def test_a_clone_is_registered_after_its_files_are_copied(catalog, stub, opened):
    catalog.create_table("d.t", COLUMNS, **KEYED, options=PARTITIONED).write_arrow(ROWS)
    stub.fail("create_table", "failed")
    with pytest.raises(StorageError):
        catalog.clone_table("d.t", "d.c")
    assert catalog.tables("d") == ["t"]
    opened().clone_table("d.t", "d.c")
    assert catalog.tables("d") == ["c", "t"] and stub.partition_values("d.c") == stub.partition_values("d.t")
    assert catalog.table("d.c").to_arrow().sort_by("k").equals(catalog.table("d.t").to_arrow().sort_by("k"))
    catalog.drop_table("d.c")
    assert catalog.table("d.t").count() == 2


def test_partitions_are_reported_some_at_a_time_and_each_once(catalog, stub, monkeypatch):
    monkeypatch.setattr(verbs, "_PARTITIONS_AT_ONCE", 2)
    asked, add = [], StubMetastore._add_partitions_req

    def count(self, values):
        asked.append([thrift.texts(record, 1) for record in thrift.items(values[1], 3)])
        return add(self, values)

    monkeypatch.setattr(StubMetastore, "_add_partitions_req", count)
    table = catalog.create_table("d.t", COLUMNS, **KEYED, options=PARTITIONED)
    table.write_arrow(pa.table({"p": list("abcde"), "k": range(5), "v": list("abcde")}))
    assert [len(each) for each in asked] == [2, 2, 1]
    assert sorted(name for each in asked for name in each) == stub.partition_values("d.t") == [[name] for name in "abcde"]


@pytest.mark.parametrize(("name", "is_fine"), [(ALREADY_EXISTS, True), ("MetaException", False)])
def test_partitions_that_another_process_reported_are_no_failure(catalog, monkeypatch, name, is_fine):
    def refuse(self, values):
        raise Refuse(name, "the partition is there")

    monkeypatch.setattr(StubMetastore, "_add_partitions_req", refuse)
    table = catalog.create_table("d.t", COLUMNS, **KEYED, options=PARTITIONED)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", PaimonWarning)
        table.write_arrow(ROWS)
    assert table.count() == 2 and bool(said) is not is_fine


@pytest.mark.parametrize("refuses", [False, True])
def test_a_schema_that_is_not_published_is_taken_back_from_the_metastore(catalog, stub, monkeypatch, refuses):
    table = catalog.create_table("d.t", COLUMNS)

    def fail(*_, **__):
        stub.refused_changes = refuses
        raise StorageError("the store is away", operation="put")

    with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", PaimonWarning)
        patch.setattr(LocalStore, "put_new", fail)
        with pytest.raises(StorageError, match="the store is away"):
            table.alter(AddColumn("z", "INT"))
    assert [name for name, _ in stub.columns("d.t")] == (["p", "k", "v", "z"] if refuses else ["p", "k", "v"])
    assert ["call Catalog.repair('d.t')" in str(one.message) for one in said] == [True] * refuses
    stub.refused_changes = False
    catalog.repair("d.t")
    assert [name for name, _ in stub.columns("d.t")] == ["p", "k", "v"] == list(catalog.table("d.t").schema.names)


@pytest.mark.parametrize(("scheme", "moves"), [("s3", False), ("oss", False), ("gs", False), ("hdfs", True), ("viewfs", True)])
def test_only_stores_that_move_directories_rename_managed_tables(scheme, moves):
    place, store = f"{scheme}://h/w/d.db/", MemoryStore()
    tables = types.SimpleNamespace(places=types.SimpleNamespace(open=lambda url: (store, url)))
    if moves:
        _check_move(tables, "d.t", place + "t", place + "u")
        store.put_new(place + "u/schema/schema-0", b"")
        with pytest.raises(AlreadyExistsError):
            _check_move(tables, "d.t", place + "t", place + "u")
    else:
        with pytest.raises(UnsupportedError, match=f"{scheme} cannot move directories"):
            _check_move(tables, "d.t", place + "t", place + "u")
