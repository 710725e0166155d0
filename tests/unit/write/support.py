"""A table in memory for tests of the write path: schema stored, nothing committed."""

from __future__ import annotations

import itertools

import pyarrow as pa

from paimon_py.codec.json import schema_to_json
from paimon_py.env import Env, SerialPool
from paimon_py.files.physical import KIND_FIELD, SEQUENCE_FIELD
from paimon_py.files.reader import FileReader
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import bucket_path, data_file_path, schema_path
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field
from paimon_py.storage.memory_store import MemoryStore

TABLE = "/warehouse/db.db/t"


class CountingIds:
    """Names that are the same in every run."""

    def __init__(self):
        self.numbers = itertools.count()

    def uuid(self):
        return f"u{next(self.numbers)}"

    def process(self):
        return 1

    def jitter(self):
        return 0.5


class FixedClock:
    """A clock that stands still."""

    def millis(self):
        return 1_000_000

    def local_millis(self):
        return 1_000_000

    def elapsed(self):
        return 0.0

    def sleep(self, seconds):
        raise AssertionError("nothing here waits")


def schema_of(columns, *, primary_key=(), partition_by=(), options=None, schema_id=0):
    """Columns as name → type text, with `=text` after the type for a default."""
    fields = []
    for number, (name, text) in enumerate(columns.items()):
        default = None
        if isinstance(text, str) and "=" in text:
            text, default = text.split("=", 1)
        fields.append(Field(number, name, parse_type(text), default=default))
    return TableSchema(
        id=schema_id, fields=tuple(fields), highest_field_id=len(fields) - 1, primary_keys=tuple(primary_key),
        partition_keys=tuple(partition_by), options={"bucket": "1" if primary_key else "-1", **(options or {})},
        time_millis=0,
    )  # fmt: skip


def root_of(schema, store=None):
    """A root whose table has this schema."""
    store = store or MemoryStore()
    store.put(schema_path(TABLE, schema.id), schema_to_json(schema))
    return TableRoot(store, TABLE, Env(clock=FixedClock(), ids=CountingIds(), pool=SerialPool()))


def data_files(root):
    """Paths of all data files in the store."""
    found = []
    pending = [root.path]
    while pending:
        for status in root.store.list(pending.pop()):
            if status.is_directory:
                pending.append(status.path)
            elif "/bucket-" in status.path:
                found.append(status.path)
    return sorted(found)


def rows_of(root, schema, bucket, directory="", system=True):
    """The rows of each new file of a bucket, as lists of dicts."""
    fields = ((SEQUENCE_FIELD, KIND_FIELD) if schema.primary_keys and system else ()) + schema.fields
    out = []
    for file in bucket.written.added:
        path = data_file_path(bucket_path(root.path, schema, directory, bucket.bucket), file.name)
        batches = [batch for _, batch in FileReader(root.store, path, file, schema, fields).positions()]
        out.append(pa.Table.from_batches(batches).to_pylist())
    return out
