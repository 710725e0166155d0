"""Small Avro files that would cost much memory or time, read in this process: `python -m tests.unit.formats.avro_bombs`.

Prints a line for each file: its name, its outcome, its cost in seconds of CPU, and how far the peak of memory rose.
"""

from __future__ import annotations

import bz2
import functools
import io
import json
import lzma
import resource
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import zstandard

from paimon_py.codec.avro.container import header_bytes, write_container, write_long
from paimon_py.codec.manifest.entries import read_manifests
from paimon_py.codec.manifest.lists import read_index_manifest, read_manifest_list
from paimon_py.codec.manifest.schemas import INDEX_MANIFEST, MANIFEST, MANIFEST_LIST
from paimon_py.errors import PaimonError
from paimon_py.formats.avro.format import AvroFormat
from paimon_py.formats.base import ReadSettings
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field

HUGE = 1 << 30
LONG = 80 << 20
"""Longer than what a small block of scalars may inflate to where its codec is not zstd, and any of arrays."""

FIELDS = [Field(0, "a", parse_type("STRING")), Field(1, "b", parse_type("ARRAY<ROW<x BOOLEAN>>"))]
FIELD_NAMES = ["a"]


@functools.lru_cache
def zeros(codec: str, size: int) -> bytes:
    """A packed block of `size` zeros, made without having them in memory."""
    chunk = bytes(1 << 20)
    pack: Any = {
        "zstandard": lambda: zstandard.ZstdCompressor().compressobj(),
        "deflate": lambda: zlib.compressobj(9, zlib.DEFLATED, -15),
        "bzip2": bz2.BZ2Compressor,
        "xz": lzma.LZMACompressor,
    }[codec]()
    return b"".join([pack.compress(chunk) for _ in range(size >> 20)]) + pack.flush()


def container(schema: Any, blocks: list[tuple[int, bytes]], codec: str = "null") -> bytes:
    text = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    return write_container(header_bytes(text, codec), blocks)


def record(*fields: tuple[str, Any], name: str = "record") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields]}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def laughing(levels: int, leaf: Any) -> dict[str, Any]:
    """A record that stands for 2 ** levels of its leaves."""
    inner: Any = leaf
    for level in range(levels):
        name = f"r{level}"
        inner = record(("x", inner), ("y", inner if level == 0 else f"r{level - 1}"), name=name)
    return record(("a", "string"), ("b", inner))


def data_files() -> Iterator[tuple[str, bytes]]:
    """Data files with one row, by the manifest."""
    plain = record(("a", ["null", "string"]))
    for codec in ("zstandard", "deflate", "bzip2"):
        yield f"many rows, {codec}", container(plain, [(HUGE, zeros(codec, LONG))], codec)
        with_items = record(("a", ["null", "string"]), ("b", array("int")))
        yield f"a long block, {codec}", container(with_items, [(1, zeros(codec, LONG))], codec)
    claim = write_long(HUGE >> 1)  # the varint of a snappy block is unsigned
    yield "a long block, snappy", container(plain, [(1, claim + bytes(40))], "snappy")
    count = write_long(1 << 27)
    fixed = {"type": "fixed", "name": "f", "size": 0}
    for name, items in {"nulls": "null", "records": record(name="e"), "fixed": fixed}.items():
        file = record(("a", "string"), ("b", array(items)))
        yield f"an array of {name}", container(file, [(1, b"\0" + count + b"\0")])
    nested = write_long(400) + b"".join([write_long(60_000) + b"\0"] * 400) + b"\0"
    yield "arrays of arrays", container(record(("a", "string"), ("b", array(array("null")))), [(1, b"\0" + nested)])
    yield "a laughing record", container(laughing(27, "null"), [(1, b"\0" * 40)])
    itself = record(("a", "string"), ("b", ["null", "record"]))
    yield "a record in itself", container(itself, [(1, b"\0" + b"\2\0" * 300_000 + b"\0")])
    deep: Any = "int"
    for _ in range(900):
        deep = array(deep)
    yield "a deep array", container(record(("a", "string"), ("b", deep)), [(1, b"\0" * 1000)])
    small = array(record(("x", ["null", "boolean"]), name="s"))
    size = 24 << 20
    rows = b"\0" + write_long(size - 8) + bytes(size - 8) + b"\0"
    yield "an array of small records", container(
        record(("a", "string"), ("b", small)), [(1, zstandard.compress(rows))], "zstandard"
    )
    yield "keys in the header", b"Obj\x01" + write_long(1 << 20) + bytes(2 << 20) + b"\0" + bytes(16)
    tiny = write_long(1) + write_long(1) + b"\0" + bytes(16)
    yield "tiny blocks", header_bytes(json.dumps(plain).encode(), "null") + bytes(16) + tiny * 60_000


def manifests() -> Iterator[tuple[str, bytes, Callable[[list[tuple[str, bytes]]], Any]]]:
    """Manifests, manifest lists and index manifests of 80 kB at most, and who reads them."""

    def lists(blobs: list[tuple[str, bytes]]) -> Any:
        return [read_manifest_list(data, path) for path, data in blobs]

    def indexes(blobs: list[tuple[str, bytes]]) -> Any:
        return [read_index_manifest(data, path) for path, data in blobs]

    for name, schema, read in (
        ("manifest", MANIFEST, read_manifests),
        ("manifest list", MANIFEST_LIST, lists),
        ("index manifest", INDEX_MANIFEST, indexes),
    ):
        long = zeros("zstandard", 60 << 20)
        yield f"{name} of long blocks", container(schema, [(1, long)] * (76_000 // len(long)), "zstandard"), read
        yield f"{name} of many records", container(schema, [(60 << 20, long)], "zstandard"), read
        fields = json.loads(schema)["fields"]
        nulls = {**json.loads(schema), "fields": [{"name": "_Z", "type": array("null")}, *fields]}
        yield f"{name} with an array of nulls", container(nulls, [(1, write_long(1 << 26) + bytes(60))]), read
        laughs = {**json.loads(schema), "fields": [*laughing(22, "null")["fields"], *fields]}
        yield f"{name} that laughs", container(laughs, [(1, bytes(60))]), read
        frames = zstandard.compress(b"") * 100_000
        yield f"{name} of many frames", container(schema, [(1, frames)], "zstandard"), read


def outcomes() -> Iterator[tuple[str, str, float, int]]:
    """Name, outcome, seconds of CPU and growth of the peak in MiB, file by file."""
    for name, data in data_files():
        yield name, *measured(lambda data=data: read_data(data))
    for name, data, read in manifests():
        yield name, *measured(lambda data=data, read=read: read([("/t/m", data)]))


def read_data(data: bytes) -> None:
    settings = ReadSettings(row_count=1)
    for names in (FIELD_NAMES, ["a", "b"]):
        opened = AvroFormat().open(io.BytesIO(data), "/t/f", FIELDS, len(data), settings)
        for _, batch in opened.positioned_batches(names, batch_rows=1000):
            assert isinstance(batch, pa.RecordBatch)


def _peak_kb() -> int:
    """The most memory that was ever resident; `ru_maxrss` begins with the parent's on Linux."""
    if not sys.platform.startswith("linux"):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


def measured(work: Callable[[], Any]) -> tuple[str, float, int]:
    start, peak = time.process_time(), _peak_kb()
    try:
        work()
        outcome = "read"
    except PaimonError as error:
        outcome = type(error).__name__ if error.path in ("/t/f", "/t/m") else f"{error!r} without path"
    except (Exception, MemoryError) as error:  # noqa: BLE001
        outcome = repr(error)[:200]
    rose = _peak_kb() - peak
    return outcome, time.process_time() - start, rose >> 10


if __name__ == "__main__":
    for line in outcomes():
        print(json.dumps(line), flush=True)
