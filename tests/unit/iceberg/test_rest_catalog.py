"""What readers of a REST catalog of Iceberg see after each verb, and after a publication that failed."""

from __future__ import annotations

import copy

import pytest
from unit.iceberg.reader import rows, version_of
from unit.iceberg.rest_server import FakeRestServer
from unit.iceberg.support import COLUMNS, PATH, World, data, opened, stored

from paimon_py import (
    AddColumn,
    AlreadyExistsError,
    OptionError,
    PaimonWarning,
    SetOption,
    StorageError,
    UnsupportedError,
    UsageError,
)
from paimon_py.testing.fault_store import for_each_fault

ON = {"metadata.iceberg.storage": "rest-catalog", "metadata.iceberg.rest.uri": "http://server"}
DIRECTORY = "/w/iceberg/d/t/metadata"


@pytest.fixture
def server(monkeypatch):
    made = FakeRestServer()
    monkeypatch.setattr("paimon_py.iceberg.catalogs.rest.HttpSender", lambda **_: made)
    return made


def world(server, **options):
    made = World(**{**ON, **options})
    server.store = made.store
    return made


def seen(server, store, name=("d", "t")):
    """The snapshot that readers of the server see, and its rows; all that the server lists can be read."""
    value = server.tables[name]
    assert value["refs"]["main"]["snapshot-id"] == value["current-snapshot-id"]
    for snapshot in value["snapshots"]:
        rows(store, value, snapshot["snapshot-id"])
    return value["current-snapshot-id"], rows(store, value)


def test_the_first_commit_registers_and_each_later_one_adds_a_snapshot(server):
    made = world(server)
    for number in (1, 2, 3):
        assert made.table.write_arrow(data(number)).warnings == ()
        assert seen(server, made.store) == (number, stored(made.table))
    value = server.tables["d", "t"]
    assert [one["snapshot-id"] for one in value["snapshots"]] == [1, 2, 3]
    assert value["properties"]["gc.enabled"] == "false"
    asked = [request for request in server.requests if "register" in request or "DELETE" in request]
    assert asked == ["POST /v1/namespaces/d/register"] * 2  # the first found no namespace
    before = len(server.requests)
    made.table.write_arrow(data(4))
    assert len(server.requests) - before == 2


def test_new_schemas_get_the_ids_of_the_server_and_options_alone_make_none(server):
    made = world(server)
    made.table.write_arrow(data(1))
    made.table.alter(SetOption("a.b", "c"))
    made.table.write_arrow(data(2))
    made.table.alter(AddColumn("n", "INT"))
    made.table.write_arrow(data(3))
    value = server.tables["d", "t"]
    assert [one["schema-id"] for one in value["schemas"]] == [0, 1]
    assert [one["schema-id"] for one in value["snapshots"]] == [0, 0, 1]
    assert value["current-schema-id"] == 1


def test_tags_are_refs_and_expired_snapshots_are_removed(server):
    made = world(server, **{"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"})
    for number in (1, 2, 3):
        made.table.write_arrow(data(number))
    made.table.create_tag("t", snapshot_id=2)
    assert server.tables["d", "t"]["refs"]["t"] == {"snapshot-id": 2, "type": "tag"}
    made.table.delete_tag("t")
    assert set(server.tables["d", "t"]["refs"]) == {"main"}
    assert [one["snapshot-id"] for one in server.tables["d", "t"]["snapshots"]] == [2, 3]


def test_a_rollback_and_the_following_commits_are_published(server):
    made = world(server)
    for number in (1, 2, 3):
        made.table.write_arrow(data(number))
    made.table.rollback_to(2)
    assert seen(server, made.store) == (2, [[1, "a"], [2, "a"]])
    assert not any("DELETE" in request for request in server.requests)
    made.table.write_arrow(data(9))
    assert seen(server, made.store) == (3, [[1, "a"], [2, "a"], [9, "a"]])
    assert made.table.write_arrow(data(10)).warnings == ()
    assert seen(server, made.store) == (4, stored(made.table))


def test_an_unreachable_server_fails_no_commit_and_the_next_one_publishes_everything(server):
    made = world(server)
    made.table.write_arrow(data(1))
    server.faults = dict.fromkeys(range(len(server.requests), len(server.requests) + 40), "unsent")
    for number in (2, 3):
        with pytest.warns(PaimonWarning, match="not published to its catalog"):
            result = made.table.write_arrow(data(number))
        assert result.snapshot_id == number and "http://server" in result.warnings[0]
    assert seen(server, made.store)[0] == 1
    with pytest.raises(StorageError, match="nobody there"):
        made.table.publish_iceberg()
    server.faults = {}
    assert made.table.write_arrow(data(4)).warnings == ()
    assert seen(server, made.store) == (4, stored(made.table))


def test_files_that_the_server_still_names_stay_while_it_is_away(server):
    made = world(server, **{"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"})
    made.table.write_arrow(data(1))
    server.faults = dict.fromkeys(range(len(server.requests), len(server.requests) + 99), "unsent")
    for number in (2, 3):
        with pytest.warns(PaimonWarning):
            made.table.write_arrow(data(number))
    assert seen(server, made.store) == (1, [[1, "a"]])
    server.faults = {}
    made.table.publish_iceberg()
    assert seen(server, made.store) == (3, stored(made.table))


def test_a_table_of_somebody_else_is_left_alone(server):
    other = World(**ON, **{"metadata.iceberg.database": "e"})
    server.store = other.store
    other.table.write_arrow(data(7))
    theirs = copy.deepcopy(server.tables["e", "t"])
    theirs["location"], theirs["snapshots"][0]["manifest-list"] = "/elsewhere/t", "/elsewhere/t/metadata/snap.avro"
    made = world(server)
    server.namespaces.add("d")
    server.tables["d", "t"] = theirs
    with pytest.warns(PaimonWarning, match="another table"):
        made.table.write_arrow(data(1))
    assert server.tables["d", "t"] == theirs
    with pytest.raises(AlreadyExistsError, match=r"metadata\.iceberg\.table"):
        made.table.publish_iceberg()
    made.table.alter(SetOption("metadata.iceberg.table", "u"))
    made.table.publish_iceberg()
    assert seen(server, made.store, ("d", "u")) == (1, [[1, "a"]])


def test_rows_of_an_iceberg_writer_go_and_that_is_said(server):
    made = world(server)
    made.table.write_arrow(data(1))
    value = server.tables["d", "t"]
    stranger = {**value["snapshots"][0], "snapshot-id": 77, "manifest-list": "/x/snap-77.avro"}
    value["snapshots"].append(stranger)
    value["refs"]["main"]["snapshot-id"] = value["current-snapshot-id"] = 77
    with pytest.warns(PaimonWarning, match="another writer"):
        made.table.write_arrow(data(2))
    assert seen(server, made.store) == (2, stored(made.table))


def test_a_table_that_is_created_again_replaces_the_one_before(server):
    made = world(server)
    for number in (1, 2, 3):
        made.table.write_arrow(data(number))
    options = made.table.options
    made.catalog.drop_table("d.t")
    again = made.catalog.create_table("d.t", COLUMNS, options=options)
    assert again.write_arrow(data(50)).warnings == ()
    assert seen(server, made.store) == (1, [[50, "a"]])


def test_deleted_metadata_is_rebuilt_with_a_warning(server):
    made = world(server)
    made.table.write_arrow(data(1))
    made.table.write_arrow(data(2))
    for status in made.store.list(DIRECTORY):
        made.store.delete(status.path)
    assert made.table.write_arrow(data(3)).warnings == ()
    assert seen(server, made.store) == (3, stored(made.table))


def test_a_late_publisher_reads_the_table_again(server):
    made = world(server)
    made.table.write_arrow(data(1))
    other = made.opened()

    def faster(method, path):
        if method == "POST" and path.endswith("/tables/t"):
            server.before = None
            other.write_arrow(data(3))

    server.before = faster
    assert made.table.write_arrow(data(2)).warnings == ()
    assert seen(server, made.store) == (3, stored(made.opened()))
    assert [one["snapshot-id"] for one in server.tables["d", "t"]["snapshots"]] == [1, 2, 3]


@pytest.mark.parametrize("fault", ["unsent", "lost", 500, 409, 400, 503])
def test_every_request_fails_in_turn_and_the_next_commit_heals(server, fault):
    made = world(server)
    made.table.write_arrow(data(1))
    made.table.write_arrow(data(2))
    before, tables = made.store, copy.deepcopy(server.tables)
    for number in range(9):
        store, server.tables = before.copy(), copy.deepcopy(tables)
        server.store, server.requests, server.faults = store, [], {number: fault}
        with pytest.warns(PaimonWarning) if fault in ("unsent", 500) and number < 2 else _quiet():
            opened(store, made.clock).write_arrow(data(3))
        assert seen(server, store)[0] in (2, 3)
        if len(server.requests) <= number:
            assert number > 2
            return
        server.faults = {}
        assert opened(store, made.clock).write_arrow(data(4)).warnings == ()
        assert seen(server, store) == (4, stored(opened(store)))


def _quiet():
    import contextlib
    import warnings

    @contextlib.contextmanager
    def quiet():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PaimonWarning)
            yield

    return quiet()


@pytest.mark.filterwarnings("ignore::paimon_py.PaimonWarning")
@pytest.mark.parametrize(
    "verb", [pytest.param("write", marks=pytest.mark.full), pytest.param("roll back", marks=pytest.mark.full), "publish"]
)
def test_the_process_ends_at_every_call_and_the_next_commit_heals(server, verb):
    made = world(server, **{"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"})
    for number in (1, 2, 3):
        made.table.write_arrow(data(number))
    before, tables = made.store, copy.deepcopy(server.tables)
    verbs = {
        "write": lambda table: table.write_arrow(data(4)),
        "roll back": lambda table: table.rollback_to(2),
        "publish": lambda table: table.publish_iceberg(),
    }

    def run(store):
        server.tables, server.store = copy.deepcopy(tables), store
        verbs[verb](opened(store))

    def check(store, outcome):
        server.store = store
        table = opened(store)
        if ("d", "t") in server.tables:
            value = server.tables["d", "t"]
            rows(store, value)
        if verb == "roll back":
            table.rollback_to(2)
            table = opened(store)
        table.write_arrow(data(50))
        assert seen(server, store) == (table.snapshot().id, stored(opened(store)))
        assert version_of(store, DIRECTORY) == opened(store).snapshot().id

    assert for_each_fault(before.copy, run, check) > 20


def test_the_state_and_the_doctor_report_what_the_catalog_shows(server):
    made = world(server)
    made.table.write_arrow(data(1))
    assert (made.table.iceberg().catalog_id, made.table.iceberg().problems) == (1, ())
    assert made.table.doctor() == []
    kept = copy.deepcopy(server.tables)
    made.table.write_arrow(data(2))
    server.tables = kept
    assert made.table.iceberg().catalog_id == 1
    (finding,) = made.table.doctor()
    assert (finding.code, finding.severity, finding.mend) == ("iceberg-metadata-wrong", "problem", "table.publish_iceberg()")
    assert "shows snapshot 1, not 2" in finding.places[0]
    made.table.publish_iceberg()
    assert made.table.doctor() == []


def test_the_doctor_reports_hidden_rows_and_lag_of_iceberg_readers():
    keyed = World(key=["k"])
    keyed.table.write_arrow(data(1))
    keyed.table.write_arrow(data(2))
    assert [(one.code, one.figure) for one in keyed.table.doctor()] == [("iceberg-readers-see-less", 1)]
    keyed.table.compact(full=True)
    assert keyed.table.doctor() == []
    late = World()
    late.table.write_arrow(data(1))
    late.table.alter(SetOption("metadata.iceberg.storage", "disabled"))
    late.table.write_arrow(data(2))
    late.table.alter(SetOption("metadata.iceberg.storage", "table-location"))
    assert [(one.code, one.figure) for one in late.table.doctor()] == [("iceberg-lags", 1)]
    late.table.publish_iceberg()
    assert late.table.doctor() == []
    late.store.delete("/w/d.db/t/metadata/v2.metadata.json")
    assert [one.code for one in late.table.doctor()] == ["iceberg-metadata-wrong"]


def test_a_credential_is_exchanged_for_a_token_and_never_shown(server):
    server.token = "tok-1234"
    made = world(server, **{"metadata.iceberg.rest.credential": "me:secret-99"})
    assert made.table.write_arrow(data(1)).warnings == ()
    server.token = "tok-5678"  # the old one is over
    assert made.table.write_arrow(data(2)).warnings == ()
    assert seen(server, made.store)[0] == 2
    assert "secret-99" not in repr(made.table) + repr(made.table.schema)
    plain = World(**ON, **{"metadata.iceberg.rest.token": "wrong-token"})
    server.store = plain.store
    with pytest.warns(PaimonWarning, match=r"rest\.token") as told:
        plain.table.write_arrow(data(1))
    assert "wrong-token" not in str(told[0].message)


def test_unreachable_catalogs_are_refused_when_the_table_is_created():
    with pytest.raises(OptionError, match=r"metadata\.iceberg\.rest\.uri"):
        World(**{"metadata.iceberg.storage": "rest-catalog"})
    with pytest.raises(OptionError, match=r"metadata\.iceberg\.uri"):
        World(**{"metadata.iceberg.storage": "hive-catalog"})
    with pytest.raises(UnsupportedError, match="sigv4"):
        World(**ON, **{"metadata.iceberg.rest.rest.sigv4-enabled": "true"})


def test_a_table_without_a_database_needs_a_name_for_it(tmp_path, server):
    made = world(server)
    assert isinstance(made.table.location, str) and made.table.location == PATH
    with pytest.raises(UsageError, match=r"metadata\.iceberg\.database"):
        from paimon_py.spec.iceberg import iceberg_names

        iceberg_names("/plain/t", made.table.schema)
