"""The size of rows: as Arrow counts it, and safe where Arrow reads offsets that are not there."""

from __future__ import annotations

import random
import subprocess
import sys

import pyarrow as pa
import pytest

from paimon_py.codec.row_size import row_bytes

TEXT = pa.string()
TYPES = {
    "list": pa.list_(pa.int32()), "list of texts": pa.list_(TEXT), "list of lists": pa.list_(pa.list_(TEXT)),
    "large list": pa.large_list(pa.int64()), "fixed size list": pa.list_(pa.int16(), 3), "map": pa.map_(TEXT, pa.int64()),
    "map of lists": pa.map_(TEXT, pa.list_(pa.int8())), "struct": pa.struct([("a", pa.int32()), ("b", TEXT)]),
    "list of structs": pa.list_(pa.struct([("a", pa.list_(TEXT))])), "text": TEXT, "flags": pa.bool_(),
}  # fmt: skip


def value(kind, dice):
    if dice.random() < 0.2:
        return None
    if pa.types.is_map(kind):
        return [(f"k{place}", value(kind.item_type, dice)) for place in range(dice.randrange(4))]
    if pa.types.is_fixed_size_list(kind):
        return [value(kind.value_type, dice) for _ in range(kind.list_size)]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [value(kind.value_type, dice) for _ in range(dice.randrange(4))]
    if pa.types.is_struct(kind):
        return {field.name: value(field.type, dice) for field in kind}
    if pa.types.is_boolean(kind):
        return dice.random() < 0.5
    return "x" * dice.randrange(9) if kind == TEXT else dice.randrange(100)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("seed", range(4))
def test_rows_are_as_large_as_arrow_says_slices_too(name, seed):
    dice = random.Random(seed)
    array = pa.array([value(TYPES[name], dice) for _ in range(200)], TYPES[name])
    for _ in range(10):
        start = dice.randrange(200)
        part = array.slice(start, dice.randrange(1, 200))
        batch = pa.record_batch([part], names=["v"])
        assert abs(row_bytes(batch) - batch.nbytes) <= 16 + batch.nbytes // 50
    assert row_bytes(pa.table({"v": pa.chunked_array([array, array])})) >= 2 * array.nbytes - 32
    assert row_bytes(array.slice(0, 0)) == 0


def test_an_extension_type_has_the_size_of_its_storage():
    class Tagged(pa.ExtensionType):
        def __init__(self):
            super().__init__(pa.list_(pa.map_(TEXT, TEXT)), "tests.tagged")

        def __arrow_ext_serialize__(self):
            return b""

        @classmethod
        def __arrow_ext_deserialize__(cls, storage, data):
            return cls()

    stored = pa.array([[[("a", "b")]], None], pa.list_(pa.map_(TEXT, TEXT)))
    assert row_bytes(pa.ExtensionArray.from_storage(Tagged(), stored)) == row_bytes(stored) > 0


WITHOUT_OFFSETS = """
import io, sys
import pyarrow as pa
from paimon_py import Catalog, Schema

EMPTY = pa.py_buffer(b"")


def bare(kind):
    if pa.types.is_map(kind):
        return pa.Array.from_buffers(kind, 0, [None, EMPTY], children=[bare(entries(kind))])
    if pa.types.is_list(kind):
        return pa.Array.from_buffers(kind, 0, [None, EMPTY], children=[bare(kind.value_type)])
    if pa.types.is_struct(kind):
        return pa.Array.from_buffers(kind, 0, [None], children=[bare(field.type) for field in kind])
    if pa.types.is_string(kind):
        return pa.Array.from_buffers(kind, 0, [None, EMPTY, EMPTY])
    return pa.array([], kind)


def entries(kind):
    return pa.struct([pa.field("key", kind.key_type, False), pa.field("value", kind.item_type)])


def missing(kind):
    bits, offsets = pa.py_buffer(b"\\0"), pa.py_buffer(b"\\0" * 8)
    if pa.types.is_struct(kind):
        return pa.Array.from_buffers(kind, 1, [bits], children=[missing(field.type) for field in kind])
    child = entries(kind) if pa.types.is_map(kind) else kind.value_type
    return pa.Array.from_buffers(kind, 1, [bits, offsets], children=[bare(child)])


def travelled(array, keys):
    sink, columns = io.BytesIO(), {"v": array, "k": pa.array([1], pa.int64())}
    batch = pa.record_batch([columns[name] for name in keys], names=keys)
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


S = pa.string()
SHAPES = [
    (pa.list_(pa.list_(pa.int32())), "ARRAY<ARRAY<INT>>"), (pa.list_(pa.map_(S, S)), "ARRAY<MAP<STRING, STRING>>"),
    (pa.map_(S, pa.list_(S)), "MAP<STRING, ARRAY<STRING>>"), (pa.list_(S), "ARRAY<STRING>"),
    (pa.list_(pa.struct([("a", pa.list_(S))])), "ARRAY<ROW<a ARRAY<STRING>>>"),
    (pa.struct([("a", pa.list_(pa.list_(S)))]), "ROW<a ARRAY<ARRAY<STRING>>>"),
]
catalog = Catalog.open("memory://bare")
catalog.create_database("d")
for number, (kind, text) in enumerate(SHAPES):
    for form in ("parquet", "orc", "avro"):
        for keyed in (False, True):
            columns = Schema([("k", "BIGINT NOT NULL"), ("v", text)])
            table = catalog.create_table(
                f"d.t{number}{form}{keyed}", columns, primary_key=["k"] if keyed else [],
                options={"bucket": "1", "file.format": form} if keyed else {"file.format": form},
            )
            table.write_arrow(travelled(missing(kind), ["k", "v"]))
            with table.writer() as writer:
                writer.write_arrow(travelled(missing(kind), ["v", "k"]))
                table.commit(writer.changes())
            table.compact(full=True)
            (row, *_) = table.to_arrow().to_pylist()
            assert row["k"] == 1, row
            print(number, form, keyed, row["v"])
"""


def test_lists_without_offsets_are_written_as_java_sends_them():
    done = subprocess.run([sys.executable, "-c", WITHOUT_OFFSETS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(done.stdout.splitlines()) == 6 * 3 * 2
