"""Every store call of everything that can be done to a table fails once, in every way, for every kind of table.

Afterwards another process opens the table. What was acknowledged is there once, what was refused is not, "unknown" is
one or the other; every file that is named is there and only those, no key lives twice, no deletion vector and no hash
dangles; and trying again works, also with the very table object that met the failure.
"""

from __future__ import annotations

import pytest
from faults.compaction_support import SPILL, built, check_table, orphans, table_on, unsure
from faults.operations import KINDS, OPERATIONS, Held, ended, held, prepared

from paimon_py import PaimonError
from paimon_py.testing.fault_store import MODES, for_each_fault

CASES = [(name, kind) for name in OPERATIONS for kind in KINDS if OPERATIONS[name].fits(KINDS[kind])]


@pytest.mark.budget(6)
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_an_undisturbed_operation_does_what_the_model_predicts(name, kind):
    _, seen, full = built(KINDS[kind])
    assert prepared(kind) == Held(seen, full)
    assert ended(kind, name).full == OPERATIONS[name].effect(KINDS[kind], full)


PARTS = 8
"""The full suite comes in so many parts, each of which looks at all operations: `-k part0`."""


@pytest.mark.full
@pytest.mark.parametrize(("name", "kind"), CASES)
@pytest.mark.parametrize("part", range(PARTS), ids="part{}".format)
def test_every_call_of_an_operation_may_fail_or_be_the_last(name, kind, part):
    disturb(name, kind, MODES, share=lambda call, mode: (call + MODES.index(mode)) % PARTS == part)


_EVERY = 701
"""CI carries out one in so many of the runs of every second case; which ones differs from case to case."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_share_of_the_calls_of_operations_may_fail_or_be_the_last(kind):
    runs = 0
    for name in OPERATIONS:
        if OPERATIONS[name].fits(KINDS[kind]) and (place := CASES.index((name, kind))) % 2 == 0:
            share = lambda call, mode, p=place: (call + 29 * p + 167 * MODES.index(mode)) % _EVERY == 0  # noqa: E731
            runs += disturb(name, kind, MODES, share)
    assert runs > 0


def disturb(name, kind, modes, share=None) -> int:
    scene, operation = KINDS[kind], OPERATIONS[name]
    before, after = prepared(kind), ended(kind, name)
    befores = [before.full, operation.effect(scene, before.full)] if not operation.beside else _with_beside(name, kind)
    if operation.partly is not None:
        befores.append(operation.partly(scene, before.full))
    tables = []

    def run(store):
        tables.append(None)
        tables[-1] = table_on(store, "me")
        return operation.run(tables[-1])

    def check(store, outcome):
        table = table_on(store, "checker")
        named = check_table(table, scene)
        found = held(store, scene)
        if outcome.error is None:
            wanted = [after.full]
        elif unsure(outcome):
            wanted = [*befores, after.full]
        else:
            assert isinstance(outcome.error, PaimonError)
            wanted = [state for state in befores if state != after.full or state == before.full]
        assert found.full in wanted, f"{found.full} instead of one of {wanted}"
        if scene.skips_level_0 and not operation.beside and operation.partly is None:
            unseen = before.seen if operation.unseen is None else operation.unseen(scene, before.seen)
            assert found.seen in (before.seen, unseen, after.seen), f"{found.seen} is seen"
        if unsure(outcome):
            assert outcome.crashed or [path for path in orphans(table, named) if path.startswith(SPILL)] == []
        elif outcome.fault.verb != "delete":
            assert orphans(table, named) == [], "left behind"
        if found.full != after.full or after.full == before.full:
            operation.run(table_on(store, "again") if outcome.crashed or tables[-1] is None else tables[-1])
            check_table(table_on(store, "checker"), scene)
            assert held(store, scene).full == after.full, "trying again ends otherwise"

    return for_each_fault(lambda: built(scene)[0], run, check, modes=modes, share=share)


def _with_beside(name, kind):
    """What the table may hold if the operation did not happen, but what others did beside it."""
    full = prepared(kind).full
    return [full, KINDS[kind].after(full, OPERATIONS[name].beside)]
