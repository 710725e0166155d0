"""Tables published to Iceberg's own REST server and to a Hive Metastore, as pyiceberg reads them from there."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from interop.store_servers import start, stop

from paimon_py import AddColumn, Catalog, DropColumn, Schema, SetOption
from paimon_py.env import Env
from paimon_py.metastores.hive.connection import Client
from paimon_py.metastores.hive.records import parameters
from paimon_py.metastores.hive.settings import HiveSettings
from paimon_py.metastores.hive.verbs import HiveVerbs
from paimon_py.metastores.metastore import TableName

pytest.importorskip("pyiceberg")
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import StaticTable

SCRIPT = Path(__file__).parents[2].parent / "shared" / "iceberg" / "rest_server.sh"
pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")]
COLUMNS = Schema([("id", "BIGINT"), ("v", "STRING"), ("price", "DECIMAL(5, 2)")])
KEEPS = {"snapshot.num-retained.min": "100", "snapshot.num-retained.max": "100"}
COMMITS = """
import sys
from paimon_py import Catalog
table = Catalog.open(sys.argv[1]).table("db.t")
for n in range(5):
    table.write_arrow([{"id": int(sys.argv[2]) * 100 + n}])  # may warn that another commit was faster
"""


@pytest.fixture(scope="module")
def rest(tmp_path_factory):
    if not SCRIPT.exists():
        pytest.skip("needs ../shared/iceberg")
    place = tmp_path_factory.mktemp("iceberg-rest")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    subprocess.run(["sh", str(SCRIPT), "start", str(place), port], check=True, capture_output=True, timeout=570)
    yield f"http://localhost:{port}"
    subprocess.run(["sh", str(SCRIPT), "stop", str(place)], check=True, capture_output=True, timeout=60)


@pytest.fixture(scope="module")
def hive(tmp_path_factory):
    if "PAIMON_TEST_HMS" in os.environ:
        yield os.environ["PAIMON_TEST_HMS"]
        return
    place = tmp_path_factory.mktemp("iceberg-hms")
    yield start("hms", place)["PAIMON_TEST_HMS"]
    stop("hms", place)


def table_of(warehouse, options, columns=COLUMNS):
    catalog = Catalog.open(str(warehouse))
    catalog.create_database("db", exist_ok=True)
    return catalog.create_table("db.t", columns, options={**KEEPS, **options})


def rest_options(uri):
    return {"metadata.iceberg.storage": "rest-catalog", "metadata.iceberg.rest.uri": uri, "metadata.iceberg.table": f"t{uuid.uuid4().hex}"}


def hive_options(uri):
    names = f"ice{uuid.uuid4().hex};other{uuid.uuid4().hex}"
    return {"metadata.iceberg.storage": "hive-catalog", "metadata.iceberg.uri": uri, "metadata.iceberg.database": names}


def of_rest(options):
    catalog = RestCatalog("x", uri=options["metadata.iceberg.rest.uri"])
    return catalog.load_table(f"db.{options['metadata.iceberg.table']}")


def of_hive(options):
    settings = HiveSettings.of({"uri": options["metadata.iceberg.uri"]}, "")
    verbs = HiveVerbs(Client(settings.servers, Env()))
    places = {
        parameters(verbs.table(TableName(name, "t")))["metadata_location"]
        for name in options["metadata.iceberg.database"].split(";")
    }
    (place,) = places
    return StaticTable.from_metadata(place)


def shown(found):
    """The snapshot that a reader of a catalog sees, and the ids of its rows; every snapshot that is listed can be read."""
    for snapshot in found.metadata.snapshots:
        found.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
    return found.metadata.current_snapshot_id, sorted(found.scan().to_arrow()["id"].to_pylist())


def stored(table):
    return table.snapshot().id, sorted(table.to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("kind", ["rest", "hive"])
def test_readers_of_the_catalog_follow_the_table(kind, tmp_path, request):
    uri = request.getfixturevalue(kind)
    options, read = (rest_options(uri), of_rest) if kind == "rest" else (hive_options(uri), of_hive)
    table = table_of(tmp_path / "w", options)

    def follows(result=None):
        assert result is None or result.warnings == ()
        assert shown(read(options)) == stored(table)

    follows(table.write_arrow([{"id": 1}, {"id": 2}]))
    follows(table.write_arrow([{"id": 3}]))
    follows(table.delete("id = 1"))
    table.create_tag("one", snapshot_id=1)
    if kind == "rest":
        assert read(options).metadata.refs["one"].snapshot_id == 1
    table.alter(AddColumn("n", "INT"), AddColumn("m", "ARRAY<INT>"))
    follows(table.write_arrow([{"id": 4, "n": 7}]))
    table.alter(SetOption("a.b", "c"), DropColumn("v"))
    follows(table.write_arrow([{"id": 5, "n": 7}]))
    table.rollback_to(2)
    follows()
    follows(table.write_arrow([{"id": 6}]))
    table.publish_iceberg()
    follows()
    follows(table.write_arrow([{"id": 7}]))
    catalog = Catalog.open(str(tmp_path / "w"))
    catalog.drop_table("db.t")
    table = catalog.create_table("db.t", COLUMNS, options=options)
    follows(table.write_arrow([{"id": 8}]))


def test_deletion_vectors_of_version_3_reach_the_readers_of_a_rest_catalog(rest, tmp_path):
    options = rest_options(rest) | {"metadata.iceberg.format-version": "3", "deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": "true"}
    table = table_of(tmp_path / "w", options)
    table.write_arrow([{"id": n} for n in range(6)])
    assert table.delete("id in (2, 4)").warnings == ()
    table.write_arrow([{"id": 9}])
    assert shown(of_rest(options)) == stored(table)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["rest", "hive"])
def test_after_processes_committed_at_once_the_next_commit_publishes_all_rows(kind, tmp_path, request):
    uri = request.getfixturevalue(kind)
    options, read = (rest_options(uri), of_rest) if kind == "rest" else (hive_options(uri), of_hive)
    table = table_of(tmp_path / "w", options)

    def commits(number):
        command = [sys.executable, "-W", "ignore", "-c", COMMITS, str(tmp_path / "w"), str(number)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(commits, range(4)))
    assert [one.returncode for one in done] == [0] * 4, [one.stderr[-600:] for one in done]
    assert table.refresh().write_arrow([{"id": 1000}]).warnings == ()
    found = read(options)
    assert shown(found) == stored(table)
    ids = [one.snapshot_id for one in found.metadata.snapshots]  # begins anew where a commit precedes its predecessor's
    assert ids == list(range(ids[0], 22))
