"""HDFS over a stand-in for its client; on a real NameNode in tests/interop/test_stores.py."""

import multiprocessing
import pickle

import pyarrow as pa
import pytest

pytest.importorskip("hdfs_native", reason='pip install "paimon-py[hdfs]"')

from unit.storage.name_node import NameNode, refused

from paimon_py import Catalog, Schema
from paimon_py.errors import (
    OptionError,
    StorageError,
    StorageUnknownError,
    TableNotFoundError,
    UnsupportedError,
    UsageError,
)
from paimon_py.storage import hdfs_store
from paimon_py.storage.open import open_store
from paimon_py.storage.store import FileMissingError
from paimon_py.testing.store_suite import StoreSuite

ROOT = "hdfs://node:8020/warehouse"


@pytest.fixture
def node(monkeypatch):
    found = NameNode()
    monkeypatch.setattr(hdfs_store.hdfs_native, "Client", found.client)
    monkeypatch.setattr(hdfs_store, "_first_user", [])
    return found


@pytest.fixture
def store(node):
    return open_store(ROOT, {})[0]


class TestHdfsStore(StoreSuite):
    @pytest.fixture
    def store(self, store):
        return store

    @pytest.fixture(params=[ROOT, "hdfs:///warehouse"])
    def root(self, request):
        return request.param


def test_a_table_can_be_stored_on_hdfs(node):
    catalog = Catalog.open(ROOT, {})
    catalog.create_database("d")
    table = catalog.create_table("d.t", Schema([("k", "INT"), ("v", "STRING")]), primary_key=["k"], options={"bucket": "1"})
    for value in ("a", "b"):
        table.write_arrow(pa.table({"k": pa.array([1, 2], pa.int32()), "v": [value, value]}))
    catalog.rename_table("d.t", "d.u")
    assert catalog.table("d.u").scan().to_arrow().sort_by("k").to_pylist() == [{"k": 1, "v": "b"}, {"k": 2, "v": "b"}]
    with pytest.raises(TableNotFoundError):
        table.write_arrow(pa.table({"k": pa.array([1], pa.int32()), "v": ["c"]}))
    assert "/warehouse/d.db/t" not in node.tree
    catalog.drop_table("d.u")
    assert [path for path in node.tree if path.startswith("/warehouse/d.db/")] == []


def test_the_url_and_the_options_select_the_hdfs(node):
    options = {
        "hadoop.dfs.nameservices": "lake", "hadoop-conf-dir": "/etc/hadoop", "s3.access-key": "sesame",
        "hadoop.fs.oss.secret": "sesame", "security.kerberos.login.principal": "me@HERE",
        "security.kerberos.login.keytab": "/sesame.keytab",
    }  # fmt: skip
    store, root = open_store("hdfs://lake//a/b/", options)
    assert root == "hdfs://lake/a/b"
    store.make_directory(root)
    config = {"dfs.nameservices": "lake", "fs.oss.secret": "sesame"}
    arguments = {"config_dir": "/etc/hadoop", "kerberos_principal": "me@HERE", "kerberos_keytab": "/sesame.keytab"}
    assert node.clients == [("hdfs://lake", config, arguments)]
    pickled = pickle.dumps(store)
    assert b"sesame" not in pickled and "sesame" not in repr(store)
    pickle.loads(pickled).make_directory(root)
    assert node.clients[1] == ("hdfs://lake", {"dfs.nameservices": "lake"}, {"config_dir": "/etc/hadoop"})
    assert open_store("hdfs:///a", {})[1] == "hdfs:///a"


@pytest.mark.parametrize("url", ["hdfs://node:8020", "hdfs://node/", "hdfs:///", "hdfs://node/a/../b", "hdfs://u:p@n/a", "hdfs://u@n/a", "hdfs://n/a?x=1"])  # fmt: skip
def test_other_urls_are_refused(node, url):
    with pytest.raises(UsageError):
        open_store(url, {})


def test_half_a_login_is_refused(node):
    with pytest.raises(OptionError, match="must be set together"):
        open_store(ROOT, {"security.kerberos.login.principal": "me"})


def test_a_lost_answer_is_unknown_and_leaves_no_temporary_file(node, store):
    store.make_directory(ROOT)
    node.errors["rename"] = [OSError("Connection reset by peer")]
    with pytest.raises(StorageUnknownError, match="reset"):
        store.put_new(f"{ROOT}/snapshot-1", b"1")
    assert store.list(ROOT) == []
    node.errors["renamed"] = [OSError("Connection reset by peer")]
    with pytest.raises(StorageUnknownError):
        store.put_new(f"{ROOT}/snapshot-1", b"1")
    assert store.get(f"{ROOT}/snapshot-1") == b"1"


def test_a_rename_that_the_client_repeats_is_not_taken_for_a_lost_race(node, store):
    store.make_directory(ROOT)
    node.errors["renamed"] = [FileNotFoundError("rename source is not found")]
    with pytest.raises(StorageUnknownError, match="exactly these bytes"):
        store.put_new(f"{ROOT}/snapshot-1", b"1")
    assert store.put_new(f"{ROOT}/snapshot-1", b"2") is False


def test_a_refusal_of_the_name_node_is_a_certain_failure(node, store):
    for error in (refused("org.apache.hadoop.hdfs.server.namenode.SafeModeException", "in safe mode"), PermissionError("x")):
        node.errors["rename"] = [error]
        with pytest.raises(StorageError) as caught:
            store.put_new(f"{ROOT}/snapshot-1", b"1")
        assert not isinstance(caught.value, StorageUnknownError)
        assert "\\n" not in str(caught.value) and "org.apache.hadoop\")" not in str(caught.value)
    assert store.list(ROOT) == []


def test_a_directory_deleted_before_the_rename_is_named(node, store):
    store.make_directory(f"{ROOT}/t")
    node.errors["rename"] = [FileNotFoundError("rename destination parent not found")]
    with pytest.raises(FileMissingError) as caught:
        store.put_new(f"{ROOT}/t/snapshot-1", b"1", within=f"{ROOT}/t")
    assert caught.value.path == f"{ROOT}/t"


def test_a_lost_connection_is_transient_and_a_refusal_is_not(node, store):
    node.errors["get_file_info"] = [OSError("Connection refused"), refused("java.io.IOException", "no")]
    for transient in (True, False):
        with pytest.raises(StorageError) as caught:
            store.stat(ROOT)
        assert caught.value.transient is transient


def _in_child(store, pipe):
    try:
        store.get(f"{ROOT}/f")
    except UnsupportedError as error:
        pipe.send(str(error))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_is_refused_and_advised_to_spawn(node, store):
    store.put(f"{ROOT}/f", b"1")
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_in_child, args=(store, there))
    child.start()
    child.join()
    assert "spawn" in here.recv()


def test_a_missing_package_is_named(monkeypatch):
    import sys

    monkeypatch.delitem(sys.modules, "paimon_py.storage.hdfs_store")
    monkeypatch.delattr("paimon_py.storage.hdfs_store")
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    with pytest.raises(UsageError, match=r'pip install "paimon-py\[hdfs\]"'):
        open_store(ROOT, {})
