"""Another table comes to the path of one between two calls of any verb: it loses nothing, and gets nothing.

The other table has tags, branches, consumers, users and snapshots of the same names and numbers. Nothing can be done
about one that comes between a look and the call that changes something right after it; at most the files that one look
covers are lost then.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest
from faults.test_care_crashes import READS, built, opened
from faults.test_care_pairs import VERBS as CARE
from faults.test_care_pairs import PausedStore
from unit.maintain.test_remove_orphans import PATH, World, rows

from paimon_py import PaimonError, Table
from paimon_py.metadata.consumers import Consumer
from paimon_py.metadata.root import SAME_AT_ONCE
from paimon_py.metadata.user_files import UserFile
from paimon_py.spec.snapshot import Base
from paimon_py.spec.users import UserCommit
from paimon_py.storage.memory_store import MemoryStore, _File
from paimon_py.testing.fault_store import FaultStore

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*consumers have read them"),
    pytest.mark.filterwarnings("ignore:.*was committed, but"),
]
OPENING = 3
"""The calls that open a table and look whether it is the one that was opened."""
EVERY = 31
NAMED_BY_UUIDS = ("/manifest/", "/bucket-", "/statistics/", "/index/")
HINTS = ("/LATEST", "/EARLIEST", "/ANCESTOR")
AT_MOST = {"delete_tree": 1000, "rename_directory": 1000}
"""The files that one call may take."""
ALL = {"retain_min": 1, "retain_max": 1}
AGE = timedelta(minutes=1)
CHANGELOGS = {"changelog.num-retained.max": "99", "changelog.num-retained.min": "99"}
OWN_CARE = {
    "write-only": "false", "snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2",
    "changelog.num-retained.max": "3", "changelog.num-retained.min": "1", "tag.time-expire-enabled": "true",
    "consumer.expiration-time": "1 h", "tag.automatic-creation": "batch", "tag.num-retained-max": "1",
}  # fmt: skip
"""Commits look after the table."""


def lived(first: int, last: int, options: dict[str, str]) -> World:
    """A table with snapshots, tags, branches, consumers and users, and kept changelogs if its options say so."""
    world = World()
    world.clock.start += first
    world.catalog.drop_table("d.t")
    world.table = table = world.make("t", **{"snapshot.num-retained.min": "9", "write-only": "true", **options})
    root = table._root
    for number in range(1, last + 1):
        table.write_arrow(rows(first + number, first + number + 10), user="u", identifier=first + number)
        if number in (2, 5):
            table.create_tag("old" if number == 2 else "kept")
        if number == 3:
            table.create_tag("brief", retain=AGE)
        if number == 4:
            table.create_branch("b").write_arrow(rows(first + 70))
    read = Base.of(root.snapshots.get(last - 1))
    for name in ("job", "slow"):
        root.consumers.put(Consumer(name, last), read)
    root.users.put(UserFile("gone", UserCommit(first, 1), "x"))
    table.expire_snapshots(retain_min=5, retain_max=5)
    return world


@functools.cache
def caring(**options: str) -> World:
    """A table of which much may go."""
    world = lived(0, 6, options)
    world.table.expire_snapshots(retain_min=4, retain_max=4)
    for name in ("job", "slow"):
        world.table._root.consumers.put(Consumer(name, 7), Base.of(world.table._root.snapshots.latest()))
    world.plant("p=1/bucket-0/data-orphan", "consumer/mark-left")
    world.pass_days(40)
    return world


def on(options: dict[str, str], verb: Callable[[Table], object]) -> tuple[Callable[[], World], Callable[[Table], object]]:
    return functools.partial(caring, **options), verb


VERBS: dict[str, tuple[Callable[[], World], Callable[[Table], object]]] = {
    **{name: (built, verb) for name, verb in CARE.items()},
    "expire snapshots, keep changelogs": on(CHANGELOGS, lambda table: table.expire_snapshots(**ALL)),
    "expire changelogs": on(CHANGELOGS, lambda table: table.expire_changelogs(**ALL)),
    "roll back with changelogs": on(CHANGELOGS, lambda table: table.rollback_to("old")),
    "fast-forward with changelogs": on(CHANGELOGS, lambda table: table.fast_forward("b", discard=True)),
    "forget users": on({}, lambda table: table.remove_orphans(dry_run=False)),
    "expire tags of a time": on({}, lambda table: table.expire_tags()),
    "take care after a commit": on(OWN_CARE, lambda table: table.write_arrow(rows(95))),
    "number a commit": on({}, lambda table: table.write_arrow(rows(96), user="u", identifier=7)),
    "delete one of two consumers": on({}, lambda table: table.delete_consumer("slow")),
    "expire partitions": on({}, lambda table: table.expire_partitions(older_than=AGE, strategy="update-time")),
}


QUICK = ("create a branch", "rename a tag", "expire snapshots", "delete a consumer")
"""The verbs whose calls are all tried in every run."""


def content(store: MemoryStore) -> dict[str, bytes]:
    found, directories = {}, [PATH]
    for directory in directories:
        for status in store.list(directory):
            if status.is_directory:
                directories.append(status.path)
            else:
                found[status.path] = store.get(status.path)
    return found


@functools.cache
def other(name: str) -> dict[str, bytes]:
    """The files of the table that comes."""
    return content(lived(100, 7, OWN_CARE if "take care" in name else CHANGELOGS).store)


def replace(store: MemoryStore, name: str) -> None:
    """Let another table take the place, whose files are as old as those of the first one."""
    times = {status.path.rpartition("/")[0]: status.modified_millis for status in store.list_from(PATH, "")}
    oldest = min(millis for millis in times.values() if millis is not None)
    store.delete_tree(PATH)
    for path, data in other(name).items():
        store.put(path, data)
        directory, _, file = path.rpartition("/")
        store._directories[directory][file] = _File(data, oldest - 1)


def differences(store: MemoryStore, name: str) -> list[str]:
    """What the table that came has lost, what has changed, and what it got; the hints aside."""
    now, wanted = content(store), other(name)
    found = [f"{'changed' if path in now else 'lost'} {path}" for path in wanted if now.get(path) != wanted[path]]
    strange = [path for path in now if path not in wanted]
    found += [f"new {path}" for path in strange if not any(part in path for part in NAMED_BY_UUIDS)]
    return [one for one in found if not one.endswith(HINTS)]


def play(name: str, at: int) -> list[str]:
    """What another table loses that comes before a call."""
    world, verb = VERBS[name]
    store = world().store.copy()
    with suppress(PaimonError):
        verb(opened(PausedStore(store, at, lambda: replace(store, name))))
    return [one.replace(PATH, "") for one in differences(store, name)]


def calls(name: str) -> list[tuple[str, str]]:
    world, verb = VERBS[name]
    store = FaultStore(world().store.copy())
    verb(opened(store))
    return store.log


def check(name: str, chosen: Callable[[int], bool]) -> int:
    runs = 0
    for at, (verb, path) in enumerate(calls(name), 1):
        if at <= OPENING or not chosen(at):
            continue
        found, runs = play(name, at), runs + 1
        if verb in READS:
            assert not found, f"{name}, call {at}, {verb} {path}"
        else:
            assert len(found) <= AT_MOST.get(verb, SAME_AT_ONCE), f"{name}, call {at}, {verb} {path}: {found}"
            assert not any(part in one for one in found for part in NAMED_BY_UUIDS), found
    return runs


def test_a_table_recreated_at_some_calls_loses_nothing():
    numbers = itertools.count(1)
    assert sum(check(name, lambda at: next(numbers) % EVERY == 3) for name in list(VERBS)[::3]) > 10


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.full) for name in VERBS]
)
def test_a_table_recreated_at_any_call_loses_nothing(name):
    assert check(name, lambda at: True) > 3


@pytest.mark.parametrize("options", [{}, CHANGELOGS], ids=["snapshots", "changelogs"])
def test_a_long_expiry_checks_the_table_repeatedly(options):
    world = World(**{"write-only": "true", "snapshot.num-retained.min": "99", **options})
    for number in range(40):
        world.table.write_arrow(rows(number))
    store = FaultStore(world.store)
    opened(store).expire_snapshots(**ALL)
    numbered = ("/snapshot/snapshot-", "/changelog/changelog-")
    paths = [path for verb, path in store.log if verb in ("put", "delete", "list")]
    shown = [path for path in paths if path.endswith("/schema") or path.rstrip("0123456789").endswith(numbered)]
    asked = [path.endswith("/schema") for path in shown]
    runs = [len(list(run)) for is_look, run in itertools.groupby(asked) if not is_look]
    assert sum(runs) >= 39 and max(runs) <= SAME_AT_ONCE


def emptied(store: MemoryStore) -> None:
    """Let an empty table take the place, a moment later."""
    world = World()
    store._clock.start += 5
    world.clock.start = store._clock.start
    world.catalog.drop_table("d.t")
    world.make("t")
    store.delete_tree(PATH)
    for path, data in content(world.store).items():
        store.put(path, data)


@pytest.mark.parametrize("before", [0, 3])
def test_an_empty_recreated_table_receives_no_commit(before):
    def begun() -> MemoryStore:
        world = World()
        for number in range(before):
            world.table.write_arrow(rows(number))
        return world.store.copy()

    log = FaultStore(begun())
    opened(log).write_arrow(rows(9))
    for at in range(OPENING + 1, log.count + 1):
        store = begun()
        error = None
        try:
            opened(PausedStore(store, at, functools.partial(emptied, store))).write_arrow(rows(9))
        except PaimonError as wrong:
            error = wrong
        snapshots = opened(store).snapshots()
        assert snapshots == [], f"call {at} of {log.log}: {error!r}"


BRANCH_VERBS: dict[str, Callable[[Table], object]] = {
    "expire": lambda branch: branch.expire_snapshots(**ALL),
    "create a tag": lambda branch: branch.create_tag("mine"),
    "delete a tag": lambda branch: branch.delete_tag("own"),
    "rename a tag": lambda branch: branch.rename_tag("own", "mine"),
    "replace a tag": lambda branch: branch.replace_tag("own"),
    "roll back": lambda branch: branch.rollback_to(5),
    "write": lambda branch: branch.write_arrow(rows(97), user="u", identifier=100),
    "reset a consumer": lambda branch: branch.reset_consumer("job", 5),
    "delete a consumer": lambda branch: branch.delete_consumer("job"),
}


def grown(table: Table, first: int) -> None:
    """Create a branch with snapshots, a tag, a consumer and a user."""
    branch = table.create_branch("b", from_="old")
    for number in range(first, first + 4):
        branch.write_arrow(rows(number), user="u", identifier=number)
    branch.create_tag("own", 4)
    branch._root.consumers.put(Consumer("job", 5), Base.of(branch._root.snapshots.get(4)))


@functools.cache
def branched() -> MemoryStore:
    store = caring().store.copy()
    opened(store).delete_branch("b")
    grown(opened(store), 60)
    return store


def regrown(store: MemoryStore) -> dict[str, bytes]:
    """Let another branch take the place, a moment later."""
    store._clock.start += 5
    opened(store).delete_branch("b")
    grown(opened(store), 80)
    return {path: data for path, data in content(store).items() if "/branch-b/" in path}


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.full) for name in BRANCH_VERBS]
)
def test_another_branch_of_the_name_keeps_everything(name):
    counted = FaultStore(branched().copy())
    branch = opened(counted).branch("b")
    opening = counted.count + 1  # and the look before a verb
    BRANCH_VERBS[name](branch)
    for at, (verb, path) in enumerate(counted.log, 1):
        if at <= opening or verb not in READS:
            continue
        store, came = branched().copy(), list[dict[str, bytes]]()
        with suppress(PaimonError):
            paused = PausedStore(store, at, lambda store=store, came=came: came.append(regrown(store)))
            BRANCH_VERBS[name](opened(paused).branch("b"))
        now, wanted = content(store), came[0]
        found = [one for one in wanted if now.get(one) != wanted[one]]
        found += [one for one in now if "/branch-b/" in one and one not in wanted]
        assert [one for one in found if not one.endswith(HINTS)] == [], f"call {at}, {verb} {path}"
