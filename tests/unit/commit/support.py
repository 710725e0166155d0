"""Tables in memory and invented data files, for tests of committing."""

from __future__ import annotations

import itertools

import msgspec
import pyarrow as pa

from paimon_py.codec.binary_row import encode
from paimon_py.codec.json import schema_to_json
from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.codec.partition_text import partition_directory
from paimon_py.commit.changes import BucketChanges, Changes, Edit
from paimon_py.commit.commit import CommitRequest, commit
from paimon_py.env import Env, SerialPool
from paimon_py.errors import StorageError
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.spec.data_file import EMPTY_ROW, DataFile
from paimon_py.spec.layout import bucket_path, data_file_path, schema_path
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Base
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field
from paimon_py.storage.memory_store import MemoryStore

TABLE = "/warehouse/db.db/t"


class Clock:
    """Time that passes only by waiting."""

    def __init__(self, millis=1_700_000_000_000):
        self.start = millis
        self.seconds = 0.0
        self.waits = []

    def millis(self):
        return self.start + int(self.seconds * 1000)

    def local_millis(self):
        return self.millis()

    def elapsed(self):
        return self.seconds

    def sleep(self, seconds):
        self.waits.append(seconds)
        self.seconds += seconds


class Ids:
    """Names that are the same in every run, and different for every owner."""

    def __init__(self, owner="u"):
        self.owner = owner
        self.numbers = itertools.count()

    def uuid(self):
        return f"{self.owner}{next(self.numbers)}"

    def process(self):
        return 1

    def jitter(self):
        return 0.5


def schema(*, primary_key=(), partition_by=(), schema_id=0, options=None, columns=None):
    columns = columns or {"p": "INT", "k": "INT NOT NULL", "v": "STRING"}
    fields = tuple(Field(number, name, parse_type(text)) for number, (name, text) in enumerate(columns.items()))
    return TableSchema(
        id=schema_id,
        fields=fields,
        highest_field_id=len(fields) - 1,
        primary_keys=tuple(primary_key),
        partition_keys=tuple(partition_by),
        options=options or {},
        time_millis=0,
    )


KEYED = schema(primary_key=["k"], options={"bucket": "1"})
APPEND = schema()
PARTITIONED = schema(primary_key=["p", "k"], partition_by=["p"], options={"bucket": "1"})


def put_schema(store, table_schema):
    store.put_new(schema_path(TABLE, table_schema.id), schema_to_json(table_schema))


def new_store(table_schema, clock=None):
    store = MemoryStore(clock=clock or Clock())
    put_schema(store, table_schema)
    return store


def root_on(store, owner="u", clock=None):
    """A table root as another process would open it: nothing cached, names of its own."""
    return TableRoot(store, TABLE, Env(clock or Clock(), Ids(owner), SerialPool()))


def row(*values):
    """A serialized BinaryRow of ints."""
    if not values:
        return EMPTY_ROW
    types = [parse_type("INT")] * len(values)
    return encode([pa.array([value], pa.int32()) for value in values], types)[0].as_py()


def data_file(name, *, rows=1, sequences=(0, 0), level=0, keys=None, schema_id=0):
    low, high = (row(keys[0]), row(keys[1])) if keys else (EMPTY_ROW, EMPTY_ROW)
    return DataFile(
        name=name,
        size_bytes=100,
        row_count=rows,
        min_key=low,
        max_key=high,
        min_sequence=sequences[0],
        max_sequence=sequences[1],
        schema_id=schema_id,
        level=level,
    )


def bucket_changes(*new, partition=EMPTY_ROW, bucket=0, total_buckets=1, compacted=None, compact_base=None, **written):
    return BucketChanges(
        partition=partition, bucket=bucket, total_buckets=total_buckets, written=Edit(added=new, **written),
        compacted=compacted or Edit(), compact_base=compact_base,
    )  # fmt: skip


def unaware(*new, **more):
    """Changes of a table without buckets."""
    return bucket_changes(*new, total_buckets=-1, **more)


def changes_of(*buckets, base=None, schema_id=0, watermark=None):
    return Changes(schema_id=schema_id, base=Base(base or 0), buckets=buckets, watermark=watermark)


def place(store, table_schema, changes):
    """Put something where the data files of changes would be."""
    for bucket in changes.buckets:
        for file in bucket.made_files:
            store.put(path_of(table_schema, bucket, file.name), b"rows")


def path_of(table_schema, bucket, name):
    directory = partition_directory(table_schema, bucket.partition)
    return data_file_path(bucket_path(TABLE, table_schema, directory, bucket.bucket), name)


def renumbering(store, table_schema):
    """Renumbering that copies files under names with the offset."""

    def renumber(_, bucket, offset):
        def copied(file):
            name = renumbered(file.name, offset)
            data = store.get(path_of(table_schema, bucket, file.name))
            try:
                store.put(path_of(table_schema, bucket, name), data)
            except StorageError:
                store.delete(path_of(table_schema, bucket, name))
                raise
            numbers = {"min_sequence": file.min_sequence + offset, "max_sequence": file.max_sequence + offset}
            return msgspec.structs.replace(file, name=name, **numbers)

        if not offset:
            return bucket.written
        added, changelog = (tuple(map(copied, files)) for files in (bucket.written.added, bucket.written.changelog))
        return msgspec.structs.replace(bucket.written, added=added, changelog=changelog)

    return renumber


def renumbered(name, offset):
    """The name of a file in the place of another, whose numbers grew by an offset."""
    return f"{name}-r{offset:012x}"


def static(*specs):
    """An overwrite of some partitions of `PARTITIONED`."""
    return PartitionChoice.of_specs(PARTITIONED, specs)


def request_of(*, user=None, identifier=None, **request):
    return CommitRequest(label=CommitLabel(user, identifier), **request)


def do_commit(root, table_schema, changes, **request):
    return commit(OpenTable(root, table_schema), changes, request_of(**request), renumber=renumbering(root.store, table_schema))


def names_in(root, snapshot):
    """Names of the live files of a snapshot, sorted; each once."""
    names = root.manifests.live_entries(snapshot).names().to_pylist()
    assert len(set(names)) == len(names)
    return sorted(names)


def below(store, directory):
    """Paths of all files below a directory."""
    found = []
    for child in store.list(directory):
        found += below(store, child.path) if child.is_directory else [child.path]
    return found


def reachable(root):
    """Names of all metadata and data files that some snapshot needs."""
    names = set()
    for snapshot_id in root.snapshots.ids():
        snapshot = root.snapshots.get(snapshot_id)
        lists = [snapshot.base_manifest_list, snapshot.delta_manifest_list, snapshot.changelog_manifest_list]
        names.update(name for name in (*lists, snapshot.index_manifest) if name)
        for manifest_list in filter(None, lists):
            files = root.manifests.read_list(manifest_list)
            names.update(file.name for file in files)
            entries = root.manifests.read_entries(files)
            names.update(entries.names().to_pylist())
    return names


def check_history(root, *, data=True):
    """What must hold of any table at any time."""
    ids = root.snapshots.ids()
    assert ids == list(range(ids[0], ids[-1] + 1)) if ids else True
    stored = {path.rsplit("/", 1)[1] for path in below(root.store, TABLE)}
    total = None
    for snapshot_id in ids:
        snapshot = root.snapshots.get(snapshot_id)
        live = root.manifests.live_entries(snapshot)
        assert sum(live.row_count.tolist()) == snapshot.total_record_count
        if total is not None:
            assert snapshot.total_record_count == total + snapshot.delta_record_count
        total = snapshot.total_record_count
        if data:
            assert set(names_in(root, snapshot)) <= stored, "a live file is gone"
    needed = reachable(root)
    metadata = {name for name in needed if "manifest" in name}
    assert metadata <= stored, f"missing: {metadata - stored}"
    return stored, needed
