"""A REST catalog that hands out credentials for a real store: a client without keys of its own reads and writes a table, and
its data files in another bucket, with what the server gave, and with nothing once that is taken back."""

from __future__ import annotations

import uuid
import xml.etree.ElementTree as ElementTree

import pyarrow as pa
import pytest
from store_servers import asked, running
from unit.catalogs import rest_stub
from unit.catalogs.rest_stub import StubServer, catalog_of

from paimon_py import Schema, StorageError
from paimon_py.env import Env

pytest.importorskip("s3fs")
pytestmark = [
    pytest.mark.full,
    pytest.mark.server,
    # The client libraries leave their sessions to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
COLUMNS = Schema([("k", "BIGINT NOT NULL"), ("v", "STRING")])


@pytest.fixture(scope="module")
def minio(tmp_path_factory):
    yield from running("s3-minio", tmp_path_factory)


@pytest.fixture
def server(minio, monkeypatch, tmp_path):
    _, bucket, options = minio
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    open_plain = rest_stub.open_store
    monkeypatch.setattr(rest_stub, "open_store", lambda url, given: open_plain(url, {**options, **given}))
    made = StubServer(f"{bucket}/{uuid.uuid4().hex}")
    made.given = []

    def hand_out(full):
        told = asked(options, "POST", "/", b"Action=AssumeRole&Version=2011-06-15&DurationSeconds=900")
        given = {node.tag.rpartition("}")[2]: node.text for node in ElementTree.fromstring(told).iter()}  # noqa: S314
        made.given.append(full)
        return {
            **options, "s3.access-key": given["AccessKeyId"], "s3.secret-key": given["SecretAccessKey"],
            "s3.session.token": given["SessionToken"],
        }, made.clock.millis() + 60_000  # fmt: skip

    made.vended = hand_out
    return made


def test_a_table_and_its_files_elsewhere_are_reached_with_what_the_server_hands_out(server, minio):
    options = minio[2]
    other = f"other-{uuid.uuid4().hex[:8]}"
    asked(options, "PUT", f"/{other}")
    catalog = catalog_of(server, Env(server.clock), **{"data-token.enabled": "true"})
    catalog.create_database("d")
    outside = {"data-file.external-paths": f"s3://{other}/x", "data-file.external-paths.strategy": "round-robin"}
    table = catalog.create_table("d.t", COLUMNS, primary_key=["k"], options={"bucket": "1", **outside})
    for number in range(6):
        table.write_arrow(pa.table({"k": [number], "v": ["x"]}))
        server.clock.seconds += 45
    table.compact(full=True)
    assert sorted(catalog.table("d.t").scan().to_arrow()["k"].to_pylist()) == list(range(6))
    assert b"<Key>x/bucket-0/" in asked(options, "GET", f"/{other}?list-type=2") and len(server.given) >= 5
    assert catalog.table("d.t").doctor() is not None
    server.vended = lambda _: ({**options, "s3.secret-key": "sesame-taken-back"}, server.clock.millis() + 60_000)
    server.clock.seconds += 120
    with pytest.raises(StorageError) as caught:
        table.write_arrow(pa.table({"k": [7], "v": ["x"]}))
    assert "sesame" not in str(caught.value)
