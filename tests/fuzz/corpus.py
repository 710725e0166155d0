"""What gets damaged: small tables of our own, written anew each time, and tables that Java wrote."""

from __future__ import annotations

import decimal
import functools
import json
import re
import tarfile
from datetime import datetime
from typing import NamedTuple

import pyarrow as pa
from locate import CORPUS
from unit.commit.support import Clock, Ids

from paimon_py import Catalog, Schema, Table, col
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.options import OPTIONS
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.storage.open import open_store

WAREHOUSE = "/w"
_memory, _ = open_store("memory://ext", {})
COLUMNS = [
    ("p", "INT NOT NULL"), ("k", "BIGINT NOT NULL"), ("s", "STRING"), ("n", "INT"), ("x", "DOUBLE"), ("d", "DECIMAL(20, 3)"),
    ("t", "TIMESTAMP(6)"), ("b", "BYTES"), ("a", "ARRAY<INT>"), ("m", "MAP<STRING, INT>"), ("r", "ROW<y INT, z STRING>"),
]  # fmt: skip
ROWS = 40
KEYED = {"bucket": "1"}
VECTORS = {"deletion-vectors.enabled": "true"}
DYNAMIC = {"bucket": "-1", "dynamic-bucket.target-row-num": "30"}
INDEXES = {
    "file-index.bloom-filter.columns": "s,k", "file-index.bloom-filter.s.items": "60", "file-index.bloom-filter.k.items": "60", "file-index.bitmap.columns": "n,s", "file-index.bsi.columns": "n,k",
    "file-index.range-bitmap.columns": "k,x",
}  # fmt: skip
APART = {**INDEXES, "file-index.in-manifest-threshold": "1 b"}
EMBEDDED = {**INDEXES, "file-index.in-manifest-threshold": "1 mb"}


class Kind(NamedTuple):
    """How a table of ours is made. `merges`: it is compacted between writes, so that there are levels and vectors."""

    options: dict
    keyed: bool = False
    parted: bool = False
    merges: bool = False


def _with(format_, compression=None, **options):
    found = {"file.format": format_, **options}
    return {**found, "file.compression": compression} if compression else found


OWN = {
    "keyed-parquet": Kind({**KEYED, **_with("parquet")}, keyed=True, parted=True),
    "keyed-orc": Kind({"bucket": "2", **_with("orc")}, keyed=True),
    "keyed-avro": Kind({**KEYED, **_with("avro")}, keyed=True),
    "append-parquet": Kind(_with("parquet"), parted=True),
    "append-parquet-plain": Kind(_with("parquet", "none")),
    "append-orc": Kind(_with("orc")),
    "append-orc-plain": Kind(_with("orc", "none")),
    "append-avro": Kind(_with("avro")),
    "append-avro-plain": Kind(_with("avro", "null")),
    "append-avro-deflate": Kind(_with("avro", "deflate")),
    "vectors": Kind({"bucket": "1", **VECTORS}, keyed=True, parted=True, merges=True),
    "vectors-64": Kind({"bucket": "1", **VECTORS, "deletion-vectors.bitmap64": "true"}, keyed=True, merges=True),
    "append-vectors": Kind({**VECTORS}),
    "dynamic": Kind(DYNAMIC, keyed=True),
    "external": Kind({"data-file.external-paths": "memory://ext/a", "data-file.external-paths.strategy": "round-robin"}),
    "indexes": Kind(EMBEDDED),
    "indexes-apart": Kind(APART),
    "indexes-keyed": Kind({**KEYED, **APART}, keyed=True, merges=True),
}

JAVA = (
    "append-bucketed-avro", "append-bucketed-avro--java-090", "append-dv", "append-rolled-files", "audit-log-kinds--java-142",
    "char-short-orc", "compression-avro-deflate", "compression-avro-zstd", "compression-orc-snappy", "compression-orc-zlib",
    "compression-orc-zstd", "compression-parquet-gzip", "compression-parquet-none", "consumer-protects",
    "dv32-merge-on-read", "dynamic-small-target", "dynamic-small-target--java-090", "evolution-add-drop-rename-parquet",
    "evolution-nested-orc", "evolution-pk-avro", "evolution-pk-orc", "expiry-pk--java-090", "index-bitmap-file",
    "index-bitmap-v1-embedded", "index-bloom-filter-embedded", "index-bsi-file", "index-pk", "index-range-bitmap-file",
    "mixed-dv-up", "partition-two-levels", "pk-key-decimal-wide", "stats-full-pk", "travel-tags", "travel-tags--java-090",
    "types-arrays-avro", "types-arrays-parquet", "types-deep-avro", "types-deep-orc", "types-deep-parquet", "types-maps-avro",
    "types-multisets-parquet", "types-not-null-avro", "types-timestamps-orc", "types-timestamps-parquet",
)  # fmt: skip
"""Cases of the sample in the project, so that every machine draws the same inputs."""


class TableFiles(NamedTuple):
    """A table as files: its directory and the bytes by path."""

    name: str
    location: str
    files: dict


class Names(Ids):
    """UUIDs as random ones look, the same in every run."""

    def uuid(self):
        return f"{self.owner}-0000-4000-8000-{next(self.numbers):012x}"


def env(owner="0f0e0d0c"):
    """An environment in which nothing waits and nothing runs at once, with the same names in every run."""
    return Env(Clock(), Names(owner), SerialPool())


def rows(seed, count=ROWS):
    """Rows of `COLUMNS`; other seeds overlap in their keys."""
    numbers = [(seed * 7 + i * 5) % 97 for i in range(count)]
    return pa.table({
        "p": pa.array([k % 2 for k in numbers], pa.int32()),
        "k": pa.array(numbers, pa.int64()),
        "s": [None if k % 11 == 0 else f"text {k % 13} {'é' * (k % 4)}" for k in numbers],
        "n": pa.array([None if k % 9 == 4 else k * seed - 40 for k in numbers], pa.int32()),
        "x": [None if k % 8 == 1 else k / 7 * seed for k in numbers],
        "d": pa.array([decimal.Decimal(k * 1000 + seed).scaleb(-3) for k in numbers], pa.decimal128(20, 3)),
        "t": pa.array([datetime(2020, 1 + k % 12, 1 + k % 28, seed, k % 60, 7, k) for k in numbers], pa.timestamp("us")),
        "b": [bytes([k, seed]) * (k % 5) for k in numbers],
        "a": pa.array([None if k % 10 == 3 else [k, None, seed][: k % 4] for k in numbers], pa.list_(pa.int32())),
        "m": pa.array([[(f"a{i}", k) for i in range(k % 3)] for k in numbers], pa.map_(pa.string(), pa.int32())),
        "r": pa.array([None if k % 7 == 2 else {"y": k, "z": f"z{k % 5}"} for k in numbers], pa.struct([("y", pa.int32()), ("z", pa.string())])),
    })  # fmt: skip


def files_of(store, location):
    """Every file of a memory store below a directory."""
    found, places = {}, [location]
    while places:
        for status in store.list(places.pop()):
            if status.is_directory:
                places.append(status.path)
            else:
                found[status.path] = store.get(status.path)
    return dict(sorted(found.items()))


@functools.cache
def own(name):
    """A table of ours after two or three commits, a tag and what its kind does besides."""
    kind = OWN[name]
    catalog = Catalog(MemoryStore(clock=Clock()), WAREHOUSE, env=env())
    catalog.create_database("d")
    keys = (["p", "k"] if kind.parted else ["k"]) if kind.keyed else None
    table = catalog.create_table(
        "d.t", Schema(COLUMNS), primary_key=keys, partition_by=["p"] if kind.parted else None, options=kind.options
    )
    table.write_arrow(rows(1), watermark=1_000)
    table.create_tag("one", 1)
    table.write_arrow(rows(2))
    if kind.merges:
        table.compact(full=True)
    if kind.merges:
        table.write_arrow(rows(3, 20))
        table.compact()
    elif name.endswith("vectors"):
        table.delete("n > 20")
    return TableFiles(name, table.location, files_of(table._root.store, table.location))


@functools.cache
def _external():
    own("external")
    return files_of(_memory, "memory://ext/a")


def lay_external():
    """Put the files of the table "external" that lie outside of its directory where they were."""
    found = _external()
    _memory.delete_tree("memory://ext")
    for path, data in found.items():
        _memory.put(path, data)


@functools.cache
def java(name):
    """A table that Java wrote, out of the corpus."""
    place = CORPUS / name
    files = {}
    with tarfile.open(place / "warehouse.tar.gz") as packed:
        for member in packed:
            if member.isfile():
                files[f"{WAREHOUSE}/{member.name.partition('/')[2]}"] = packed.extractfile(member).read()
    database, table = json.loads((place / "case.json").read_text())["table"].split(".", 1)
    location = f"{WAREHOUSE}/{database}.db/{table}"
    return TableFiles(name, location, {path: data for path, data in sorted(files.items()) if path.startswith(location + "/")})


def table_files(name):
    """A table by name, ours or Java's."""
    return own(name) if name in OWN else java(name)


@functools.cache
def _loaded(name):
    made = table_files(name)
    store = MemoryStore(clock=Clock())
    for path, data in made.files.items():
        store.put(path, data)
    return store


def store_with(name, path=None, data=None):
    """A store that holds a table, with other bytes at one path."""
    store = _loaded(name).copy()
    if path is not None:
        store.put(path, data)
    return store


def opened(store, name, opener=None):
    """The table as a process would see it that has just begun; `opener` opens its other stores."""
    location = table_files(name).location
    root = TableRoot(store, location, env("1a1b1c1d"))
    if opener is not None:
        root.files._opener = opener
    return Table(root, root.schemas.latest(), "d.t")


# -- what is read of a table --------------------------------------------------------------------------------------------


def plain(table, known, draw):
    return table.scan().to_arrow()


def filtered(table, known, draw):
    return table.scan(where=known.filters[draw % len(known.filters)]).to_arrow()


def projected(table, known, draw):
    columns = known.columns if draw % 2 else known.columns[:1]
    return table.scan(columns=columns).to_arrow()


def counted(table, known, draw):
    return table.scan(where=known.filters[draw % len(known.filters)] if draw % 2 else None).count()


def explained(table, known, draw):
    return table.scan(where=known.filters[draw % len(known.filters)]).explain(analyze=True).analysis.rows_returned


def by_tag(table, known, draw):
    return [table.scan(tag=tag).to_arrow() for tag in known.tags]


def listed(table, known, draw):
    return [[tag.name for tag in table.tags()], [repr(each) for each in table.snapshots()], repr(table.schema.fields)]


def entries(table, known, draw):
    return [repr(manifest.entries()) for manifest in table.snapshot().manifests()]


def looked_up(table, known, draw):
    return table.lookup(known.keys.slice(draw % len(known.keys), 1))


def ordered(table, known, draw):
    return table.scan(order_by=known.columns[0], limit=5, columns=known.columns[:1]).to_arrow()


def compacted(table, known, draw):
    table.compact(full=True)
    return table.scan().to_arrow()


def written(table, known, draw):
    table.write_arrow(known.more)
    return table.scan().to_arrow()


class Known(NamedTuple):
    """What is true of a sound table: what to ask, and what comes of it."""

    filters: list
    columns: list
    keys: object
    tags: list
    more: object


_COMPARED = (pa.types.is_integer, pa.types.is_string, pa.types.is_floating, pa.types.is_timestamp, pa.types.is_date)


@functools.cache
def known(name):
    """The questions for a table, made of its own rows."""
    table = opened(store_with(name), name)
    found = table.scan().to_arrow()
    names = [field.name for field in found.schema if any(test(field.type) for test in _COMPARED)]
    filters = []
    for column in names[:6]:
        values = [value for value in found[column] if value.is_valid]
        if values:
            filters += [col(column) == values[0], (col(column) >= values[len(values) // 2]) & col(column).is_not_null()]
    columns = [*reversed(names)][:2] or found.column_names[:1]
    keys = found.select(table.schema.primary_keys).slice(0, 4) if table.schema.primary_keys else None
    more = rows(4, 10) if name in OWN else found.slice(0, 3)
    return Known(filters or [col(columns[0]).is_null()], columns, keys, [tag.name for tag in table.tags()], more)


@functools.cache
def right(name, reading, draw):
    """What a reading gives of the sound table."""
    return reading(opened(store_with(name), name), known(name), draw)


@functools.cache
def words():
    """Texts from tables: names of options, of files, of columns, and keys and values of their JSON."""
    found = set(OPTIONS) | {"INT", "STRING NOT NULL", "DECIMAL(38, 18)", "ROW", "ARRAY", "MAP", "APPEND", "COMPACT"}
    for name in (*OWN, *JAVA[::4]):
        made = table_files(name)
        for path, data in made.files.items():
            found |= {path[len(made.location) + 1 :], path.rpartition("/")[2]}
            if data[:1] == b"{":
                found |= set(re.findall(r'"([^"]{1,80})"', data.decode()))
    return sorted(found)


def same(found, expected):
    """Whether two answers are the same; rows as bags."""
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, pa.Table):
        return found.equals(expected) or _bag(found) == _bag(expected)
    return found == expected


def _bag(table):
    try:
        return table.column_names, sorted(map(repr, zip(*(column.to_pylist() for column in table.columns))))
    except (OverflowError, ValueError):
        return "values that Python does not have"


def filtered_rows(numbered, predicate):
    """Values of the column "row" of the rows for which a predicate is true, asked of a sound table of their own."""
    names = [name for name in numbered.column_names if name != "row"]
    key = repr(predicate), numbered.num_rows, tuple(names)
    if key not in _asked:
        catalog = Catalog(MemoryStore(clock=Clock()), WAREHOUSE, env=env())
        catalog.create_database("d")
        table = catalog.create_table("d.t", numbered.schema)
        table.write_arrow(numbered)
        _asked[key] = table.scan(where=predicate).to_arrow()["row"].to_pylist()
    return _asked[key]


_asked: dict = {}
