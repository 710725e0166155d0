"""Branches: each goes on by itself, none loses a file to another, and whatever fails on the way can be repeated."""

from __future__ import annotations

import pickle
import random

import pyarrow as pa
import pytest
from faults.shares import one_in
from unit.maintain.test_expire_snapshots import EVERY_AGE, PATH, TABLES, lived, opened, rows, states

from paimon_py import (
    AddColumn,
    AlreadyExistsError,
    BranchNotFoundError,
    Catalog,
    CommitConflictError,
    PaimonError,
    PaimonWarning,
    SetOption,
    SnapshotExpiredError,
    SnapshotNotFoundError,
    Table,
    TagNotFoundError,
    UsageError,
)
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.fault_store import for_each_fault


def everything(table):
    """The rows of every snapshot and tag of every branch."""
    found = {"main": states(table.branch("main"))}
    return found | {name: states(table.branch(name)) for name in table.branches()}


def ids(table):
    return [snapshot.id for snapshot in table.snapshots()]


def keys(table):
    return sorted(table.scan().to_arrow()["k"].to_pylist())


@pytest.mark.parametrize("kind", TABLES)
def test_a_branch_begins_with_a_tag_and_goes_on_by_itself(kind):
    table = opened(lived(kind))
    before = states(table)
    branch = table.create_branch("b", from_="kept")
    assert states(branch) == {table.tags()[0].snapshot_id: before["kept"], "kept": before["kept"]}
    branch.write_arrow(rows(70, 71))
    branch.compact(full=True)
    assert keys(branch) == sorted([*(row["k"] for row in before["kept"]), 70, 71])
    assert states(table) == before and table.branches() == ["b"]
    assert (branch.name, table.branch("b").branch("main").name) == ("d.t$branch_b", "d.t")


def test_a_branch_begins_empty_or_with_a_snapshot_and_has_its_own_schema():
    table = opened(lived("keyed"))
    empty, third = table.create_branch("empty", from_=None), table.create_branch("third", from_=3)
    assert (empty.snapshot(), ids(third)) == (None, [3])
    assert ids(table.create_branch("latest")) == [table.snapshot().id]
    table.delete_branch("latest")
    empty.alter(SetOption("snapshot.num-retained.min", "3"))
    assert "snapshot.num-retained.min" not in table.branch("main").options
    empty.write_arrow(rows(1))
    assert (keys(empty), ids(empty)) == ([1], [1])
    of_third = third.create_branch("of-third", from_=3)
    of_third.write_arrow(rows(99))
    assert 99 in keys(of_third) and 99 not in keys(third)
    assert table.branches() == ["empty", "of-third", "third"]


def test_a_branch_of_today_has_the_columns_of_today():
    table = opened(lived("keyed"))
    before = table.snapshot().id
    table.alter(AddColumn("added", "INT"))
    assert "added" not in table.create_branch("of-then", from_=before).schema.names
    today = table.create_branch("of-today")
    row = rows(70).append_column("added", pa.array([7], pa.int32()))
    today.write_arrow(row)
    table.fast_forward("of-today")
    assert table.refresh().scan(where="added = 7").count() == 1


def test_names_reach_branches_and_what_is_seen_of_them():
    store = lived("keyed")
    opened(store).create_branch("b", from_="kept").write_arrow(rows(70))
    catalog = Catalog(store, "/w")
    branch = catalog.table("d.t$branch_b")
    assert 70 in keys(branch) and 70 in keys(catalog.table("d.t$branch_b$audit_log"))
    assert 70 not in keys(catalog.table("d.t"))
    copy = pickle.loads(pickle.dumps(branch))
    assert (copy._root.branch, copy.name) == ("b", "d.t$branch_b")
    make, move = (lambda name: catalog.create_table(name, [])), (lambda name: catalog.rename_table(name, "d.x"))
    for verb in (catalog.drop_table, make, move):
        with pytest.raises(UsageError, match="does not take a branch"):
            verb("d.t$branch_b")
    with pytest.raises(BranchNotFoundError, match="no branch 'c'"):
        catalog.table("d.t$branch_c")


def test_a_table_is_opened_on_a_branch_by_an_option(tmp_path):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", rows(1).schema, options={"bucket": "-1"})
    table.create_branch("b").write_arrow(rows(1))
    assert keys(Table.open(table.location, options={"branch": "b"})) == [1]
    assert keys(Table.open(table.location, options={"branch": "main"})) == []


@pytest.mark.parametrize("name", ["main", "12", "", "a/b", " a", None, "a\nb"])
def test_names_that_are_none(name):
    table = opened(lived("append"))
    for verb in (table.create_branch, table.delete_branch, table.fast_forward):
        with pytest.raises(UsageError):
            verb(name)
    assert table.branches() == []


def test_what_is_not_there_or_there_already_is_named():
    table = opened(lived("keyed"))
    table.create_branch("b", from_=None)
    with pytest.raises(AlreadyExistsError, match="'b'"):
        table.create_branch("b", from_="kept")
    for wrong, error in (("nix", TagNotFoundError), (99, SnapshotNotFoundError), (True, UsageError), (1.5, UsageError)):
        with pytest.raises(error):
            table.create_branch("c", from_=wrong)
    for verb in (table.branch, table.delete_branch, table.fast_forward, lambda name: table.rename_branch(name, "d")):
        with pytest.raises(BranchNotFoundError):
            verb("nix")
    with pytest.raises(UsageError, match="no snapshot"):
        table.fast_forward("b")
    with pytest.raises(UsageError, match="on the table itself"):
        table.branch("b").fast_forward("b")
    assert table.branches() == ["b"]


def test_changes_and_positions_of_another_branch_are_refused():
    table = opened(lived("keyed"))
    branch = table.create_branch("b", from_="kept")
    with table.writer() as writer:
        writer.write_arrow(rows(80))
        changes = writer.changes()
    with pytest.raises(UsageError, match="branch 'main', this is 'b'"):
        branch.commit(changes)
    table.commit(bytes(changes))
    stream = table.stream(from_="earliest")
    stream.poll()
    with pytest.raises(UsageError, match="is not of the table"):
        branch.stream(from_=stream.position).poll()
    assert 80 in keys(table) and 80 not in keys(branch)


def test_renamed_and_deleted_branches():
    store = lived("keyed")
    table = opened(store)
    table.create_branch("a", from_="kept")
    table.create_branch("other")
    with pytest.raises(AlreadyExistsError):
        table.rename_branch("a", "other")
    table.rename_branch("a", "b")
    assert table.branches() == ["b", "other"] and ids(table.branch("b")) == [2]
    before = states(table)
    table.delete_branch("b")
    table.delete_branch("other")
    assert table.branches() == [] and states(table) == before
    table._schema.options["scan.fallback-branch"] = "f"
    for verb in (table.delete_branch, lambda name: table.rename_branch(name, "g")):
        with pytest.raises(UsageError, match=r"scan\.fallback-branch"):
            verb("f")


@pytest.mark.parametrize("kind", TABLES)
def test_main_moves_on_to_a_branch(kind):
    table = opened(lived(kind))
    table.create_tag("late")
    before, latest = states(table), table.snapshot().id
    branch = table.create_branch("b", from_="kept")
    branch.write_arrow(rows(70))
    branch.create_tag("theirs")
    with pytest.raises(CommitConflictError, match=r"snapshots? \d.* and the tags 'late'.*discard=True"):
        table.fast_forward("b")
    assert {**states(table), "theirs": None} == {**before, "theirs": None}
    moved = table.fast_forward("b", discard=True)
    first, *new = ids(branch)
    assert (moved.snapshot_id, moved.new_ids) == (new[-1], tuple(new))
    assert (moved.gone_ids, moved.tags) == (tuple(range(first + 1, latest + 1)), ("late",))
    expected = {**states(branch), **{number: before[number] for number in range(1, first)}}
    assert states(table) == expected
    again = table.fast_forward("b")
    assert (again.gone_ids, again.new_ids) == ((), ()) and states(table) == expected
    table.write_arrow(rows(71))
    branch.write_arrow(rows(72))
    assert 72 not in keys(table) and 71 not in keys(branch)


def test_a_branch_that_main_has_outlived():
    table = opened(lived("keyed"))
    branch = table.create_branch("b", from_="kept")
    branch.write_arrow(rows(70))
    table.expire_snapshots(retain_min=1, older_than=EVERY_AGE)
    assert table.fast_forward("b", discard=True).snapshot_id == 3
    assert ids(table) == [2, 3] and 70 in keys(opened(table._root.store))
    for key in range(9):
        table.write_arrow(rows(key))
    assert table._root.snapshots.earliest_id() == 2


def test_tags_of_snapshots_that_a_branch_descends_from_stay_though_main_has_outlived_them():
    """The branch has expired the snapshots that both had, or main has; its origin, or their parent, names them."""
    for begin, side in ((3, "main"), (2, "main"), (3, "branch")):
        table = Catalog(MemoryStore(), "/w")
        table.create_database("d")
        table = table.create_table("d.t", rows(1).schema, primary_key=["k"], options={"bucket": "1", "write-only": "true"})
        for key in (1, 2, 3):
            table.write_arrow(rows(key))
        table.create_tag("early", 1)
        table.create_tag("shared", 2)
        branch = table.create_branch("b", from_=begin)
        table.write_arrow(rows(4))
        table.create_tag("beyond", 4)
        branch.write_arrow(rows(70))
        branch.write_arrow(rows(71))
        for one in (table, branch) if side == "branch" else (table,):
            one.expire_snapshots(retain_min=1, older_than=EVERY_AGE)
        moved = table.fast_forward("b", discard=True)
        assert moved.tags == ("beyond",) and [tag.name for tag in table.tags()] == ["early", "shared"], (begin, side)
        assert table.scan(tag="early").to_arrow()["k"].to_pylist() == [1]
        assert sorted(table.scan(tag="shared").to_arrow()["k"].to_pylist()) == [1, 2]


def test_tags_stay_though_their_snapshots_had_expired_before_the_branch_began():
    table = Catalog(MemoryStore(), "/w")
    table.create_database("d")
    table = table.create_table("d.t", rows(1).schema, primary_key=["k"], options={"bucket": "1", "write-only": "true"})
    for key in (1, 2, 3):
        table.write_arrow(rows(key))
    table.create_tag("january", 1)
    table.expire_snapshots(retain_min=1, older_than=EVERY_AGE)
    branch = table.create_branch("b")
    for one, key in ((table, 4), (branch, 70)):
        one.write_arrow(rows(key))
        one.expire_snapshots(retain_min=1, older_than=EVERY_AGE)
    assert table.fast_forward("b", discard=True).tags == ()
    assert table.scan(tag="january").to_arrow()["k"].to_pylist() == [1]


def test_a_branch_that_forgot_where_it_parted_keeps_its_files():
    catalog = Catalog(MemoryStore(), "/w")
    catalog.create_database("d")
    table = catalog.create_table("d.t", rows(1).schema, primary_key=["k"], options={"bucket": "1", "write-only": "true"})
    for key in (1, 2):
        table.write_arrow(rows(key))
    branch = table.create_branch("b", from_=2)
    branch.write_arrow(rows(3))
    branch.expire_snapshots(retain_min=1, older_than=EVERY_AGE)
    table.write_arrow(rows(4))
    table.expire_snapshots(retain_min=1, older_than=EVERY_AGE)
    assert ids(table) == ids(branch) == [3]
    table.compact(full=True)
    table.expire_snapshots(retain_min=1, older_than=EVERY_AGE)
    assert keys(branch) == [1, 2, 3] and keys(table) == [1, 2, 4]


def test_consumers_of_changelogs_that_outlive_their_snapshots_are_named_too():
    catalog = Catalog(MemoryStore(), "/w")
    catalog.create_database("d")
    options = {"bucket": "1", "write-only": "true", "changelog.num-retained.min": "50", "changelog.num-retained.max": "50"}
    table = catalog.create_table("d.t", rows(1).schema, primary_key=["k"], options=options)
    for key in (1, 2, 3):
        table.write_arrow(rows(key))
    branch = table.create_branch("b")
    for key in (4, 5):
        branch.write_arrow(rows(key))
    table.expire_snapshots(retain_min=1, retain_max=1, older_than=EVERY_AGE)
    branch.expire_snapshots(retain_min=1, retain_max=1, older_than=EVERY_AGE)
    stream = table.stream(from_=2, consumer_id="late")
    assert stream.poll().snapshot_id == 2
    with pytest.raises(CommitConflictError, match="nothing was done: consumers .*: 'late'"):
        table.fast_forward("b")
    assert stream.poll().snapshot_id == 3


@pytest.mark.parametrize("read", [0, 1, 2])
def test_consumers_that_would_pass_over_what_a_branch_has_expired_are_named(read):
    catalog = Catalog(MemoryStore(), "/w")
    catalog.create_database("d")
    table = catalog.create_table("d.t", rows(1).schema, primary_key=["k"], options={"bucket": "1", "write-only": "true"})
    for key in (1, 2):
        table.write_arrow(rows(key))
    branch = table.create_branch("b")
    table.stream(from_=1, consumer_id="late").poll()
    stream = table.stream(consumer_id="late")
    for _ in range(read):
        stream.poll().acknowledge()
    for key in (3, 4):
        branch.write_arrow(rows(key))
    branch.expire_snapshots(retain_min=1, older_than=EVERY_AGE)
    before = everything(table)
    with pytest.raises(CommitConflictError, match=r"nothing was done: consumers .*: 'late'\. delete_consumer\('late'\) or .*discard"):
        table.fast_forward("b")
    assert everything(table) == before
    assert [step.snapshot_id for step in iter(stream.poll, None)] == [1, 2][read:]
    with pytest.warns(PaimonWarning, match="consumers had not read .* 'late'.*reset_consumer"):
        assert table.fast_forward("b", discard=True).consumers == ("late",)
    with pytest.raises(SnapshotExpiredError):
        table.stream(consumer_id="late").poll()
    table.reset_consumer("late", 5)
    table.write_arrow(rows(5))
    assert [step.snapshot_id for step in table.stream(consumer_id="late", until="now")] == [5]


def test_consumers_that_read_on_into_the_branch_are_left_alone():
    table = opened(lived("keyed"))
    table.create_branch("b").write_arrow(rows(70))
    stream = table.stream(from_=4, consumer_id="c")
    assert table.fast_forward("b").consumers == ()
    assert [step.snapshot_id for step in iter(stream.poll, None)][-1] == table.snapshot().id


@pytest.mark.parametrize("begin", [3, "late"])
def test_a_snapshot_that_expires_while_a_branch_is_made_from_it(begin, monkeypatch):
    store = lived("keyed")
    opened(store).create_tag("late", snapshot_id=3)
    put_new = MemoryStore.put_new

    def rival(self, path, *given, **named):
        if path.endswith("/branch-b/snapshot/snapshot-3"):
            opened(store).delete_tag("late")
            opened(store).expire_snapshots(retain_min=1, older_than=EVERY_AGE)
        return put_new(self, path, *given, **named)

    monkeypatch.setattr(MemoryStore, "put_new", rival)
    with pytest.raises(SnapshotExpiredError, match="while the branch 'b' was made"):
        opened(store).create_branch("b", from_=begin)
    assert opened(store).branches() == [] and store.list(f"{PATH}/branch/branch-b") == []


def test_an_empty_table_moves_on_to_a_branch():
    catalog = Catalog(MemoryStore(), "/w")
    catalog.create_database("d")
    table = catalog.create_table("d.t", rows(1).schema, options={"bucket": "-1"})
    table.create_branch("b").write_arrow(rows(1))
    assert table.fast_forward("b").new_ids == (1,)
    assert keys(table) == [1] and keys(catalog.table("d.t")) == [1]
    table.write_arrow(rows(2))
    assert ids(table) == [1, 2] and keys(table.branch("b")) == [1]


def live(seed: int) -> int:
    """A table and its branches, whose pasts go at any time; what stays can be read. Gives how much went."""
    rng = random.Random(seed)
    table = opened(lived(rng.choice(list(TABLES))))
    made, gone, key = 0, 0, 100
    for _ in range(rng.randrange(15, 30)):
        names = ["main", *table.branches()]
        branch = table.branch(rng.choice(names))
        what = rng.choice([*["write"] * 3, "compact", "tag", "branch", "expire", "expire", "untag", "forward"])
        before = everything(table)
        if what == "write" or branch.snapshot() is None:
            key += 1
            branch.write_arrow(rows(key, rng.randrange(10)))
        elif what == "compact":
            branch.compact(full=True)
        elif what == "tag":
            made += 1
            branch.create_tag(f"t{made}", snapshot_id=rng.choice(ids(branch)))
        elif what == "branch" and len(names) < 4:
            made += 1
            branch.create_branch(f"b{made}", from_=rng.choice([*(tag.name for tag in branch.tags()), *ids(branch)]))
        elif what == "expire":
            least = rng.randrange(1, 4)
            result = branch.expire_snapshots(retain_min=least, retain_max=least, older_than=EVERY_AGE)
            gone += result.data_files
            for number in result.snapshot_ids:
                before[branch._root.branch].pop(number)
            assert everything(table) == before, (seed, what, branch)
        elif what == "untag" and branch.tags():
            name = rng.choice(branch.tags()).name
            branch.delete_tag(name)
            before[branch._root.branch].pop(name)
            assert everything(table) == before, (seed, what, branch, name)
        elif what == "forward" and branch._root.branch != "main":
            first = ids(branch)[0]
            main = table.branch("main")
            marks = {one.id: one.value.mark for one in main.snapshots()}
            ours = {one.id: one.value.mark for one in branch.snapshots()}
            main.fast_forward(branch._root.branch, discard=True)
            shares = any(marks.get(number) == mark for number, mark in ours.items())
            kept = {name: state for name, state in before["main"].items() if isinstance(name, int) and name < first and shares}
            found = everything(table)
            assert {**kept, **states(branch)}.items() <= found["main"].items(), (seed, what, branch)
            assert {**found, "main": None} == {**before, "main": None}
    return gone


@pytest.mark.parametrize("seed", range(3))
def test_no_branch_loses_a_file_to_another(seed):
    live(seed)


def test_lives_let_files_go():
    assert sum(live(seed) for seed in range(100, 102)) > 0


@pytest.mark.full
@pytest.mark.parametrize("shard", range(8))
def test_no_branch_loses_a_file_in_longer_lives(shard):
    for seed in range(1000 * (shard + 1), 1000 * (shard + 1) + 60):
        live(seed)


def only_the_origin(store, name):
    """Leave of a branch what a call leaves that ends after its first file."""
    home = f"{PATH}/branch/branch-{name}"
    for directory in ("snapshot", "schema", "tag"):
        store.delete_tree(f"{home}/{directory}")
    (origin,) = [status.path for status in store.list(home) if not status.is_directory]
    return origin, store.get(origin)


def test_an_interrupted_creation_goes_on_after_ancestors_have_expired_and_from_no_other_snapshot():
    store = lived("keyed")
    table = opened(store)
    before = states(table.create_branch("b", from_="kept"))
    path, origin = only_the_origin(store, "b")
    table.expire_snapshots(retain_min=1, older_than=EVERY_AGE)
    assert states(opened(store).create_branch("b", from_="kept")) == before
    assert store.get(path) == origin, "the file still names the expired ancestors"
    only_the_origin(store, "b")
    with pytest.raises(AlreadyExistsError, match="remains from an earlier branch 'b'"):
        opened(store).create_branch("b", from_=opened(store).snapshot().id)
    assert store.get(path) == origin


WORK = {
    "create": lambda table: table.create_branch("new", from_="kept"),
    "forward": lambda table: table.fast_forward("b", discard=True),
    "delete": lambda table: table.delete_branch("b"),
    "rename": lambda table: table.rename_branch("b", "c"),
}


@pytest.mark.parametrize("every", [pytest.param(3, id="some"), pytest.param(1, marks=pytest.mark.full, id="all")])
@pytest.mark.parametrize("work", WORK)
def test_whatever_fails_the_call_can_be_repeated_and_nobody_loses_a_state(work, every):
    original = lived("keyed")
    opened(original).rollback_to(3)
    branch = opened(original).create_branch("b", from_="kept")
    branch.write_arrow(rows(70))
    branch.create_tag("theirs")
    before = everything(opened(original))
    done = opened(original.copy())
    WORK[work](done)
    after = everything(done)

    def check(store, outcome):
        assert outcome.error is None or outcome.crashed or isinstance(outcome.error, PaimonError)
        table = opened(store)
        found = states(table)
        assert (found[1], found[2]) == (before["main"][1], before["main"][2])
        try:
            WORK[work](table)
        except (AlreadyExistsError, BranchNotFoundError):
            assert everything(table) == after
        assert everything(table) == after

    share = one_in(every, list(WORK).index(work))
    assert for_each_fault(original.copy, lambda store: WORK[work](opened(store)), check, share=share) > 5


def test_changes_that_wait_on_a_branch_expire_like_on_the_table():
    branch = opened(lived("keyed")).create_branch("b", from_="kept")
    for key in range(4):
        branch.write_arrow(rows(60 + key))
    stream = branch.stream(from_=3)
    stream.poll()
    position = stream.position
    branch.expire_snapshots(retain_min=1, older_than=EVERY_AGE)
    with pytest.raises(SnapshotExpiredError):
        branch.stream(from_=position).poll()


def test_the_directory_of_a_branch_is_javas():
    store = lived("append")
    opened(store).create_branch("b", from_="kept")
    home = f"{PATH}/branch/branch-b"
    found = {status.path for name in ("snapshot", "schema", "tag") for status in store.list(f"{home}/{name}")}
    assert found == {f"{home}/snapshot/snapshot-2", f"{home}/schema/schema-0", f"{home}/tag/tag-kept"}


class BranchingBeforeDeletes:
    """A store on which a branch is made of a tag right before the tag is deleted."""

    def __init__(self, store):
        self.store = store

    def __getattr__(self, verb):
        return getattr(self.store, verb)

    def delete(self, path):
        if path.endswith("/tag/tag-kept") and not opened(self.store).branches():
            opened(self.store).create_branch("late", from_="kept")
        self.store.delete(path)


def test_a_branch_that_is_made_of_a_tag_while_the_tag_goes_keeps_its_files():
    store = lived("keyed")
    opened(store).expire_snapshots(retain_min=1, older_than=EVERY_AGE)
    before = states(opened(store))["kept"]
    opened(BranchingBeforeDeletes(store)).delete_tag("kept")
    assert [tag.name for tag in opened(store).tags()] == []
    assert states(opened(store).branch("late")) == {2: before, "kept": before}
