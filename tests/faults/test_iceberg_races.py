"""Publishers of one table at the same time: at every store call of one of them another goes on first.

Whatever the order, the Iceberg history goes on, readers find the newest snapshot in the end, a catalog never goes back,
and every file that readers are referred to is there. A Hive Metastore does not compare: there a late publisher can set
the entry back, to a version that may be deleted, and has shown the newest version again when its verb returns.
"""

from __future__ import annotations

import functools
import json
import random

import pytest
from simulation.world import Clock, Event, Ids, World
from unit.iceberg.reader import live_files, metadata, rows
from unit.iceberg.rest_server import FakeRestServer
from unit.iceberg.support import COLUMNS, ON, PATH, data, stored

from paimon_py import Catalog
from paimon_py.env import Env, SerialPool
from paimon_py.errors import StorageError
from paimon_py.iceberg.catalogs import hive
from paimon_py.iceberg.directory import version_numbers
from paimon_py.metadata.root import TableRoot
from paimon_py.metastores.hive.records import parameters
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.table import Table

pytestmark = pytest.mark.filterwarnings("ignore::paimon_py.PaimonWarning")

KEPT = {"snapshot.num-retained.min": "100"}
PLACES = {
    "table": ({}, f"{PATH}/metadata"),
    "keeping": ({"metadata.iceberg.previous-versions-max": "2"}, f"{PATH}/metadata"),
    "hadoop": ({"metadata.iceberg.storage": "hadoop-catalog"}, "/w/iceberg/d/t/metadata"),
    "rest": ({"metadata.iceberg.storage": "rest-catalog", "metadata.iceberg.rest.uri": "http://s"}, "/w/iceberg/d/t/metadata"),
    "hive": ({"metadata.iceberg.storage": "hive-catalog", "metadata.iceberg.uri": "thrift://s:1"}, "/w/iceberg/d/t/metadata"),
}


class Switches:
    """Chooses who goes on: `points` are (actor, number of its call in a publication, who goes on before it)."""

    def __init__(self, points=(), rng=None):
        self.points = {(actor, number): to for actor, number, to in points}
        self.counts = {}
        self.rng = rng
        self.publishing = set()

    def events(self, world, actor, verb, path):
        if "/metadata" in path or verb == "catalog":
            self.publishing.add(actor.index)
        looks_back = "/snapshot/snapshot-" in path and actor.index in self.publishing
        if "/metadata" not in path and verb != "catalog" and not looks_back:
            return []
        number = self.counts[actor.index] = self.counts.get(actor.index, 0) + 1
        if self.rng is not None and self.rng.random() < 0.2:
            return [Event(actor.index, actor.steps, "to", self.rng.randrange(len(world.actors)))]
        to = self.points.get((actor.index, number))
        return [] if to is None else [Event(actor.index, actor.steps, "to", to)]


class HiveEntries:
    """The entries of a metastore; its calls are steps of the actor."""

    def __init__(self, env, race):
        self.actor, self.race = env.ids.owner, race
        self.client = type("Client", (), {"settings": type("Settings", (), {"user": "u"})})

    def _step(self):
        self.race.catalog_step(self.actor)

    def table(self, name):
        self._step()
        return self.race.entries.get(name)

    def database(self, name):
        return {}

    def create_table(self, name, record):
        self._step()
        if name in self.race.entries:
            return False
        self.race.entries[name] = record
        self.race.look(self.actor)
        return True

    def alter_table(self, name, record, settings):
        self._step()
        self.race.entries[name] = record
        self.race.look(self.actor)


class Race:
    """One run: actors on a copy of a prepared table."""

    def __init__(self, place, state, programs, chooser, server=None):
        self.server, self.entries, self.world = server, {}, None
        self.shown, self.broken = [], []
        self.late, self.stayed_late = set(), []
        self.directory = PLACES[place][1]
        self.place = place
        before, tables, entries, seconds = prepared(place, state)
        self.clock = Clock(seconds + 1)
        self.store = before.copy()
        if server is not None:
            server.store, server.tables = self.store, json.loads(tables)
            server.tables = {tuple(name.split(".")): value for name, value in server.tables.items()}
            server.namespaces, server.before = {"d"}, None
        self.entries = dict(entries)
        self.world = World(self.store, self.clock, [functools.partial(self.run, steps) for steps in programs], chooser)
        CURRENT.append(self)
        try:
            self.world.run()
        finally:
            CURRENT.pop()

    def run(self, steps, actor):
        table = opened(actor.store, actor.env)
        for step in steps:
            call = actor.call(None, lambda step=step: step(table), "step")
            assert call.end == "done" or "rollback_to is in progress" in str(call.error), call
            if actor.env.ids.owner in self.late:
                self.stayed_late.append((call, list(self.shown)))
            table = opened(actor.store, actor.env)

    def catalog_step(self, owner):
        actor = next((one for one in self.world.actors if one.env.ids.owner == owner), None) if self.world else None
        if actor is not None:
            self.world.step(actor, "catalog", "")

    def look(self, owner):
        """Note what readers of the catalog see after a change by an actor, and whether all of it is there."""
        try:
            self._look(owner)
        except (LookupError, StorageError) as error:  # the publisher would take it for a failure of the catalog
            self.broken.append(error)

    def _look(self, owner):
        if self.server is not None and ("d", "t") in self.server.tables:
            value = self.server.tables["d", "t"]
        elif self.entries:
            value = self._entry(owner)
        else:
            return
        if value is not None:
            require_files(self.store, value)
            self.shown.append(value["current-snapshot-id"])

    def _entry(self, owner):
        """The version that the entry of the metastore names; None if the entry was set back by an actor that is late."""
        (record,) = self.entries.values()
        path = parameters(record)[hive.LOCATION]
        if version_numbers([path.rpartition("/")[2]])[0] < max(self.shown, default=0):
            self.late.add(owner)
            return None
        self.late.clear()
        return json.loads(self.store.get(path))

    def judge(self, *, goes_on=True, moves=False):
        """What readers find in the end. `goes_on`: with all of the history; `moves`: the table was rolled back."""
        table = opened(self.store, env(self.clock, "judge"))
        latest = table.snapshot().id
        value = metadata(self.store, self.directory)
        assert self.store.get(f"{self.directory}/version-hint.text") == str(latest).encode()
        assert f"v{latest + 1}.metadata.json" not in {one.name for one in self.store.list(self.directory)}
        self._judge(table, value, latest, goes_on)
        if self.server is not None:
            self._judge(table, self.server.tables["d", "t"], latest, goes_on)
        if self.entries:
            (record,) = self.entries.values()
            self._judge(table, json.loads(self.store.get(parameters(record)[hive.LOCATION])), latest, goes_on)
        assert moves or self.shown == sorted(self.shown), "the catalog went back"
        assert moves or not self.stayed_late, self.stayed_late
        assert moves or not self.broken, self.broken  # the publisher of a rolled back commit can show it for a moment

    def _judge(self, table, value, latest, goes_on):
        assert value["current-snapshot-id"] == latest
        listed = [one["snapshot-id"] for one in value["snapshots"]]
        assert not goes_on or listed == list(range(1, latest + 1)), "the history begins anew"
        require_files(self.store, value)
        assert rows(self.store, value) == stored(table)
        tags = {tag.name: tag.snapshot.id for tag in table._root.tags.list() if tag.snapshot.id in listed}
        assert {name: ref["snapshot-id"] for name, ref in value["refs"].items()} == {"main": latest, **tags}


CURRENT = []


def require_files(store, value):
    """All that the snapshots of a version name is there."""
    for one in value["snapshots"]:
        for file in live_files(store, value, one["snapshot-id"])[0]:
            assert store.stat(file["file_path"]) is not None


def env(clock, owner):
    return Env(clock, Ids(owner), SerialPool())


def opened(store, given):
    root = TableRoot(store, PATH, given)
    return Table(root, root.schemas.latest(), "d.t")


@functools.cache
def prepared(place, state):
    """The store, the tables of a server and the entries of a metastore, and the seconds that passed."""
    clock = Clock()
    store = MemoryStore(clock=clock)
    server = SERVERS[-1]
    server.store, server.tables, server.before = store, {}, None
    keeper = type("Keeper", (), {"entries": {}, "catalog_step": lambda *_: None, "look": lambda *_: None})()
    CURRENT.append(keeper)
    catalog = Catalog(store, "/w", env=env(clock, "setup"))
    catalog.create_database("d")
    options = {**ON, **KEPT, **PLACES[place][0]}
    catalog.create_table("d.t", COLUMNS, options=options)
    if state == "again":
        for number in range(5):
            catalog.table("d.t").write_arrow(data(number))
            clock.seconds += 1
        catalog.drop_table("d.t")
        clock.seconds += 1
        catalog.create_table("d.t", COLUMNS, options=options)
    for number in range({"new": 0, "again": 0, "some": 3}[state]):
        catalog.table("d.t").write_arrow(data(number))
        clock.seconds += 1
    CURRENT.pop()
    tables = json.dumps({".".join(name): value for name, value in server.tables.items()})
    return store, tables, dict(keeper.entries), clock.seconds


SERVERS = []


@pytest.fixture(autouse=True)
def catalogs(monkeypatch):
    """A REST server and a metastore in memory; requests are steps of the actor that sends them."""
    server = FakeRestServer()
    SERVERS.append(server)

    class Sender:
        def __init__(self, ids):
            self.owner = ids.owner

        def send(self, *request):
            if CURRENT:
                CURRENT[-1].catalog_step(self.owner)
            answer = server.send(*request)
            if CURRENT and request[0] == "POST" and answer.status == 200:
                CURRENT[-1].look(self.owner)
            return answer

    def open_hive(table):
        names = [hive.TableName("d", "t")]
        return hive.HiveIcebergCatalog(HiveEntries(table.root.env, CURRENT[-1]), names, table.schema, table.root.env, {})

    monkeypatch.setattr("paimon_py.iceberg.catalogs.rest.HttpSender", Sender)
    monkeypatch.setattr(hive, "open_hive", open_hive)
    yield server
    SERVERS.pop()


def write(number):
    return lambda table: table.write_arrow(data(number))


VERBS = {
    "write": write(77),
    "two": lambda table: [table.write_arrow(data(78)), table.write_arrow(data(79))],
    "tag": lambda table: table.create_tag(f"x{table._root.env.ids.uuid()}"),
    "publish": lambda table: table.publish_iceberg(),
    "roll back": lambda table: table.rollback_to(max(table.snapshot().id - 1, 1)),
}


def race(place, state, programs, chooser):
    server = SERVERS[-1] if place == "rest" else None
    return Race(place, state, programs, chooser, server)


@pytest.mark.full
@pytest.mark.parametrize("state", ["new", "some", "again"])
@pytest.mark.parametrize("place", PLACES)
def test_another_commit_is_published_at_every_call_of_a_publication(place, state):
    if state == "again" and place in ("table", "keeping"):
        pytest.skip("a dropped table leaves no metadata in its directory")
    number, is_over = 1, False
    while not is_over:
        chooser = Switches([(0, number, 1)])
        done = race(place, state, [[write(50)], [write(60), write(61)]], chooser)
        done.judge()
        is_over = number > chooser.counts[0]
        number += 1
    assert number > 10


def race_at_every_call(place, first, second):
    """One verb, and another one that begins and ends before each of its calls that matter to a publication."""
    number, is_over = 1, False
    told = {first, second}
    while not is_over:
        chooser = Switches([(0, number, 1)])
        done = race(place, "some", [[VERBS[first]], [VERBS[second]]], chooser)
        done.judge(goes_on=not told & {"publish", "roll back"}, moves="roll back" in told)
        is_over = number > chooser.counts.get(0, 0)
        number += 1
    assert number > 2


@pytest.mark.parametrize(
    "place, first, second",
    [
        ("rest", "publish", "publish"),  # each dropped the entry of the other, and gave up
        ("rest", "publish", "write"),
        ("rest", "write", "tag"),
        ("table", "write", "roll back"),  # a version that the rollback shows again was deleted as old
        ("keeping", "roll back", "publish"),
        ("hive", "tag", "roll back"),
        ("hive", "write", "write"),
    ],
)
def test_another_verb_runs_at_every_call_of_a_publication(place, first, second):
    race_at_every_call(place, first, second)


class Backwards(SerialPool):
    """Runs parallel calls one after the other, the last one first."""

    def map(self, function, items):
        return iter([function(item) for item in reversed(list(items))][::-1])


@pytest.fixture
def backwards(monkeypatch):
    """Calls that a distant store carries out in parallel run in the opposite order."""
    monkeypatch.setitem(globals(), "SerialPool", Backwards)
    monkeypatch.setattr("paimon_py.env.is_distant", lambda _place: True)


@pytest.mark.parametrize("place, second", [("table", "write"), ("hadoop", "roll back"), ("rest", "tag"), ("keeping", "two")])
def test_another_verb_runs_at_every_call_of_a_publication_that_continues_its_own(backwards, place, second):
    """The second commit of one table object writes its files before it reads the version that it continues."""
    race_at_every_call(place, "two", second)


@pytest.mark.parametrize("seed", range(500, 504))
def test_publishers_that_take_turns_at_random_run_parallel_calls_backwards(backwards, seed):
    run_seed(seed)


@pytest.mark.full
@pytest.mark.parametrize("start", range(600, 800, 50))
def test_many_publishers_that_take_turns_at_random_run_parallel_calls_backwards(backwards, start):
    for seed in range(start, start + 50):
        run_seed(seed)


@pytest.mark.full
@pytest.mark.parametrize("first", VERBS)
@pytest.mark.parametrize("place", PLACES)
def test_every_verb_runs_at_every_call_of_every_publication(place, first):
    for second in VERBS:
        race_at_every_call(place, first, second)


def run_seed(seed):
    """Two or three actors that commit, tag, publish or roll back, in an order drawn by a seed."""
    rng = random.Random(seed)
    place, state = rng.choice(list(PLACES)), rng.choice(("new", "some", "some", "again"))
    state = "new" if state == "again" and place in ("table", "keeping") else state
    kinds = rng.choice((("write", "two"), ("write", "two", "tag"), ("write", "tag", "publish"), tuple(VERBS)))
    first = ["write"] if state != "some" else [rng.choice(kinds)]
    names = [first, *([rng.choice(kinds) for _ in range(rng.choice((1, 2)))] for _ in range(rng.choice((1, 2))))]
    if state != "some":
        names = [[name if name in ("write", "two") else "write" for name in one] for one in names]
    told = {name for one in names for name in one}
    done = race(place, state, [[VERBS[name] for name in one] for one in names], Switches(rng=rng))
    done.judge(goes_on=not told & {"publish", "roll back"}, moves="roll back" in told)


@pytest.mark.parametrize("seed", range(8))
def test_publishers_that_take_turns_at_random(seed):
    run_seed(seed)


@pytest.mark.full
@pytest.mark.parametrize("start", range(100, 500, 50))
def test_many_publishers_that_take_turns_at_random(start):
    for seed in range(start, start + 50):
        run_seed(seed)
