"""Two histories have snapshots, tags and commits of the same number: whoever holds one must not get the other."""

from __future__ import annotations

import json
import pickle
from datetime import timedelta

import pyarrow as pa
import pytest
from unit.commit.support import Clock, Ids

from paimon_py import Catalog, CommitConflictError, PaimonError, SnapshotExpiredError, SnapshotNotFoundError, UsageError
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.tag_ancestor import TagAncestor, read_tag_ancestor, write_tag_ancestor
from paimon_py.metadata.user_files import UserFiles
from paimon_py.spec.layout import origin_path, snapshot_path, tag_ancestor_path
from paimon_py.storage.memory_store import MemoryStore

PATH = "/w/db.db/t"
COLUMNS = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])
EVERYTHING = {"retain_min": 1, "retain_max": 1, "older_than": timedelta(0)}
KEEPS_CHANGES = {"changelog.num-retained.min": "50", "changelog.num-retained.max": "60"}


class Place:
    """A table in memory, and other writers that leave out what paimon_py adds to snapshots."""

    def __init__(self, *, key=(), **options):
        self.store = MemoryStore()
        self.catalog = Catalog(self.store, "/w", env=Env(Clock(), Ids("x"), SerialPool()))
        self.catalog.create_database("db")
        options = {"bucket": "1" if key else "-1", **options}
        self.catalog.create_table("db.t", COLUMNS, primary_key=list(key), options=options)

    @property
    def table(self):
        return self.catalog.table("db.t")

    def write(self, *keys, **label):
        return self.table.write_arrow([{"k": key, "v": 0} for key in keys], **label)

    def by_java(self, home=PATH):
        """What paimon_py added to the snapshots is gone, as if another writer had committed them."""
        for file in self.store.list(f"{home}/snapshot"):
            data = json.loads(self.store.get(file.path)) if file.name.startswith("snapshot-") else {}
            if data.pop("properties", None):
                self.store.put(file.path, json.dumps(data).encode())

    def keys(self, **state):
        return sorted(self.table.scan(**state).to_arrow()["k"].to_pylist())


@pytest.mark.parametrize("knows_all", [True, False])
def test_a_number_that_was_rolled_back_to_a_snapshot_of_java_is_not_taken_for_committed(knows_all):
    place = Place()
    for key in range(1, 4):
        place.write(key)
        place.by_java()
    if not knows_all:
        place.table.expire_snapshots(**EVERYTHING)
    place.write(50, user="u", identifier=5)
    place.table.rollback_to(3)
    for key in range(4, 9):
        place.write(key)
        place.by_java()
    place.table.expire_snapshots(**EVERYTHING)
    place.by_java()
    assert (UserFiles(place.store, PATH).find("u") is None) == knows_all
    assert place.table.committed("u") is None
    assert place.table.filter_committed("u", [5]) == [5]
    if not knows_all:
        with pytest.raises(CommitConflictError, match="cannot be determined whether"):
            place.table.filter_committed("u", [4, 5])
        with pytest.raises(CommitConflictError, match="cannot be determined whether"):
            place.write(40, user="u", identifier=4)
    assert not place.write(50, user="u", identifier=5).already_committed
    assert place.keys().count(50) == 1
    assert place.write(50, user="u", identifier=5).already_committed


def test_a_number_before_one_that_was_rolled_back_is_still_known():
    place = Place()
    place.write(4, user="u", identifier=4)
    place.by_java()
    place.write(5, user="u", identifier=5)
    place.table.rollback_to(1)
    assert place.table.committed("u") == 4
    for key in range(10, 15):
        place.write(key)
        place.by_java()
    place.table.expire_snapshots(**EVERYTHING)
    place.by_java()
    assert place.table.committed("u") == 4


def test_numbers_that_java_committed_outlive_an_expiry_of_ours():
    place = Place()
    place.write(1, user="u", identifier=1)
    place.write(2, user="u", identifier=2)
    place.write(3, user="w", identifier=7)
    place.by_java()
    place.store.delete_tree(f"{PATH}/user")
    place.write(4)
    place.write(5)
    place.by_java()
    place.write(6)
    place.table.expire_snapshots(**EVERYTHING)
    assert place.table.committed("u") == 2 and place.table.committed("w") == 7
    assert place.write(2, user="u", identifier=2).already_committed
    assert place.keys() == [1, 2, 3, 4, 5, 6]
    assert not place.write(9, user="u", identifier=3).already_committed
    place.table.expire_snapshots(**EVERYTHING)
    assert place.table.committed("u") == 3


def test_a_number_outlives_an_expiry_after_another_program_rolled_a_later_one_back():
    place = Place()
    place.write(1, user="u", identifier=1)
    place.write(2)
    place.write(3, user="u", identifier=5)
    place.store.delete(snapshot_path(PATH, 3))
    for key in (4, 5):
        place.write(key)
        place.by_java()
    place.table.expire_snapshots(**EVERYTHING)
    assert place.table.committed("u") == 1
    assert place.write(1, user="u", identifier=1).already_committed
    assert not place.write(3, user="u", identifier=5).already_committed and place.keys() == [1, 2, 3, 4, 5]


class OfJava:
    """What Java does to a table: it leaves all files of paimon_py that it does not know."""

    def __init__(self, place):
        self.place = place

    def rolls_back(self, to):
        for snapshot in self.place.table.snapshots():
            if snapshot.id > to:
                self.place.store.delete(snapshot_path(PATH, snapshot.id))
        self.place.store.delete(f"{PATH}/snapshot/LATEST")

    def commits(self, *keys):
        for key in keys:
            self.place.write(key)
            self.place.by_java()

    def expires(self, below):
        """Without what our own expiry notes of users."""
        for snapshot in self.place.table.snapshots():
            if snapshot.id < below:
                self.place.store.delete(snapshot_path(PATH, snapshot.id))


@pytest.mark.parametrize("later", [2, 6])
def test_a_number_that_java_rolled_back_and_whose_snapshots_it_expired_is_not_taken_for_committed(later):
    place = Place()
    java = OfJava(place)
    java.commits(1, 2)
    place.write(50, user="u", identifier=5)
    place.table.delete("k = 1")
    java.rolls_back(2)
    java.commits(*range(10, 10 + later))
    java.expires(2 + later)
    assert [one.id for one in place.table.snapshots()] == [2 + later]
    assert place.table.committed("u") is None
    with pytest.raises(CommitConflictError, match="cannot be determined whether"):
        place.table.filter_committed("u", [5, 6])
    with pytest.raises(CommitConflictError, match="under the number 6 or a larger one"):
        place.write(50, user="u", identifier=5)
    assert place.keys().count(50) == 0
    assert not place.write(50, user="u", identifier=6).already_committed
    assert place.keys().count(50) == 1 and place.table.committed("u") == 6
    assert place.table.filter_committed("u", [5, 6, 7]) == [7]


def test_a_number_whose_snapshots_java_expired_is_known_as_long_as_its_files_are_listed():
    place = Place(key=["k"], **{"write-only": "true"})
    java = OfJava(place)
    java.commits(1, 2)
    place.write(50, user="u", identifier=5)
    java.commits(3, 4, 5)
    java.expires(6)
    assert place.table.committed("u") == 5 and place.table.filter_committed("u", [4, 5, 6]) == [6]
    assert place.write(50, user="u", identifier=5).already_committed
    place.table.compact(full=True)
    place.by_java()
    java.commits(*range(6, 9))
    java.expires(10)
    assert place.table.committed("u") == 5  # manifests still list the file as deleted
    assert place.write(50, user="u", identifier=5).already_committed
    assert not place.write(51, user="u", identifier=6).already_committed


def test_a_number_that_an_expiry_of_ours_noted_is_known_as_long_as_the_snapshot_that_it_kept():
    place = Place()
    java = OfJava(place)
    place.write(1, user="u", identifier=5)
    place.by_java()
    place.store.delete_tree(f"{PATH}/user")
    java.commits(2, 3)
    place.table.expire_snapshots(**EVERYTHING)
    place.table.delete("k = 1")
    place.by_java()
    assert place.table.committed("u") == 5 and place.write(1, user="u", identifier=5).already_committed
    java.commits(*range(4, 9))
    java.expires(9)
    with pytest.raises(CommitConflictError, match="cannot be determined whether"):
        place.write(1, user="u", identifier=5)


@pytest.mark.parametrize("how", ["branch", "tag", "clone", "branch of java"])
def test_numbers_before_a_snapshot_of_java_are_known_to_its_branches_and_clones(how):
    place = Place()
    place.write(1, user="u", identifier=1)
    place.write(2, user="w", identifier=7)
    place.write(3)
    place.by_java()
    place.table.create_tag("t")
    place.write(5, user="u", identifier=2)
    place.write(6, user="x", identifier=3)
    place.table.expire_snapshots(**EVERYTHING)
    place.by_java()
    if how == "clone":
        place.catalog.clone_table("db.t", "db.c", tag="t")
        copy = place.catalog.table("db.c")
    else:
        copy = place.table.create_branch("b", from_="t" if how != "branch" else place.table.snapshot().id)
        if how == "branch of java":
            for path in ("ORIGIN", "user"):
                place.store.delete_tree(f"{PATH}/branch/branch-b/{path}") if path == "user" else place.store.delete(origin_path(f"{PATH}/branch/branch-b"))
    rows = [{"k": 9, "v": 0}]
    before = copy.count()
    for user, number in (("u", 1), ("w", 7), *([("u", 2), ("x", 3)] if how == "branch" else [])):
        try:
            assert copy.write_arrow(rows, user=user, identifier=number).already_committed
        except PaimonError as error:
            assert "cannot be determined" in str(error) or "must grow" in str(error)
    assert copy.count() == before
    if how in ("tag", "clone"):
        assert copy.committed("w") == 7 and copy.committed("u") is None
        assert not copy.write_arrow(rows, user="u", identifier=2).already_committed
    for user, number in (("u", 8), ("w", 8), ("x", 8), ("new", 1)):
        assert not copy.write_arrow(rows, user=user, identifier=number).already_committed
        assert copy.committed(user) == number


@pytest.mark.parametrize("producer", ["none", "input"])
def test_a_position_that_was_rolled_back_is_refused_where_only_changelogs_of_java_are_left(producer):
    place = Place(key=["k"], **{"changelog-producer": producer}, **KEEPS_CHANGES)
    for key in range(3):
        place.write(key)
    stream = place.table.stream(from_="earliest")
    position = [step.position for step in iter(stream.poll, None)][-1]
    place.table.rollback_to(2)
    for key in range(10, 16):
        place.write(key)
        place.by_java()
    place.table.expire_snapshots(**EVERYTHING)
    for late in (stream, place.table.stream(from_=position)):
        with pytest.raises(SnapshotExpiredError, match="snapshot 3 .* is no longer in the table"):
            late.poll()


CALLS = {
    "create_tag": lambda table, id_: table.create_tag("x", snapshot_id=id_),
    "replace_tag": lambda table, id_: table.replace_tag("first", snapshot_id=id_),
    "rollback_to": lambda table, id_: table.rollback_to(id_),
    "create_branch": lambda table, id_: table.create_branch("x", from_=id_),
    "stream": lambda table, id_: table.stream(from_=id_).poll(),
    "reset_consumer": lambda table, id_: table.reset_consumer("c", id_),
    "scan": lambda table, id_: table.scan(snapshot_id=id_).to_arrow(),
    "snapshot": lambda table, id_: table.snapshot(id_),
    "statistics": lambda table, id_: table.statistics(snapshot_id=id_),
    "diff from": lambda table, id_: table.changes(id_, mode="diff").to_arrow(),
    "diff to": lambda table, id_: table.changes(1, id_, mode="diff").to_arrow(),
    "changes to": lambda table, id_: table.changes(1, id_).to_arrow(),
}


@pytest.mark.parametrize(
    ("call", "source"), [*((call, "result") for call in CALLS), ("rollback_to", "snapshot"), ("rollback_to", "tag"), ("scan", "step")]
)
def test_an_id_that_names_a_snapshot_which_is_gone_is_refused(call, source):
    place = Place()
    table = place.table
    place.write(1)
    table.create_tag("first")
    stream = table.stream(from_="earliest", consumer_id="c")
    stream.poll().acknowledge()
    result = place.write(2)
    step = pickle.loads(pickle.dumps(stream.poll().snapshot_id))
    ids = {"result": result.snapshot_id, "snapshot": table.snapshot().id, "tag": table.create_tag("second").snapshot_id, "step": step}
    table.rollback_to(1)
    place.write(3)
    place.write(4)
    with pytest.raises(SnapshotNotFoundError, match="snapshot 2 .* now has other contents"):
        CALLS[call](table, ids[source])
    assert place.keys() == [1, 3, 4]
    assert ids[source] == 2
    assert place.keys(snapshot_id=2) == [1, 3], "a plain number is any snapshot of that number"


def test_changes_after_a_snapshot_that_is_gone_are_refused():
    place = Place()
    place.write(1)
    gone = place.write(2).snapshot_id
    place.table.rollback_to(1)
    for key in (3, 4, 5):
        place.write(key)
    with pytest.raises(UsageError, match="snapshot 2 is no longer in the table's history"):
        place.table.changes(gone).to_arrow()
    assert place.table.changes(2).to_arrow()["k"].to_pylist() == [4, 5]


def two_tags_of_one_number(place):
    place.write(1)
    place.write(2)
    place.table.create_tag("gone")
    kept = place.store.get(f"{PATH}/tag/tag-gone")
    place.table.rollback_to(1)
    place.write(3)
    place.table.create_tag("here")
    place.store.put(f"{PATH}/tag/tag-gone", kept)  # as Java leaves tags when it fast-forwards to a late branch


@pytest.mark.parametrize("ends", [("gone", "here"), ("gone", None), ("gone", 2)])
def test_states_with_one_number_differ_where_they_are_of_two_histories(ends):
    place = Place(key=["k"])
    two_tags_of_one_number(place)
    found = place.table.changes(*ends, mode="diff").to_arrow().to_pylist()
    assert sorted((row["_row_kind"], row["k"]) for row in found) == [("+I", 3), ("-D", 2)]


@pytest.mark.parametrize("says", [True, False])
def test_a_tag_of_another_history_does_not_hide_an_older_one_from_expiry(says):
    """As Java leaves it: main goes on as a branch whose first snapshots have expired, and keeps its own tags."""
    place = Place(**{"write-only": "true"})
    place.write(1)
    table = place.table
    table.create_tag("shared")
    branch = table.create_branch("b", from_="shared")
    table.write_arrow([{"k": 9, "v": 0}], overwrite={})
    ours = table.create_tag("ours").snapshot_id
    branch.write_arrow([{"k": 2, "v": 0}])
    branch.write_arrow([{"k": 3, "v": 0}])
    for number in (1, 2):
        place.store.delete(snapshot_path(PATH, number))
    for number in (2, 3):
        place.store.put(snapshot_path(PATH, number), place.store.get(snapshot_path(f"{PATH}/branch/branch-b", number)))
    table.delete_branch("b")
    write_tag_ancestor(place.store, PATH, TagAncestor("gone", ours.mark))
    if not says:
        place.by_java()
    place.table.write_arrow([{"k": 4, "v": 0}], overwrite={})
    place.table.expire_snapshots(**EVERYTHING)
    assert place.keys() == [4]
    assert place.keys(tag="ours") == [9]
    assert place.keys(tag="shared") == [1]


def test_expiry_records_from_which_tag_the_oldest_snapshot_descends():
    place = Place(key=["k"], **{"write-only": "true"})
    tags = {}
    for number in range(1, 7):
        place.write(number)
        if number % 2:
            tags[number] = place.table.create_tag(f"t{number}").snapshot_id.mark
        if number in (2, 4):
            place.table.expire_snapshots(**EVERYTHING)
            oldest = place.table.snapshots()[0].id
            assert read_tag_ancestor(place.store, PATH) == TagAncestor(oldest.mark, tags[number - 1])
    for damaged in (b"", b"\xff\xff", b"one two three"):
        place.store.put(tag_ancestor_path(PATH), damaged)
        assert read_tag_ancestor(place.store, PATH) is None
    write_tag_ancestor(place.store, PATH, TagAncestor("another", tags[1]))
    place.table.expire_snapshots(**EVERYTHING)
    assert [place.keys(tag=f"t{number}") for number in (1, 3, 5)] == [[1], [1, 2, 3], [1, 2, 3, 4, 5]]


def test_a_stream_goes_on_from_a_snapshot_that_only_a_kept_changelog_remembers():
    place = Place(key=("k",), **{"changelog-producer": "input"}, **KEEPS_CHANGES)
    place.write(1)
    stream = place.table.stream()
    assert next(stream).to_arrow()["k"].to_pylist() == [1]
    place.write(2)
    assert next(stream).to_arrow()["k"].to_pylist() == [2]
    place.write(3)
    data = json.loads(place.store.get(snapshot_path(PATH, 3)))
    del data["properties"]
    place.store.put(snapshot_path(PATH, 3), json.dumps(data).encode())
    place.table.expire_snapshots(**EVERYTHING)
    assert [snapshot.id for snapshot in place.table.snapshots()] == [3]
    assert next(stream).to_arrow()["k"].to_pylist() == [3]


def test_the_file_of_a_user_counts_for_that_user_and_beside_snapshots_alone():
    place = Place()
    place.write(1, user="u", identifier=4)
    for key in (2, 3):
        place.write(key)
        place.by_java()
    place.table.expire_snapshots(**EVERYTHING)
    place.by_java()
    files = UserFiles(place.store, PATH)
    place.store.put(files.path_of("other"), place.store.get(files.path_of("u")))
    assert place.table.committed("u") == 4 and place.table.committed("other") is None
    for snapshot in place.table.snapshots():
        place.store.delete(snapshot_path(PATH, snapshot.id))
    assert place.table.committed("u") is None


@pytest.mark.filterwarnings("ignore:.*consumers have read them")
@pytest.mark.parametrize("held", ["position", "consumer"])
def test_a_stream_that_ends_where_it_begins_refuses_a_history_that_was_rolled_back(held):
    """It was told that there is nothing new, since another snapshot has the number."""
    place = Place()
    for key in range(5):
        place.write(key)
    steps = list(place.table.stream(from_="earliest", consumer_id="c", until="now"))
    steps[-1].acknowledge()
    begin = {"consumer_id": "c"} if held == "consumer" else {"from_": steps[-1].position}
    assert list(place.table.stream(until="now", **begin)) == []
    place.table.rollback_to(3)
    for key in range(3):
        with pytest.raises(UsageError if held == "consumer" and key < 2 else SnapshotExpiredError, match="rolled back"):
            list(place.table.stream(until="now", **begin))
        place.write(key)
    place.table.expire_snapshots(**EVERYTHING)
    with pytest.raises(SnapshotExpiredError):
        list(place.table.stream(until="now", **begin))
