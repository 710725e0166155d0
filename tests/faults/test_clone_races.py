"""Somebody else works on the source or the target of a clone, between any two of its calls.

The clone is a state that the source had, as a whole, or there is none; a table that somebody else creates at the target
keeps everything, and gets nothing.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from contextlib import suppress

import pytest
from faults.test_care_pairs import PausedStore
from faults.test_clone_faults import NoRename, catalog, files_below
from unit.commit.support import Clock

from paimon_py import AddColumn, AlreadyExistsError, Catalog, NotFoundError, PaimonError, Schema, Table
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.fault_store import FaultStore

pytestmark = pytest.mark.filterwarnings("ignore:.*consumers have read them")
COLUMNS = Schema({"id": "BIGINT NOT NULL", "v": "STRING"})
OPTIONS = {"bucket": "1", "changelog-producer": "input", "write-only": "true", "snapshot.num-retained.min": "9"}


def lived(made: Catalog, name: str, first: int, count: int) -> Table:
    """A table with snapshots, tags, two schemas and a user that numbers its commits."""
    table = made.create_table(name, COLUMNS, primary_key=["id"], options=OPTIONS)
    for number in range(1, count + 1):
        table.write_arrow([{"id": first + number, "v": "a"}], user="u", identifier=first + number)
        if number in (1, 3):
            table.create_tag("one" if number == 1 else "three")
        if number == 2:
            table.alter(AddColumn("n", "INT"))
    return table


@functools.cache
def built(kind: type[MemoryStore]) -> MemoryStore:
    store = kind(clock=Clock())
    made = catalog(store, "setup")
    made.create_database("a")
    made.create_database("b")
    lived(made, "a.t", 0, 5)
    return store


def rolled_back(made: Catalog) -> None:
    table = made.table("a.t")
    table.rollback_to(3)
    for number in (4, 5, 6):
        table.write_arrow([{"id": 70 + number}], user="u", identifier=70 + number)


def expired(made: Catalog) -> None:
    table = made.table("a.t")
    table.compact(full=True)
    table.expire_snapshots(retain_min=1, retain_max=1)


def without_tags(made: Catalog) -> None:
    table = made.table("a.t")
    for name in ("one", "three"):
        table.delete_tag(name)
    expired(made)


def went_on(made: Catalog) -> None:
    table = made.table("a.t")
    table.alter(AddColumn("m", "INT"))
    table.write_arrow([{"id": 90, "m": 1}])
    table.replace_tag("one")


def recreated(made: Catalog) -> None:
    made._env.clock.seconds += 5
    made.drop_table("a.t")
    lived(made, "a.t", 100, 7)


def renamed_over(made: Catalog) -> None:
    made._env.clock.seconds += 5
    made.rename_table("a.t", "a.old")
    lived(made, "a.t", 100, 7)


SOURCES: dict[str, Callable[[Catalog], object]] = {
    "expires": expired, "loses its tags": without_tags, "is rolled back": rolled_back, "goes on": went_on,
    "is dropped": lambda made: made.drop_table("a.t"), "is created again": recreated, "is renamed": renamed_over,
}  # fmt: skip


def marks(table: Table) -> dict[str, object]:
    """What every snapshot and tag of a table contains, by mark."""
    states = [snapshot.value for snapshot in table.snapshots()]
    found = {one.mark: table.scan(snapshot_id=one.id).to_arrow().sort_by("id").to_pylist() for one in states}
    tags = {tag.name: tag.snapshot.value.mark for tag in table.tags()}
    return {"states": found, "tags": tags, "order": [one.mark for one in states]}


def known(store: MemoryStore, wanted: dict[str, object], table: Table) -> None:
    """Whether a clone is a whole state of one history."""
    found = marks(table)
    assert found["states"].items() <= wanted["states"].items(), "a snapshot of nobody"
    values = [snapshot.value for snapshot in table.snapshots()]
    assert all(after.follows(before) in (True, None) for before, after in itertools.pairwise(values)), "a seam"
    for name in found["tags"]:
        assert table.scan(tag=name).to_arrow().num_rows > 0
    assert [one for one in table.doctor() if one.severity == "error" or one.code.startswith("history")] == []
    latest = table.snapshots()[-1].id
    assert table.write_arrow([{"id": 3}], user="v", identifier=3).snapshot_id == latest + 1


def clone(store, owner: str) -> Table:
    return catalog(store, owner).clone_table("a.t", "b.t", history=True, tags=True)


def calls(kind: type[MemoryStore]) -> list[tuple[str, str]]:
    store = FaultStore(built(kind).copy())
    clone(store, "first")
    return store.log


def from_source(kind: type[MemoryStore], what: str, at: int) -> None:
    store = built(kind).copy()
    wanted = marks(catalog(store, "checker").table("a.t"))
    meanwhile: list[dict] = []

    def happens() -> None:
        SOURCES[what](catalog(store, "other"))
        made = catalog(store, "checker")
        if "t" in made.tables("a"):
            meanwhile.append(marks(made.table("a.t")))

    error = None
    try:
        clone(PausedStore(store, at, happens), "first")
    except PaimonError as refused:
        error = refused
    seen = catalog(store, "checker")
    assert ("t" in seen.tables("b")) == (error is None), error
    if error is None:
        states = {mark: rows for one in (wanted, *meanwhile) for mark, rows in one["states"].items()}
        known(store, {"states": states}, seen.table("b.t"))
    elif "t" in seen.tables("a"):
        clone(store, "again")


def foreign(made: Catalog) -> None:
    made._env.clock.seconds += 5
    lived(made, "b.t", 200, 4)


def dropped_first(made: Catalog) -> None:
    with suppress(NotFoundError):
        made.drop_table("b.t")
    foreign(made)


def cloned_first(made: Catalog) -> None:
    with suppress(NotFoundError):
        made.drop_table("b.t")
    made.clone_table("a.t", "b.t", snapshot_id=3)


TARGETS: dict[str, Callable[[Catalog], object]] = {
    "is created": foreign, "is dropped": dropped_first, "is another clone": cloned_first,
}  # fmt: skip


def below(store: MemoryStore) -> dict[str, bytes]:
    return {path: store.get(path) for path in files_below(store, "memory://wh/b.db")}


def to_target(kind: type[MemoryStore], what: str, at: int) -> None:
    store = built(kind).copy()
    came: list[tuple[dict, dict[str, bytes]]] = []
    is_done: list[bool] = []

    def happens() -> None:
        is_done.append("t" in catalog(store, "checker").tables("b"))
        with suppress(AlreadyExistsError):
            TARGETS[what](catalog(store, "other"))
            came.append((marks(catalog(store, "checker").table("b.t")), below(store)))

    error = None
    try:
        clone(PausedStore(store, at, happens), "first")
    except PaimonError as refused:
        error = refused
    if came:
        state, files = came[0]
        now = below(store)
        assert error is not None or is_done == [True]
        assert {path for path in files if now.get(path) != files[path]} == set()
        found = marks(catalog(store, "checker").table("b.t"))
        # a tag that gets into another clone of the same source is of a snapshot of that
        assert found == state or (what == "is another clone" and {**found, "tags": {}} == {**state, "tags": {}})


@pytest.mark.parametrize("what", SOURCES)
def test_a_clone_is_a_complete_state_even_if_the_source_changes(what):
    for at in range(1 + len(what), len(calls(MemoryStore)), 83):
        from_source(MemoryStore, what, at)


@pytest.mark.parametrize("kind", [MemoryStore, NoRename])
@pytest.mark.parametrize("what", TARGETS)
def test_a_table_of_others_at_the_target_keeps_everything(what, kind):
    for at in range(1 + len(what), len(calls(kind)), 73):
        to_target(kind, what, at)


@pytest.mark.full
@pytest.mark.parametrize("what", SOURCES)
def test_a_clone_is_a_whole_state_of_its_source_at_every_call(what):
    for at in range(1, len(calls(MemoryStore)) + 1):
        from_source(MemoryStore, what, at)


@pytest.mark.full
@pytest.mark.parametrize("kind", [MemoryStore, NoRename])
@pytest.mark.parametrize("what", TARGETS)
def test_a_table_of_others_at_the_target_keeps_everything_at_every_call(what, kind):
    for at in range(1, len(calls(kind)) + 1):
        to_target(kind, what, at)
