"""Another table comes to the path of one while a rollback or a fast-forward is at work: it loses nothing.

Nothing can be done about a table that comes between a look and the call that changes something right after it.
"""

from __future__ import annotations

import functools
import json
from contextlib import suppress

import pytest
from faults.test_care_crashes import READS, VERBS, built, opened, state
from faults.test_care_pairs import PausedStore
from unit.maintain.test_remove_orphans import PATH, World, rows

from paimon_py import PaimonError
from paimon_py.testing.fault_store import FaultStore

pytestmark = pytest.mark.filterwarnings("ignore:.*consumers have read them")
OPENING = 3
"""The calls that open a table and look whether it is the one that was opened."""
EVERY = 7
CUTS = ("roll back to a snapshot", "roll back to a tag", "fast-forward")


@functools.cache
def other() -> dict[str, bytes]:
    """The files of a table with tags, branches and snapshots of the same names."""
    world = World(**{"write-only": "true", "snapshot.num-retained.min": "9"})
    for number in range(1, 8):
        world.table.write_arrow(rows(100 + number))
        if number in (2, 5):
            world.table.create_tag("old" if number == 2 else "kept")
        if number == 4:
            world.table.create_branch("b").write_arrow(rows(170))
    files = content(world.store)
    for path in [path for path in files if "/schema/" in path]:
        files[path] = json.dumps({**json.loads(files[path]), "timeMillis": 1}).encode()
    return files


def content(store) -> dict[str, bytes]:
    found, directories = {}, [PATH]
    for directory in directories:
        for status in store.list(directory):
            if status.is_directory:
                directories.append(status.path)
            else:
                found[status.path] = store.get(status.path)
    return found


def replace(store) -> None:
    store.delete_tree(PATH)
    for path, data in other().items():
        store.put(path, data)


def described(store) -> dict:
    table = opened(store)
    ids = {name: [one.id for one in table.branch(name).snapshots()] for name in ("main", *table.branches())}
    return {"rows": state(store), "ids": ids, "options": table.options}


def play(name: str, at: int, wanted: dict) -> None:
    store = built().store.copy()
    with suppress(PaimonError):
        VERBS[name](opened(PausedStore(store, at, lambda: replace(store))))
    assert described(store) == wanted


def check(name: str, chosen) -> int:
    store = built().store.copy()
    replace(store)
    wanted, runs = described(store), 0
    calls = FaultStore(built().store.copy())
    VERBS[name](opened(calls))
    for at, (verb, path) in enumerate(calls.log, 1):
        if at > OPENING and verb in READS and chosen(at):
            try:
                play(name, at, wanted)
            except (AssertionError, PaimonError) as wrong:
                raise AssertionError(f"{name}, call {at}, {verb} {path}: {wrong!r}") from wrong
            runs += 1
    return runs


@pytest.mark.parametrize("name", CUTS)
def test_a_table_that_comes_meanwhile_keeps_everything(name):
    assert check(name, lambda at: at % EVERY == 3) > 1


@pytest.mark.full
@pytest.mark.parametrize("name", CUTS)
def test_a_table_that_comes_at_any_look_keeps_everything(name):
    assert check(name, lambda at: True) > 20
