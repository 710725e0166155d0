"""Every store call of `Catalog.clone_table` fails once, in every way: readers see the whole clone or none."""

from __future__ import annotations

import functools

import pytest
from unit.commit.support import Clock, Ids

from paimon_py import AddColumn, AlreadyExistsError, Catalog, PaimonError, Schema, UnsupportedError
from paimon_py.env import Env, SerialPool
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.fault_store import MODES, for_each_fault


def catalog(store, owner):
    return Catalog(store, "memory://wh", env=Env(Clock(), Ids(owner), SerialPool()))


class NoRename(MemoryStore):
    """A store that cannot move directories, as object stores."""

    def copy(self):
        other = super().copy()
        other.__class__ = NoRename
        return other

    def rename_directory(self, source, target):
        raise UnsupportedError(f"no rename of {source} to {target}", feature="rename")


@functools.cache
def built(kind, schemas):
    """A store with a table that has two snapshots and a tag. Copies of it share its files."""
    store = kind()
    setup = catalog(store, "setup")
    setup.create_database("a")
    setup.create_database("b")
    columns = Schema({"id": "BIGINT NOT NULL", "v": "STRING"})
    table = setup.create_table(
        "a.t", columns, primary_key=["id"], options={"bucket": "1", "changelog-producer": "input"}
    )
    table.write_arrow([{"id": 1, "v": "a"}], user="u", identifier=1)
    table.create_tag("one")
    if schemas > 1:
        table.alter(AddColumn("n", "INT"))
    table.write_arrow([{"id": 2, "v": "b"}], user="u", identifier=2)
    return store


def clone(store, owner):
    return catalog(store, owner).clone_table("a.t", "b.t", history=True, tags=True)


def state(table):
    both = [table.scan(snapshot_id=number).to_arrow().sort_by("id").to_pylist() for number in (1, 2)]
    return both, table.scan(tag="one").to_arrow().to_pylist(), table.changes(0, 2).to_arrow().num_rows, table.schema


def files_below(store, path):
    found = []
    for status in store.list(path):
        found += files_below(store, status.path) if status.is_directory else [status.path]
    return found


SHARES = [pytest.param(23, id="some"), pytest.param(1, id="all", marks=pytest.mark.full)]
"""One of so many calls fails."""


def share_of(every):
    return lambda call, mode: call % every == len(mode) % every


@pytest.mark.parametrize("every", SHARES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("kind", "schemas"), [pytest.param(MemoryStore, 1, marks=pytest.mark.full), (MemoryStore, 2), (NoRename, 1)])
def test_readers_see_the_whole_clone_or_none_and_the_same_call_finishes_it(kind, schemas, mode, every):
    fresh = built(kind, schemas).copy
    source = files_below(fresh(), "memory://wh/a.db")
    wanted = state(catalog(fresh(), "checker").table("a.t"))

    def check(store, outcome):
        seen = catalog(store, "checker")
        if outcome.error is not None:
            assert outcome.crashed or isinstance(outcome.error, PaimonError)
        is_there = "t" in seen.tables("b")
        assert is_there or outcome.error is not None
        if is_there:
            assert state(seen.table("b.t")) == wanted
        try:
            clone(store, "again")
        except AlreadyExistsError as error:
            if not is_there:
                assert "drop_table" in str(error)
                seen.drop_table("b.t")
                clone(store, "third")
        found = seen.table("b.t")
        assert state(found) == wanted and found.doctor() == []
        assert len(files_below(store, "memory://wh/a.db")) == len(source)
        assert found.write_arrow([{"id": 3}], user="u", identifier=3).snapshot_id == 3

    assert for_each_fault(fresh, lambda store: clone(store, "first"), check, modes=(mode,), share=share_of(every)) > 0


@pytest.mark.parametrize("every", SHARES)
@pytest.mark.parametrize("mode", MODES)
def test_a_store_without_rename_shows_an_error_or_the_whole_clone(mode, every):
    """Schemas come one by one: a reader between them may fail, and never reads other rows."""
    fresh = built(NoRename, 2).copy
    wanted = state(catalog(fresh(), "checker").table("a.t"))

    def check(store, outcome):
        seen = catalog(store, "checker")
        if "t" in seen.tables("b"):
            try:
                assert state(seen.table("b.t")) == wanted
            except PaimonError:
                assert outcome.error is not None
        try:
            clone(store, "again")
        except AlreadyExistsError as error:
            if "drop_table" in str(error):
                seen.drop_table("b.t")
                clone(store, "third")
        assert state(seen.table("b.t")) == wanted

    assert for_each_fault(fresh, lambda store: clone(store, "first"), check, modes=(mode,), share=share_of(every)) > 0


def test_a_call_that_fails_leaves_no_file():
    fresh = built(MemoryStore, 2).copy
    left = set()

    def check(store, outcome):
        if outcome.error is not None and "t" not in catalog(store, "checker").tables("b"):
            left.update(path for path in files_below(store, "memory://wh/b.db") if "/clone/" not in path)
            if "/schema" not in outcome.fault.path and "/clone" not in outcome.fault.path:
                assert not left, left

    for_each_fault(fresh, lambda store: clone(store, "first"), check, modes=("before",), share=share_of(9))
