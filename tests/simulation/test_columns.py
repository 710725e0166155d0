"""Updates by row id beside compactions, other updates, overwrites, deletes, schema changes and indexes: each race forced once.

Java commits an update of rows whose range is gone, and nobody can read the table again. There are four checks before a
commit: the range exists, ranges do not overlap, no cell was set by others in the meantime, no index over row ids covers
what is set.
"""

from __future__ import annotations

import pytest
from simulation.programs import run_by_row_id
from simulation.scripts import Script, When, as_test, check, play, shrunk

AT_PUBLICATION = When(0, "put_new", "/snapshot/snapshot", "to", 1)
AFTER_READING = When(0, "sleep", "", "to", 1)
KINDS = ("columns", "columns, partitions")
BOUNDED, FULL = 30, 250
pytestmark = pytest.mark.filterwarnings("ignore:.*does nothing yet", "ignore:.*a later commit tries again")


def ends(script):
    """Play a script in which nothing may go wrong. Gives how the last call of each actor ended."""
    check(script)
    _, run = play(script)
    return {call.actor.index: call.end for call in run.calls}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("event", [AT_PUBLICATION, AFTER_READING], ids=["publication", "reading"])
@pytest.mark.parametrize("read_before", [True, False])
@pytest.mark.parametrize("rival", [("compact",), ("replace", 2), ("delete", 2), ("grow",), ("write", 2), ("upsert", 2, 3), ("roll_back", 1)])
def test_an_update_by_row_id_beside(kind, event, read_before, rival):
    if rival[0] == "upsert" and not read_before:
        return  # the oracle knows a row by its value, which an upsert replaces
    found = ends(Script(kind, "some", ((("set_rows", 2, read_before),), (rival,)), (event,)))
    assert found[1] == "done" and found[0] in ("done", "failed")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rival", [("compact",), ("replace", 3), ("write", 5), ("grow",)])
def test_columns_that_were_written_before_are_committed_only_beside_their_rows(kind, rival):
    """Java commits them in any case. `Table.commit` takes no such changes at all, so this is what keeps verbs from it."""
    number = 2
    before = ends(Script(kind, "columns", ((rival, ("commit_blind", number)),)))
    beside = ends(Script(kind, "columns", ((("commit_blind", number),), (rival,)), (AT_PUBLICATION,)))
    joins = rival[0] == "compact" and kind == "columns"  # ranges of the partitions have gaps
    assert before[0] == beside[0] == ("failed" if joins or rival[0] == "replace" else "done")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rival", [("update", 2), ("set_rows", 2, True)])
@pytest.mark.parametrize("event", [AT_PUBLICATION, AFTER_READING], ids=["publication", "reading"])
def test_no_cell_that_others_set_is_set_from_what_was_read_before(kind, rival, event):
    found = ends(Script(kind, "some", ((("set_rows", 2, True),), (rival,)), (event,)))
    assert found == {0: "failed", 1: "done"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_compaction_beside_an_update_by_row_id(kind):
    """The compaction has joined the ranges, and is published after the update."""
    assert ends(Script(kind, "some", ((("compact",),), (("set_rows", 2, True),)), (AT_PUBLICATION,)))[1] == "done"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rival", [("set_rows", 2, True), ("update", 2)])
def test_an_index_that_appears_beside_an_update(kind, rival):
    assert ends(Script(kind, "some", ((rival,), (("java_index",),)), (AT_PUBLICATION,))) == {0: "failed", 1: "done"}


def go_through(seeds):
    for seed in seeds:
        script, wrong = run_by_row_id(seed)
        if wrong:
            raise AssertionError("\n".join([f"seed {seed}", *wrong, as_test(shrunk(script, wrong), f"seed_{seed}")]))


@pytest.mark.budget(5)
@pytest.mark.parametrize("number", range(4))
def test_no_schedule_of_updates_by_row_id_breaks_a_table(number):
    go_through(range(number * BOUNDED, (number + 1) * BOUNDED))


@pytest.mark.full
@pytest.mark.parametrize("number", range(20))
def test_no_schedule_of_many_updates_by_row_id_breaks_a_table(number):
    go_through(range(10_000 + number * FULL, 10_000 + (number + 1) * FULL))
