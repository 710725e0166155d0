"""A marker in every credential option of every store, in each kind of catalog: no text, log line, warning, error, pickle,
task for another process or URL shows the marker, when all is well and when the catalog's server is gone."""

from __future__ import annotations

import contextlib
import logging
import pickle
import shutil
import warnings

import pyarrow as pa
import pytest
from unit.catalogs.hive_stub import StubMetastore
from unit.catalogs.rest_stub import StubServer, catalog_of
from unit.public import env
from unit.test_secrets import MARK, leaks

from paimon_py import AddColumn, Catalog, PaimonError, SetOption

OF_STORES = {
    "s3.access-key": "sesame-a", "s3.secret-key": "sesame-b", "s3.session.token": "sesame-c",
    "fs.s3a.access.key": "sesame-d", "fs.s3a.secret.key": "sesame-e", "s3.assumed.role.external.id": "sesame-f",
    "s3.encryption.key": "sesame-g", "fs.gs.auth.service.account.json.keyfile": "/sesame-h.json",
    "fs.azure.account.key.lake.dfs.core.windows.net": "sesame-i", "fs.azure.account.oauth2.client.secret": "sesame-j",
    "fs.azure.sas.fixed.token.lake.dfs.core.windows.net": "?sig=sesame-k", "fs.oss.accessKeyId": "sesame-l",
    "fs.oss.accessKeySecret": "sesame-m", "fs.oss.securityToken": "sesame-n", "hadoop.dfs.secret": "sesame-o",
    "fs.oss.server-side-encryption-key-id": "sesame-p", "security.kerberos.login.keytab": "/sesame-q",
    "table-default.my.password": "sesame-r",
}  # fmt: skip
ROWS = pa.table({"p": ["a", "b"], "k": [1, 2], "v": ["x", "y"]})


class AnyoneMayAsk(StubServer):
    """A server that looks at no signature."""

    def handle(self, method, path, query, headers, body):
        assert MARK not in headers["Authorization"].partition("Signature=")[2]
        return super().handle(method, path, query, {"Authorization": f"Bearer {self.token}"}, body)


@contextlib.contextmanager
def file_system(tmp_path):
    yield Catalog.open(tmp_path / "w", OF_STORES, env=env()), lambda: shutil.rmtree(tmp_path / "w")


@contextlib.contextmanager
def jdbc(tmp_path):
    pytest.importorskip("sqlalchemy")
    folder = tmp_path / "names"
    folder.mkdir()
    options = {
        "metastore": "jdbc", "uri": f"sqlite:///{folder}/db", "jdbc.user": "sesame-s", "jdbc.password": "sesame-t",
        **OF_STORES,
    }  # fmt: skip
    yield Catalog.open(tmp_path / "w", options, env=env()), lambda: shutil.rmtree(folder)


@contextlib.contextmanager
def hive(tmp_path):
    stub = StubMetastore()
    options = {"metastore": "hive", "uri": stub.uri, "hive.metastore.client.password": "sesame-s", **OF_STORES}
    del options["security.kerberos.login.keytab"]  # refused by name here
    try:
        yield Catalog.open(tmp_path / "w", options, env=env()), stub.close
    finally:
        stub.close()


def rest_with(server, **options):
    def break_():
        server.faults = ["before", "500 after", "garbled", "unsent"] * 100

    return catalog_of(server, env(), **{"header.X-Key": "sesame-s", **OF_STORES, **options}), break_


@contextlib.contextmanager
def rest(tmp_path):  # noqa: ARG001
    server = StubServer()
    yield rest_with(server)
    assert server.seen and not [url for _, url, _, _ in server.seen if MARK in url]
    told = [body.replace(b"sesame-r", b"").replace(b"sesame-x", b"") for *_, body in server.seen if body]
    assert told and not [body for body in told if MARK.encode() in body], "options of tables, and no others, are told"


@contextlib.contextmanager
def dlf(tmp_path):  # noqa: ARG001
    server = AnyoneMayAsk()
    keys = {
        "token.provider": "dlf", "dlf.access-key-id": "sesame-t", "dlf.access-key-secret": "sesame-u",
        "dlf.security-token": "sesame-v", "dlf.region": "r", "dlf.signing-algorithm": "default", "token": "sesame-w",
    }  # fmt: skip
    yield rest_with(server, **keys)
    assert server.seen and not [url for _, url, _, _ in server.seen if MARK in url]


@pytest.mark.parametrize("kind", [file_system, jdbc, hive, rest, dlf], ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_marker_in_every_credential_shows_nowhere(kind, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    with warnings.catch_warnings(record=True) as told, kind(tmp_path) as (catalog, break_):
        warnings.simplefilter("always")
        catalog.create_database("d")
        table = catalog.create_table("d.t", ROWS.schema, primary_key=["p", "k"], partition_by=["p"], options={"bucket": "1"})
        with table.writer() as writer:
            writer.write_arrow(ROWS)
            changes = writer.changes()
        outcome = table.commit(changes)
        table.write_arrow(ROWS)
        table.alter(AddColumn("w", "INT"), SetOption("my.secret", "sesame-x"))
        tag = table.create_tag("g")
        branch = table.create_branch("b", "g")
        scan = catalog.table("d.t").scan(columns=["k"])
        values = [
            catalog, catalog._metastore, table, table._root, table._root.registration, table._root.store, table._root.files,
            scan, scan.explain(), *scan.splits(), table.snapshot(), tag, branch, outcome, table.changes(1, 2),
            catalog.table("d.t$files"), table.schema, changes,
        ]  # fmt: skip
        found = [(type(value).__name__, leaks(value)) for value in values if leaks(value)]
        assert not found
        assert MARK.encode() not in pickle.dumps(values) + bytes(changes)
        break_()
        calls = (
            lambda: catalog.table("d.t"), lambda: catalog.tables("d"), lambda: catalog.create_database("e"),
            lambda: catalog.create_table("d.u", ROWS.schema), lambda: catalog.rename_table("d.t", "d.v"),
            lambda: catalog.drop_table("d.t"), lambda: table.alter(AddColumn("x", "INT")),
        )  # fmt: skip
        failed = 0
        for call in calls:
            try:
                call()
            except PaimonError as error:
                failed += 1
                assert not leaks(error)
        assert failed >= 3
    assert MARK not in caplog.text and not [str(one.message) for one in told if MARK in str(one.message)]
