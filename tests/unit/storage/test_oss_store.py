"""OSS, over a stand-in of its server that enforces `x-oss-forbid-overwrite`: a stub, not OSS itself."""

import logging
import pickle
import uuid

import pyarrow as pa
import pytest

pytest.importorskip("oss2", reason='pip install "paimon-py[oss]"')

from unit.storage.object_server import ObjectServer

from paimon_py import Catalog, OptionError, Schema, StorageError, UnsupportedError, UsageError
from paimon_py.errors import StorageUnknownError
from paimon_py.storage.open import open_store
from paimon_py.storage.oss_options import OssSettings
from paimon_py.testing.store_suite import StoreSuite

KEYS = {"fs.oss.accessKeyId": "key", "fs.oss.accessKeySecret": "sesame-secret"}


@pytest.fixture(scope="module")
def server():
    with ObjectServer() as found:
        yield found


@pytest.fixture
def bucket():
    return f"bucket-{uuid.uuid4()}"


def options_of(server):
    return {"fs.oss.endpoint": server.url, **KEYS}


class TestOssStore(StoreSuite):
    renames_directories = False
    opens_exclusively = False

    @pytest.fixture
    def store(self, server):
        return open_store("oss://bucket/x", options_of(server))[0]

    @pytest.fixture
    def root(self):
        return f"oss://bucket/{uuid.uuid4()}"


def test_a_table_can_be_stored_on_oss(server, bucket):
    catalog = Catalog.open(f"oss://{bucket}/w", options_of(server))
    catalog.create_database("d")
    table = catalog.create_table("d.t", Schema([("k", "INT"), ("v", "STRING")]), primary_key=["k"], options={"bucket": "1"})
    for value in ("a", "b"):
        table.write_arrow(pa.table({"k": pa.array([1, 2], pa.int32()), "v": [value, value]}))
    assert pickle.loads(pickle.dumps(table)).location == f"oss://{bucket}/w/d.db/t"
    assert table.scan().to_arrow().sort_by("k").to_pylist() == [{"k": 1, "v": "b"}, {"k": 2, "v": "b"}]
    catalog.drop_table("d.t")
    assert not [key for key in server.objects if "/d.db/t/" in key]


def test_long_listings_and_deletions_come_in_pages(server, bucket):
    store, root = open_store(f"oss://{bucket}/w", options_of(server))
    server.objects.update({f"/{bucket}/w/{number:04}": b"" for number in range(2100)})
    assert [child.name for child in store.list(root)] == [f"{number:04}" for number in range(2100)]
    store.delete_tree(root)
    assert store.list(root) == []


def test_a_bucket_that_ignores_the_header_is_refused(bucket):
    with ObjectServer(honours=False) as careless:
        store, root = open_store(f"oss://{bucket}/w", options_of(careless))
        with pytest.raises(UnsupportedError, match="could be lost"):
            store.put_new(f"{root}/snapshot-1", b"1")
        assert careless.objects == {}


def test_a_missing_answer_leaves_the_outcome_unknown(server, bucket, monkeypatch):
    store, root = open_store(f"oss://{bucket}/w", options_of(server))
    store.require_new(root)
    monkeypatch.setattr(store, "_settings", OssSettings.of({"fs.oss.endpoint": "http://127.0.0.1:9", **KEYS}))
    store._buckets.clear()
    monkeypatch.setattr(store, "require_new", lambda directory: None)
    with pytest.raises(StorageUnknownError):
        store.put_new(f"{root}/snapshot-1", b"1")
    monkeypatch.setattr("paimon_py.storage.oss_store._RETRIES", 0)
    with pytest.raises(StorageError) as caught:
        store.get(f"{root}/snapshot-1")
    assert caught.value.transient


def test_a_wrong_key_is_refused_without_a_secret_in_any_message(bucket, caplog):
    with ObjectServer() as server, caplog.at_level(logging.DEBUG):
        server.allowed = ["another"]
        options = {**options_of(server), "fs.oss.securityToken": "sesame-token"}
        store, root = open_store(f"oss://{bucket}/w", options)
        for act in (lambda: store.get(f"{root}/f"), lambda: store.put_new(f"{root}/f", b"1"), lambda: store.list(root)):
            with pytest.raises(StorageError) as caught:
                act()
            assert not isinstance(caught.value, StorageUnknownError)
            assert "sesame" not in str(caught.value) + repr(caught.value.__cause__)
        assert "sesame" not in caplog.text + repr(store) + repr(store._settings)
        assert b"sesame" not in pickle.dumps(store)


def test_without_keys_credentials_come_from_the_environment_or_requests_are_anonymous(server, bucket, monkeypatch):
    store, root = open_store(f"oss://{bucket}/w", {"fs.oss.endpoint": server.url})
    for name, value in (("OSS_ACCESS_KEY_ID", ""), ("OSS_ACCESS_KEY_SECRET", "")):
        monkeypatch.setenv(name, value)
    store.put(f"{root}/f", b"1")
    assert "Authorization" not in {name.title() for name in server.requests[-1][2]}
    monkeypatch.setenv("OSS_ACCESS_KEY_ID", "mine")
    monkeypatch.setenv("OSS_ACCESS_KEY_SECRET", "s")
    open_store(f"oss://{bucket}/w", {"fs.oss.endpoint": server.url})[0].put(f"{root}/f", b"1")
    assert any(value.startswith("OSS mine:") for value in server.requests[-1][2].values())


def test_options_become_settings():
    settings = OssSettings.of({
        "fs.oss.endpoint": "oss-cn-hangzhou.aliyuncs.com", "fs.oss.accesskeyid": "k", "fs.oss.accessKeySecret": "s",
        "fs.oss.server-side-encryption": "KMS", "fs.oss.server-side-encryption-key-id": "id", "fs.oss.sld.enabled": "true",
    })  # fmt: skip
    assert settings.endpoint == "https://oss-cn-hangzhou.aliyuncs.com"
    assert settings.credentials == ("k", "s", "") and settings.is_path_style
    assert settings.headers == {"x-oss-server-side-encryption": "KMS", "x-oss-server-side-encryption-key-id": "id"}
    plain = OssSettings.of({"fs.oss.endpoint": "h", "fs.oss.connection.secure.enabled": "false"})
    assert plain.endpoint == "http://h"


@pytest.mark.parametrize("options", [{}, {"fs.oss.endpoint": "h", "fs.oss.accessKeyId": "k"}, {"fs.oss.endpoint": "h", "fs.oss.cname.enabled": "yes"}])  # fmt: skip
def test_bad_options_are_refused(options):
    with pytest.raises(OptionError, match=r"fs\.oss\."):
        open_store("oss://bucket/w", options)


@pytest.mark.parametrize("url", ["oss://k:s@bucket/w", "oss://k@bucket/w", "oss://bucket/w?x=1"])
def test_secrets_in_urls_are_refused(url):
    with pytest.raises(UsageError):
        open_store(url, {"fs.oss.endpoint": "h"})


def test_a_missing_package_is_named(monkeypatch):
    import sys

    monkeypatch.delitem(sys.modules, "paimon_py.storage.oss_store")
    monkeypatch.delattr("paimon_py.storage.oss_store")
    monkeypatch.setitem(sys.modules, "oss2", None)
    with pytest.raises(UsageError, match=r'pip install "paimon-py\[oss\]"'):
        open_store("oss://bucket/w", {"fs.oss.endpoint": "h"})
