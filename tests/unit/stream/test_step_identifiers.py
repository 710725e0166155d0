"""Numbers of steps: the same for the same step, never for another one."""

from __future__ import annotations

import pickle
import warnings

import pyarrow as pa
import pytest

from paimon_py import Catalog, CommitConflictError, PaimonWarning
from paimon_py.spec.users import StepNumber

COLUMNS = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])


@pytest.fixture
def catalog(tmp_path):
    found = Catalog.open(str(tmp_path))
    found.create_database("d")
    return found


def made(catalog, name="d.t"):
    return catalog.create_table(name, COLUMNS, primary_key=["k"], options={"bucket": "1", "write-only": "true"})


def steps(table, **start):
    return list(table.stream(until="now", **(start or {"from_": "earliest"})))


def test_a_step_has_the_same_identifier_wherever_the_stream_begins(catalog):
    table = made(catalog)
    for number in range(5):
        table.write_arrow([{"k": number, "v": 0}])
    first = [step.identifier for step in steps(table)]
    assert first == sorted(set(first)) and len(first) == 5
    for at, step in enumerate(steps(table)):
        assert [each.identifier for each in steps(table, from_=step.position)] == first[at + 1 :]
        assert pickle.loads(pickle.dumps(step)).identifier == first[at]
        assert pickle.loads(pickle.dumps(step.identifier)).source == step.position
    full = next(iter(steps(table, from_="full")))
    assert full.is_full and full.identifier == first[-1]


def test_no_identifier_is_reused_after_a_rollback_or_in_another_table(catalog):
    table = made(catalog)
    seen = []
    for round_ in range(3):
        for number in range(3):
            table.write_arrow([{"k": number, "v": round_}])
        seen += [step.identifier for step in steps(table) if step.snapshot_id > 1 or not round_]
        table.rollback_to(1)
    catalog.drop_table("d.t")
    again = made(catalog)
    again.write_arrow([{"k": 1, "v": 0}])
    seen += [step.identifier for step in steps(again)]
    assert len(set(seen)) == len(seen) == 10
    assert seen == sorted(seen)


def follow(source, target, user="copy", consumer="copy"):
    """One run of a pipeline: how many steps were taken."""
    taken = 0
    for step in iter(source.stream(from_="earliest", consumer_id=consumer).poll, None):
        rows = step.to_arrow().drop_columns(["_row_kind"])
        taken += not target.write_arrow(rows, user=user, identifier=step.identifier).already_committed
        step.acknowledge()
    return taken


def roll_back(source, to):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PaimonWarning)
        return source.rollback_to(to)


def test_new_rows_reach_a_copy_of_a_table_that_was_rolled_back(catalog):
    source, target = made(catalog), made(catalog, "d.copy")
    for number in range(4):
        source.write_arrow([{"k": number, "v": 1}])
    assert (follow(source, target), follow(source, target)) == (4, 0)
    gone = roll_back(source, 2)
    for name in gone.consumers:
        source.reset_consumer(name, gone.snapshot_id + 1)
    source.write_arrow([{"k": 7, "v": 2}])
    assert (follow(source, target), follow(source, target)) == (1, 0)
    assert sorted(target.to_arrow()["k"].to_pylist()) == [0, 1, 2, 3, 7]


def dies_before_it_acknowledges(source, target):
    """Three snapshots, of which the last is committed and not acknowledged, and is then rolled back."""
    for number in range(3):
        source.write_arrow([{"k": number, "v": 1}])
    for step in iter(source.stream(from_="earliest", consumer_id="copy").poll, None):
        target.write_arrow(step.to_arrow().drop_columns(["_row_kind"]), user="copy", identifier=step.identifier)
        if step.snapshot_id < 3:
            step.acknowledge()
    assert roll_back(source, 2).consumers == ()


UNDONE = "rolled back or created again, and no longer contains that snapshot"


@pytest.mark.parametrize("skipped", [0, 2])
def test_no_step_follows_one_that_was_committed_and_then_rolled_back(catalog, skipped):
    source, target = made(catalog), made(catalog, "d.copy")
    dies_before_it_acknowledges(source, target)
    for number in range(skipped):
        source.write_arrow([{"k": 20 + number, "v": 2}])
        (step,) = iter(source.stream(consumer_id="copy").poll, None)
        step.acknowledge()  # nothing to commit for these
    source.write_arrow([{"k": 7, "v": 2}])
    with pytest.raises(CommitConflictError, match=UNDONE):
        follow(source, target)
    assert sorted(target.to_arrow()["k"].to_pylist()) == [0, 1, 2]
    step = source.stream(consumer_id="copy").poll()
    with target.writer() as writer:
        writer.write_arrow([{"k": 9, "v": 9}])
        changes = writer.changes()
    for number in (step.identifier, pickle.loads(pickle.dumps(step.identifier)), pickle.loads(pickle.dumps(step)).identifier):
        for verb in (
            lambda number=number: target.filter_committed("copy", [number]),
            lambda number=number: target.delete("k = 1", user="copy", identifier=number),
            lambda number=number: target.commit(changes, user="copy", identifier=number),
        ):
            with pytest.raises(CommitConflictError, match=UNDONE):
                verb()
    assert sorted(target.to_arrow()["k"].to_pylist()) == [0, 1, 2]


@pytest.mark.parametrize("way", ["another user", "reset", "rolled back", "overwritten", "truncated"])
def test_a_table_that_is_in_line_again_is_followed_on(catalog, way):
    source, target = made(catalog), made(catalog, "d.copy")
    dies_before_it_acknowledges(source, target)
    source.write_arrow([{"k": 7, "v": 2}])
    user = "copy"
    if way == "another user":
        target.delete("k = 2")
        user = "copy 2"
    elif way == "reset":
        target.delete("k = 2")
        source.reset_consumer("copy", 3)
    elif way == "rolled back":
        target.rollback_to(2)
    elif way == "overwritten":
        target.write_arrow([{"k": 0, "v": 1}, {"k": 1, "v": 1}], overwrite={})
    else:
        target.truncate()
        target.write_arrow([{"k": 0, "v": 1}, {"k": 1, "v": 1}])
    for _ in range(2):
        follow(source, target, user)
        assert sorted(target.to_arrow()["k"].to_pylist()) == [0, 1, 7]
        source.write_arrow([{"k": 7, "v": 3}])
    follow(source, target, user)
    assert target.to_arrow().sort_by("k")["v"].to_pylist() == [1, 1, 3]


def test_a_step_that_replaces_all_rows_may_follow_any(catalog):
    source, target = made(catalog), made(catalog, "d.copy")
    dies_before_it_acknowledges(source, target)
    source.write_arrow([{"k": 7, "v": 2}])
    source.delete_consumer("copy")
    full = source.stream(from_="full", consumer_id="copy").poll()
    with pytest.raises(CommitConflictError, match=UNDONE):
        target.write_arrow(full.to_arrow(), user="copy", identifier=full.identifier)
    rows = full.to_arrow().drop_columns(["_row_kind"])
    assert not target.write_arrow(rows, overwrite={}, user="copy", identifier=full.identifier).already_committed
    full.acknowledge()
    source.write_arrow([{"k": 8, "v": 2}])
    assert follow(source, target) == 1
    assert target.to_arrow().sort_by("k") == source.to_arrow().sort_by("k")


def test_a_reset_before_a_first_rollback_does_not_answer_for_a_second_one(catalog):
    source, target = made(catalog), made(catalog, "d.copy")
    dies_before_it_acknowledges(source, target)
    source.write_arrow([{"k": 7, "v": 2}])
    target.delete("k = 2")
    source.reset_consumer("copy", 3)
    assert follow(source, target) == 1
    source.write_arrow([{"k": 8, "v": 2}])
    step = source.stream(consumer_id="copy").poll()
    target.write_arrow(step.to_arrow().drop_columns(["_row_kind"]), user="copy", identifier=step.identifier)
    roll_back(source, 3)
    source.write_arrow([{"k": 9, "v": 2}])
    with pytest.raises(CommitConflictError, match=UNDONE):
        follow(source, target)


@pytest.mark.parametrize("dies", ["after the commit", "before the commit"])
def test_a_reset_answers_for_what_was_committed_before_it_alone(catalog, dies):
    source, target = made(catalog), made(catalog, "d.copy")
    dies_before_it_acknowledges(source, target)
    source.write_arrow([{"k": 7, "v": 2}])
    target.delete("k = 2")
    source.reset_consumer("copy", 3)
    step = source.stream(consumer_id="copy").poll()
    if dies == "before the commit":
        assert follow(source, target) == 1
        assert sorted(target.to_arrow()["k"].to_pylist()) == [0, 1, 7]
        return
    target.write_arrow(step.to_arrow().drop_columns(["_row_kind"]), user="copy", identifier=step.identifier)
    roll_back(source, 2)
    source.write_arrow([{"k": 9, "v": 2}])
    with pytest.raises(CommitConflictError, match=UNDONE):
        follow(source, target)


def test_a_branch_that_became_the_table_is_followed_on(catalog):
    source, target = made(catalog), made(catalog, "d.copy")
    source.write_arrow([{"k": 1, "v": 1}])
    branch = source.create_branch("b", from_=1)
    branch.write_arrow([{"k": 2, "v": 1}])
    assert follow(branch, target) == 2
    source.fast_forward("b")
    source.write_arrow([{"k": 3, "v": 1}])
    (step,) = steps(source, from_=3)
    assert not target.write_arrow(step.to_reader(), user="copy", identifier=step.identifier).already_committed


def test_larger_numbers_of_a_table_that_was_created_again_are_refused(catalog):
    source, target = made(catalog), made(catalog, "d.copy")
    source.write_arrow([{"k": 1, "v": 1}])
    assert follow(source, target) == 1
    catalog.drop_table("d.t")
    source = made(catalog)
    source.write_arrow([{"k": 2, "v": 1}])
    with pytest.raises(CommitConflictError, match=UNDONE):
        follow(source, target)
    assert target.to_arrow()["k"].to_pylist() == [1]


def test_a_step_that_was_committed_but_not_acknowledged_is_applied_once(catalog):
    source, target = made(catalog), catalog.create_table("d.log", COLUMNS)
    source.write_arrow([{"k": 1, "v": 1}])
    (step,) = steps(source)
    for again in (False, True, True):
        done = target.write_arrow(step.to_arrow().drop_columns(["_row_kind"]), user="u", identifier=step.identifier)
        assert done.already_committed is again
        for number in range(3):
            target.write_arrow([{"k": 10 + number, "v": 0}])
        target.expire_snapshots(retain_min=1, retain_max=1)
    assert target.scan(where="k = 1").count() == 1


def test_the_identifier_of_another_step_is_a_conflict(catalog):
    source, target = made(catalog), made(catalog, "d.copy")
    source.write_arrow([{"k": 1, "v": 1}])
    (step,) = steps(source)
    target.write_arrow([{"k": 1, "v": 1}], user="u", identifier=step.identifier)
    other = StepNumber(int(step.identifier), step.position.replace("manifest-list-", "manifest-list-0"))
    with pytest.raises(CommitConflictError, match="for another step"):
        target.write_arrow([{"k": 2, "v": 1}], user="u", identifier=other)


@pytest.mark.parametrize("number", ["snapshot_id", "next_snapshot_id"])
def test_steps_of_a_table_that_was_created_again_are_not_filtered_out_as_committed(catalog, number):
    source, target = made(catalog), made(catalog, "d.copy")

    def left():
        found = steps(source)
        return target.filter_committed("copy", [getattr(step, number) for step in found]), found

    source.write_arrow([{"k": 1, "v": 0}])
    source.write_arrow([{"k": 2, "v": 0}])
    for step in left()[1]:
        target.write_arrow(step.to_reader(), user="copy", identifier=getattr(step, number))
    assert left()[0] == [] and target.filter_committed("copy", [1, 2, 9]) == [9]
    catalog.drop_table("d.t")
    source = made(catalog)
    for key in (7, 8):
        source.write_arrow([{"k": key, "v": 0}])
        with pytest.raises(CommitConflictError, match="dropped|created again"):
            left()


@pytest.mark.parametrize("number", ["snapshot_id", "next_snapshot_id"])
def test_snapshot_ids_as_identifiers_are_not_confused_with_those_before_a_rollback(catalog, number):
    source, target = made(catalog), made(catalog, "d.copy")

    def follow():
        for step in steps(source):
            target.write_arrow(step.to_reader(), user="copy", identifier=getattr(step, number))

    for key in range(4):
        source.write_arrow([{"k": key, "v": 0}])
    follow()
    follow()
    assert target.count() == 4
    source.rollback_to(1)
    source.write_arrow([{"k": 9, "v": 9}])
    with pytest.raises(CommitConflictError, match="for another step"):
        follow()
    assert target.scan(where="k = 9").count() == 0
