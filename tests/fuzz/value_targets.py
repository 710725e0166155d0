"""Targets that are values on their way, texts of users and tables, and decoders asked directly."""

from __future__ import annotations

import functools

import msgspec
import numpy as np
import pyarrow as pa
from fuzz import corpus
from fuzz.mutate import any_damaged, bytes_damaged, hostile, json_damaged, text_damaged, value_damaged
from fuzz.target import REFUSED, RIGHT, SAME_BYTES, UNDETECTED, Target, Wrong
from pyroaring import BitMap

from paimon_py import Catalog, Changes, PaimonError, Schema, col
from paimon_py.codec import binary_row, bitmaps, deletion_vectors, hash_index, roaring
from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.codec.file_index import container
from paimon_py.codec.json import schema_from_json, schema_to_json
from paimon_py.codec.manifest.entries import read_manifests
from paimon_py.codec.manifest.lists import read_index_manifest, read_manifest_list
from paimon_py.codec.partition_text import partition_directory
from paimon_py.codec.snapshot_json import snapshot_from_json, snapshot_to_json, tag_from_json
from paimon_py.compaction.task import CompactionTask
from paimon_py.expr.bind import bind
from paimon_py.expr.sql import parse_where
from paimon_py.files.file_index import FileIndexWriter, matching
from paimon_py.lsm.spill import _read, _Run
from paimon_py.spec.data_file import EMPTY_ROW, DataFile
from paimon_py.spec.external_paths import external_paths
from paimon_py.spec.file_indexes import IndexColumn
from paimon_py.spec.layout import check_file_name, check_name, escape, is_plain_directory, partition_path, unescape
from paimon_py.spec.options import OPTIONS, Options, check_names, check_values
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.serializable import _SEAL, _checksum, _decompress
from paimon_py.spec.type_text import parse_type, print_type, sql_type
from paimon_py.spec.types import Field
from paimon_py.storage.memory_store import MemoryStore

TRAVELLERS = ("keyed-parquet", "append-parquet", "append-avro", "vectors", "dynamic")
WHERE = (
    "k = 3 AND s LIKE 'text%' OR n IS NOT NULL", "x BETWEEN -1.5 AND 2e10", "d >= 12.345 AND t < TIMESTAMP '2020-05-01 10:00:00'",
    "s IN ('text 1', 'it''s', NULL) AND NOT (n <= -40)", "s LIKE '%t\\_x%' ESCAPE '\\'", "r.y = 3 OR `k` != 7 AND true", "b = X'00ff' OR DATE '2020-01-01' > t",
)  # fmt: skip
TYPES = (
    "DECIMAL(20, 3) NOT NULL", "ROW<a INT, b ARRAY<MAP<STRING, TIMESTAMP(9) WITH LOCAL TIME ZONE>> NOT NULL>", "VARCHAR(2147483647)",
    "MULTISET<CHAR(5)>", "ROW<`a b` BINARY(3) COMMENT 'x', c ROW<d TIME(3)>>", "TIMESTAMP(6) WITHOUT TIME ZONE", "VECTOR<FLOAT, 3>", "VARIANT", "DOUBLE",
)  # fmt: skip
_tmp = "/outside/secret"


@functools.cache
def table_of(name):
    return corpus.opened(corpus.store_with(name), name)


# -- values that travel -------------------------------------------------------------------------------------------------


@functools.cache
def _splits():
    return [(name, bytes(split)) for name in TRAVELLERS for split in table_of(name).scan().splits()]


def forged(rng, data):
    """Bytes of a value with other contents and the checksum of these; None if nothing changed that can be written."""
    head, body = data[: data.index(b":") + 1], _decompress(data[data.index(b":") + 1 + _SEAL.size :])
    if rng.random() < 0.3:
        other = bytes_damaged(rng, body, [body])
    else:
        value = msgspec.msgpack.decode(body)
        value_damaged(rng, value, corpus.words())
        try:
            other = msgspec.msgpack.encode(value)
        except (OverflowError, UnicodeEncodeError):
            return None
    return None if other == body else head + _SEAL.pack(len(other), _checksum(head, other)) + other


def split(rng):
    return _split(rng, lambda data: bytes_damaged(rng, data, [other for _, other in _splits()]))


def forged_split(rng):
    return _split(rng, lambda data: forged(rng, data))


def _split(rng, damage):
    name, data = rng.choice(_splits())
    damaged = damage(data)
    if damaged is None or damaged == data:
        return SAME_BYTES
    found = table_of(name).scan().read(damaged).read_all()
    return RIGHT if any(corpus.same(found, each) for each in _split_rows()) else UNDETECTED


@functools.cache
def _split_rows():
    return [table_of(name).scan().read(data).read_all() for name, data in _splits()]


@functools.cache
def _tasks():
    return [(name, bytes(task)) for name in TRAVELLERS for task in table_of(name).compaction_tasks(full=True)]


def task(rng):
    return _task(rng, lambda data: bytes_damaged(rng, data, [other for _, other in _tasks()]))


def forged_task(rng):
    return _task(rng, lambda data: forged(rng, data))


def _task(rng, damage):
    name, data = rng.choice(_tasks())
    corpus.right(name, corpus.plain, 0)
    damaged = damage(data)
    if damaged is None or damaged == data:
        return SAME_BYTES
    CompactionTask.from_bytes(damaged)
    store = corpus.store_with(name)
    table = corpus.opened(store, name)
    table.commit(table.run_compaction(damaged))
    return _read_again(store, name)


def _read_again(store, name, *others):
    """What a table holds after damaged bytes were accepted: it must be read without an error, and rightly."""
    try:
        found = corpus.plain(corpus.opened(store, name), None, 0)
    except PaimonError as error:
        raise Wrong(f"committed, and now the table cannot be read: {error}") from error
    return RIGHT if any(corpus.same(found, each) for each in (corpus.right(name, corpus.plain, 0), *others)) else UNDETECTED


@functools.cache
def _changes():
    """(table, the store in which a writer has written, what it handed over, and the rows after its commit)."""
    found = []
    for name in TRAVELLERS:
        store = corpus.store_with(name)
        table = corpus.opened(store, name)
        with table.writer() as writer:
            writer.write_arrow(corpus.rows(5, 8))
            data = bytes(writer.changes())
        after = store.copy()
        corpus.opened(after, name).commit(data)
        found.append((name, store, data, corpus.plain(corpus.opened(after, name), None, 0)))
    return found


def changes(rng):
    return _commit(rng, lambda data: bytes_damaged(rng, data, [other for _, _, other, _ in _changes()]))


def forged_changes(rng):
    return _commit(rng, lambda data: forged(rng, data))


def _commit(rng, damage):
    name, store, data, after = rng.choice(_changes())
    corpus.right(name, corpus.plain, 0)
    damaged = damage(data)
    if damaged is None or damaged == data:
        return SAME_BYTES
    Changes.from_bytes(damaged)
    store = store.copy()
    corpus.opened(store, name).commit(damaged, user="u", identifier=rng.choice((1, 2**62)))
    return _read_again(store, name, after)


# -- texts --------------------------------------------------------------------------------------------------------------


def where(rng):
    text = text_damaged(rng, rng.choice(WHERE), [*WHERE, "NOT", "AND", "ESCAPE", *(name for name, _ in corpus.COLUMNS)])
    parse_where(text)
    found = table_of("append-parquet").scan(where=text, columns=["k"]).to_arrow()
    return RIGHT if found.num_rows <= corpus.right("append-parquet", corpus.plain, 0).num_rows else UNDETECTED


def sql_type_text(rng):
    text = text_damaged(rng, rng.choice(TYPES), TYPES)
    found = parse_type(text)
    return RIGHT if parse_type(sql_type(found)) == found and parse_type(print_type(found)) == found else UNDETECTED


@functools.cache
def _type_objects():
    return [msgspec.json.encode(print_type(parse_type(text))) for text in TYPES if "<" in text]


def json_type(rng):
    data = json_damaged(rng, rng.choice(_type_objects()), _type_objects(), [*TYPES, "type", "element", "fields", "key", "value", "id", "name"])
    try:
        value = msgspec.json.decode(data)
    except (ValueError, RecursionError):
        return SAME_BYTES
    found = parse_type(value)
    return RIGHT if parse_type(print_type(found)) == found else UNDETECTED


_GETTERS = ("find_str", "find_int", "find_size", "find_duration", "get_str", "get_int", "get_bool", "get_float", "get_memory", "get_duration", "get_enum", "get_list", "get_map")


def option_values(rng):
    names = rng.sample(sorted(OPTIONS), 3)
    texts = {name: text_damaged(rng, rng.choice(("1", "10 mb", "1 h", "true", "a,b", "parquet", "k:v;x:y", "0.5", rng.choice(corpus.words()))), corpus.words()) for name in names}
    if rng.random() < 0.2:
        texts[hostile(rng, names[0])] = "1"
        check_names(texts)
    check_values(texts)
    options = Options(texts)
    for name in names:
        for getter in _GETTERS:
            try:
                getattr(options, getter)(name)
            except (PaimonError, KeyError, AssertionError, TypeError):
                continue  # a getter of another type than the option has
    return RIGHT


def options_of_a_table(rng):
    """A table with hostile options is refused, or it works: what is written is read, and nothing lies outside."""
    name = rng.choice(sorted(OPTIONS))
    pool = ("1", "2", "-1", "0", "10 mb", "1 b", "1 h", "0 s", "true", "false", "avro", "orc", "zstd", "none", "k", "n,s", "../x", "a/../../x", "x/", "\0", "file:///x", "first-row", "mod", "p", rng.choice(corpus.words()))
    texts = {name: rng.choice(pool)} | ({rng.choice(sorted(OPTIONS)): rng.choice(pool)} if rng.random() < 0.5 else {})
    if rng.random() < 0.2:
        texts[name] = hostile(rng, rng.choice(corpus.words()))
    texts = {key: value for key, value in texts.items() if "external-paths" not in key and key not in ("path", "write-buffer-spill.max-disk-size")}
    store = MemoryStore(clock=corpus.Clock())
    store.put(_tmp, b"outside")
    catalog = Catalog(store, corpus.WAREHOUSE, env=corpus.env())
    catalog.create_database("d")
    keys = ["k"] if rng.random() < 0.5 else None
    table = catalog.create_table("d.t", Schema(corpus.COLUMNS), primary_key=keys, partition_by=None, options=texts)
    given = corpus.rows(1, 6)
    try:
        table.write_arrow(given)
    except PaimonError:
        if left := [path for path in corpus.files_of(store, table.location) if "/data-" in path or "/bucket-" in path]:
            raise Wrong(f"a refused write left {left} with {texts}") from None
        raise
    check_outside(store, table.location)
    found = catalog.table("d.t").scan().to_arrow()
    hides = any(word in repr(texts) for word in ("first-row", "-2", "deletion-vectors", "scan.", "lookup", "sequence", "rowkind", "ignore", "expir", "merge-engine", "aggregat", "clustering", "visibility", "read", "branch"))
    return RIGHT if hides or found.num_rows == given.num_rows else UNDETECTED


def check_outside(store, location):
    """Nothing but what was there lies beside the table."""
    outside = [path for path in corpus.files_of(store, "") if not path.startswith(location + "/") and path != _tmp and not path.endswith("/.database")]
    if outside:
        raise Wrong(f"written outside of the table: {outside}")


def names(rng):
    """Hostile names of databases, tables, tags and columns, made of names that stand in tables."""
    store = MemoryStore(clock=corpus.Clock())
    store.put(_tmp, b"outside")
    catalog = Catalog(store, corpus.WAREHOUSE, env=corpus.env())
    texts = [hostile(rng, rng.choice((*corpus.words(), "t", "d"))) for _ in range(3)]
    what = rng.randrange(5)
    columns = Schema([("k", "INT"), ("v", "STRING")])
    if what == 0:
        catalog.create_database(texts[0])
        catalog.drop_database(texts[0])
    catalog.create_database("d")
    if what == 1:
        catalog.create_table(f"d.{texts[1]}", columns).write_arrow(pa.table({"k": pa.array([1], pa.int32()), "v": ["x"]}))
        catalog.drop_table(f"d.{texts[1]}")
    table = catalog.create_table("d.t", columns, partition_by=["v"])
    table.write_arrow(pa.table({"k": pa.array([1], pa.int32()), "v": [texts[2]]}))
    if what == 2:
        table.create_tag(texts[0], 1)
        table.scan(tag=texts[0]).to_arrow()
        table.delete_tag(texts[0])
    if what == 3:
        catalog.rename_table("d.t", f"d.{texts[0]}")
        table = catalog.table(f"d.{texts[0]}")
    if what == 4:
        catalog.create_table("d.u", Schema([(texts[0], "INT"), (texts[1], "STRING")])).write_arrow(
            pa.table({texts[0]: pa.array([1], pa.int32()), texts[1]: ["x"]})
        )
        return RIGHT if catalog.table("d.u").scan().to_arrow().num_rows == 1 else UNDETECTED
    check_outside(store, table.location)
    return RIGHT if table.scan().to_arrow()["v"].to_pylist() == [texts[2]] else UNDETECTED


def external(rng):
    texts = {
        "data-file.external-paths": text_damaged(rng, "s3://bucket/a, file:///data/x,oss://b/c", [*corpus.words(), "..", "file:/", "s3://", ","]),
        "data-file.external-paths.strategy": rng.choice(("round-robin", "entropy-inject", "weight-robin", "specific-fs", "none", "x")),
        "data-file.external-paths.specific-fs": rng.choice(("s3", "S3", "", "file")),
        "data-file.external-paths.weights": rng.choice(("1,2,3", "1", "0,1", "9" * 30 + ",1,1", "", "²")),
    }
    found = external_paths(Options(texts))
    if found is None:
        return RIGHT
    path = found.path("p=1/bucket-0", "data-0-0.parquet", rng.randrange(10), rng.random())
    parts = path.partition(":")[2].split("/")
    inside = any(path.startswith(root + "/") for root in found.roots) and ".." not in parts and "\0" not in path
    return RIGHT if inside else UNDETECTED


def path_texts(rng):
    text = hostile(rng, rng.choice(corpus.words()))
    if unescape(escape(text)) != text:
        return UNDETECTED
    path = partition_path(["a", text], [text, None])
    if len(path.split("/")) != 2 or any(part in (".", "..") for part in path.split("/")):
        return UNDETECTED
    plain = is_plain_directory(text)
    if plain and any(part in (".", "..", "") for part in text.rstrip("/").split("/")):
        return UNDETECTED
    for check in (lambda: check_name(rng.choice(("tag", "table", "database", "branch")), text), lambda: check_file_name(text)):
        try:
            name = check()
        except PaimonError:
            continue
        if "/" in name or name in ("", ".", "..") or "\0" in name:
            return UNDETECTED
    return RIGHT


# -- decoders -----------------------------------------------------------------------------------------------------------


@functools.cache
def _blobs(pattern):
    from fuzz.table_targets import items

    return [corpus.table_files(name).files[path] for name, path in items((*corpus.OWN, *corpus.JAVA[::3]), pattern)]


def decoder(name, pattern, decode, *, encode=None, named=True):
    """Damages files of a kind and decodes them; what can be encoded again must then be decoded as the same."""

    def run(rng):
        blobs = _blobs(pattern)
        data = rng.choice(blobs)
        damaged = any_damaged(rng, data, blobs, corpus.words())
        if damaged == data:
            return SAME_BYTES
        found = decode(damaged)
        return RIGHT if encode is None or decode(encode(found)) == found else UNDETECTED

    return Target(name, run, 8, named=named)


_ROW_TYPES = [parse_type(text) for text in ("INT", "BIGINT", "STRING", "DECIMAL(30, 2)", "TIMESTAMP(9)", "ARRAY<STRING>", "MAP<INT, STRING>", "ROW<a INT, b BYTES>", "DATE", "BOOLEAN")]


@functools.cache
def _binary_rows():
    fields = [Field(i, f"c{i}", kind) for i, kind in enumerate(_ROW_TYPES)]
    schema = to_arrow_schema(fields)
    import datetime
    import decimal

    values = [
        (1, -5, "a long text of a row", decimal.Decimal("-12345678901234567890.12"), datetime.datetime(2020, 1, 2), ["x", None, "a longer text"], [(1, "x")], {"a": 3, "b": b"xyz"}, datetime.date(2020, 5, 1), True),
        (None,) * 10,
        (2**31 - 1, 2**63 - 1, "é", decimal.Decimal("0.01"), datetime.datetime(1960, 1, 2), [], [], {"a": None, "b": b""}, datetime.date(1, 1, 1), False),
    ]  # fmt: skip
    columns = [pa.array([row[i] for row in values], field.type) for i, field in enumerate(schema)]
    return [value.as_py() for value in binary_row.encode(columns, _ROW_TYPES)]


def binary_rows(rng):
    rows = list(_binary_rows())
    at = rng.randrange(len(rows))
    damaged = bytes_damaged(rng, rows[at], rows)
    if damaged == rows[at]:
        return SAME_BYTES
    rows[at] = damaged
    for column in binary_row.decode(rows, _ROW_TYPES):
        column.validate(full=True)
    return RIGHT


_PARTS = [("INT", "DATE"), ("STRING", "DECIMAL(20, 3)"), ("TIMESTAMP(6)", "TINYINT"), ("DOUBLE", "BOOLEAN")]


def partitions(rng):
    kinds = rng.choice(_PARTS)
    fields = tuple(Field(i, f"p{i}", parse_type(kind)) for i, kind in enumerate(kinds))
    legacy = {"partition.legacy-name": rng.choice(("true", "false"))}
    schema = TableSchema(id=0, fields=fields, highest_field_id=1, partition_keys=("p0", "p1"), primary_keys=(), options=legacy, time_millis=0)
    columns = [pa.nulls(1, field.type) for field in to_arrow_schema(fields)]
    data = binary_row.encode(columns, [field.type for field in fields])[0].as_py()
    damaged = bytes_damaged(rng, data[:5] + rng.choice((b"\0", data[5:6])) + data[6:] + bytes(rng.choice((0, 0, 16))), [data])
    path = partition_directory(schema, damaged)
    return RIGHT if len(path.split("/")) == 2 and ".." not in path.split("/") else UNDETECTED


@functools.cache
def _vectors():
    return [
        deletion_vectors.encode(deletion_vectors.DeletionVector.of(np.array(positions, np.int64)), bits=bits)
        for bits in (32, 64)
        for positions in ([], [1, 5, 9], list(range(70_000)), [3, 65_536, 10**6])
    ]


def vector(rng):
    data, length = rng.choice(_vectors())
    damaged = bytes_damaged(rng, data, [other for other, _ in _vectors()])
    if damaged[: len(data)] == data:
        return SAME_BYTES
    deletion_vectors.decode(damaged, length, "index-0", 0)
    return UNDETECTED


def hashes(rng):
    data = hash_index.encode_hashes(np.arange(rng.randrange(1, 50), dtype=np.int32))
    damaged = bytes_damaged(rng, data, [data])
    hash_index.decode_hashes(damaged, len(data) // 4, "index-0")
    return RIGHT


@functools.cache
def _maps():
    return [BitMap(values).serialize() for values in ([], [1], range(5000), [2**32 - 1, 7], range(0, 300_000, 3))]


def bitmap_32(rng):
    damaged = bytes_damaged(rng, rng.choice(_maps()), _maps())
    bitmaps.read_bitmap(damaged)
    roaring.union_32([damaged, _maps()[1]])
    return RIGHT


@functools.cache
def _maps_64():
    leaf = roaring._Bitmap64()
    leaf.places, leaf.slots, leaf.last = {}, [], -1
    for number, key in enumerate((b"\0\0\0\0\0\0", b"\0\0\0\0\0\7", b"\1\0\0\0\0\0", b"\0\0\0\1\0\0")):
        leaf.places[key] = number
        leaf.slots.append(BitMap([1, 2, 3, number + 9]))
        leaf.last = number
    return [leaf.write(), roaring._Bitmap64().write()]


def bitmap_64(rng):
    damaged = bytes_damaged(rng, rng.choice(_maps_64()), _maps_64())
    roaring.union_64([damaged, _maps_64()[0]])
    return RIGHT


_INDEXED = {"n": "INT", "s": "STRING", "k": "BIGINT", "x": "DOUBLE"}
_KINDS = {"bloom-filter": "nsk", "bitmap": "ns", "bsi": "nk", "range-bitmap": "nskx"}


@functools.cache
def _indexes():
    """Containers by kind, the fields, and the rows they were made of."""
    fields = [Field(i, name, parse_type(kind)) for i, (name, kind) in enumerate(_INDEXED.items())]
    rows = corpus.rows(2, 60).select(list(_INDEXED))
    batch = rows.combine_chunks().to_batches()[0]
    made = {}
    for kind, columns in _KINDS.items():
        for version in ({}, {"version": "1"}) if kind == "bitmap" else ({"items": "100"},) if kind == "bloom-filter" else ({},):
            writer = FileIndexWriter(fields, [IndexColumn(column=column, kind=kind, options=version) for column in columns])
            writer.add(batch)
            made[kind + str(version.get("version", ""))] = container.encode(writer.finish())
    return made, fields, rows


def file_index(rng):
    made, fields, rows = _indexes()
    kind = rng.choice(sorted(made))
    data = made[kind]
    damaged = bytes_damaged(rng, data, list(made.values()))
    if damaged == data:
        return SAME_BYTES
    column = rng.choice(_KINDS[kind.rstrip("12")])
    values = rows[column].drop_null()
    value = values[rng.randrange(len(values))].as_py()
    named = col(column)
    predicate = rng.choice((named == value, named >= value, named < value, named != value, named.is_null(), named.is_not_null(), named.isin([value, values[0].as_py()])))
    file = DataFile(name="data-0.parquet", size_bytes=9, row_count=len(rows), min_key=EMPTY_ROW, max_key=EMPTY_ROW, min_sequence=0, max_sequence=0, schema_id=0, level=0, embedded_index=damaged)
    found = matching(None, "/t/data-0.parquet", file, fields, bind(predicate, fields))
    if found is None:
        return RIGHT
    numbered = rows.append_column("row", pa.array(range(len(rows))))
    true_rows = corpus.filtered_rows(numbered, predicate)
    return RIGHT if set(true_rows) <= set(found) else UNDETECTED


class _SpilledBytes:
    path = "/spill/run-1"

    def __init__(self, data):
        self.data = data

    def open_read(self):
        import io

        return io.BytesIO(self.data)


@functools.cache
def _spilled():
    found = []
    for compression in (None, "lz4", "zstd"):
        sink = pa.BufferOutputStream()
        table = corpus.rows(3)
        with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
            for batch in table.to_batches(16):
                writer.write_batch(batch)
        found.append(sink.getvalue().to_pybytes())
    return found


def spill(rng):
    data = rng.choice(_spilled())
    damaged = bytes_damaged(rng, data, _spilled())
    if damaged == data:
        return SAME_BYTES
    run = _Run(_SpilledBytes(damaged), 40, 100, len(data), corpus.rows(3).schema)
    for batch in _read(run, 10):
        batch.num_rows
    return RIGHT


def targets():
    """All of them."""
    yield Target("split-bytes", split, 3, named=False)
    yield Target("task-bytes", task, 2, named=False)
    yield Target("changes-bytes", changes, 2, named=False)
    yield Target("split-forged", forged_split, 3, named=False)
    yield Target("task-forged", forged_task, 2, named=False)
    yield Target("changes-forged", forged_changes, 3, named=False)
    yield Target("where-text", where, 4, named=False)
    yield Target("type-text", sql_type_text, 12, named=False)
    yield Target("type-json", json_type, 8, named=False)
    yield Target("option-values", option_values, 8, named=False)
    yield Target("table-options", options_of_a_table, 3, named=False)
    yield Target("names", names, 3, named=False)
    yield Target("external-paths", external, 4, named=False)
    yield Target("path-texts", path_texts, 4, named=False)
    yield decoder("schema-json", r"/schema/schema-\d+$", lambda data: schema_from_json(data, "schema-0"), encode=schema_to_json)
    yield decoder("snapshot-json", r"/snapshot/snapshot-\d+$", lambda data: snapshot_from_json(data, "snapshot-1"), encode=snapshot_to_json)
    yield decoder("tag-json", r"/tag/tag-", lambda data: tag_from_json(data, "t", "tag-t"))
    yield decoder("manifest-lists", r"/manifest/manifest-list-", lambda data: read_manifest_list(data, "manifest-list-1"))
    yield decoder("manifests", r"/manifest/manifest-[0-9a-f]", lambda data: read_manifests([("manifest-1", data)]).entries(), named=False)
    yield decoder("index-manifests", r"/manifest/index-manifest-", lambda data: read_index_manifest(data, "index-manifest-1"))
    yield Target("binary-rows", binary_rows, 6, named=False)
    yield Target("partitions", partitions, 6, named=False)
    yield Target("vector-bytes", vector, 6)
    yield Target("hash-bytes", hashes, 3)
    yield Target("bitmap-32", bitmap_32, 4, raises=(ValueError,))
    yield Target("bitmap-64", bitmap_64, 4, raises=(ValueError,))
    yield Target("file-index-bytes", file_index, 6, named=False)
    yield Target("spill-bytes", spill, 4)


__all__ = ["REFUSED", "targets"]
