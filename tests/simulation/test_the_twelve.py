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

AT_PUBLICATION = When(0, "put_new", "/snapshot/", "to", 1)
pytestmark = pytest.mark.filterwarnings("ignore:.*does nothing yet", "ignore:.*a later commit tries again")
UNKNOWN = (
    When(0, "put_new", "/snapshot/", "lost", nth=2),
    When(0, "put_new", "/snapshot/", "before", nth=2, after=True),
)
"""The second publication happens and nobody hears of it: the file cannot be read back either."""


def done(script):
    """Play a script in which nothing may go wrong. Gives how the calls ended."""
    check(script)
    _, run = play(script)
    return [call.end for call in run.calls]


@pytest.mark.parametrize("kind", ["append", "append, buckets", "append, vectors", "keyed", "keyed, eager", "dynamic"])
@pytest.mark.parametrize("who", [(), ("me0", 7), ("me0",)], ids=["nobody", "identifier", "user"])
@pytest.mark.parametrize("verb", ["commit", "replace"])
def test_1_the_same_bytes_by_two_at_once(kind, who, verb):
    done(Script(kind, "some", (((verb, 0, *who),), ((verb, 0, *who),)), (AT_PUBLICATION,)))


@pytest.mark.parametrize("first", [True, False])
def test_2_an_index_that_comes_and_goes(first):
    state = "unindexed" if first else "indexed"
    done(Script("append, indexed", state, ((("index", first), ("index", not first), ("index", first)),)))


@pytest.mark.parametrize("kind", ["append", "append, partitions", "append, buckets", "keyed", "keyed, partitions"])
@pytest.mark.parametrize("state", ["late", "late_named", "late_expired"])
@pytest.mark.parametrize("who", [(), ("me0", 7), ("me0",)], ids=["nobody", "identifier", "user"])
def test_3_a_commit_repeated_late(kind, state, who):
    done(Script(kind, state, ((("commit", 0, *who),),)))


@pytest.mark.parametrize("kind", ["keyed, eager", "keyed, vectors", "dynamic, eager"])
@pytest.mark.parametrize("who", [(), ("me4", 7)], ids=["nobody", "identifier"])
def test_4_a_retry_between_the_append_and_the_compact(kind, who):
    events = (AT_PUBLICATION._replace(nth=2),)
    ends = done(Script(kind, "some", ((("commit", 4, *who),), (("commit", 4, *who),)), events))
    assert ends[0] == "done"


@pytest.mark.parametrize("kind", ["append", "append, buckets", "keyed", "dynamic"])
@pytest.mark.parametrize("at", ["sleep", "open_write", "put_new"])
def test_5_a_fork_with_rows_in_memory(kind, at):
    """The child goes first, or comes while its parent writes its file or publishes."""
    events = (When(0, "sleep", "", "to", 1), When(1, at, "", "to", 0))
    assert "done" in done(Script(kind, "fresh", ((("forked", 1, 2),), (("child",),)), events))


def test_6_java_puts_its_snapshot_over_ours():
    events = (
        When(0, "list", "", "to", 1),
        When(1, "put", "/snapshot/", "to", 0),
        When(0, "put_new", "/snapshot/", "to", 1, after=True),
    )
    ends = done(Script("append", "some", ((("commit", 0),), (("java_commit", 2),)), events))
    assert ends.count("done") == 2


def test_6_java_puts_its_schema_over_ours():
    events = (
        When(0, "list", "/schema", "to", 1),
        When(1, "put", "/schema/", "to", 0),
        When(0, "put_new", "/schema/", "to", 1, after=True),
    )
    script = Script("append", "some", ((("alter", "3 mb"),), (("java_alter", "9 mb"),)), events)
    done(script)
    _, run = play(script)
    run.actors[0].quiet = True
    options = run.actors[0].memory["table"]._root.schemas.latest().options
    assert options.get("source.split.target-size") == "3 mb" and options.get("source.split.open-file-cost") == "9 mb"


@pytest.mark.parametrize("state", ["fresh", "some"])
@pytest.mark.parametrize("kind", ["append", "keyed", "dynamic"])
@pytest.mark.parametrize(
    "at", [("put_new", "/snapshot/"), ("open_write", "/manifest/"), ("put", "/manifest/"), ("put", "/snapshot/LATEST")]
)
@pytest.mark.parametrize("verb", [("commit", 0), ("write", 1)])
def test_7_a_table_renamed_beside_a_writer(kind, state, at, verb):
    done(Script(kind, state, ((verb,), (("rename",),)), (When(0, *at, "to", 1),)))


@pytest.mark.parametrize("other", ["rename", "drop"])
def test_7_alter_brings_no_table_back_to_life(other):
    script = Script("append", "some", ((("alter", "3 mb"),), ((other,),)), (When(0, "put_new", "/schema/", "to", 1),))
    wrong, run = play(script, read=False)
    assert not [one for one in wrong if "life" in one], wrong
    assert run.store.list("/w/db.db/t") == []
    assert run.calls[0].end == "failed"


@pytest.mark.parametrize("kind", ["keyed", "append", "dynamic"])
@pytest.mark.parametrize("who", [("me0",), (), ("me0", 7)], ids=["user", "nobody", "identifier"])
def test_8_a_repeat_after_nobody_knows(kind, who):
    programs = ((("commit_once", 0, *who), ("pause",), ("commit", 0, *who)), (("write", 1),), (("write", 1, 2),))
    done(Script(kind, "some", programs, (AT_PUBLICATION, *UNKNOWN, When(0, "sleep", "", "to", 2, nth=2))))


@pytest.mark.parametrize("kind", ["keyed, vectors apart", "append, vectors", "keyed, vectors", "keyed, eager"])
@pytest.mark.parametrize("who", [(), ("me", 9)], ids=["nobody", "identifier"])
def test_9_a_compaction_repeated_after_its_snapshot_expired(kind, who):
    done(Script(kind, "compacted", ((("commit_compaction", 0, *who), ("commit_compaction", 0, *who)),)))


@pytest.mark.parametrize("kind", ["append", "keyed", "append, vectors", "dynamic"])
@pytest.mark.parametrize("more", [(), (("write", 3),), (("write", 3), ("write", 4))], ids=["alone", "one", "two"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("back", [1, 2])
def test_10_a_rollback_before_or_after_publication(kind, more, after, back):
    programs = ((("commit", 0),), (("roll_back", back), *more))
    done(Script(kind, "some", programs, (AT_PUBLICATION._replace(after=after),)))


@pytest.mark.parametrize("kind", ["append", "keyed", "append, partitions"])
@pytest.mark.parametrize("keep", [1, 2])
def test_11_a_number_taken_by_a_rival_that_has_expired(kind, keep):
    programs = ((("commit", 0),), (("commit", 2), ("write", 3), ("write", 4), ("expire", keep)))
    ends = done(Script(kind, "some", programs, (AT_PUBLICATION, When(1, "put", "EARLIEST", "to", 0))))
    assert ends[1:].count("done") == 4


@pytest.mark.parametrize("kind", ["append", "keyed"])
def test_12_no_time_retained_lets_commits_succeed(kind):
    steps = (("alter", "0 s", "snapshot.time-retained"), ("reopen",), ("commit", 0), ("write", 3))
    assert done(Script(kind, "some", (steps,))) == ["done"] * 3


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
