"""Every store call of work that makes a changelog fails once, in every way, or is the last one of its process.

Whatever happens, the changes that were told, applied to nothing, give what the table holds, before trying again and after.
Else all must hold that holds of compactions (`test_compaction_faults.py`).
"""

from __future__ import annotations

import pytest
from faults.compaction_support import Scene, State, built, content, table_on
from faults.shares import one_in
from faults.test_compaction_faults import (
    DELETES,
    EAGER,
    LOADS,
    NEW,
    OUTSIDE,
    PARTS,
    VECTORS,
    Case,
    check_case,
    elsewhere,
    full,
    minor,
    overtaken,
    two_phases,
    write,
)  # fmt: skip
from unit.commit.support import below

from paimon_py import Table
from paimon_py.testing.fault_store import MODES, for_each_fault

INPUT = {"changelog-producer": "input"}
LOOKUP = {"changelog-producer": "lookup"}
CHANGED = {**LOOKUP, "changelog-producer.row-deduplicate": "true"}
FULL = {"changelog-producer": "full-compaction", "full-compaction.delta-commits": "1"}


def scene(producer: dict[str, str], engine: str = "deduplicate", *, loads=LOADS, raised: int = 1, **more) -> Scene:
    options = {**producer, **more.pop("options", {})}
    return Scene(engine=engine, loads=loads, raised=raised, options=options, **more)


CASES = {
    "input": Case(scene=scene(INPUT, loads=DELETES), run=write(NEW), writes=NEW),
    "input, aggregation": Case(scene=scene(INPUT, "aggregation", options=EAGER), run=two_phases, writes=NEW),
    "lookup, compaction": Case(scene=scene(LOOKUP, loads=DELETES), run=minor),
    "lookup, full compaction": Case(scene=scene(LOOKUP, loads=DELETES), run=full),
    "lookup, write": Case(scene=scene(LOOKUP, loads=DELETES), run=write(NEW), writes=NEW),
    "lookup, two phases": Case(scene=scene(LOOKUP, "aggregation"), run=two_phases, writes=NEW),
    "lookup, partial-update": Case(scene=scene(CHANGED, "partial-update"), run=write(NEW), writes=NEW),
    "lookup, first-row": Case(scene=scene(LOOKUP, "first-row"), run=write(NEW), writes=NEW),
    "lookup, deletion vectors": Case(scene=scene(LOOKUP, loads=DELETES, options=VECTORS), run=write(NEW), writes=NEW),
    "lookup, elsewhere": Case(scene=scene(LOOKUP, "aggregation", loads=PARTS, raised=0, partitioned=True), run=elsewhere),
    "lookup, one bucket of three overtaken": Case(scene=scene(LOOKUP, loads=PARTS, raised=0, partitioned=True), run=overtaken),
    "lookup, outside the table": Case(scene=scene(LOOKUP, options=OUTSIDE), run=full),
    "full compaction": Case(scene=scene(FULL, loads=DELETES), run=full),
    "full compaction, write": Case(scene=scene(FULL, loads=DELETES), run=write(NEW), writes=NEW),
    "full compaction, two phases": Case(scene=scene(FULL, "aggregation"), run=two_phases, writes=NEW),
    "full compaction, elsewhere": Case(scene=scene(FULL, loads=PARTS, partitioned=True), run=elsewhere),
}  # fmt: skip


def folded(table: Table, scene: Scene) -> State:
    """What all changes that were told make of nothing."""
    state: State = {}
    leaving: dict = {}
    if table.snapshot() is None:
        return state
    for row in table.changes(0).to_arrow().to_pylist():
        key, kind, values = (row["p"], row["k"]), row["_row_kind"], (row["v"], row["w"])
        if scene.options["changelog-producer"] == "input":
            state = scene.after(state, ((*key, *values, *(["-D"] if kind in ("-D", "-U") else [])),))
        elif kind in ("+I", "+U"):
            assert key not in state, f"{kind} of {key} over {state[key]}"
            assert (key in leaving) == (kind == "+U"), f"{kind} of {key}"
            leaving.pop(key, None)
            state[key] = values
        else:
            assert state.pop(key, None) == values, f"{kind} of {key}, which was not there as {values}"
            if kind == "-U":
                leaving[key] = values
    assert not leaving, f"-U without +U: {leaving}"
    return state


def check_changes(case: Case):
    """What to look at after a fault."""
    check = check_case(case)
    input_only = case.scene.options["changelog-producer"] == "input"

    def check_all(store, outcome):
        if input_only:
            assert folded(table_on(store, "follower"), case.scene) == content(table_on(store, "checker"), case.scene)
        else:
            folded(table_on(store, "follower"), case.scene)
        check(store, outcome)
        assert folded(table_on(store, "follower"), case.scene) == content(table_on(store, "checker"), case.scene)

    return check_all


def disturb(name: str, modes, share=None) -> int:
    case = CASES[name]
    return for_each_fault(
        lambda: built(case.scene)[0], lambda store: case.run(table_on(store, "me")), check_changes(case), modes=modes, share=share
    )


@pytest.mark.parametrize("name", CASES)
def test_the_changes_of_work_left_alone_give_the_table(name):
    case = CASES[name]
    store = built(case.scene)[0]
    case.run(table_on(store, "me"))
    table_on(store, "end").compact(full=True)
    assert any("/bucket-" in path and "changelog-" in path for path in below(store, "memory://faults"))
    assert folded(table_on(store, "follower"), case.scene) == content(table_on(store, "checker"), case.scene)


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_work_that_writes_changelogs_survives_a_failure_at_every_call(name):
    assert disturb(name, MODES) > 60


_EVERY = 41


@pytest.mark.parametrize("name", CASES)
def test_work_that_writes_changelogs_survives_a_failure_at_sampled_calls(name):
    place = list(CASES).index(name)
    modes = (MODES[place % 5],)
    assert disturb(name, modes, share=one_in(_EVERY, 11 * place)) > 0
