"""A commit sleeps at every one of its store calls, while others commit and expire: no commit is lost, none twice."""

import msgspec
import pytest
from unit.commit.support import (
    APPEND,
    KEYED,
    TABLE,
    bucket_changes,
    changes_of,
    check_history,
    data_file,
    do_commit,
    names_in,
    new_store,
    place,
    root_on,
    unaware,
)

from paimon_py.errors import CommitRetriesExhaustedError
from paimon_py.spec.layout import earliest_hint_path, snapshot_path
from paimon_py.testing.fault_store import FaultStore


class Sleeping(FaultStore):
    """Lets something happen before call number `at`, while its caller sleeps."""

    def __init__(self, store, at, meanwhile):
        super().__init__(store)
        self.at = at
        self.meanwhile = meanwhile

    def _call(self, verb, path, action, *, shortened=None):
        if self.count + 1 == self.at:
            self.meanwhile()
        return super()._call(verb, path, action, shortened=shortened)


class Others:
    """Other writers, and an expirer that keeps only the newest snapshots."""

    def __init__(self, store, table_schema, names=()):
        self.store = store
        self.schema = table_schema
        self.names = list(names)

    def commit(self):
        root = root_on(self.store, f"o{len(self.names)}-")
        name = f"o{len(self.names)}"
        make = bucket_changes if self.schema.primary_keys else unaware
        latest = root.snapshots.latest()
        base = latest.id if latest else None
        top = max(root.manifests.live_entries(latest).max_sequence.tolist(), default=-1) if latest else -1
        changes = changes_of(make(data_file(name, sequences=(top + 1, top + 2))), base=base)
        place(self.store, self.schema, changes)
        do_commit(root, self.schema, changes)
        self.names.append(name)

    def expire(self, keep, *, hint):
        """Remove old snapshots, ascending, with the lists that only they use; `hint`: EARLIEST is raised first."""
        root = root_on(self.store, "expire")
        ids = root.snapshots.ids()
        first = ids[-keep] if len(ids) > keep else ids[0]
        if hint:
            self.store.put(earliest_hint_path(TABLE), str(first).encode())
        for snapshot_id in ids:
            if snapshot_id < first:
                self.store.delete(snapshot_path(TABLE, snapshot_id))


@pytest.mark.parametrize("hint", [True, False])
@pytest.mark.parametrize(
    ("commits", "keep"),
    [(1, 10), (3, 1), (1, 1), *(pytest.param(*more, marks=pytest.mark.full) for more in ((3, 10), (6, 2), (2, 2)))],
)
@pytest.mark.parametrize("before", [0, 3])
@pytest.mark.parametrize("table_schema", [APPEND, KEYED], ids=["append", "keyed"])
def test_a_commit_that_sleeps_at_any_call_is_in_the_history_once(table_schema, before, commits, keep, hint):
    at = 0
    prototype = Others(new_store(table_schema), table_schema)
    for _ in range(before):
        prototype.commit()
    while True:
        at += 1
        store = prototype.store.copy()
        others = Others(store, table_schema, prototype.names)

        def meanwhile(others=others):
            for _ in range(commits):
                others.commit()
            others.expire(keep, hint=hint)

        make = bucket_changes if table_schema.primary_keys else unaware
        changes = changes_of(make(data_file("mine")), base=before or None)
        place(store, table_schema, changes)
        sleeping = Sleeping(store, at, meanwhile)
        result = do_commit(root_on(sleeping, "mine"), table_schema, changes, is_new=True)
        if sleeping.count < at:
            break
        others.commit()
        root = root_on(store, "reader")
        check_history(root)
        live = names_in(root, root.snapshots.latest())
        mine = [name for name in live if name.startswith("mine")]
        assert len(mine) == 1, f"call {at} ({sleeping.log[at - 1]}): {live}, {result}"
        assert set(others.names) <= set(live), f"call {at} ({sleeping.log[at - 1]}): others lost"
        assert len(root.snapshots.ids()) <= before + commits + 2
    assert at > 12


def test_rows_of_a_stalled_writer_follow_those_committed_in_the_meantime():
    store = new_store(KEYED)
    others = Others(store, KEYED)
    others.commit()
    changes = changes_of(bucket_changes(data_file("mine", sequences=(0, 0))), base=None)
    place(store, KEYED, changes)
    for at in range(1, 14):
        fresh = new_store(KEYED)
        others = Others(fresh, KEYED)
        others.commit()
        place(fresh, KEYED, changes)
        sleeping = Sleeping(fresh, at, others.commit)
        do_commit(root_on(sleeping, "mine"), KEYED, changes)
        root = root_on(fresh, "reader")
        order = []
        for snapshot_id in root.snapshots.ids():
            delta = root.manifests.read_list(root.snapshots.get(snapshot_id).delta_manifest_list)
            order += [(e.file.min_sequence, e.file.name) for e in root.manifests.read_entries(delta).entries()]
        assert order == sorted(order), f"call {at}"


def test_an_endless_race_ends():
    table_schema = msgspec.structs.replace(APPEND, options={"commit.max-retries": "3"})
    store = new_store(table_schema)
    others = Others(store, table_schema)
    changes = changes_of(unaware(data_file("mine")))
    place(store, table_schema, changes)

    class Busy(Sleeping):
        def _call(self, verb, path, action, *, shortened=None):
            if verb == "put_new":
                self.meanwhile()
            return FaultStore._call(self, verb, path, action, shortened=shortened)

    with pytest.raises(CommitRetriesExhaustedError):
        do_commit(root_on(Busy(store, 0, others.commit), "mine"), table_schema, changes)
    stored, needed = check_history(root_on(store, "reader"))
    assert {name for name in stored if "manifest" in name} <= needed
