"""Every store call of a commit fails, in every way; nothing is lost, nothing is twice, and errors tell the truth."""

import msgspec
import pytest
from unit.commit.support import (
    APPEND,
    KEYED,
    PARTITIONED,
    TABLE,
    below,
    bucket_changes,
    changes_of,
    check_history,
    data_file,
    do_commit,
    new_store,
    place,
    renumbered,
    root_on,
    row,
    static,
    unaware,
)

from paimon_py.commit import drafts
from paimon_py.commit.changes import Changes, Edit
from paimon_py.commit.commit import DynamicOverwrite
from paimon_py.errors import CommitConflictError, CommitUnknownError
from paimon_py.spec import packed as packing
from paimon_py.spec.packed import PackedList
from paimon_py.testing.fault_store import MODES, for_each_fault


class Case(msgspec.Struct, kw_only=True):
    """An operation: the table before, the changes, and how they are committed."""

    schema: object
    before: list = []
    changes: object
    request: dict = {}
    new: set = set()
    gone: set = set()


def one(name, *, base=None, make=unaware, **settings):
    return changes_of(make(data_file(name, **settings)), base=base)


MERGING = msgspec.structs.replace(APPEND, options={"manifest.merge-min-count": "3"})
KEYS = {"keys": (1, 5)}


def partitioned(number, name, base=None, **settings):
    return changes_of(bucket_changes(data_file(name, **KEYS, **settings), partition=row(number)), base=base)


CASES = {
    "first append": Case(schema=APPEND, changes=one("mine"), new={"mine"}),
    "append": Case(schema=APPEND, before=[one("a")], changes=one("mine", base=1), new={"mine"}),
    "append for a user": Case(
        schema=APPEND,
        before=[one("a")],
        changes=one("mine", base=1),
        request={"user": "job", "identifier": 4},
        new={"mine"},
    ),
    "append that merges manifests": Case(
        schema=MERGING,
        before=[one("a"), one("b", base=1), one("c", base=2)],
        changes=one("mine", base=3),
        new={"mine"},
    ),
    "append with deleted files": Case(
        schema=APPEND,
        before=[one("a")],
        changes=changes_of(unaware(data_file("mine"), deleted=(data_file("a"),)), base=1),
        new={"mine"},
        gone={"a"},
    ),
    "upsert into a bucket that others wrote to": Case(
        schema=KEYED,
        before=[one("a", make=bucket_changes, sequences=(0, 9))],
        changes=one("mine", make=bucket_changes, sequences=(0, 4)),
        new={renumbered("mine", 10)},
    ),
    "static overwrite": Case(
        schema=PARTITIONED,
        before=[partitioned(1, "a"), partitioned(2, "b", base=1)],
        changes=partitioned(2, "mine", base=2),
        request={"overwrite": static({"p": 2})},
        new={"mine"},
        gone={"b"},
    ),
    "dynamic overwrite": Case(
        schema=PARTITIONED,
        before=[partitioned(1, "a"), partitioned(2, "b", base=1)],
        changes=partitioned(1, "mine", base=2),
        request={"overwrite": DynamicOverwrite()},
        new={"mine"},
        gone={"a"},
    ),
    "write and compact": Case(
        schema=KEYED,
        before=[one("a", make=bucket_changes, **KEYS)],
        changes=changes_of(
            bucket_changes(
                data_file("mine", sequences=(1, 1), **KEYS),
                compacted=Edit(
                    deleted=(data_file("a", **KEYS), data_file("mine", sequences=(1, 1), **KEYS)),
                    added=(data_file("big", level=5, rows=2, sequences=(0, 1), **KEYS),),
                ),
            ),
            base=1,
        ),
        request={"user": "job", "identifier": 4},
        new={"big"},
        gone={"a", "mine"},
    ),
}


def built(case):
    store = new_store(case.schema)
    for number, changes in enumerate(case.before):
        place(store, case.schema, changes)
        do_commit(root_on(store, f"before{number}-"), case.schema, changes)
    place(store, case.schema, case.changes)
    return store


def added_by(root, names):
    """In how many snapshots each of these names was added."""
    counts = dict.fromkeys(names, 0)
    for snapshot_id in root.snapshots.ids():
        snapshot = root.snapshots.get(snapshot_id)
        delta = root.manifests.read_entries(root.manifests.read_list(snapshot.delta_manifest_list))
        for entry in delta.entries():
            if entry.kind == 0 and entry.file.name in counts:
                counts[entry.file.name] += 1
    return counts


def live_names(root):
    latest = root.snapshots.latest()
    return set() if latest is None else set(root.manifests.live_entries(latest).names().to_pylist())


def written_name(case):
    """The file that the first snapshot of the commit adds."""
    return next(iter(case.new - {"big"} or {"mine"}))


def check(case, before):
    first = written_name(case)
    untouched = set(below(before, TABLE))

    def is_right(store, outcome):
        root = root_on(store, "reader")
        stored, needed = check_history(root)
        times = added_by(root, {first})[first]
        assert times <= 1, "committed twice"
        if outcome.error is None:
            assert times == 1, "acknowledged and lost"
            if outcome.result.dropped_compaction is None:
                assert case.new <= live_names(root)
                assert case.gone.isdisjoint(live_names(root))
        elif not outcome.crashed and not isinstance(outcome.error, CommitUnknownError):
            assert times == 0, "reported as failed and visible"
            if outcome.fault.verb != "delete":
                litter = {name for name in stored if "manifest" in name or "-r0" in name} - needed
                assert litter == set(), "left behind"
            assert "mine" in stored, "the caller's file was deleted"
        if set(below(store, TABLE)) != untouched:
            committed_again(case, store, first)

    return is_right


def committed_again(case, store, first):
    """Whatever happened, the same changes can be committed again, and then are there once."""
    result = do_commit(root_on(store, "again"), case.schema, case.changes, **case.request)
    root = root_on(store, "reader")
    check_history(root)
    names = live_names(root)
    assert result.already_committed or case.new <= names
    assert added_by(root, {first})[first] == 1
    assert case.new <= names or "mine" in names


@pytest.mark.parametrize("name", CASES)
def test_a_commit_survives_a_fault_at_every_call(name):
    case = CASES[name]

    def operation(store):
        return do_commit(root_on(store, "mine"), case.schema, case.changes, **case.request)

    before = built(case)
    assert for_each_fault(before.copy, operation, check(case, before)) >= 15 * (len(MODES) - 1)


@pytest.mark.parametrize("name", ["append", "upsert into a bucket that others wrote to", "write and compact"])
@pytest.mark.parametrize("repeat", [2, 3, pytest.param(5, marks=pytest.mark.full)])
def test_a_commit_survives_a_store_that_is_away_for_a_while(name, repeat):
    case = CASES[name]

    def is_right(store, outcome):
        root = root_on(store, "reader")
        check_history(root)
        times = added_by(root, {written_name(case)})[written_name(case)]
        if outcome.error is None:
            assert times == 1
        elif not isinstance(outcome.error, CommitUnknownError):
            assert times == 0
        committed_again(case, store, written_name(case))

    def operation(store):
        return do_commit(root_on(store, "mine"), case.schema, case.changes, **case.request)

    for_each_fault(built(case).copy, operation, is_right, modes=("before", "lost"), repeat=repeat)


def test_a_conflict_is_never_turned_into_something_else():
    case = Case(
        schema=APPEND,
        before=[one("a"), changes_of(unaware(data_file("b"), deleted=(data_file("a"),)), base=1)],
        changes=changes_of(unaware(data_file("mine"), deleted=(data_file("a"),)), base=1),
    )

    def is_right(store, outcome):
        root = root_on(store, "reader")
        check_history(root)
        assert outcome.error is not None
        assert live_names(root) == {"b"}
        with pytest.raises(CommitConflictError):
            do_commit(root_on(store, "again"), case.schema, case.changes)

    def operation(store):
        return do_commit(root_on(store, "mine"), case.schema, case.changes)

    for_each_fault(built(case).copy, operation, is_right)


def test_a_repeated_identifier_survives_faults_too():
    changes = one("mine")
    case = Case(schema=APPEND, before=[], changes=changes, request={"user": "job", "identifier": 1}, new={"mine"})

    def build():
        store = new_store(APPEND)
        place(store, APPEND, one("first"))
        do_commit(root_on(store, "before"), APPEND, one("first"), **case.request)
        place(store, APPEND, one("mine", base=1))
        return store

    def operation(store):
        return do_commit(root_on(store, "mine"), APPEND, one("mine", base=1), **case.request)

    def is_right(store, outcome):
        root = root_on(store, "reader")
        check_history(root)
        assert live_names(root) == {"first"}
        if outcome.error is None:
            assert outcome.result.already_committed

    assert for_each_fault(build().copy, operation, is_right) >= 3 * (len(MODES) - 1)


@pytest.mark.parametrize(("name", "modes"), [
    ("append", ("after", "lost")), *(pytest.param(name, MODES, marks=pytest.mark.full) for name in ("append", "keyed", "compacted")),
])  # fmt: skip
def test_a_commit_of_packed_changes_in_several_manifests_survives_a_fault_at_every_call(name, modes, monkeypatch):
    """What commits of very many files do: the changes are packed, and their entries fill several manifests."""
    monkeypatch.setattr(packing, "PART_WEIGHT", 1)
    monkeypatch.setattr(drafts, "_ENTRIES_PER_MANIFEST", 2)
    case = PACKED_CASES[name]()
    assert isinstance(case.changes.buckets, PackedList)

    def operation(store):
        return do_commit(root_on(store, "mine"), case.schema, case.changes, **case.request)

    before = built(case)
    assert for_each_fault(before.copy, operation, check(case, before), modes=modes) >= 15 * (len(modes) - 1)


def packed_changes(*buckets, base):
    return Changes.concat(changes_of(bucket, base=base) for bucket in buckets)


def packed_append():
    new = [data_file(name) for name in ("mine", "mine2", "mine3", "mine4", "mine5")]
    changes = packed_changes(*map(unaware, new), base=1)
    return Case(schema=APPEND, before=[one("a")], changes=changes, new={"mine"})


def packed_upsert():
    new = [bucket_changes(data_file(name, sequences=(0, 4))) for name in ("mine", "mine2", "mine3")]
    before = [one("a", make=bucket_changes, sequences=(0, 9))]
    return Case(schema=KEYED, before=before, changes=packed_changes(*new, base=None), new={renumbered("mine", 10)})


def packed_write_and_compaction():
    case = CASES["write and compact"]
    (bucket,) = case.changes.buckets
    parts = [bucket, bucket_changes(data_file("mine2", sequences=(2, 2), **KEYS))]
    return msgspec.structs.replace(case, changes=packed_changes(*parts, base=1))


PACKED_CASES = {"append": packed_append, "keyed": packed_upsert, "compacted": packed_write_and_compaction}
