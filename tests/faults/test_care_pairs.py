"""Every pair of verbs of care: one is stopped at a call of the store, the other one runs, and the first one goes on.

Both end as if one had come after the other, or one is refused by name and can be called again. Every state can be read,
and nothing that is needed goes by the expiry of everything and the removal of orphans. A tag that gets
its name while a rollback or a fast-forward deletes tags, or is made while a purge does, may outlive them, with its rows.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

import pytest
from faults.test_care_crashes import VERBS as CRASHED
from faults.test_care_crashes import built, clean, opened, state
from unit.maintain.test_remove_orphans import rows

from paimon_py import CommitConflictError, PaimonError, SetOption, Table, TagNotFoundError
from paimon_py.testing.fault_store import FaultStore

pytestmark = pytest.mark.filterwarnings("ignore:.*consumers have read them")
T = TypeVar("T")

VERBS: dict[str, Callable[[Table], object]] = {
    **CRASHED,
    "compact manifests": lambda table: table.compact_manifests(),
    "analyze": lambda table: table.analyze(),
    "rename a branch": lambda table: table.rename_branch("b", "c"),
    "expire consumers": lambda table: table.expire_consumers(older_than=timedelta(minutes=1)),
    "remove files that are not there": lambda table: table.remove_unexisting_files(),
    "rescale": lambda table: table.rescale(2),
    "alter": lambda table: table.alter(SetOption("snapshot.num-retained.max", "12")),
    "write": lambda table: table.write_arrow(rows(90, 91)),
    "overwrite": lambda table: table.write_arrow(rows(92), overwrite={"p": 0}),
    "delete rows": lambda table: table.delete("k = 15"),
}

NEW_TAGS = ("mine", "renamed")
"""The names that verbs give to tags."""


class PausedStore(FaultStore):
    """Passes every call on; before call number `at` something else happens."""

    def __init__(self, store, at: int, meanwhile: Callable[[], object]) -> None:
        super().__init__(store)
        self._at = at
        self._meanwhile = meanwhile

    def _call(self, verb, path, action: Callable[[], T], *, shortened=None) -> T:
        if self.count + 1 == self._at:
            self._at = 0
            self._meanwhile()
        return super()._call(verb, path, action, shortened=shortened)


def outcome(store, name: str) -> PaimonError | None:
    """How a verb ends: well, or refused by name."""
    try:
        VERBS[name](opened(store))
    except PaimonError as error:
        return error
    return None


@functools.cache
def ended(*names: str) -> dict:
    """What the table is after some verbs one after the other, and everything has expired."""
    store = built().store.copy()
    for name in names:
        outcome(store, name)
    return clean(store)


@functools.cache
def calls(name: str) -> int:
    """How many calls a verb makes of which another process could come before."""
    store = FaultStore(built().store.copy())
    VERBS[name](opened(store))
    return store.count


def play(first: str, at: int, second: str) -> None:
    """Stop at a call, do something else, go on; call again what was refused; let everything expire."""
    store = built().store.copy()
    refusals: list[PaimonError | None] = []
    paused = PausedStore(store, at, lambda: refusals.append(outcome(store, second)))
    error = outcome(paused, first)
    assert refusals, "the call does not come any more"
    state(store)
    allowed = [ended(first, second), ended(second, first)]
    if error is not None:
        again = outcome(store, first)
        state(store)
        allowed += [ended(second), ended(second, first, first)] if again is not None else [ended(first, second, first)]
    if refusals[0] is not None:
        allowed.append(ended(first))
        if outcome(store, second) is None:
            allowed.append(ended(first, second))
    found = clean(store)
    assert any(_is_as(found, one) for one in allowed), f"{found} instead of one of {allowed}, {first}: {error!r}, {second}: {refusals[0]!r}"


def _is_as(found: dict, wanted: dict) -> bool:
    """Whether a state is the wanted one, but for tags that outlived what would have deleted them."""
    return {place: keys for place, keys in found.items() if place in wanted or place[-1] not in NEW_TAGS} == wanted


def cases() -> list[tuple[str, int, str]]:
    return [(first, at, second) for first in VERBS for at in range(1, calls(first) + 1) for second in VERBS]


def everywhere(chosen: list[tuple[str, int, str]]) -> int:
    for first, at, second in chosen:
        try:
            play(first, at, second)
        except (AssertionError, PaimonError) as wrong:
            raise AssertionError(f"{first}, call {at}, {second}: {wrong!r}") from wrong
    return len(chosen)


def test_pairs_of_verbs_of_care_meet_at_some_calls(pytestconfig):
    rng = random.Random(f"pairs {pytestconfig.option.seed}")
    assert everywhere(rng.sample(cases(), 60)) == 60


def test_a_purge_neither_leaves_what_came_meanwhile_nor_takes_a_rolled_back_table_for_an_empty_one():
    for at in range(5, 60, 4):
        for second in ("create a branch", "roll back to a snapshot"):
            play("purge", at, second)


@pytest.mark.parametrize("change", ["delete_tag", "replace_tag"])
def test_the_expiry_of_a_branch_beside_a_tag_that_goes_says_so(change):
    errors = set()
    for at in itertools.count(4):
        store = built().store.copy()
        paused = PausedStore(store, at, lambda store=store: getattr(opened(store), change)("old"))
        try:
            opened(paused).branch("b").expire_snapshots(retain_min=1, retain_max=1)
        except PaimonError as error:
            errors.add(type(error))
        if paused.count < at:
            break
        state(store)
    assert errors == {CommitConflictError}


def test_a_branch_of_a_tag_that_is_deleted_meanwhile_is_made_or_the_tag_is_named():
    refusals = set()
    for at in itertools.count(1):
        store = built().store.copy()
        paused = PausedStore(store, at, lambda store=store: opened(store).delete_tag("kept"))
        try:
            opened(paused).create_branch("new", from_="kept")
        except PaimonError as error:
            refusals.add(type(error))
        if paused.count < at:
            break
        state(store)
    assert refusals == {TagNotFoundError}


PARTS = 300


@pytest.mark.full
@pytest.mark.parametrize("part", range(PARTS), ids="part{}".format)
def test_pairs_of_verbs_of_care_meet_at_every_call(part):
    assert everywhere(cases()[part::PARTS]) > 80
