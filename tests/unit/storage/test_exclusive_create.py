"""Whether a server keeps the promise of `put_new` is tried with a file of its own, before a table is touched."""

import uuid

import pyarrow as pa
import pytest
from unit.storage.object_server import ObjectServer

from paimon_py import Catalog, Schema, StorageError, Table, UnsupportedError
from paimon_py.errors import StorageUnknownError
from paimon_py.metadata.root import TableRoot
from paimon_py.storage import exclusive_create as promise
from paimon_py.storage.fsspec_store import FsspecStore
from paimon_py.storage.locked_store import LockedStore
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.storage.open import open_store
from paimon_py.testing.store_suite import StoreSuite

pytest.importorskip("s3fs", reason='pip install "paimon-py[s3]"')
pytestmark = [
    # s3fs leaves its session to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture
def bucket():
    return f"bucket-{uuid.uuid4()}"


@pytest.fixture(params=["honest", "careless"])
def server(request):
    with ObjectServer(honours=request.param == "honest") as found:
        yield found


honest = pytest.mark.parametrize("server", ["honest"], indirect=True)
careless = pytest.mark.parametrize("server", ["careless"], indirect=True)


def options_of(server):
    return {"s3.endpoint": server.url, "s3.access-key": "a", "s3.secret-key": "b", "s3.path-style-access": "true",
            "s3.region": "r"}  # fmt: skip


def table_made_elsewhere(server, bucket):
    """A table as another writer left it."""
    server.honours, before = True, server.honours
    catalog = Catalog.open(f"s3://{bucket}/w", options_of(server))
    catalog.create_database("d")
    catalog.create_table("d.t", Schema([("k", "INT")])).write_arrow(pa.table({"k": pa.array([1], pa.int32())}))
    server.honours = before
    promise._answers.clear()
    server.requests.clear()
    return Table.open(f"s3://{bucket}/w/d.db/t", options_of(server))


@careless
def test_a_server_that_ignores_the_condition_is_refused_before_any_file_is_written(server, bucket):
    table = table_made_elsewhere(server, bucket)
    before = dict(server.objects)
    rows = pa.table({"k": pa.array([2], pa.int32())})
    for _ in range(2):
        with pytest.raises(UnsupportedError, match=r"(?s)ignores the condition.*'lock\.enabled'"):
            table.write_arrow(rows)
        for verb in (table.writer, lambda: table.delete("k = 1"), lambda: table.compact(full=True), table.analyze, table.truncate):
            with pytest.raises(UnsupportedError, match="lock.enabled"):
                verb()
    assert server.objects == before
    probes = [path for path in server.asked("PUT") if "/.probe." in path]
    assert len(probes) == 2 == len(server.asked("PUT")) and len(set(probes)) == 1
    assert server.asked("DELETE") == probes[:1]
    assert table.scan().to_arrow().num_rows == 1


@careless
def test_no_table_is_created_on_a_server_that_ignores_the_condition(server, bucket):
    catalog = Catalog.open(f"s3://{bucket}/w", options_of(server))
    with pytest.raises(UnsupportedError, match="could be lost"):
        catalog.create_database("d")
    assert server.objects == {}


@honest
def test_a_server_that_honours_the_condition_is_probed_once(server, bucket):
    table = table_made_elsewhere(server, bucket)
    for value in (2, 3):
        table.write_arrow(pa.table({"k": pa.array([value], pa.int32())}))
    other = Table.open(f"s3://{bucket}/w/d.db/t", options_of(server))
    other.write_arrow(pa.table({"k": pa.array([4], pa.int32())}))
    assert len([path for path in server.asked("PUT") if "/.probe." in path]) == 2
    assert not [key for key in server.objects if "/.probe." in key]
    assert table.scan().to_arrow().num_rows == 4


@honest
def test_credentials_that_may_not_delete_can_publish(server, bucket, monkeypatch):
    store, root = open_store(f"s3://{bucket}/w", options_of(server))
    monkeypatch.setattr(FsspecStore, "delete", lambda self, path: (_ for _ in ()).throw(StorageError("denied", path=path, operation="delete")))
    assert store.put_new(f"{root}/snapshot-1", b"1")


def test_the_clouds_themselves_are_not_probed():
    assert promise.is_known("s3fs", "https://s3.eu-west-1.amazonaws.com")
    assert promise.is_known("s3fs", "https://s3.cn-north-1.amazonaws.com.cn")
    assert promise.is_known("gcsfs", "https://storage.googleapis.com")
    assert promise.is_known("adlfs", "https://account.blob.core.windows.net/")
    for package, endpoint in (
        ("s3fs", "https://s3.example.com"), ("s3fs", "https://amazonaws.com.example.com"), ("s3fs", "http://127.0.0.1:1"),
        ("s3fs", "https://s3-outposts.eu-west-1.amazonaws.com"), ("gcsfs", "http://localhost:4443"), ("adlfs", ""),
        ("unknown", "https://s3.eu-west-1.amazonaws.com"), ("s3fs", "https://storage.googleapis.com"),
    ):  # fmt: skip
        assert not promise.is_known(package, endpoint)


def test_an_endpoint_of_the_environment_is_probed_like_one_of_an_option(monkeypatch):
    for endpoint, expected in ((None, promise.KNOWN), ("http://127.0.0.1:9", "http://127.0.0.1:9")):
        monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
        if endpoint:
            monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        store, root = open_store("s3://bucket/w", {"s3.access-key": f"a-{expected}", "s3.secret-key": "b"})
        monkeypatch.setattr(store, "_create", lambda path, data: path not in made and not made.append(path), raising=False)
        monkeypatch.setattr(store, "delete", lambda path: None, raising=False)
        made = []
        store.require_new(root)
        assert store._endpoint == expected
        assert len(made) == (0 if expected == promise.KNOWN else 1)


@pytest.mark.parametrize("version", ["2024.10.0", "0+unknown"])
def test_an_old_client_library_is_probed_even_on_the_cloud(monkeypatch, version):
    monkeypatch.setattr(promise, "version", lambda package: version)
    assert not promise.is_known("s3fs", "https://s3.eu-west-1.amazonaws.com")


class TestGuardedStore(StoreSuite):
    @pytest.fixture
    def store(self):
        return LockedStore(MemoryStore())

    @pytest.fixture
    def root(self):
        return "memory://bucket/root"


@careless
def test_a_locked_store_checks_for_the_file_before_it_writes(server, bucket):
    table = table_made_elsewhere(server, bucket)
    root = table._root
    guarded = Table(TableRoot(LockedStore(root.store), root.path, root.env, root.files.options), table.schema, "d.t")
    guarded.write_arrow(pa.table({"k": pa.array([2], pa.int32())}))
    assert guarded.scan().to_arrow().num_rows == 2
    assert guarded._root.store.put_new(f"{root.path}/snapshot/snapshot-2", b"x") is False


@careless
def test_a_catalog_lock_allows_tables_on_a_store_without_exclusive_creation(server, bucket, tmp_path):
    pytest.importorskip("sqlalchemy", reason='pip install "paimon-py[jdbc]"')
    options = {**options_of(server), "metastore": "jdbc", "uri": f"sqlite:///{tmp_path}/names.db"}
    catalog = Catalog.open(f"s3://{bucket}/w", options)
    catalog.create_database("d")
    table = catalog.create_table("d.t", Schema([("k", "INT")]))
    for value in (1, 2):
        table.write_arrow(pa.table({"k": pa.array([value], pa.int32())}))
    assert sorted(catalog.table("d.t").scan().to_arrow()["k"].to_pylist()) == [1, 2]
    unlocked = Catalog.open(f"s3://{bucket}/w", {**options, "lock.enabled": "false"})
    with pytest.raises(UnsupportedError, match="lock.enabled"):
        unlocked.table("d.t").write_arrow(pa.table({"k": pa.array([3], pa.int32())}))


def test_a_locked_write_with_a_lost_answer_has_an_unknown_outcome():
    class Losing(MemoryStore):
        def put_new(self, path, data, *, within=None):
            raise UnsupportedError("no condition", feature="x")

        def put(self, path, data, *, within=None):
            raise StorageError("reset", path=path, operation="put", transient=True)

    with pytest.raises(StorageUnknownError, match="reset"):
        LockedStore(Losing()).put_new("/a/f", b"1")
