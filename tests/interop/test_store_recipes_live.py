"""The recipes of docs/stores.md on real servers: a catalog is opened as the page says, and a table written and read."""

from __future__ import annotations

import http.client
import http.server
import json
import os
import pickle
import threading
import time
import urllib.parse
import uuid
import xml.etree.ElementTree as ElementTree

import pyarrow as pa
import pytest
from store_servers import asked, running

from paimon_py import Catalog, PaimonError, Schema

pytestmark = [
    pytest.mark.full,
    pytest.mark.server,
    # The client libraries leave their sessions to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
OF_AWS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE")


def works(bucket, options, *secrets):
    catalog = Catalog.open(f"{bucket}/{uuid.uuid4().hex}", options)
    catalog.create_database("d")
    table = catalog.create_table("d.t", Schema([("k", "INT")]))
    table.write_arrow(pa.table({"k": pa.array([1], pa.int32())}))
    assert Catalog.open(catalog.warehouse, options).table("d.t").scan().to_arrow()["k"].to_pylist() == [1]
    data = pickle.dumps((catalog, table))
    assert not [secret for secret in secrets if secret.encode() in data]


def is_refused(bucket, options, *secrets):
    with pytest.raises(PaimonError) as caught:
        works(bucket, options)
    assert not [secret for secret in secrets if secret in str(caught.value)]


# -- S3 -----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["s3", "s3-minio"])
def s3(request, tmp_path_factory):
    yield from running(request.param, tmp_path_factory)


@pytest.fixture(scope="module")
def minio(tmp_path_factory):
    yield from running("s3-minio", tmp_path_factory)


@pytest.fixture
def nobody(monkeypatch, tmp_path):
    """A machine without keys of its own."""
    for name in OF_AWS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))


def forget():
    """s3fs keeps what it opened without keys for as long as the process lives, and looks for keys once."""
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()


def keyless(options):
    return {name: text for name, text in options.items() if name not in ("s3.access-key", "s3.secret-key")}


@pytest.mark.usefixtures("nobody")
def test_s3_keys_environment_and_profile(s3, monkeypatch, tmp_path):
    _, bucket, options = s3
    key, secret = options["s3.access-key"], options["s3.secret-key"]
    works(bucket, options, secret)
    works(bucket.replace("s3:", "s3a:"), {name.replace("s3.", "fs.s3a."): text for name, text in options.items()}, secret)
    is_refused(bucket, {**options, "s3.secret-key": "sesame-wrong"}, "sesame-wrong")
    is_refused(bucket, keyless(options))
    file = tmp_path / "credentials"
    file.write_text(f"[lake]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    works(bucket, {**keyless(options), "s3.auth.profile.name": "lake"}, secret)
    forget()
    monkeypatch.setenv("AWS_PROFILE", "lake")
    works(bucket, keyless(options), secret)
    forget()
    monkeypatch.delenv("AWS_PROFILE")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    works(bucket, keyless(options), secret)


@pytest.mark.usefixtures("nobody")
def test_s3_a_role_and_keys_that_end(minio):
    _, bucket, options = minio
    role = {
        "s3.assumed.role.arn": "arn:aws:iam::123456789012:role/writer", "s3.assumed.role.sts.endpoint": options["s3.endpoint"],
        "s3.assumed.role.session.duration": "15m", "s3.assumed.role.session.name": "ours",
    }  # fmt: skip
    works(bucket, {**options, **role}, options["s3.secret-key"])
    is_refused(bucket, {**options, **role, "s3.secret-key": "sesame-wrong"}, "sesame-wrong")
    told = asked(options, "POST", "/", b"Action=AssumeRole&Version=2011-06-15&DurationSeconds=900")
    given = {node.tag.rpartition("}")[2]: node.text for node in ElementTree.fromstring(told).iter()}  # noqa: S314
    keys = {
        "s3.access-key": given["AccessKeyId"], "s3.secret-key": given["SecretAccessKey"], "s3.session.token": given["SessionToken"],
    }  # fmt: skip
    works(bucket, {**options, **keys}, given["SecretAccessKey"], given["SessionToken"])
    is_refused(bucket, {**options, **keys, "s3.session.token": "sesame-wrong"}, "sesame-wrong")


@pytest.mark.usefixtures("nobody")
def test_s3_a_public_bucket(minio):
    _, bucket, options = minio
    provider = {"s3.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"}
    anonymous = {**keyless(options), **provider}
    is_refused(bucket, anonymous)
    everybody = {"Effect": "Allow", "Principal": "*", "Action": ["s3:*"], "Resource": ["arn:aws:s3:::warehouse", "arn:aws:s3:::warehouse/*"]}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [everybody]}).encode()
    asked(options, "PUT", "/warehouse?policy", policy)
    try:
        works(bucket, anonymous)
    finally:
        asked(options, "DELETE", "/warehouse?policy")


# -- Google Cloud Storage -----------------------------------------------------------------------------------------------


class Guard:
    """Stands before a server that asks for no credentials: gives tokens for assertions that are signed with one key, and
    lets requests through that carry such a token."""

    def __init__(self, beyond, public_key, gate=None, context=None):
        self.beyond = urllib.parse.urlsplit(beyond).netloc
        self.public_key = public_key
        self.tokens = set()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (gate or Gate,), {"owner": self}))
        if context is not None:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def token(self, assertion):
        from google.auth import jwt

        claims = jwt.decode(assertion, certs=self.public_key, audience="https://oauth2.googleapis.com/token")
        assert "devstorage" in claims["scope"] and claims["exp"] > time.time()
        self.tokens.add(f"sesame-{uuid.uuid4().hex}")
        return {"access_token": max(self.tokens), "expires_in": 3600, "token_type": "Bearer"}


    def of_machine(self, path):
        """What the metadata service of a machine at Google says."""
        if "/token" not in path:
            return {"email": "machine@test.iam.gserviceaccount.com", "scopes": [], "aliases": ["default"]}
        self.tokens.add(f"sesame-{uuid.uuid4().hex}")
        return {"access_token": max(self.tokens), "expires_in": 3600, "token_type": "Bearer"}


class Gate(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.startswith("/computeMetadata/"):
            assert self.headers["Metadata-Flavor"] == "Google"
            return self.tell(200, {"Content-Type": "application/json", "Metadata-Flavor": "Google"}, json.dumps(self.owner.of_machine(self.path)).encode())
        if self.path == "/token":
            assertion = urllib.parse.parse_qs(body.decode())["assertion"][0]
            return self.tell(200, {"Content-Type": "application/json"}, json.dumps(self.owner.token(assertion)).encode())
        if self.headers.get("Authorization", "").removeprefix("Bearer ") not in self.owner.tokens:
            return self.tell(401, {}, b'{"error": {"code": 401, "message": "Invalid Credentials"}}')
        return self.beyond(self.path, body)

    def beyond(self, path, body):
        """What the server says that the guard stands before."""
        beyond = http.client.HTTPConnection(self.owner.beyond, timeout=60)
        sent = dict(self.headers) if "sig=" not in path else {k: v for k, v in self.headers.items() if k.lower() != "authorization"}
        beyond.request(self.command, path, body, sent)
        answer = beyond.getresponse()
        told = answer.read()
        kept = {name: text for name, text in answer.getheaders() if name.lower() not in ("transfer-encoding", "content-length", "connection")}
        self.tell(answer.status, kept, told)
        beyond.close()
        return None

    do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = do_HEAD = pass_on  # noqa: N815

    def tell(self, status, headers, body):
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *args):
        """Nothing."""


@pytest.fixture(scope="module")
def gcs(tmp_path_factory):
    yield from running("gcs", tmp_path_factory)


@pytest.fixture
def guard(gcs, tmp_path):
    """A guard before the server, and a key file."""
    rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    from cryptography.hazmat.primitives import serialization as forms

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo)
    made = Guard(gcs[2]["fs.gs.storage.root.url"], public)
    private = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption()).decode()
    told = {
        "type": "service_account", "project_id": "test", "private_key_id": "k", "private_key": private, "client_id": "1",
        "client_email": "writer@test.iam.gserviceaccount.com", "token_uri": f"{made.url}/token",
    }  # fmt: skip
    file = tmp_path / "key.json"
    file.write_text(json.dumps(told))
    yield made, file, {"fs.gs.project.id": "test", "fs.gs.storage.root.url": made.url}
    made.server.shutdown()
    made.server.server_close()


def test_gcs_a_key_file(gcs, guard):
    made, file, options = guard
    works(gcs[1], {**options, "fs.gs.auth.service.account.json.keyfile": str(file)}, "sesame", "PRIVATE KEY")
    assert made.tokens, "the guard let nobody through without one"


@pytest.mark.parametrize("more", [{"fs.gs.auth.type": "APPLICATION_DEFAULT"}, {}], ids=["named", "none"])
def test_gcs_the_machines_own(gcs, guard, monkeypatch, more):
    made, file, options = guard
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    works(gcs[1], {**options, **more}, "sesame")
    assert made.tokens


def test_gcs_a_machine_at_google(gcs, guard, monkeypatch):
    from gcsfs.credentials import GoogleCredentials
    from google.auth.compute_engine import _metadata

    made, _, options = guard
    connect = GoogleCredentials._connect_cloud

    def connected(self):
        """Emulators are not a reason to ask the machine; this one is."""
        self.on_google = True
        connect(self)

    monkeypatch.setattr(GoogleCredentials, "_connect_cloud", connected)
    monkeypatch.setattr(_metadata, "_GCE_METADATA_HOST", made.url.removeprefix("http://"))
    works(gcs[1], {**options, "fs.gs.auth.type": "COMPUTE_ENGINE"}, "sesame")
    assert made.tokens


def test_gcs_a_public_bucket(gcs):
    works(gcs[1], gcs[2])


# -- Azure --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def azurite(tmp_path_factory):
    yield from running("azure", tmp_path_factory)


@pytest.fixture
def account(azurite, monkeypatch):  # noqa: ARG001
    """The account of Azurite under the name that Azure would give it: key, and URL of a container."""
    spec = pytest.importorskip("adlfs.spec")
    told = dict(part.partition("=")[::2] for part in os.environ["AZURE_STORAGE_CONNECTION_STRING"].strip(";").split(";"))
    name, make = told["AccountName"], spec._create_aio_blob_service_client

    def nearby(account_url, **more):
        assert account_url.startswith(f"https://{name}.blob.core.windows.net")
        return make(account_url=account_url.replace(f"https://{name}.blob.core.windows.net", told["BlobEndpoint"].rstrip("/")), **more)

    monkeypatch.setattr(spec, "_create_aio_blob_service_client", nearby)
    monkeypatch.delenv("AZURE_STORAGE_CONNECTION_STRING")
    return name, told["AccountKey"], f"abfss://warehouse@{name}.dfs.core.windows.net"


def test_azure_an_account_key(account):
    name, key, url = account
    option = f"fs.azure.account.key.{name}.dfs.core.windows.net"
    works(url, {option: key}, key)
    is_refused(url, {option: key.swapcase()}, key.swapcase())
    is_refused(url, {})


def test_azure_a_signature(account):
    import datetime

    from azure.storage.blob import generate_container_sas

    name, key, url = account
    end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    option = f"fs.azure.sas.fixed.token.{name}.dfs.core.windows.net"
    signed = generate_container_sas(name, "warehouse", account_key=key, permission="racwdl", expiry=end)
    works(url, {option: signed}, signed.rpartition("sig=")[2])
    works(url, {option: f"?{signed}"})
    seen = generate_container_sas(name, "warehouse", account_key=key, permission="rl", expiry=end)
    is_refused(url, {option: seen}, seen.rpartition("sig=")[2])


class Login(Gate):
    """Stands before Azurite over TLS: gives tokens to an application that knows its secret, and to the machine, and lets
    requests through that carry such a token."""

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = dict(urllib.parse.parse_qsl(body.decode("latin1"))) if self.path == "/tenant/oauth2/v2.0/token" else {}
        is_machine = self.path.startswith("/msi?") and self.headers["X-IDENTITY-HEADER"] == "sesame-header"
        if is_machine or (asked.get("client_id"), asked.get("client_secret")) == ("application", "sesame-secret"):
            self.owner.tokens.add(token := f"sesame-{uuid.uuid4().hex}")
            told = {"access_token": token, "token_type": "Bearer", "expires_in": 3600, "expires_on": str(int(time.time()) + 3600),
                    "resource": "https://storage.azure.com"}  # fmt: skip
            return self.tell(200, {"Content-Type": "application/json"}, json.dumps(told).encode())
        if asked:
            return self.tell(401, {"Content-Type": "application/json"}, b'{"error": "invalid_client"}')
        if self.headers.get("Authorization", "").removeprefix("Bearer ") not in self.owner.tokens:
            return self.tell(403, {"x-ms-error-code": "AuthenticationFailed"}, b"")
        return self.beyond(f"{self.path}{'&' if '?' in self.path else '?'}{self.owner.signed}", body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = pass_on  # noqa: N815


@pytest.fixture
def login(account, monkeypatch, tmp_path):
    """The account behind a login, all over TLS."""
    import datetime
    import ssl

    from adlfs import spec
    from azure.core.pipeline.transport import AioHttpTransport
    from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas

    name, key, url = account
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate(tmp_path))
    trusted = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    made = Guard(spec._create_aio_blob_service_client(f"https://{name}.blob.core.windows.net").primary_endpoint, b"", Login, context)
    end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    everything = AccountSasPermissions(read=True, write=True, delete=True, list=True, add=True, create=True)
    made.signed = generate_account_sas(name, key, ResourceTypes(service=True, container=True, object=True), everything, end)
    place = made.url.replace("http:", "https:")

    def guarded(account_url, location_mode=None, credential=None):  # noqa: ARG001
        assert account_url == f"https://{name}.blob.core.windows.net" and credential is not None
        return spec.AIOBlobServiceClient(f"{place}/{name}", credential=credential)

    monkeypatch.setattr(spec, "_create_aio_blob_service_client", guarded)
    monkeypatch.setattr(AioHttpTransport, "_build_ssl_config", lambda *_, **__: trusted)
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", place)
    yield made, name, url
    made.server.shutdown()
    made.server.server_close()


def certificate(folder):
    """Files of a certificate for this machine, and its key."""
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    cert, private = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(made.public_bytes(forms.Encoding.PEM))
    private.write_bytes(key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption()))
    return cert, private


def test_azure_an_application(login):
    made, _, url = login
    options = {
        "fs.azure.account.oauth2.client.id": "application", "fs.azure.account.oauth2.client.secret": "sesame-secret",
        "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/tenant/oauth2/token",
    }  # fmt: skip
    works(url, options, "sesame")
    assert made.tokens


def test_azure_a_machine_at_azure(login, monkeypatch):
    made, name, url = login
    plain = Guard("http://unused", b"", Login)
    plain.tokens = made.tokens
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"{plain.url}/msi")
    monkeypatch.setenv("IDENTITY_HEADER", "sesame-header")
    option = f"fs.azure.account.oauth.provider.type.{name}.dfs.core.windows.net"
    works(url, {option: "org.apache.hadoop.fs.azurebfs.oauth2.MsiTokenProvider"}, "sesame")
    assert made.tokens
    plain.server.shutdown()
    plain.server.server_close()


def test_azure_a_connection_string(azurite):
    works(azurite[1], azurite[2])


# -- HDFS ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory):
    yield from running("hdfs", tmp_path_factory)


def test_hdfs_a_configuration_and_single_settings(hdfs, tmp_path):
    _, url, _ = hdfs
    server = url.rpartition("/")[0]
    works(url, {})
    (tmp_path / "core-site.xml").write_text(f"<configuration><property><name>fs.defaultFS</name><value>{server}</value></property></configuration>")
    works("hdfs:///warehouse", {"hadoop-conf-dir": str(tmp_path)})
    works(url, {"hadoop.dfs.client.failover.max.attempts": "2"})
