"""The recipes of docs/stores.md that a server in this process can follow, each with a table."""

import pickle
import uuid

import pyarrow as pa
import pytest

pytest.importorskip("s3fs", reason='pip install "paimon-py[s3]"')

from unit.storage.object_server import ObjectServer

from paimon_py import Catalog, OptionError, Schema, StorageError
from paimon_py.storage.cloud_options import fsspec_arguments, harmless_arguments
from paimon_py.storage.open import open_store

pytestmark = [
    # s3fs leaves its session to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
KEYS = {"s3.access-key": "key", "s3.secret-key": "sesame-secret"}
ARN = "arn:aws:iam::1:role/writer"


@pytest.fixture
def server(monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with ObjectServer() as found:
        yield found


def options_of(server, **more):
    return {"s3.endpoint": server.url, "s3.path.style.access": "true", "s3.region": "r", **more}


def written(server, options):
    """The headers of all requests of a catalog that makes a table and writes into it."""
    catalog = Catalog.open(f"s3://bucket-{uuid.uuid4()}/w", options)
    catalog.create_database("d")
    table = catalog.create_table("d.t", Schema([("k", "INT")]))
    table.write_arrow(pa.table({"k": pa.array([1], pa.int32())}))
    assert table.scan().to_arrow().num_rows == 1
    assert b"sesame" not in pickle.dumps((catalog, table))
    return [{name.lower(): value for name, value in headers.items()} for _, _, headers in server.requests]


def test_no_write_waits_for_permission(server):
    """`Expect: 100-continue` costs a round trip for every file."""
    seen = written(server, options_of(server, **KEYS))
    assert sum("if-none-match" in each for each in seen) >= 2
    assert [each for each in seen if "expect" in each] == []


def test_keys_and_a_token(server):
    seen = written(server, options_of(server, **KEYS, **{"s3.session.token": "sesame-token"}))
    assert all("Credential=key/" in each["authorization"] for each in seen)
    assert {each["x-amz-security-token"] for each in seen} == {"sesame-token"}


def test_requests_without_credentials_are_anonymous(server):
    provider = {"fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"}
    assert all("authorization" not in each for each in written(server, options_of(server, **provider)))


def test_the_environment(server, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mine")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "sesame-environment")
    assert all("Credential=mine/" in each["authorization"] for each in written(server, options_of(server)))


def test_a_profile(server, monkeypatch, tmp_path):
    file = tmp_path / "credentials"
    file.write_text("[lake]\naws_access_key_id = lakes\naws_secret_access_key = sesame-profile\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    seen = written(server, options_of(server, **{"s3.auth.profile.name": "lake"}))
    assert all("Credential=lakes/" in each["authorization"] for each in seen)


def role_of(server, **more):
    return {
        **KEYS, "fs.s3a.assumed.role.arn": ARN, "fs.s3a.assumed.role.sts.endpoint": server.url,
        "fs.s3a.assumed.role.session.duration": "15m", "fs.s3a.assumed.role.external.id": "sesame-external", **more,
    }  # fmt: skip


def test_a_role(server):
    seen = written(server, options_of(server, **role_of(server)))
    asked = server.roles[0]
    assert (asked["RoleArn"], asked["DurationSeconds"], asked["ExternalId"]) == (ARN, "900", "sesame-external")
    stored = [each for each in seen if "x-amz-security-token" in each]
    assert all(each["authorization"].partition("Credential=")[2].startswith("ROLE") for each in stored)
    assert len(stored) == len(seen) - len(server.roles)


def test_a_role_is_assumed_again_before_its_keys_expire(server):
    store, root = open_store(f"s3://bucket-{uuid.uuid4()}/w", options_of(server, **role_of(server)))
    store.put(f"{root}/a", b"1")
    taken = len(server.roles)
    store.get(f"{root}/a")
    assert len(server.roles) == taken == 1
    server.lasting = False
    other, root = open_store(f"s3://bucket-{uuid.uuid4()}/w", options_of(server, **role_of(server, **{"s3.assumed.role.session.name": "again"})))
    other.put(f"{root}/a", b"1")
    server.lasting = True
    other.get(f"{root}/a")
    assert len(server.roles) == 3


def test_a_role_that_may_not_be_assumed_is_an_error_without_a_secret(server):
    server.allowed = ["nobody"]
    store, root = open_store(f"s3://bucket-{uuid.uuid4()}/w", options_of(server, **role_of(server)))
    with pytest.raises(StorageError, match="AccessDenied|Forbidden|403") as caught:
        store.get(f"{root}/a")
    assert "sesame" not in str(caught.value) + repr(caught.value.__cause__)


def test_encryption_and_requester_pays_are_sent_with_the_requests(server):
    more = {"fs.s3a.encryption.algorithm": "SSE-KMS", "fs.s3a.encryption.key": "key-id", "s3.requester.pays.enabled": "true"}
    written(server, options_of(server, **KEYS, **more))
    puts = [{name.lower(): text for name, text in headers.items()} for verb, _, headers in server.requests if verb == "PUT"]
    assert {each["x-amz-server-side-encryption"] for each in puts} == {"aws:kms"}
    assert {each["x-amz-server-side-encryption-aws-kms-key-id"] for each in puts} == {"key-id"}
    assert {each["x-amz-request-payer"] for each in puts} == {"requester"}


@pytest.mark.parametrize("options", [
    {"s3.assumed.role.session.name": "x"}, {"s3.assumed.role.arn": ARN, "s3.assumed.role.session.duration": "long"},
    {"s3.encryption.algorithm": "SSE-C", "s3.encryption.key": "sesame"},
    {"s3.aws.credentials.provider": "my.own.Provider"},
    {"s3.aws.credentials.provider": "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider", **KEYS},
    {"s3.aws.credentials.provider": "org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider"},
    {"s3.session.token": "sesame", "s3.access-key": "k"},
], ids=lambda options: list(options)[0])  # fmt: skip
def test_unsupported_options_are_refused_before_any_request(options):
    with pytest.raises(OptionError) as caught:
        open_store("s3://bucket/w", options)
    assert "sesame" not in str(caught.value)


def test_another_process_assumes_the_role_itself():
    kept = harmless_arguments(fsspec_arguments("s3", {**KEYS, "s3.assumed.role.arn": ARN, "s3.assumed.role.external.id": "sesame",
                                                      "s3.auth.profile.name": "lake", "s3.encryption.algorithm": "AES256"}))
    assert kept == {"role": {"arn": ARN}, "profile": "lake", "s3_additional_kwargs": {"ServerSideEncryption": "AES256"}}
