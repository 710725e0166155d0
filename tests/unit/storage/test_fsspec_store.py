import pickle
import uuid

import pytest

from paimon_py.errors import StorageError, StorageUnknownError, UnsupportedError, UsageError
from paimon_py.storage import fsspec_store
from paimon_py.storage.cloud_options import fsspec_arguments
from paimon_py.storage.exclusive_create import KNOWN
from paimon_py.storage.fsspec_store import FsspecStore
from paimon_py.storage.open import open_store
from paimon_py.storage.store import FileMissingError


class Refusal(Exception):
    def __init__(self, status):
        super().__init__(f"HTTP {status} for key sesame")
        self.response = {"ResponseMetadata": {"HTTPStatusCode": status}}


class FakeS3:
    """A stand-in for the file system behind the store: raises what it is told to, else keeps files in a dict."""

    def __init__(self, errors=(), *, honest=True):
        self.files = {}
        self.errors = list(errors)
        self.honest = honest

    def pipe_file(self, path, data, mode="overwrite"):
        if self.errors:
            raise self.errors.pop(0)
        if mode == "create" and self.honest and path in self.files:
            raise OSError(22, "precondition") from Refusal(412)
        self.files[path] = data

    def rm_file(self, path):
        del self.files[path]

    def cat_file(self, path):
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]


@pytest.fixture
def bucket():
    return f"s3://bucket-{uuid.uuid4()}"


def store_over(fake, *, known=True, bucket="b"):
    store = FsspecStore("s3", {"key": "open", "secret": "sesame"})
    store._system = lambda *, once=False: fake
    if known:
        store._endpoint = KNOWN
    return store


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504])
def test_an_ambiguous_answer_is_an_unknown_outcome(status, bucket):
    store = store_over(FakeS3([Refusal(status)]), bucket=bucket)
    with pytest.raises(StorageUnknownError):
        store.put_new(f"{bucket}/x", b"1")


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_refused_request_is_a_plain_error(status, bucket):
    store = store_over(FakeS3([Refusal(status)]), bucket=bucket)
    with pytest.raises(StorageError) as caught:
        store.put_new(f"{bucket}/x", b"1")
    assert not isinstance(caught.value, StorageUnknownError)


def test_no_answer_at_all_is_an_unknown_outcome(bucket):
    for error in (TimeoutError(), ConnectionResetError(), RuntimeError("connection closed")):
        store = store_over(FakeS3([error]), bucket=bucket)
        with pytest.raises(StorageUnknownError):
            store.put_new(f"{bucket}/x", b"1")


def test_the_status_decides_whatever_class_the_error_has(bucket):
    for error in (FileExistsError("x"), Refusal(412)):
        assert store_over(FakeS3([error]), bucket=bucket).put_new(f"{bucket}/x", b"1") is False
    wrapped = OSError(22, "precondition failed")
    wrapped.__cause__ = Refusal(412)
    assert store_over(FakeS3([wrapped]), bucket=bucket).put_new(f"{bucket}/x", b"1") is False


def test_a_name_taken_by_identical_bytes_is_not_a_lost_race(bucket):
    fake = FakeS3()
    store = store_over(fake, bucket=bucket)
    fake.files[f"{bucket}/x"] = b"mine"
    with pytest.raises(StorageUnknownError, match="exactly these bytes"):
        store.put_new(f"{bucket}/x", b"mine")
    assert store.put_new(f"{bucket}/x", b"other") is False


def test_each_bucket_is_probed_once(bucket):
    fake = FakeS3()
    store = store_over(fake, known=False)
    assert store.put_new(f"{bucket}/t/snapshot-1", b"1")
    assert list(fake.files) == [f"{bucket}/t/snapshot-1"]
    fake.honest = False
    assert store.put_new(f"{bucket}/t/snapshot-2", b"1")


def test_a_server_that_ignores_the_condition_is_refused(bucket):
    fake = FakeS3(honest=False)
    store = store_over(fake, known=False)
    with pytest.raises(UnsupportedError, match="could be lost"):
        store.put_new(f"{bucket}/t/snapshot-1", b"1")
    assert fake.files == {}


def test_secrets_are_in_no_message_and_no_pickle(bucket):
    store = store_over(FakeS3([Refusal(500)]), bucket=bucket)
    with pytest.raises(StorageError) as caught:
        store.put_new(f"{bucket}/x", b"1")
    assert "sesame" not in str(caught.value)
    assert "***" in str(caught.value)
    plain = FsspecStore("s3", {"key": "open", "secret": "sesame", "client_kwargs": {"region_name": "r"}})
    assert b"sesame" not in pickle.dumps(plain)
    assert "sesame" not in repr(plain)
    assert pickle.loads(pickle.dumps(plain))._arguments == {"client_kwargs": {"region_name": "r"}}


@pytest.mark.parametrize("options", [
    {"s3.access-key": "sesame", "s3.secret-key": "sesame", "s3.session.token": "sesame"},
    {"fs.gs.auth.service.account.json.keyfile": "sesame"},
    {"fs.azure.account.key.acc.blob.core.windows.net": "sesame"},
    {"fs.azure.sas.fixed.token.acc.dfs.core.windows.net": "sesame"}, {"azure.sas.fixed.token": "sesame"},
    {"fs.azure.account.oauth2.client.id": "i", "fs.azure.account.oauth2.client.secret": "sesame"},
], ids=lambda options: list(options)[-1])  # fmt: skip
def test_every_secret_option_is_redacted(options):
    for scheme in ("s3", "gs", "abfs", "abfss", "az"):
        store = FsspecStore(scheme, fsspec_arguments(scheme, options))
        text = store._failures.redact("denied: sesame?")
        assert b"sesame" not in pickle.dumps(store) and "sesame" not in repr(store)
        assert text == ("denied: ***?" if store._arguments else "denied: sesame?")
    assert any(fsspec_arguments(scheme, options) for scheme in ("s3", "gs", "abfs"))


def test_stores_without_conditional_writes_can_be_read_but_not_committed_to():
    store, root = FsspecStore("memory", {}), f"memory://{uuid.uuid4()}"
    with pytest.raises(UnsupportedError, match="no request that fails when the file exists"):
        store.put_new(f"{root}/x", b"1")
    store.put(f"{root}/d/f", b"123")
    assert store.get(f"{root}/d/f") == b"123"
    with store.open_write(f"{root}/d/g") as sink:
        sink.write(b"4567")
    with store.open_read(f"{root}/d/g") as source:
        assert source.read() == b"4567"
    assert [child.name for child in store.list(f"{root}/d")] == ["f", "g"]
    for make in (lambda: store.put(f"{root}/gone/f", b"", within=f"{root}/gone"),
                 lambda: store.open_write(f"{root}/gone/f", within=f"{root}/gone")):
        with pytest.raises(FileMissingError, match="gone does not exist"):
            make()
    assert store.list(f"{root}/gone") == []
    store.open_write(f"{root}/d/e/h", within=f"{root}/d").close()
    store.delete_tree(f"{root}/d/e")
    status = store.stat(f"{root}/d/f")
    assert (status.size_bytes, status.is_directory) == (3, False)
    store.delete(f"{root}/d/f")
    store.delete_tree(f"{root}/d")
    assert store.list(f"{root}/d") == []
    with pytest.raises(FileMissingError):
        store.get(f"{root}/d/f")


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch):
    def missing(scheme):
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec_store.fsspec, "get_filesystem_class", missing)
    with pytest.raises(UsageError, match=r'pip install "paimon-py\[s3\]"'):
        open_store("s3a://bucket/x", {})


def test_an_unknown_scheme_is_a_usage_error():
    with pytest.raises(UsageError, match="unknown URL scheme nonsense"):
        open_store("nonsense://x/y", {})


def test_a_directory_whose_name_looks_like_a_pattern_is_deleted_alone():
    store, root = FsspecStore("memory", {}), f"memory://{uuid.uuid4()}"
    for name in ("t[ab]", "ta", "tb"):
        store.put(f"{root}/{name}/deep/f", b"x")
        store.put(f"{root}/{name}/f[x]", b"x")
    store.delete_tree(f"{root}/t[ab]")
    assert [status.name for status in store.list(root)] == ["ta", "tb"]
    store.delete_tree(f"{root}/t[ab]")
    store.delete_tree(f"{root}/ta")
    assert [status.name for status in store.list(root)] == ["tb"]
