"""Credentials that a server hands out are renewed under running readers and writers, and never shown."""

from __future__ import annotations

import datetime
import gc
import pickle
import re

import pyarrow as pa
import pytest
from unit.catalogs.rest_stub import StubServer, catalog_of

from paimon_py import OptionError, Schema, StorageError, UsageError
from paimon_py.metastores.rest import vended
from paimon_py.storage.open import open_store

COLUMNS = Schema([("k", "BIGINT NOT NULL"), ("v", "STRING")])
TOKENS = {"data-token.enabled": "true"}


def rows(*keys):
    return pa.table({"k": list(keys), "v": ["x" * 50 for _ in keys]})


class Guarded:
    """A store that works until its credentials end, and so do the files that it opened."""

    def __init__(self, store, options, clock):
        self.store, self.options, self.clock = store, options, clock

    def check(self):
        if self.clock.millis() >= int(self.options["fs.oss.securityToken"].partition("-")[2]):
            raise StorageError("ExpiredToken", operation="any")

    def range_reader(self):
        return None

    def page_lister(self):
        def call(directory, start):
            self.check()
            return self.store.list_from(directory, start)

        return call

    def __getattr__(self, verb):
        def call(*args, **kwargs):
            self.check()
            done = getattr(self.store, verb)(*args, **kwargs)
            return GuardedFile(self, done, verb) if verb in ("open_read", "open_write") else done

        return call


class GuardedFile:
    def __init__(self, home, file, verb):
        self.home, self.file, self.writes = home, file, verb == "open_write"

    def __getattr__(self, verb):
        if verb in ("read", "write"):
            self.home.check()
        return getattr(self.file, verb)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return self.file.__exit__(*error)

    @property
    def closed(self):
        return self.file.closed

    def close(self):
        if self.writes:
            self.home.check()
        self.file.close()


@pytest.fixture
def server(monkeypatch, request):
    made = getattr(request, "param", StubServer)()
    made.life, made.given = 60_000, []

    def hand_out(full):
        end = made.clock.millis() + made.life
        made.given.append(end)
        return {"fs.oss.securityToken": f"sesame-{end}", "fs.oss.endpoint": "told"}, end

    made.vended, made.opened, made.places = hand_out, [], []

    def open_guarded(url, options):
        made.opened.append(options)
        made.places.append(url)
        store, path = open_store(url.replace("oss://", f"{made.root}/outside/"), {"fs.local.fsync": "false"})
        return Guarded(store, options, made.clock), path

    monkeypatch.setattr(vended, "open_store", open_guarded)
    return made


@pytest.fixture
def catalog(server):
    made = catalog_of(server, **TOKENS, **{"dlf.oss-endpoint": "ours", "fs.oss.securityToken": "of the user"})
    made.create_database("d")
    return made


@pytest.fixture
def table(catalog):
    return catalog.create_table("d.t", COLUMNS, options={"bucket": "-1", "file.format": "avro"})


def test_a_token_overrides_options_and_a_given_endpoint_overrides_both(table, server):
    assert server.opened[0]["fs.oss.endpoint"] == "ours" and server.opened[0]["fs.oss.securityToken"].startswith("sesame-")
    assert len(server.given) == 1


def test_reads_and_writes_outlast_their_tokens(table, server, monkeypatch):
    monkeypatch.setattr("paimon_py.files.prefetch.SMALL_BYTES", 0)  # small files would all be fetched with one token
    for number in range(8):
        table.write_arrow(rows(*range(100 * number, 100 * number + 100)))
    reader = table.scan().to_reader()
    seen = []
    for batch in reader:
        seen += batch["k"].to_pylist()
        server.clock.seconds += 45
    assert sorted(seen) == list(range(800)) and len(server.given) >= 7
    with table.writer() as writer:
        for number in range(8, 16):
            writer.write_arrow(rows(*range(100 * number, 100 * number + 100)))
            server.clock.seconds += 45
        changes = writer.changes()
    table.commit(changes)
    assert table.scan().count() == 1600


class SigningServer(StubServer):
    """Takes requests that are signed with a key of the machine's role, and each key for a minute only."""

    def send(self, method, url, headers, body):
        if url.startswith("http://metadata/"):
            end = self.clock.millis() + 60_000
            self.keys.append(end)
            ends = datetime.datetime.fromtimestamp(end // 1000, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
            return self.answer(200, {"AccessKeyId": f"key{end}", "AccessKeySecret": "s", "SecurityToken": f"t{end}", "Expiration": ends})
        return super().send(method, url, headers, body)

    def handle(self, method, path, query, headers, body):
        end = int(re.search(r"Credential=key(\d+)/", headers["Authorization"]).group(1))
        if end <= self.clock.millis() or headers["x-dlf-security-token"] != f"t{end}":
            return self.answer(401)
        return super().handle(method, path, query, {"Authorization": f"Bearer {self.token}"}, body)


@pytest.mark.parametrize("server", [SigningServer], indirect=True)
def test_a_long_scan_outlasts_its_keys_and_data_tokens(server, monkeypatch):
    monkeypatch.setattr("paimon_py.files.prefetch.SMALL_BYTES", 0)
    server.keys = []
    role = {
        "token.provider": "dlf", "dlf.token-loader": "ecs", "dlf.token-ecs-metadata-url": "http://metadata/x/", "dlf.token-ecs-role-name": "r",
        "dlf.region": "r", "dlf.signing-algorithm": "default",
    }  # fmt: skip
    catalog = catalog_of(server, **TOKENS, **role)
    catalog.create_database("d")
    table = catalog.create_table("d.t", COLUMNS, options={"bucket": "-1", "file.format": "avro"})
    for number in range(8):
        table.write_arrow(rows(*range(100 * number, 100 * number + 100)))
        server.clock.seconds += 45
    began, seen = server.clock.seconds, []
    for batch in table.scan().to_reader():
        seen += batch["k"].to_pylist()
        server.clock.seconds += 45
        assert catalog.tables("d") == ["t"]
    assert sorted(seen) == list(range(800)) and server.clock.seconds - began >= 300
    assert len(server.given) >= 7 and len(set(server.keys)) >= 12


def test_external_files_use_the_tokens_of_their_table(table, server, catalog):
    options = {
        "bucket": "-1", "file.format": "avro", "data-file.external-paths": "oss://elsewhere/x",
        "data-file.external-paths.strategy": "round-robin",
    }  # fmt: skip
    outside = catalog.create_table("d.u", COLUMNS, options=options)
    for number in range(3):
        outside.write_arrow(rows(number))
        server.clock.seconds += 61
    assert [place for place in server.places if "elsewhere" in place]
    assert server.store.list(f"{server.place}/outside/elsewhere/x")
    assert sorted(catalog.table("d.u").scan().to_arrow()["k"].to_pylist()) == [0, 1, 2]
    travelled = pickle.loads(pickle.dumps(outside._root.files))
    with pytest.raises(UsageError, match="pickles contain no tokens"):
        travelled.resolve("oss://elsewhere/x/f")


def test_reading_an_open_file_continues_with_new_credentials(table, server):
    store = table._root.store
    path = f"{table.location}/data"
    with store.open_write(path) as sink:
        sink.write(b"0123456789" * 3)
        server.clock.seconds += 50
        sink.write(b"abc")
        server.clock.seconds += 50
    with store.open_read(path) as file:
        assert file.read(4) == b"0123"
        server.clock.seconds += 61
        assert file.read(4) == b"4567" and file.tell() == 8
        server.clock.seconds += 61
        into = bytearray(3)
        assert file.readinto(into) == 3 and into == b"890" and file.seek(-3, 2) == 30
        server.clock.seconds += 61
        assert file.read() == b"abc" and file.seekable() and file.readable()
    assert store.get(path) == b"0123456789" * 3 + b"abc"


def test_an_abandoned_new_file_is_not_written(table, server):
    store, path = table._root.store, f"{table.location}/data"
    with pytest.raises(KeyError), store.open_write(path) as sink:
        sink.write(b"x")
        raise KeyError
    assert store.stat(path) is None and sink.closed
    sink = store.open_write(path)
    sink.write(b"x")
    server.vended = lambda _: ({"fs.oss.securityToken": "sesame-0"}, 0)
    server.clock.seconds += 61
    with pytest.raises(StorageError, match="credentials from the server for 'd.t' expired"):
        sink.close()
    del sink
    gc.collect()


def test_long_tokens_are_refreshed_an_hour_before_expiry_and_files_are_written_directly(table, server):
    server.life = 3 * 3_600_000
    server.clock.seconds += 61
    store = table._root.store
    store.get(f"{table.location}/schema/schema-0")
    count = len(server.given)
    server.clock.seconds += 2 * 3600 - 2
    store.get(f"{table.location}/schema/schema-0")
    assert len(server.given) == count
    with store.open_write(f"{table.location}/data") as sink:
        assert isinstance(sink, GuardedFile)
        sink.write(b"x")
    server.clock.seconds += 3
    store.get(f"{table.location}/schema/schema-0")
    assert len(server.given) == count + 1


def test_an_unavailable_server_does_no_harm_while_credentials_are_valid(table, server):
    store, path = table._root.store, f"{table.location}/schema/schema-0"
    server.clock.seconds += 35
    server.faults = ["unsent"]
    assert store.get(path)
    server.faults = ["unsent"] * 1000
    asked = len(server.calls)
    assert store.get(path) and len(server.calls) == asked
    server.clock.seconds += 30
    with pytest.raises(StorageError, match="connection refused"):
        store.get(path)
    server.faults = []
    assert store.get(path)


def test_revoked_permissions_are_an_error_immediately(table, server):
    server.clock.seconds += 35
    server.forbidden.add("d.t")
    with pytest.raises(StorageError, match="do not permit this"):
        table._root.store.get(f"{table.location}/schema/schema-0")


def test_an_invalid_boolean_option_is_refused(server):
    catalog = catalog_of(server, **{"data-token.enabled": "yes"})
    catalog.create_database("d")
    with pytest.raises(OptionError, match="data-token.enabled"):
        catalog.create_table("d.t", COLUMNS)
    assert server.tables == {}


def test_credentials_are_neither_shown_nor_pickled(table):
    for value in (table, table._root.store, table.scan()):
        data = pickle.dumps(value)
        assert b"sesame" not in data and "sesame" not in repr(value)
    with pytest.raises(UsageError, match="pickles contain no tokens"):
        pickle.loads(data).to_arrow()
