"""Columns of odd shapes at every door for rows: one rule each, whichever door they come through.

Either the rows are taken, or an error names the columns and the fix, and nothing is written.
"""

from __future__ import annotations

import io
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from paimon_py import Catalog, PaimonError, Schema, SchemaError
from paimon_py.cli.app import commands
from paimon_py.distributed import CommitLabel, DistributedWrite
from paimon_py.storage.open import open_store

COLUMNS = Schema([("k", "INT NOT NULL"), ("c", "STRING"), ("n", "INT")])
K, C, N = pa.array([1, 2, 3], pa.int32()), pa.array(["a", "b", None]), pa.array([7, None, 9], pa.int32())
ROWS = [(1, "a", 7), (2, "b", None), (3, None, 9)]
OLD = [(number, "old", 0) for number in (1, 2, 3)]
FIXES = ("leave", "keep one", "add", "give", "fill", "rename", "copy=true", "is it", "the source has no column")


class Ext(pa.ExtensionType):
    def __init__(self):
        super().__init__(pa.int32(), "shapes.ext")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, serialized):
        return cls()


def table(*columns):
    fields = [pa.field(name, column.type) for name, column in columns]
    return pa.Table.from_arrays([column for _, column in columns], schema=pa.schema(fields))


def plain(k=K, c=C, n=N):
    return table(("k", k), ("c", c), ("n", n))


def unaligned():
    buffer = pa.py_buffer(b"\0" + struct.pack("<3i", 1, 2, 3)).slice(1)
    return pa.Array.from_buffers(pa.int32(), 3, [None, buffer])


def run_ends(array):
    return pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3], pa.int32()), array)


def no_chunks(kind):
    return pa.chunked_array([], kind)


def reader(data, *batches):
    return pa.RecordBatchReader.from_batches(data.schema, iter(batches))


EMPTY = plain().slice(0, 0).to_batches() or [pa.RecordBatch.from_arrays([K[:0], C[:0], N[:0]], schema=plain().schema)]
TAKEN = {
    "plain": plain,
    "another order": lambda: table(("n", N), ("c", C), ("k", K)),
    "uneven chunks": lambda: plain(pa.chunked_array([K[:0], K[:1], K[1:1], K[1:]]), pa.chunked_array([C[:2], C[2:]])),
    "empty batches between": lambda: reader(plain(), *EMPTY, *plain().to_batches(), *EMPTY),
    "dictionaries": lambda: plain(K.dictionary_encode(), C.dictionary_encode(), N.dictionary_encode()),
    "run ends": lambda: plain(run_ends(K), run_ends(C), run_ends(N)),
    "views": lambda: plain(c=C.cast(pa.string_view())),
    "an extension type": lambda: plain(pa.ExtensionArray.from_storage(Ext(), K), C, pa.ExtensionArray.from_storage(Ext(), N)),
    "slices": lambda: plain(pa.array([9, 1, 2, 3], pa.int32()).slice(1), pa.array(["x", "a", "b", None]).slice(1), pa.array([0, 7, None, 9], pa.int32()).slice(1)),
    "unaligned buffers": lambda: plain(unaligned()),
    "not null": lambda: pa.Table.from_arrays([K, C, N], schema=pa.schema([pa.field("k", pa.int32(), nullable=False), pa.field("c", pa.string()), pa.field("n", pa.int32())])),
}
"""Data with the three rows."""
NO_ROWS = {
    "no rows": lambda: plain(K[:0], C[:0], N[:0]),
    "no chunks": lambda: plain(no_chunks(pa.int32()), no_chunks(pa.string()), no_chunks(pa.int32())),
    "no batches": lambda: reader(plain()),
    "dictionaries without rows": lambda: plain(K.dictionary_encode()[:0], C.dictionary_encode()[:0], N[:0]),
    "no rows of a type": lambda: plain(K[:0], pa.nulls(0), N[:0]),
}
REFUSED = {
    "c twice": (lambda: table(("k", K), ("c", C), ("c", C), ("n", N)), {"c"}),
    "a stranger twice": (lambda: table(("k", K), ("z", N), ("z", N)), {"z"}),
    "a kind twice": (lambda: table(("k", K), ("_row_kind", C), ("_row_kind", C)), {"_row_kind"}),
    "a stranger": (lambda: table(("k", K), ("c", C), ("z", N)), {"z"}),
    "a stranger without rows": (lambda: table(("k", K[:0]), ("z", N[:0])), {"z"}),
    "another case": (lambda: table(("k", K), ("C", C), ("n", N)), {"C"}),
    "both cases": (lambda: table(("k", K), ("C", C), ("c", C)), {"C"}),
    "a name without letters": (lambda: table(("k", K), ("c", C), ("", N)), {""}),
    "a union": (lambda: plain(c=pa.UnionArray.from_sparse(pa.array([0, 0, 0], pa.int8()), [C])), {"c"}),
    "a row for a text": (lambda: plain(c=pa.StructArray.from_arrays([C], ["x"])), {"c"}),
}
"""Data that no door takes, and the columns at fault."""
KEYLESS = {
    "no key": (lambda: table(("c", C), ("n", N)), {"k"}),
    "the key in another case": (lambda: table(("K", K), ("c", C), ("n", N)), {"k"}),
    "k twice": (lambda: table(("k", K), ("k", K), ("c", C)), {"k"}),
    "nothing": (lambda: pa.table({}), {"k"}),
    "rows without columns": (lambda: plain().select([]), {"k"}),
    "a key that is NULL": (lambda: plain(pa.array([None, 2, 3], pa.int32())), {"k"}),
    "keys without a type": (lambda: plain(pa.nulls(3)), {"k"}),
}


def by_file(load):
    """A door for files, in Parquet."""

    def call(catalog, target, data):
        whole = data.read_all() if isinstance(data, pa.RecordBatchReader) else data
        sink = io.BytesIO()
        try:
            pq.write_table(whole, sink)
        except pa.ArrowException:
            pytest.skip("Parquet has no such column")
        url = "memory://shapes/in/a.parquet"
        open_store(url, {})[0].put(url, sink.getvalue())
        load(catalog, target, url)

    return call


def by_command(_, target, url):
    done = CliRunner().invoke(commands, ["load", target.location, url])
    if done.exception is not None:
        raise done.exception


def by_parts(_, target, data):
    whole = data.read_all() if isinstance(data, pa.RecordBatchReader) else data
    write = DistributedWrite(target)
    write.check()
    parts = list(write.part(whole.schema)((None, batch) for batch in whole.to_batches()))
    write.commit(parts, CommitLabel(None, None))


def by_row_id(_, target, data):
    whole = data.read_all() if isinstance(data, pa.RecordBatchReader) else data
    ids = target.scan(columns=["k", "_ROW_ID"]).to_arrow().sort_by("k")["_ROW_ID"].combine_chunks()
    target.update_rows(whole.append_column("_ROW_ID", ids.slice(0, whole.num_rows)).drop_columns(["k"]))


def by_writer(_, target, data):
    with target.writer() as writer:
        writer.write_arrow(data)
        target.commit(writer.changes())


KEYED = {"primary_key": ["k"], "options": {"bucket": "1"}}
EVOLVING = {"options": {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}}
DOORS = {
    "append": ({}, lambda _, target, data: target.write_arrow(data)),
    "keyed": (KEYED, lambda _, target, data: target.write_arrow(data)),
    "overwrite": ({}, lambda _, target, data: target.write_arrow(data, overwrite={})),
    "writer": (KEYED, by_writer),
    "upsert": (KEYED, lambda _, target, data: target.upsert(data)),
    "upsert on": ({}, lambda _, target, data: target.upsert(data, on=["k"])),
    "merge": ({}, lambda _, target, data: target.merge(data, on=["k"], when_matched_update=True, when_not_matched_insert=True)),
    "merge of columns": (EVOLVING, lambda _, target, data: target.merge(data, on=["k"], when_matched_update=True, when_not_matched_insert=True)),
    "update_rows": (EVOLVING, by_row_id),
    "load_files": ({}, by_file(lambda _, target, url: target.load_files(url))),
    "load": (KEYED, by_file(by_command)),
    "import a copy": ({}, by_file(lambda catalog, target, url: catalog.import_files("d.shapes", url, copy=True))),
    "import": ({}, by_file(lambda catalog, target, url: catalog.import_files("d.shapes", url))),
    "parts": ({}, by_parts),
    "parts of keys": (KEYED, by_parts),
}
FILES = ("load_files", "load", "import a copy", "import")
HOLDS_ROWS = ("upsert", "upsert on", "merge", "merge of columns", "update_rows")


class Door:
    """A door and a table behind it."""

    def __init__(self, name, catalog):
        self.name, self._catalog = name, catalog
        self._options, self._call = DOORS[name]

    def opened(self):
        self._catalog.drop_table("d.shapes", missing_ok=True)
        made = self._catalog.create_table("d.shapes", COLUMNS, **self._options)
        if self.name in HOLDS_ROWS:
            made.write_arrow([dict(zip("kcn", row, strict=True)) for row in OLD])
        self.table = made.refresh()
        self.before = self.rows()
        return self.table

    def pass_through(self, data):
        self._call(self._catalog, self.table, data)

    def rows(self):
        found = self._catalog.table("d.shapes")
        return sorted(tuple(row.values()) for row in found.to_arrow().to_pylist())

    def left_nothing(self):
        found = self._catalog.table("d.shapes")
        assert (found.snapshot() and found.snapshot().id) == (self.table.snapshot() and self.table.snapshot().id)
        assert found.remove_orphans(older_than=0, dry_run=True).files == 0
        return self.rows() == self.before


@pytest.fixture(params=DOORS)
def door(request):
    catalog = Catalog.open("memory://shapes/warehouse")
    catalog.drop_database("d", missing_ok=True, cascade=True)
    catalog.create_database("d")
    return Door(request.param, catalog)


def test_shapes_that_are_taken(door):
    for name, make in TAKEN.items():
        if door.name in FILES and name == "run ends":
            continue  # no Parquet
        if door.name == "import" and name != "not null":
            continue  # a key that the file does not call NOT NULL
        door.opened()
        door.pass_through(make())
        assert door.rows() == ROWS, name


def test_data_without_rows_change_nothing(door):
    for name, make in NO_ROWS.items():
        if door.name == "import":
            continue
        door.opened()
        door.pass_through(make())
        assert door.rows() == door.before, name
        assert door._catalog.table("d.shapes").remove_orphans(older_than=0, dry_run=True).files == 0


def test_a_missing_or_untyped_column_becomes_null(door):
    keeps = door.name in HOLDS_ROWS
    for name, data, expected in (
        ("missing", table(("k", K), ("c", C)), [(1, "a", 0 if keeps else None), (2, "b", 0 if keeps else None), (3, None, 0 if keeps else None)]),
        ("no type", plain(c=pa.nulls(3)), [(1, None, 7), (2, None, None), (3, None, 9)]),
    ):
        door.opened()
        if door.name == "import":
            continue
        door.pass_through(data)
        assert door.rows() == expected, name


def test_shapes_that_are_refused(door):
    cases = REFUSED if door.name == "update_rows" else REFUSED | KEYLESS
    door.opened()
    for name, (make, columns) in cases.items():
        try:
            with pytest.raises(PaimonError) as caught:
                door.pass_through(make())
        except pytest.skip.Exception:
            continue
        text = str(caught.value)
        assert all(column in text for column in columns) and any(fix in text.lower() for fix in FIXES), (name, text)
        if name == "a kind twice" and not isinstance(caught.value, SchemaError):
            assert "needs a table with a primary key; leave the column out" in text
        elif "import" not in door.name:
            assert isinstance(caught.value, SchemaError) and columns <= {*caught.value.fields}, (name, text)
        assert door.left_nothing(), name
