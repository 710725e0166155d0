"""What a clone contains, and that it has nothing in common with its source."""

from __future__ import annotations

import pickle
from datetime import timedelta

import pytest
from unit.commit.support import Clock, Ids

from paimon_py import (
    AddColumn,
    AlreadyExistsError,
    Catalog,
    CommitConflictError,
    CorruptionError,
    DatabaseNotFoundError,
    DropColumn,
    OptionError,
    RenameColumn,
    Schema,
    SetOption,
    SnapshotExpiredError,
    Table,
    TableNotFoundError,
    TagNotFoundError,
    UnsupportedError,
    UsageError,
)
from paimon_py.clones import unfinished
from paimon_py.clones.contents import CloneChoice, choose_contents
from paimon_py.clones.unfinished import begin_clone
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.memory_store import MemoryStore

COLUMNS = Schema({"id": "BIGINT NOT NULL", "m": "INT NOT NULL", "v": "STRING"})
KEYED = {"primary_key": ["m", "id"], "partition_by": ["m"]}


class World:
    def __init__(self, columns=COLUMNS, *, primary_key=(), partition_by=(), **options):
        self.store, self.clock = MemoryStore(), Clock()
        self.catalog = self.opened("first")
        self.catalog.create_database("a")
        self.catalog.create_database("b")
        self.table = self.catalog.create_table(
            "a.t", columns, primary_key=primary_key, partition_by=partition_by, options=options
        )

    def opened(self, owner, store=None):
        return Catalog(store or self.store, "/w", env=Env(self.clock, Ids(owner), SerialPool()))

    def write(self, *ids, month=1, **how):
        return self.table.write_arrow([{"id": number, "m": month, "v": f"v{number}"} for number in ids], **how)


def rows(table, **how):
    return sorted(table.scan(**how).to_arrow().to_pylist(), key=repr)


def files_below(store, path):
    found = []
    for status in store.list(path):
        found += files_below(store, status.path) if status.is_directory else [status.path]
    return found


@pytest.fixture
def keyed():
    world = World(**KEYED, bucket="1", **{"changelog-producer": "input"})
    world.write(1, 2)
    world.write(3, month=2)
    world.table.create_tag("two")
    world.table.alter(AddColumn("w", "INT"), RenameColumn("v", "name"))
    world.table.write_arrow([{"id": 1, "m": 1, "name": "new", "w": 7}])
    return world


def test_a_clone_is_the_newest_snapshot_and_goes_on_by_itself(keyed):
    before = files_below(keyed.store, "/w/a.db")
    result = keyed.catalog.clone_table("a.t", "b.t")
    assert (result.table, result.snapshot_id, result.snapshots, result.tags, result.dry_run) == ("b.t", 3, 1, (), False)
    assert files_below(keyed.store, "/w/a.db") == before
    clone = keyed.catalog.table("b.t")
    assert rows(clone) == rows(keyed.table) and clone.schema == keyed.table.schema
    assert [one.id for one in clone.snapshots()] == [3] and clone.doctor() == []
    assert len(files_below(keyed.store, "/w/b.db/t")) == result.files + 2 + 1  # schemas and the snapshot
    clone.write_arrow([{"id": 9, "m": 1, "name": "only here", "w": 1}])
    clone.compact(full=True)
    clone.expire_snapshots(retain_max=1, retain_min=1, older_than=timedelta(0))
    assert keyed.table.count() == 3 and keyed.table.doctor() == []
    keyed.catalog.drop_table("a.t")
    assert clone.refresh().count() == 4


def test_history_and_tags_come_along_where_asked(keyed):
    assert keyed.catalog.clone_table("a.t", "b.t", history=True, tags=True).tags == ("two",)
    clone = keyed.catalog.table("b.t")
    for number in (1, 2, 3):
        assert rows(clone, snapshot_id=number) == rows(keyed.table, snapshot_id=number)
    assert rows(clone, tag="two") == rows(keyed.table, tag="two")
    assert clone.changes(1, 3).to_arrow().equals(keyed.table.changes(1, 3).to_arrow())
    assert rows(keyed.catalog.table("b.t$audit_log")) == rows(keyed.catalog.table("a.t$audit_log"))


def test_a_snapshot_or_tag_is_cloned_with_its_own_schema(keyed):
    keyed.catalog.clone_table("a.t", "b.one", snapshot_id=1)
    keyed.catalog.clone_table("a.t", "b.two", tag="two", tags=["two"])
    one, two = keyed.catalog.table("b.one"), keyed.catalog.table("b.two")
    assert (one.schema.id, two.schema.id) == (0, 0)
    assert rows(one) == rows(keyed.table, snapshot_id=1) and rows(two) == rows(keyed.table, tag="two")
    assert [tag.name for tag in two.tags()] == ["two"]


def test_a_tag_of_an_expired_snapshot_can_be_cloned(keyed):
    keyed.clock.sleep(3600)
    keyed.table.expire_snapshots(retain_max=1, retain_min=1, older_than=timedelta(0))
    wanted = rows(keyed.table, tag="two")
    with pytest.raises(SnapshotExpiredError):
        keyed.catalog.clone_table("a.t", "b.x", snapshot_id=2)
    with pytest.raises(UsageError, match="expired"):
        keyed.catalog.clone_table("a.t", "b.x", tag="two", history=True)
    keyed.catalog.clone_table("a.t", "b.two", tag="two")
    keyed.catalog.clone_table("a.t", "b.all", tags=True)
    assert rows(keyed.catalog.table("b.two")) == rows(keyed.catalog.table("b.all"), tag="two") == wanted
    assert rows(keyed.catalog.table("b.all")) == rows(keyed.table)
    keyed.catalog.table("b.two").write_arrow([{"id": 5, "m": 1, "v": "x"}])
    assert keyed.catalog.table("b.two").count() == 4


def test_what_users_committed_is_known_to_the_clone():
    world = World()
    world.write(1, user="job", identifier=1)
    world.write(2, user="job", identifier=2)
    world.catalog.clone_table("a.t", "b.t", snapshot_id=1)
    clone = world.catalog.table("b.t")
    data = [{"id": 2, "m": 1, "v": "v2"}]
    assert clone.write_arrow(data, user="job", identifier=1).already_committed
    assert not clone.write_arrow(data, user="job", identifier=2).already_committed
    assert rows(clone) == rows(world.table)


def test_a_table_without_snapshots_is_cloned_with_its_schemas():
    world = World()
    world.table.alter(AddColumn("w", "INT"), DropColumn("v"))
    assert world.catalog.clone_table("a.t", "b.t", tags=True, history=True).snapshot_id is None
    clone = world.catalog.table("b.t")
    assert clone.schema == world.table.schema and clone.snapshot() is None
    assert clone.write_arrow([{"id": 1, "m": 1, "w": 2}]).snapshot_id == 1


def test_a_branch_becomes_a_table(keyed):
    keyed.table.create_branch("b1", from_="two")
    branch = keyed.table.branch("b1")
    branch.write_arrow([{"id": 77, "m": 1, "v": "branch"}])
    keyed.catalog.clone_table("a.t$branch_b1", "b.t", history=True)
    clone = keyed.catalog.table("b.t")
    assert rows(clone) == rows(branch) and clone.branches() == []


@pytest.mark.parametrize(
    "options",
    [
        {"deletion-vectors.enabled": "true", "bucket": "1"},
        {"bucket": "-1", "dynamic-bucket.target-row-num": "2"},
        {"bucket": "-2"},
        {"bucket": "1", "file-index.bloom-filter.columns": "v", "file-index.in-manifest-threshold": "1 b"},
        {"bucket": "2", "data-file.path-directory": "data"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_every_kind_of_file_comes_along(options):
    world = World(**KEYED, **options)
    world.write(1, 2, 3)
    world.write(1, 9, month=2)
    world.table.compact(full=True)
    world.table.write_arrow([{"id": 2, "m": 1, "_row_kind": "-D"}])
    world.table.compact(full=True)
    world.table.analyze()
    world.catalog.clone_table("a.t", "b.t", history=True)
    clone = world.catalog.table("b.t")
    world.catalog.drop_table("a.t")
    assert clone.statistics() is not None
    assert [row["id"] for row in rows(clone)] == [1, 1, 3, 9]
    clone.upsert([{"id": 3, "m": 1, "v": "x"}])
    clone.compact(full=True)
    assert clone.count() == 4 and clone.doctor() == []


def test_progress_and_a_dry_run(keyed):
    told = []
    before = files_below(keyed.store, "/w")
    asked = keyed.catalog.clone_table("a.t", "b.t", dry_run=True, progress=lambda *one: told.append(one))
    assert asked.dry_run and files_below(keyed.store, "/w") == before and told == []
    done = keyed.catalog.clone_table("a.t", "b.t", progress=lambda *one: told.append(one))
    assert told[-1] == (done.files, done.files, "files") and done.files == asked.files


def test_another_catalog_gets_the_clone(keyed, tmp_path):
    other = Catalog.open(tmp_path)
    other.create_database("b")
    keyed.catalog.clone_table("a.t", "b.t", to=other, history=True, tags=True)
    assert rows(other.table("b.t")) == rows(keyed.table) and "b.t" not in keyed.catalog.tables("b")
    events = []
    other.register_observer(events.append)
    pickle.loads(pickle.dumps(other)).clone_table("b.t", "b.u")
    other.clone_table("b.t", "b.v")
    assert [(event.action, event.name) for event in events] == [("create", "b.v")]
    assert sorted(one.name for one in tmp_path.joinpath("b.db", "v").iterdir()) == [
        "m=1", "m=2", "manifest", "schema", "snapshot",
    ]  # fmt: skip


def test_what_cannot_be_cloned_is_refused_and_nothing_is_left(keyed):
    clone = keyed.catalog.clone_table
    before = files_below(keyed.store, "/w")
    with pytest.raises(AlreadyExistsError):
        clone("a.t", "a.t")
    with pytest.raises(TableNotFoundError):
        clone("a.u", "b.u")
    with pytest.raises(DatabaseNotFoundError):
        clone("a.t", "c.u")
    with pytest.raises(TagNotFoundError):
        clone("a.t", "b.u", tags=["three"])
    with pytest.raises(UsageError, match="ends at 1"):
        clone("a.t", "b.u", tags=["two"], snapshot_id=1)
    with pytest.raises(UsageError, match="not both"):
        clone("a.t", "b.u", tag="two", snapshot_id=1)
    with pytest.raises(UsageError, match="system table"):
        clone("a.t$files", "b.u")
    with pytest.raises(UsageError, match="a catalog"):
        clone("a.t", "b.u", to="elsewhere")
    keyed.table.create_branch("b1")
    keyed.table.alter(SetOption("scan.fallback-branch", "b1"))
    with pytest.raises(OptionError, match="b1"):
        clone("a.t", "b.u")
    assert [path for path in files_below(keyed.store, "/w") if "/b.db/" in path] == [
        path for path in before if "/b.db/" in path
    ]


def test_external_paths_are_refused_by_name():
    world = World(**{"data-file.external-paths": "memory://out/x", "data-file.external-paths.strategy": "round-robin"})
    with pytest.raises(UnsupportedError, match=r"data-file\.external-paths"):
        world.catalog.clone_table("a.t", "b.t")


def test_a_missing_file_ends_the_clone_and_nothing_is_left(keyed):
    (victim,) = [path for path in files_below(keyed.store, "/w/a.db/t/m=2") if "data-" in path]
    keyed.store.delete(victim)
    with pytest.raises(CorruptionError):
        keyed.catalog.clone_table("a.t", "b.t")
    assert keyed.store.stat("/w/b.db/t") is None


def test_a_truncated_file_is_not_copied(keyed):
    (victim,) = [path for path in files_below(keyed.store, "/w/a.db/t/m=2") if "data-" in path]
    keyed.store.put(victim, keyed.store.get(victim)[:-1])
    with pytest.raises(CorruptionError, match="bytes"):
        keyed.catalog.clone_table("a.t", "b.t")
    assert keyed.store.stat("/w/b.db/t") is None


# -- interrupted, and at once -------------------------------------------------------------------------------------------


def begun(world, owner="first", **choice):
    """An unfinished clone, of which nothing is copied."""
    root = TableRoot(world.store, "/w/b.db/t", Env(world.clock, Ids(owner), SerialPool()))
    return begin_clone(world.table._root, root, choose_contents(world.table._root, CloneChoice(**choice)))


def test_an_interrupted_clone_is_no_table_and_the_same_call_finishes_it(keyed):
    begun(keyed).copy(None)
    assert keyed.catalog.tables("b") == []
    with pytest.raises(TableNotFoundError):
        keyed.catalog.table("b.t")
    with pytest.raises(AlreadyExistsError, match="interrupted"):
        keyed.catalog.create_table("b.t", COLUMNS)
    with pytest.raises(AlreadyExistsError, match="snapshot 3"):
        keyed.catalog.clone_table("a.t", "b.t", snapshot_id=1)
    keyed.table.write_arrow([{"id": 50, "m": 1, "name": "late", "w": 1}])
    with pytest.raises(AlreadyExistsError, match="unfinished clone"):
        keyed.catalog.clone_table("a.t", "b.t")
    again = keyed.opened("again")
    again.drop_table("b.t")
    begun(keyed, snapshot_id=4).copy(None)
    again.clone_table("a.t", "b.t", snapshot_id=4)
    assert rows(again.table("b.t")) == rows(keyed.table) and keyed.store.stat("/w/b.db/t/clone") is None


def test_files_that_are_half_there_are_copied_again(keyed):
    begun(keyed).copy(None)
    for path in files_below(keyed.store, "/w/b.db/t/m=1"):
        keyed.store.put(path, b"half")
    keyed.opened("again").clone_table("a.t", "b.t")
    assert rows(keyed.catalog.table("b.t")) == rows(keyed.table)


def test_remains_of_a_clone_can_be_dropped(keyed):
    begun(keyed).copy(None)
    keyed.catalog.drop_table("b.t")
    keyed.catalog.clone_table("a.t", "b.t")
    assert rows(keyed.catalog.table("b.t")) == rows(keyed.table)


def test_a_call_that_was_taken_over_neither_publishes_nor_deletes(keyed):
    first, second = begun(keyed), begun(keyed, "second")
    for act in (lambda: first.copy(None), first.publish):
        with pytest.raises(CommitConflictError, match="taken over"):
            act()
    first.discard()
    second.copy(None)
    assert second.publish()
    assert rows(keyed.catalog.table("b.t")) == rows(keyed.table)
    second.discard()
    assert rows(keyed.catalog.table("b.t")) == rows(keyed.table)


def test_a_call_that_takes_over_while_the_other_deletes_does_not_publish(keyed):
    first = begun(keyed)
    first.copy(None)
    second = begun(keyed, "second")
    keyed.store.put_new("/w/b.db/t/clone/discarded", b"")  # the first looked whose plan it is before the second came
    second.copy(None)
    with pytest.raises(CommitConflictError):
        second.publish()
    second.discard()
    with pytest.raises(AlreadyExistsError, match="drop_table"):
        keyed.catalog.clone_table("a.t", "b.t")
    keyed.catalog.drop_table("b.t")
    keyed.catalog.clone_table("a.t", "b.t")
    assert rows(keyed.catalog.table("b.t")) == rows(keyed.table)


def test_a_table_that_is_created_meanwhile_stays(keyed, monkeypatch):
    real = unfinished.UnfinishedClone._copy_bytes

    def create(self, file, target):
        monkeypatch.setattr(unfinished.UnfinishedClone, "_copy_bytes", real)
        root = TableRoot(keyed.store, "/w/b.db/t", Env(keyed.clock, Ids("other"), SerialPool()))
        keyed.catalog.create_table("b.other", COLUMNS)
        keyed.store.put_new("/w/b.db/t/schema/schema-0", keyed.store.get("/w/b.db/other/schema/schema-0"))
        Table(root, root.schemas.latest(), "b.t").write_arrow([{"id": 1, "m": 1, "v": "theirs"}])
        real(self, file, target)

    monkeypatch.setattr(unfinished.UnfinishedClone, "_copy_bytes", create)
    with pytest.raises(AlreadyExistsError, match="another table"):
        keyed.catalog.clone_table("a.t", "b.t")
    theirs = keyed.catalog.table("b.t")
    assert [row["v"] for row in rows(theirs)] == ["theirs"] and theirs.doctor() == []
    assert not any("m=" in path for path in files_below(keyed.store, "/w/b.db/t"))


class WithoutRename:
    """A store that cannot move directories, as object stores."""

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        return getattr(self._store, name)

    def rename_directory(self, source, target):
        raise UnsupportedError(f"no rename of {source} to {target}", feature="rename")


def test_a_store_that_cannot_rename_gets_the_schemas_newest_first(keyed):
    puts = []

    class Store(WithoutRename):
        def put_new(self, path, data, *, within=None):
            puts.append(path)
            return self._store.put_new(path, data, within=within)

    keyed.opened("again", Store(keyed.store)).clone_table("a.t", "b.t", history=True)
    assert [path[-1] for path in puts if "/schema/" in path] == ["1", "0"]
    assert rows(keyed.catalog.table("b.t"), snapshot_id=1) == rows(keyed.table, snapshot_id=1)


def test_a_history_with_a_gap_is_cloned_from_there_on(keyed):
    """The clone, which has no hints, ended at the snapshot before the gap, and its newest rows were gone."""
    keyed.table.write_arrow([{"id": 7, "m": 1, "name": "x", "w": 7}])
    newest = keyed.table.refresh().snapshot().id
    before = rows(keyed.table.refresh())
    keyed.store.delete(f"{keyed.table.location}/snapshot/snapshot-{newest - 1}")
    assert keyed.catalog.clone_table("a.t", "b.t", history=True).snapshots == 1
    clone = keyed.catalog.table("b.t")
    assert rows(clone) == before and [snapshot.id for snapshot in clone.snapshots()] == [newest]
    clone.write_arrow([{"id": 8, "m": 1, "name": "x", "w": 8}])
    assert clone.refresh().snapshot().id == newest + 1
