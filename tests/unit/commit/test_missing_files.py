"""New files are asked for before they are committed: by listings where a directory has many, with the same answers."""

import bisect
import random

import msgspec
import pytest
from unit.commit.support import Clock, Ids, schema
from unit.commit.test_store_calls import rows

from paimon_py.codec.json import schema_to_json
from paimon_py.commit import listed_files
from paimon_py.commit.listed_files import find_unlisted
from paimon_py.env import Env, SerialPool
from paimon_py.errors import StorageError, UsageError
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import schema_path
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.storage.store import FileStatus
from paimon_py.table import Table
from paimon_py.testing.counting_store import CountingStore
from paimon_py.testing.fault_store import for_each_fault

LOCAL, DISTANT = "/warehouse/db.db/t", "s3://warehouse/db.db/t"
KEYED = schema(primary_key=["k"], options={"bucket": "1", "write-only": "true"})


class WithoutPages(CountingStore):
    """Lists whole directories only, as Azure and HDFS do."""

    def page_lister(self):
        return None


class Forgetful(CountingStore):
    """Omits data files from its listings, as some stores do with new ones."""

    def list(self, directory):
        return [status for status in super().list(directory) if "data-" not in status.name]

    def page_lister(self):
        pages = super().page_lister()
        return lambda directory, start: [one for one in pages(directory, start) if "data-" not in one.name]


def new_table(place, table_schema=KEYED, wrap=CountingStore):
    counting = wrap(MemoryStore(clock=Clock()))
    counting.put_new(schema_path(place, table_schema.id), schema_to_json(table_schema))
    return Table(TableRoot(counting, place, Env(Clock(), Ids("a"), SerialPool())), table_schema, "db.t"), counting


def many_files(table, store, count):
    """Changes with so many new files in one bucket, and the paths of these files."""
    with table.writer() as writer:
        writer.write_arrow(rows(1))
        changes = writer.changes()
    bucket = changes.buckets[0]
    file = bucket.written.added[0]
    path = next(path for verb, path in store.paths if path.endswith(file.name))
    files = [msgspec.structs.replace(file, name=f"{number}-{file.name}") for number in range(count)]
    for one in files:
        store.put(path.replace(file.name, one.name), store.get(path))
    written = msgspec.structs.replace(bucket.written, added=tuple(files))
    buckets = (msgspec.structs.replace(bucket, written=written),)
    store.reset()
    return msgspec.structs.replace(changes, buckets=buckets), [path.replace(file.name, one.name) for one in files]


def stats(store):
    return sum(verb == "stat" and "/bucket-" in path for verb, path in store.paths)


@pytest.mark.parametrize("wrap", [CountingStore, WithoutPages])
@pytest.mark.parametrize(("place", "table_schema", "count", "asked"), [
    (DISTANT, KEYED, 40, 0), (DISTANT, KEYED, 3, 3), (LOCAL, KEYED, 40, 40),
    (DISTANT, schema(), 40, 40), (DISTANT, schema(), 1000, 0),
    (DISTANT, schema(primary_key=["k"], options={"bucket": "-2"}), 40, 40),
])  # fmt: skip
def test_many_new_files_are_found_by_listings(place, table_schema, count, asked, wrap):
    table, store = new_table(place, table_schema, wrap)
    if wrap is CountingStore and place == DISTANT and count >= 16:
        asked = 0  # a page begins at the new files, however many old ones the directory has
    changes, _ = many_files(table, store, count)
    table.commit(changes)
    assert stats(store) == asked
    assert table.snapshot().total_record_count == count


@pytest.mark.parametrize("place", [LOCAL, DISTANT])
def test_a_missing_or_truncated_file_is_refused_by_name(place):
    table, store = new_table(place)
    changes, paths = many_files(table, store, 40)
    store.put(paths[17], store.get(paths[17])[:-1])
    with pytest.raises(UsageError, match="/17-data-"):
        table.commit(changes)
    store.delete(paths[17])
    with pytest.raises(UsageError, match="/17-data-"):
        table.commit(changes)
    assert table.snapshot() is None


def test_files_that_a_listing_omits_are_checked_individually():
    table, store = new_table(DISTANT, wrap=Forgetful)
    changes, paths = many_files(table, store, 40)
    table.commit(changes)
    assert stats(store) == 40
    table, store = new_table(DISTANT, wrap=Forgetful)
    changes, paths = many_files(table, store, 40)
    store.delete(paths[17])
    with pytest.raises(UsageError, match="/17-data-"):
        table.commit(changes)


PAGE = 10


def status_of(path, size):
    return FileStatus(path=path, name=path.rpartition("/")[2], size_bytes=size, is_directory=False)


class Pages:
    """Files in the order of their paths, and the pages that were asked for; `break_page` makes each page wrong."""

    def __init__(self, sizes, break_page=None):
        self.sizes, self.order, self.pages = sizes, sorted(sizes), 0
        self.break_page = break_page

    def page_lister(self):
        return self.list_from

    def list_from(self, directory, start):
        self.pages += 1
        below = [path for path in self.order if path.startswith(f"{directory}/")]
        at = 0 if self.break_page == "from the beginning" else bisect.bisect_left(below, start)
        found = [status_of(path, self.sizes[path]) for path in below[at : at + PAGE]]
        if self.break_page == "refused":
            raise StorageError("StartAfter is not supported", operation="list")
        if self.break_page == "in another order":
            found.reverse()
        if self.break_page == "with gaps":
            return found[::2]
        return found

    def list(self, directory):
        below = (path for path in self.order if path.rpartition("/")[0] == directory)
        return [status_of(path, self.sizes[path]) for path in below]


def looked_for(sizes, expected, break_page=None):
    """The files that no listing shows, and the store."""
    store = Pages(sizes, break_page)
    table, _ = new_table(DISTANT)
    root = TableRoot(store, DISTANT, Env(Clock(), Ids("b"), SerialPool()))
    return list(find_unlisted(OpenTable(root, table.schema), expected)), store


def lake(chosen):
    """Files by directories whose names begin alike, as sizes by path; and which of them are new, with their sizes."""
    sizes, expected = {}, []
    for partition in chosen.sample(["", "a=1/", "a=1-x/", "a=10/", "a=ü/", "b/"], chosen.randrange(1, 6)):
        for bucket in chosen.sample(range(30), chosen.randrange(1, 12)):
            for number in range(chosen.choice((1, 3, 30))):
                path = f"{DISTANT}/{partition}bucket-{bucket}/data-{chosen.randrange(10**6)}-{number}.parquet"
                sizes[path] = chosen.randrange(3)
                if chosen.random() < 0.6:
                    expected.append((path, chosen.choice((None, sizes[path]))))
    return sizes, expected


@pytest.mark.parametrize("break_page", [None, "from the beginning", "refused", "in another order", "with gaps"])
@pytest.mark.parametrize("seed", range(8))
def test_what_listings_leave_is_all_that_is_not_there(seed, break_page, monkeypatch):
    chosen = random.Random(seed)
    monkeypatch.setattr(listed_files, "_FILES_PER_RANGE", chosen.choice((7, 50, 10_000)))
    monkeypatch.setattr(listed_files, "LISTED_FROM", chosen.choice((0, 4)))
    sizes, expected = lake(chosen)
    expected.append(("s3://elsewhere/data-1.parquet", 1))
    gone = chosen.sample(expected[:-1], min(5, len(expected) - 1))
    for path, size in gone:
        if size is None or chosen.random() < 0.5:
            del sizes[path]
        else:
            sizes[path] += 1
    chosen.shuffle(expected)
    rest, store = looked_for(sizes, expected, break_page)
    assert {*gone, ("s3://elsewhere/data-1.parquet", 1)} <= set(rest) <= set(expected)
    assert len(rest) == len(set(rest))
    if break_page is None and listed_files.LISTED_FROM == 0:
        assert set(rest) == {*gone, ("s3://elsewhere/data-1.parquet", 1)}
        ranges = -(-len(expected) // listed_files._FILES_PER_RANGE)
        assert store.pages <= min(len(expected), -(-len(sizes) // PAGE)) + ranges


def test_old_files_between_new_ones_are_passed_over(monkeypatch):
    monkeypatch.setattr(listed_files, "LISTED_FROM", 4)
    old = {f"{DISTANT}/bucket-{bucket}/data-{number:06}": 1 for bucket in range(30) for number in range(500)}
    new = {f"{DISTANT}/bucket-{bucket}/data-000250-{number}": 1 for bucket in range(0, 30, 3) for number in range(20)}
    rest, store = looked_for({**old, **new}, new.items())
    assert rest == [] and store.pages <= 3 * 10
    rest, store = looked_for({**old, **new}, list(new.items())[::10])
    assert len(rest) == 20 - 2 and store.pages == 1  # too few in the first page: each of the others is asked for


def test_a_listing_that_fails_for_now_fails_the_commit():
    def fail(directory, start):
        raise StorageError("try again", operation="list", transient=True)

    table, store = new_table(DISTANT)
    changes, _ = many_files(table, store, 40)
    store.page_lister = lambda: fail
    with pytest.raises(StorageError, match="try again"):
        table.commit(changes)
    assert table.snapshot() is None


def test_a_commit_of_very_many_files_sends_few_requests():
    table, store = new_table(DISTANT, schema(primary_key=["k"], options={"bucket": "500", "write-only": "true"}))
    with table.writer() as writer:
        writer.write_arrow(rows(*range(50)))
        changes = writer.changes()
    bucket = changes.buckets[0]
    file = bucket.written.added[0]
    path = next(path for verb, path in store.paths if path.endswith(file.name))
    data, made = store.get(path), []
    for number in range(500):
        files = [msgspec.structs.replace(file, name=f"data-{number}-{at}.parquet") for at in range(10)]
        for one in files:
            store.put(path.replace(file.name, one.name).replace(f"bucket-{bucket.bucket}/", f"bucket-{number}/"), data)
        edit = msgspec.structs.replace(bucket.written, added=tuple(files))
        made.append(msgspec.structs.replace(bucket, bucket=number, written=edit))
    store.reset()
    table.commit(msgspec.structs.replace(changes, buckets=tuple(made)))
    assert store.calls["list_from"] <= 6 and sum(store.calls.values()) < 30
    assert table.snapshot().total_record_count == 5000 * file.row_count


def test_a_commit_whose_listings_fail_publishes_all_or_nothing():
    def build():
        table, store = new_table(DISTANT)
        made.append(many_files(table, store, 16)[0])
        return store.store

    def commit(store):
        table = Table(TableRoot(store, DISTANT, Env(Clock(), Ids("c"), SerialPool())), KEYED, "db.t")
        return table.commit(made[-1])

    def check(store, outcome):
        latest = Table(TableRoot(store, DISTANT, Env(Clock(), Ids("d"), SerialPool())), KEYED, "db.t").snapshot()
        assert latest is None or latest.total_record_count == 16
        assert latest is not None or outcome.error is not None
        verbs.add(outcome.fault.verb)

    made, verbs = [], set()
    assert for_each_fault(build, commit, check, modes=("before", "die")) > 20
    assert "list_from" in verbs
