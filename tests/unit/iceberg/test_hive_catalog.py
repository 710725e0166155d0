"""The entries of a Hive Metastore after each verb, and after calls that failed."""

from __future__ import annotations

import json
import warnings

import pyarrow as pa
import pytest
from unit.catalogs.hive_stub import StubMetastore
from unit.iceberg.reader import rows
from unit.iceberg.support import World, data, stored

from paimon_py import AddColumn, AlreadyExistsError, PaimonWarning, SetOption, StorageError
from paimon_py.metastores.hive import thrift

DIRECTORY = "/w/iceberg/d/t/metadata"


@pytest.fixture(params=[2, 3, 4])
def stub(request):
    made = StubMetastore(version=request.param)
    yield made
    made.close()


def world(stub, **options):
    return World(**{"metadata.iceberg.storage": "hive-catalog", "metadata.iceberg.uri": stub.uri, **options})


def entry(stub, made, name="d.t"):
    """The snapshot that the entry shows, and its rows."""
    value = json.loads(made.store.get(stub.parameters(name)["metadata_location"]))
    return value["current-snapshot-id"], rows(made.store, value)


def test_the_first_commit_creates_the_entry_and_each_later_one_changes_it(stub):
    made = world(stub)
    for number in (1, 2):
        assert made.table.write_arrow(data(number)).warnings == ()
        assert entry(stub, made) == (number, stored(made.table))
    record = stub.table("d.t")
    told = stub.parameters("d.t")
    assert told["table_type"] == "ICEBERG" and told["EXTERNAL"] == "TRUE"
    assert told["previous_metadata_location"] == f"{DIRECTORY}/v1.metadata.json"
    assert thrift.text(record, 12) == "EXTERNAL_TABLE" and thrift.text(record, 99) == "of a later version"
    assert thrift.text(thrift.inner(record, 7), 2) == "/w/iceberg/d/t"
    assert thrift.text(stub.databases["d"], 3) == "/w/iceberg/d"
    assert stub.columns("d.t") == [("k", "bigint"), ("v", "string")]
    before = len(stub.calls)
    made.table.write_arrow(data(3))
    assert stub.calls[before:] == [stub.calls[before], "alter_table_with_environment_context"]
    assert made.table.iceberg().catalog_id == 3


def test_columns_follow_the_schema_unless_the_metastore_refuses(stub):
    made = world(stub)
    made.table.write_arrow(data(1))
    made.table.alter(AddColumn("n", "INT"))
    made.table.write_arrow(data(2))
    assert stub.columns("d.t") == [("k", "bigint"), ("v", "string"), ("n", "int")]
    made.table.alter(AddColumn("m", "INT"))
    stub.refused_changes = True
    with pytest.warns(PaimonWarning, match="refuses the change"):
        made.table.write_arrow(data(3))
    assert entry(stub, made)[0] == 2
    stub.refused_changes = False
    refuse_columns_once(stub)
    assert made.table.write_arrow(data(4)).warnings == ()
    assert entry(stub, made)[0] == 4
    assert len(stub.columns("d.t")) == 3


def refuse_columns_once(stub):
    alter = stub._alter_table_with_environment_context

    def refusing(values):
        stub._alter_table_with_environment_context = alter
        stub.refused_changes = True
        try:
            return alter(values)
        finally:
            stub.refused_changes = False

    stub._alter_table_with_environment_context = refusing


def test_all_databases_of_the_option_get_an_entry(stub):
    made = world(stub, **{"metadata.iceberg.database": "e;F", "metadata.iceberg.table": "U"})
    made.table.write_arrow(data(1))
    made.table.write_arrow(data(2))
    assert sorted(stub.tables) == [("e", "u"), ("f", "u")]
    assert entry(stub, made, "e.u") == entry(stub, made, "f.u") == (2, [[1, "a"], [2, "a"]])


def test_a_rollback_resets_the_entry_and_a_tag_does_not_change_it(stub):
    made = world(stub)
    for number in (1, 2, 3):
        made.table.write_arrow(data(number))
    made.table.create_tag("x")
    assert entry(stub, made)[0] == 3
    made.table.rollback_to(2)
    assert entry(stub, made) == (2, [[1, "a"], [2, "a"]])
    made.table.write_arrow(data(9))
    assert entry(stub, made) == (3, [[1, "a"], [2, "a"], [9, "a"]])


@pytest.mark.parametrize(
    ("told", "what"),
    [
        ({"table_type": "ICEBERG", "metadata_location": "/w/other/metadata/v1.metadata.json"}, "another Iceberg table"),
        ({"table_type": "PAIMON"}, "a table of type PAIMON"),
        ({}, "a table of type Hive"),
    ],
)
def test_an_entry_of_something_else_is_left_alone(stub, told, what):
    made = world(stub)
    made.table.write_arrow(data(1))
    theirs = {**stub.table("d.t"), 9: thrift.of_mapping(told)}
    stub.tables["d", "t"] = theirs
    with pytest.warns(PaimonWarning, match=what):
        made.table.write_arrow(data(2))
    assert stub.table("d.t") == theirs
    with pytest.raises(AlreadyExistsError, match=r"metadata\.iceberg\.table"):
        made.table.publish_iceberg()
    made.table.alter(SetOption("metadata.iceberg.table", "u"))
    made.table.publish_iceberg()
    assert entry(stub, made, "d.u") == (2, [[1, "a"], [2, "a"]])


@pytest.mark.parametrize("fault", ["reset", "lost", "half", "garbage", "failed", "broken"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_call_that_fails_fails_no_commit_and_the_next_commit_heals(fault, is_first):
    for version, reading in ((2, "get_table"), (4, "get_table_req")):
        for call in (reading, "create_table" if is_first else "alter_table_with_environment_context"):
            stub = StubMetastore(version=version)
            made = world(stub)
            if not is_first:
                made.table.write_arrow(data(1))
            stub.fail(call, *[fault] * 20)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PaimonWarning)
                told = made.table.write_arrow(data(2)).warnings
            stub.faults.clear()
            if told:
                assert "not published to its catalog" in told[0]
            else:  # done, and found again after its answer was lost
                assert fault in ("lost", "half") and entry(stub, made) == (made.table.snapshot().id, stored(made.table))
            assert made.table.write_arrow(data(3)).warnings == ()
            assert entry(stub, made) == (made.table.snapshot().id, stored(made.table))
            stub.close()


def test_an_unreachable_metastore_gives_a_warning_and_publish_iceberg_raises(stub):
    made = world(stub)
    made.table.write_arrow(data(1))
    stub.close()
    with pytest.warns(PaimonWarning, match="not published to its catalog"):
        result = made.table.write_arrow(data(2))
    assert result.snapshot_id == 2 and len(result.warnings) == 1
    with pytest.raises(StorageError):
        made.table.publish_iceberg()


def test_types_are_those_of_hive(stub):
    columns = pa.schema([("b", pa.bool_()), ("d", pa.decimal128(9, 2)), ("l", pa.list_(pa.int32())), ("t", pa.date32())])
    made = World(columns, **{"metadata.iceberg.storage": "hive-catalog", "metadata.iceberg.uri": stub.uri})
    made.table.write_arrow(pa.table({"b": [True], "d": [None], "l": [[1]], "t": [None]}, schema=columns))
    assert stub.columns("d.t") == [("b", "boolean"), ("d", "decimal(9,2)"), ("l", "array<int>"), ("t", "date")]
