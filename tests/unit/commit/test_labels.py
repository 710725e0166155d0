"""Verbs that carry a user and an identifier: the same call again does nothing, whatever has expired meanwhile."""

from __future__ import annotations

import pyarrow as pa
import pytest

from paimon_py import Catalog, CommitConflictError, UsageError, col
from paimon_py.spec.users import StepNumber
from paimon_py.types import SnapshotId

COLUMNS = pa.schema(
    [pa.field("k", pa.int64(), nullable=False), pa.field("p", pa.string(), nullable=False), ("v", pa.int64())]
)
ROWS = pa.table({"k": [1, 2], "p": ["a", "b"], "v": [1, 2]}, schema=COLUMNS)


class Unread:
    """Data that must not be looked at."""

    def __arrow_c_stream__(self, requested_schema=None):
        raise AssertionError("data were read although their number was committed")


VERBS = {
    "write": lambda table, **who: table.write_arrow(pa.table({"k": [9], "p": ["a"], "v": [9]}), **who),
    "overwrite": lambda table, **who: table.write_arrow(ROWS.slice(0, 1), overwrite={"p": "a"}, **who),
    "dynamic": lambda table, **who: table.write_arrow(ROWS.slice(0, 1), overwrite="dynamic", **who),
    "upsert": lambda table, **who: table.upsert([{"k": 1, "p": "a", "v": 5}], **who),
    "upsert on": lambda table, **who: table.upsert([{"k": 1, "p": "a", "v": 5}], on=["k", "p"], **who),
    "update": lambda table, **who: table.update("k = 1", {"v": col("v") + 1}, **who),
    "delete": lambda table, **who: table.delete("k = 1", **who),
    "merge": lambda table, **who: table.merge(
        ROWS, ["k", "p"], when_matched_update={"v": col("target.v") + 1}, when_not_matched_insert=True, **who
    ),
    "truncate": lambda table, **who: table.truncate(**who),
    "drop": lambda table, **who: table.drop_partitions([{"p": "a"}], **who),
}
UNREAD = {
    "write": lambda table, **who: table.write_arrow(Unread(), **who),
    "overwrite": lambda table, **who: table.write_arrow(Unread(), overwrite={}, **who),
    "upsert": lambda table, **who: table.upsert(Unread(), **who),
    "upsert on": lambda table, **who: table.upsert(Unread(), on=["k", "p"], **who),
    "merge": lambda table, **who: table.merge(Unread(), ["k", "p"], when_matched_update=True, **who),
    "update": lambda table, **who: table.update("no_such_row = 1 AND", {"v": 1}, **who),
    "drop": lambda table, **who: table.drop_partitions([{"p": "no such partition"}], **who),
}


@pytest.fixture(params=["keyed", "append"])
def table(request, tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("d")
    keys = ["k", "p"] if request.param == "keyed" else []
    options = {"bucket": "1" if keys else "-1"}
    found = catalog.create_table("d.t", COLUMNS, primary_key=keys, partition_by=["p"], options=options)
    found.write_arrow(ROWS)
    return found


def able(table, verb):
    if verb == "upsert" and not table.schema.primary_keys:
        pytest.skip("needs a primary key")
    return VERBS[verb]


def rows(table):
    return table.to_arrow().sort_by([("p", "ascending"), ("k", "ascending"), ("v", "ascending")]).to_pylist()


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_runs_once_whatever_expires(table, verb):
    call = able(table, verb)
    first = call(table, user="job", identifier=4)
    assert not first.already_committed and first.snapshot_id is not None
    after = rows(table)
    again = call(table, user="job", identifier=4)
    assert again.already_committed
    assert (again.snapshot_ids, again.before) == (first.snapshot_ids[:1], first.before)
    for number in range(3):
        table.write_arrow(pa.table({"k": [100 + number], "p": ["z"], "v": [0]}))
    table.expire_snapshots(retain_min=1, retain_max=1)
    late = call(table.refresh() or table, user="job", identifier=4)
    assert late.already_committed and late.snapshot_id is None
    assert [row for row in rows(table) if row["p"] != "z"] == after
    assert table.committed("job") == 4


@pytest.mark.parametrize("verb", UNREAD)
def test_nothing_is_read_for_a_number_that_was_committed(table, verb):
    table.write_arrow(pa.table({"k": [7], "p": ["c"], "v": [7]}), user="job", identifier=1)
    before = table.snapshot().id
    if verb == "upsert" and not table.schema.primary_keys:
        pytest.skip("needs a primary key")
    assert UNREAD[verb](table, user="job", identifier=1).already_committed
    assert table.snapshot().id == before


@pytest.mark.parametrize("verb", VERBS)
def test_a_number_below_the_last_one_is_an_error_and_changes_nothing(table, verb):
    call = able(table, verb)
    table.write_arrow(pa.table({"k": [7], "p": ["c"], "v": [7]}), user="job", identifier=9)
    before, snapshot = rows(table), table.snapshot().id
    with pytest.raises(UsageError, match="the last number of 'job' is 9, and 8 is smaller"):
        call(table, user="job", identifier=8)
    assert (rows(table), table.snapshot().id) == (before, snapshot)
    assert not call(table, user="other", identifier=8).already_committed


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("who", "says"),
    [
        ({"identifier": 3}, "needs user="),
        ({"user": "", "identifier": 3}, "user must be a string"),
        ({"user": "job", "identifier": -1}, "whole number from 0"),
        ({"user": "job", "identifier": "3"}, "whole number from 0"),
        ({"user": "job", "identifier": 2**63 - 1}, "marks batch commits"),
    ],
)
def test_what_is_no_label_is_refused(table, verb, who, says):
    before = table.snapshot().id
    with pytest.raises(UsageError, match=says):
        able(table, verb)(table, **who)
    assert table.snapshot().id == before


def test_the_state_before_is_that_before_the_rows_also_if_the_verb_compacted():
    catalog = Catalog.open("memory://labels-before")
    catalog.create_database("d")
    table = catalog.create_table("d.t", COLUMNS, primary_key=["k", "p"], options={"bucket": "1"})
    last = table.write_arrow(ROWS)
    assert last.before == 0
    assert isinstance(last.before, SnapshotId)
    for number in range(3):
        last = table.write_arrow([{"k": number, "p": "a", "v": 0}])
    done = table.update("k = 1", {"v": 8})
    assert len(done.snapshot_ids) == 2
    assert (done.before, done.before.mark) == (last.snapshot_id, table.snapshot(last.snapshot_id).value.mark)
    compacted = table.compact(full=True)
    assert compacted.before in (None, done.snapshot_id)


def test_a_repeated_commit_names_both_of_its_snapshots():
    catalog = Catalog.open("memory://labels-twice")
    catalog.create_database("d")
    table = catalog.create_table("d.t", COLUMNS, primary_key=["k", "p"], options={"bucket": "1"})
    for _ in range(4):
        table.write_arrow(ROWS)
    done = table.write_arrow(ROWS, user="job", identifier=1)
    assert len(done.snapshot_ids) == 2, "rows, and the compaction that they are the reason of"
    table.write_arrow(ROWS, user="other", identifier=1)
    again = table.write_arrow(ROWS, user="job", identifier=1)
    assert again.already_committed and (again.snapshot_ids, again.before) == (done.snapshot_ids, done.before)


def test_a_number_of_another_step_is_a_conflict(table):
    table.write_arrow(ROWS, user="job", identifier=StepNumber(5, "one place"))
    assert table.write_arrow(ROWS, user="job", identifier=StepNumber(5, "one place")).already_committed
    with pytest.raises(CommitConflictError, match="for another step, one place, and this one is another place"):
        table.write_arrow(ROWS, user="job", identifier=StepNumber(5, "another place"))


def test_properties_of_paimon_py_are_not_for_callers(table):
    with table.writer() as writer:
        writer.write_arrow(ROWS)
        changes = writer.changes()
    with pytest.raises(UsageError, match="'paimon-py.users' cannot be set"):
        table.commit(changes, properties={"paimon-py.users": "{}"})
    assert table.commit(changes, properties={"origin": "a test"}).snapshot_id == 2
