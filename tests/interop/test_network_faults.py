"""Networks that fail between us and real servers: nothing acknowledged is lost, nothing is there twice."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import random
import subprocess
import traceback
import uuid
import warnings
from collections import Counter

import pyarrow as pa
import pytest
from catalogs.test_jdbc import mariadb, postgres  # noqa: F401 - fixtures
from catalogs.test_jdbc import server as started
from store_servers import LAUNCHERS, options_of, start, stop
from test_hive_catalogs import opening, servers  # noqa: F401 - a fixture
from toxic import FAULTS, Proxy

from paimon_py import Catalog, CommitUnknownError, PaimonError, PaimonWarning, StorageError
from paimon_py.env import Env, SystemClock
from paimon_py.metastores.hive.lock import HiveLock
from paimon_py.metastores.jdbc.lock import JdbcLock

PROCESSES = 3
ANSWERS = 60
"""Answers of all processes in one run: commits, failed or not."""

ANSWER_SECONDS = 240
ROW = pa.schema([("worker", pa.int64()), ("number", pa.int64())])

pytestmark = [
    pytest.mark.full,
    pytest.mark.server,
    pytest.mark.timeout(1200),
    # The client libraries leave their sessions to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture(scope="module")
def toxiproxy(tmp_path_factory):
    if os.environ.get("PAIMON_TEST_TOXIPROXY"):
        yield os.environ["PAIMON_TEST_TOXIPROXY"]
        return
    place = tmp_path_factory.mktemp("toxiproxy")
    found = started("toxiproxy", place)["PAIMON_TEST_TOXIPROXY"]
    try:
        yield found
    finally:
        stop("toxiproxy", place)


@pytest.fixture
def proxy(toxiproxy):
    """Makes proxies before places."""
    made = []

    def before(upstream):
        made.append(Proxy(toxiproxy, upstream))
        return made[-1]

    yield before
    for each in made:
        each.delete()


# -- processes that commit while the network fails ---------------------------------------------------------------------


def commit_on(warehouse, options, worker, answers, ended):
    """Commit until told to end. Every answer: what the row was, what became of it, and what was said."""
    try:
        number, table = 0, None
        while not ended.is_set():
            number += 1
            rows = pa.table({"worker": [worker], "number": [number]}, ROW)
            try:
                table = Catalog.open(warehouse, options).table("db.t") if table is None or number % 10 == 0 else table
                answers.put((worker, number, "done", table.write_arrow(rows).snapshot_id))
            except CommitUnknownError as error:
                answers.put((worker, number, "unknown", str(error)))
            except PaimonError as error:
                answers.put((worker, number, "failed", f"{type(error).__name__}: {error}"))
    except BaseException:
        answers.put((worker, 0, "raw", traceback.format_exc()))
        raise


def suffer(warehouse, options, disturb, calm, *, direct=None, count=ANSWERS):
    """What processes said who commit to one table while `disturb` is called after every few answers."""
    catalog = Catalog.open(warehouse, direct or options)
    catalog.create_database("db")
    more = {"commit.timeout": "2 min", "write-only": "true"}
    table = catalog.create_table("db.t", ROW, options={"bucket": "-1", **more})
    context = multiprocessing.get_context("spawn")
    answers, ended = context.Queue(), context.Event()
    workers = [
        context.Process(target=commit_on, args=(warehouse, options, worker, answers, ended)) for worker in range(PROCESSES)
    ]
    for each in workers:
        each.start()
    got = []
    try:
        while len(got) < count:
            got.append(answers.get(timeout=ANSWER_SECONDS))
            assert got[-1][2] != "raw", got[-1][3]
            if len(got) % 3 == 0:
                disturb(len(got))
    finally:
        calm()
        ended.set()
        while any(each.is_alive() for each in workers) or not answers.empty():
            with contextlib.suppress(queue.Empty):
                got.append(answers.get(timeout=1))
    assert [each.exitcode for each in workers] == [0] * PROCESSES, got[-3:]
    check(table, got)
    return got


def check(table, got):
    """Every acknowledged row once, none of a commit that failed; snapshots without a gap."""
    ids = [snapshot.id for snapshot in table.refresh().snapshots()]
    assert ids == list(range(1, len(ids) + 1))
    rows = table.scan().to_arrow()
    found = Counter(zip(rows["worker"].to_pylist(), rows["number"].to_pylist()))
    assert not found or max(found.values()) == 1, "no row is there twice"
    by_outcome = {outcome: {row[:2] for row in got if row[2] == outcome} for outcome in ("done", "failed", "unknown")}
    assert by_outcome["done"] <= set(found), "every acknowledged row is there"
    assert not by_outcome["failed"] & set(found), "no row of a commit that failed is there"
    assert set(found) <= by_outcome["done"] | by_outcome["unknown"]
    said = sorted(row[3] for row in got if row[2] == "done")
    assert len(set(said)) == len(said), "every acknowledged commit has a snapshot of its own"
    for _, _, outcome, text in got:
        if outcome != "done":
            assert len(text) > 40, "an error says what happened and what to do"


def drawn(seed, proxy):
    """Gives the network another fault each time; once there is no network at all."""
    dice = random.Random(seed)

    def disturb(count):
        if count == ANSWERS // 2:
            proxy.cut()
            return
        proxy.mend()
        proxy.suffer(dice.choice(sorted(FAULTS)))

    return disturb


@pytest.fixture(scope="module")
def s3(tmp_path_factory):
    pytest.importorskip("s3fs")
    if not LAUNCHERS.is_dir():
        pytest.skip(f"no server launchers at {LAUNCHERS}")
    place = tmp_path_factory.mktemp("s3")
    environment = start("s3", place)
    try:
        yield place, *options_of("s3", environment)
    finally:
        stop("s3", place)


@pytest.mark.parametrize("seed", range(4))
def test_a_network_that_fails_before_an_object_store_loses_nothing(s3, proxy, seed):
    _, url, direct = s3
    before = proxy(direct["s3.endpoint"].partition("://")[2])
    options = {**direct, "s3.endpoint": f"http://{before.place}"}
    got = suffer(f"{url}/{uuid.uuid4()}", options, drawn(seed, before), before.heal, direct=direct)
    assert {outcome for _, _, outcome, _ in got} > {"done"}, "without a network retries are of no use"


def test_an_object_store_that_is_started_again_loses_nothing(s3):
    place, url, options = s3
    port = options["s3.endpoint"].rpartition(":")[2]

    def again():
        subprocess.run([str(LAUNCHERS / "s3"), "start", "--port", port, "--dir", str(place)], check=True, capture_output=True)

    def disturb(count):
        if count % 24 == 9:
            stop("s3", place)
        elif count % 24 == 12:
            again()

    suffer(f"{url}/{uuid.uuid4()}", options, disturb, again)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ["postgres", "mariadb"])
def test_a_network_that_fails_before_the_catalog_loses_nothing(name, seed, tmp_path, request, proxy):
    url = request.getfixturevalue(name)
    before = proxy(place_of(url))
    direct = {
        "metastore": "jdbc", "uri": url, "catalog-key": f"k{uuid.uuid4().hex[:8]}", "fs.local.fsync": "false",
        "lock.enabled": "true", "lock-acquire-timeout": "5 s",
    }  # fmt: skip
    options = {**direct, "uri": before.before(url)}
    suffer(str(tmp_path / "w"), options, drawn(seed, before), before.heal, direct=direct)


def place_of(url):
    return url.rpartition("@")[2].partition("/")[0]


# -- a holder of a lock whom the network cuts off ----------------------------------------------------------------------


def hooked(monkeypatch, lock_class, with_the_lock):
    """Call a function once, when the lock is had and before anything is published."""
    real = lock_class.hold
    waiting = [with_the_lock]

    @contextlib.contextmanager
    def held(lock, branch):
        with real(lock, branch) as until:
            if waiting:
                waiting.pop()()
            yield until

    monkeypatch.setattr(lock_class, "hold", held)


class Watch(SystemClock):
    """The clock of a machine that can stand still: for whoever wakes up the time has gone on."""

    def __init__(self):
        self.slept = 0.0

    def elapsed(self):
        return super().elapsed() + self.slept


def cut_off(open_catalog, through, before, lock_class, monkeypatch, *, stalled):
    """Cut a holder of the lock off; another commits meanwhile, if the holder was `stalled` before the holder goes on.

    Gives what the holder was told.
    """
    catalog = open_catalog()
    catalog.create_database("cut")
    catalog.create_table("cut.t", ROW, options={"bucket": "-1"})
    watch = Watch()
    holder = open_catalog(**through, env=Env(clock=watch)).table("cut.t")
    other = catalog.table("cut.t")

    def commit_of_another():
        return other.write_arrow(pa.table({"worker": [2], "number": [1]}, ROW)).snapshot_id

    def with_the_lock():
        before.cut()
        if stalled:
            assert commit_of_another() == 1, "the lock of who is gone ends"
            watch.slept = 3600.0

    hooked(monkeypatch, lock_class, with_the_lock)
    told = None
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            told = holder.write_arrow(pa.table({"worker": [1], "number": [1]}, ROW)).snapshot_id
        except PaimonError as error:
            told = error
    before.mend()
    if not stalled:
        assert commit_of_another() == 2
    rows = Counter(other.refresh().scan().to_arrow()["worker"].to_pylist())
    assert rows[2] == 1 and rows[1] == (0 if stalled else 1)
    holder.write_arrow(pa.table({"worker": [1], "number": [2]}, ROW))
    assert [snapshot.id for snapshot in other.refresh().snapshots()] == ([1, 2] if stalled else [1, 2, 3])
    return told, [str(each.message) for each in warned if issubclass(each.category, PaimonWarning)]


@pytest.mark.parametrize("name", ["postgres", "mariadb"])
def test_who_is_cut_off_with_the_lock_of_a_database_has_published_or_publishes_nothing(
    name, tmp_path, request, proxy, monkeypatch
):
    url = request.getfixturevalue(name)
    before = proxy(place_of(url))
    for stalled in (False, True):
        key = f"k{uuid.uuid4().hex[:8]}"

        def open_catalog(env=None, key=key, **more):
            options = {"metastore": "jdbc", "uri": url, "catalog-key": key, "lock.enabled": "true", "lock-acquire-timeout": "20 s"}
            return Catalog.open(str(tmp_path / key), {**options, **more}, env=env)

        through = {"uri": before.before(url), "lock-acquire-timeout": "3 s"}
        told, warned = cut_off(open_catalog, through, before, JdbcLock, monkeypatch, stalled=stalled)
        if stalled:
            assert isinstance(told, StorageError) and not isinstance(told, CommitUnknownError), told
        else:
            assert told == 1, "what is published is published"
            assert any("lock" in text for text in warned), warned
        monkeypatch.undo()


def test_who_is_cut_off_with_the_lock_of_a_metastore_has_published_or_publishes_nothing(
    tmp_path, servers, proxy, monkeypatch  # noqa: F811
):
    """The metastore waits 30 s for a sign of life."""
    uri = servers("hive-3")
    before = proxy(uri.partition("://")[2])
    for stalled in (False, True):
        open_catalog = opening(tmp_path / f"w{stalled}", uri, **{"lock.enabled": "true"})
        open_catalog().drop_database("cut", missing_ok=True, cascade=True)
        through = {"uri": before.before(uri)}
        told, warned = cut_off(open_catalog, through, before, HiveLock, monkeypatch, stalled=stalled)
        if stalled:
            assert isinstance(told, StorageError) and not isinstance(told, CommitUnknownError), told
        else:
            assert told == 1, "what is published is published"
            assert any("lock" in text for text in warned), warned
        monkeypatch.undo()


@pytest.mark.parametrize("seed", range(2))
def test_a_network_that_fails_before_a_metastore_loses_nothing(seed, tmp_path, servers, proxy):  # noqa: F811
    uri = servers("hive-3")
    before = proxy(uri.partition("://")[2])
    direct = {"metastore": "hive", "uri": uri, "fs.local.fsync": "false", "lock.enabled": "true", "lock-acquire-timeout": "60 s"}
    opening(tmp_path / "w", uri)().drop_database("db", missing_ok=True, cascade=True)
    suffer(str(tmp_path / "w"), {**direct, "uri": before.before(uri)}, drawn(seed, before), before.heal, direct=direct)


def test_a_database_that_is_started_again_loses_nothing(tmp_path, tmp_path_factory):
    place = tmp_path_factory.mktemp("again")
    for folder in (place, *place.parents):
        if folder.owner() == "root" and str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    url = started("postgres", place)["PAIMON_TEST_POSTGRES"]
    port = place_of(url).rpartition(":")[2]
    options = {
        "metastore": "jdbc", "uri": url, "catalog-key": "k", "fs.local.fsync": "false",
        "lock.enabled": "true", "lock-acquire-timeout": "5 s",
    }  # fmt: skip

    def again():
        subprocess.run([str(LAUNCHERS / "postgres"), "start", "--port", port, "--dir", str(place)], check=True, capture_output=True)

    def disturb(count):
        if count % 24 == 9:
            stop("postgres", place)
        elif count % 24 == 12:
            again()

    try:
        suffer(str(tmp_path / "w"), options, disturb, again)
    finally:
        stop("postgres", place)
