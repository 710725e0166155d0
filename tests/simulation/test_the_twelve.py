"""Twelve ways in which an acknowledged commit was lost or doubled, or its files deleted: each forced once more.

Programs and events are those of `scripts.py`; `When` waits for a store call, so that a scenario stays what it is when
a commit makes fewer calls.
"""

from pathlib import Path

import pytest
from simulation.kinds import COLUMNS, Stage, copied, prepared, rows
from simulation.scripts import Script, When, check, play
from simulation.world import Clock

from paimon_py import Catalog
from paimon_py.spec.layout import latest_hint_path


def done(script):
    """Play a script in which nothing may go wrong. Gives how the calls ended."""
    check(script)
    _, run = play(script)
    return [call.end for call in run.calls]


@pytest.mark.parametrize("kind", ["append", "append, buckets", "keyed", "dynamic"])
@pytest.mark.parametrize("at", ["sleep", "open_write", "put_new"])
def test_5_a_fork_with_rows_in_memory(kind, at):
    """The child goes first, or comes while its parent writes its file or publishes."""
    events = (When(0, "sleep", "", "to", 1), When(1, at, "", "to", 0))
    assert "done" in done(Script(kind, "fresh", ((("forked", 1, 2),), (("child",),)), events))


@pytest.mark.parametrize("other", ["rename", "drop"])
def test_7_alter_brings_no_table_back_to_life(other):
    script = Script("append", "some", ((("alter", "3"),), ((other,),)), (When(0, "put_new", "/schema/", "to", 1),))
    wrong, run = play(script, read=False)
    assert not [one for one in wrong if "life" in one], wrong
    assert run.store.list("/w/db.db/t") == []
    assert run.calls[0].end == "failed"


@pytest.mark.parametrize("verb", ["get", "stat"])
@pytest.mark.parametrize("hint", ["LATEST", "EARLIEST"])
def test_12_a_hint_that_cannot_be_read_is_passed_over(verb, hint):
    events = (When(0, verb, hint, "before"), When(0, verb, hint, "before", nth=2))
    assert done(Script("append", "some", ((("commit_once", 0), ("write", 3)),), events)) == ["done"] * 2


def test_12_a_directory_in_the_place_of_a_hint_is_passed_over(tmp_path):
    names = Catalog.open(tmp_path)
    names.create_database("db")
    table = names.create_table("db.t", COLUMNS)
    table.write_arrow(rows([(1, 1, 1)]))
    hint = Path(latest_hint_path(table.location))
    hint.unlink()
    hint.mkdir()
    assert names.table("db.t").scan().to_arrow().num_rows == 1
    assert names.table("db.t").write_arrow(rows([(1, 2, 2)])).snapshot_id == 2


@pytest.mark.parametrize("content", [b"", b"not a number", b"\xff\xfe", b"9" * 40])
def test_12_an_unreadable_hint_is_passed_over(content):
    ready = prepared("append", "some")
    stage = Stage("append")
    stage.store = copied(ready.store, Clock(ready.seconds + 10))
    path = latest_hint_path("/w/db.db/t")
    stage.store.put(path, content)
    stage.count = 200
    assert stage.table().snapshot().id == 2
    assert stage.table().commit(ready.changes[0][0]).snapshot_id == 3
