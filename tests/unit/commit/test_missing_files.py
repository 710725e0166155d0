"""New files are asked for before they are committed: by listings where a directory has many, with the same answers."""

import msgspec
import pytest
from unit.commit.support import Clock, Ids, schema
from unit.commit.test_store_calls import rows

from paimon_py.codec.json import schema_to_json
from paimon_py.env import Env, SerialPool
from paimon_py.errors import UsageError
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import schema_path
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.table import Table
from paimon_py.testing.counting_store import CountingStore

LOCAL, DISTANT = "/warehouse/db.db/t", "s3://warehouse/db.db/t"
KEYED = schema(primary_key=["k"], options={"bucket": "1", "write-only": "true"})


class Forgetful(CountingStore):
    """Omits data files from its listings, as some stores do with new ones."""

    def list(self, directory):
        return [status for status in super().list(directory) if "data-" not in status.name]


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


@pytest.mark.parametrize(("place", "table_schema", "count", "asked"), [
    (DISTANT, KEYED, 40, 0), (DISTANT, KEYED, 3, 3), (LOCAL, KEYED, 40, 40),
    (DISTANT, schema(), 40, 40), (DISTANT, schema(), 1000, 0),
    (DISTANT, schema(primary_key=["k"], options={"bucket": "-2"}), 40, 40),
])  # fmt: skip
def test_a_directory_with_many_new_files_is_listed(place, table_schema, count, asked):
    table, store = new_table(place, table_schema)
    changes, _ = many_files(table, store, count)
    table.commit(changes)
    assert stats(store) == asked
    assert table.snapshot().total_record_count == count


@pytest.mark.parametrize("place", [LOCAL, DISTANT])
def test_a_file_that_is_gone_or_cut_is_refused_by_name(place):
    table, store = new_table(place)
    changes, paths = many_files(table, store, 40)
    store.put(paths[17], store.get(paths[17])[:-1])
    with pytest.raises(UsageError, match="/17-data-"):
        table.commit(changes)
    store.delete(paths[17])
    with pytest.raises(UsageError, match="/17-data-"):
        table.commit(changes)
    assert table.snapshot() is None


def test_files_that_a_listing_omits_are_asked_for():
    table, store = new_table(DISTANT, wrap=Forgetful)
    changes, paths = many_files(table, store, 40)
    table.commit(changes)
    assert stats(store) == 40
    table, store = new_table(DISTANT, wrap=Forgetful)
    changes, paths = many_files(table, store, 40)
    store.delete(paths[17])
    with pytest.raises(UsageError, match="/17-data-"):
        table.commit(changes)
