"""Credentials that end, given by a function of the user: asked for again before they end."""

import pickle
import uuid

import pyarrow as pa
import pytest

pytest.importorskip("oss2", reason='pip install "paimon-py[oss]"')

from unit.storage.object_server import ObjectServer

from paimon_py import Catalog, Schema, StorageError, Table, UsageError
from paimon_py.env import Env, SystemClock
from paimon_py.spec.credentials import Credentials
from paimon_py.storage.refreshing_store import RefreshingStore, open_refreshing
from paimon_py.storage.store import page_lister

MINUTE = 60_000


class Moving(SystemClock):
    """A clock that goes on when it is told to."""

    now = 1_700_000_000_000

    def millis(self):
        return self.now


class Giver:
    """Gives tokens of a minute, and tells the server of each; the ones before are not taken any more."""

    def __init__(self, server, clock, life=MINUTE):
        self.server = server
        self.clock = clock
        self.life = life
        self.given = []
        self.broken = False

    def __call__(self):
        if self.broken:
            raise StorageError("the vault is sealed", operation="vault", transient=True)
        ends = self.clock.now + self.life
        token = f"sesame-{len(self.given)}"
        self.given.append(ends)
        self.server.allowed = [token]
        return Credentials(
            {"fs.oss.accessKeyId": "k", "fs.oss.accessKeySecret": "sesame", "fs.oss.securityToken": token}, ends
        )


@pytest.fixture
def server():
    with ObjectServer() as found:
        yield found


@pytest.fixture
def giver(server):
    return Giver(server, Moving())


@pytest.fixture
def place(server):
    return f"oss://bucket-{uuid.uuid4()}/w", {"fs.oss.endpoint": server.url}


def rows(*keys):
    return pa.table({"k": pa.array(keys, pa.int32())})


def test_tables_can_be_used_for_longer_than_a_token_is_valid(giver, place):
    env = Env(giver.clock, credentials=giver)
    url, options = place
    catalog = Catalog.open(url, options, env=env)
    catalog.create_database("d")
    table = catalog.create_table("d.t", Schema([("k", "INT")]))
    with table.writer() as writer:
        for number in range(4):
            writer.write_arrow(rows(number))
            giver.clock.now += MINUTE // 2
        changes = writer.changes()
    giver.clock.now += MINUTE
    table.commit(changes)
    seen = []
    for batch in Table.open(table.location, options, env=env).scan().to_reader():
        seen += batch["k"].to_pylist()
        giver.clock.now += MINUTE
    assert sorted(seen) == [0, 1, 2, 3]
    assert len(giver.given) >= 3
    assert "sesame" not in repr(table) + repr(table._root.store) + repr(giver())


def test_an_open_file_continues_with_new_credentials(giver, place):
    store, root = open_refreshing(*place, Env(giver.clock, credentials=giver))
    with store.open_write(f"{root}/f") as sink:
        sink.write(b"01234")
        giver.clock.now += 2 * MINUTE
        sink.write(b"56789")
    with store.open_read(f"{root}/f") as source:
        assert source.read(2) == b"01"
        giver.clock.now += 2 * MINUTE
        assert source.read(3) == b"234" and source.tell() == 5 and source.read() == b"56789"


def test_later_pages_of_a_listing_use_new_credentials(giver, place):
    store, root = open_refreshing(*place, Env(giver.clock, credentials=giver))
    for number in range(3):
        store.put(f"{root}/d/{number}", b"1")
    lists = page_lister(store)
    giver.clock.now += 2 * MINUTE
    assert [one.name for one in lists(root, f"{root}/d/1")] == ["1", "2"]


def test_credentials_that_cannot_be_refreshed_are_used_until_they_expire(giver, place):
    store, root = open_refreshing(*place, Env(giver.clock, credentials=giver))
    store.put(f"{root}/f", b"1")
    giver.broken = True
    giver.clock.now += MINUTE * 3 // 4
    assert store.get(f"{root}/f") == b"1"
    giver.clock.now += MINUTE
    with pytest.raises(StorageError, match="sealed"):
        store.get(f"{root}/f")


def test_a_function_that_returns_no_credentials_is_refused(giver, place):
    with pytest.raises(UsageError, match="must return Credentials"):
        open_refreshing(*place, Env(credentials=lambda: {"fs.oss.accessKeyId": "k"}))
    giver.life = -5_000
    with pytest.raises(StorageError, match="expired 5 s ago"):
        open_refreshing(*place, Env(giver.clock, credentials=giver))


def given_anywhere():
    return Credentials({"fs.oss.accessKeyId": "k", "fs.oss.accessKeySecret": "sesame"})


def test_another_process_fetches_its_own_credentials(place):
    url, options = place
    store, root = open_refreshing(url, {**options, "fs.oss.securityToken": "sesame-own"}, Env(credentials=given_anywhere))
    store.put(f"{root}/f", b"1")
    pickled = pickle.dumps(store)
    assert b"sesame" not in pickled
    assert pickle.loads(pickled).get(f"{root}/f") == b"1"


def test_local_paths_need_no_credentials(tmp_path, giver):
    for url in (str(tmp_path), f"file://{tmp_path}", "memory://w/x", "plain"):
        store, _ = open_refreshing(url, {}, Env(giver.clock, credentials=giver))
        assert not isinstance(store, RefreshingStore)
    assert giver.given == []
