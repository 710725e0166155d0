"""One damage for each check that ends in `CorruptionError` where a file of Java's has it: what Java makes of it is asked.

A damage changes a copy of one of Java's small tables (`foreign.origins`). It is made by hand and the same in every run.
"""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
from foreign import avro_bytes
from foreign.avro_bytes import Branch, Style
from foreign.place import Place

KEYS, VECTORS, DYNAMIC, APPEND, ORC, AVRO = (
    "keys in parts parquet", "vectors parquet", "dynamic buckets", "wide append parquet", "wide append orc", "wide append avro",
)  # fmt: skip
MERGED = "wide keys parquet"
INDEXED, EVOLUTION = "index-bitmap-file", "data-evolution-twice"
"""Golden tables."""


class Damage(NamedTuple):
    """`table`: which origin. `ask`: what is asked then: the rows, those of a tag, where n = 1, a system table, or a write."""

    table: str
    do: Callable[[Place], None]
    ask: str = "rows"


def _newest(place: Place, kind: str) -> Path:
    """The newest file of the table itself, not of its branches."""
    return max((place.path / kind).glob(f"{kind}-*"), key=lambda path: (len(path.name), path.name))


# -- JSON ---------------------------------------------------------------------------------------------------------------


def _json(kind: str, change: Callable[[dict], None]) -> Callable[[Place], None]:
    """Change the newest file of a kind."""

    def do(place: Place) -> None:
        path = _newest(place, kind)
        value = place.json(path)
        change(value)
        path.write_text(json.dumps(value))

    return do


def _text(kind: str, text: Callable[[str], str]) -> Callable[[Place], None]:
    def do(place: Place) -> None:
        path = _newest(place, kind)
        path.write_text(text(path.read_text()))

    return do


def _set(kind: str, **values: Any) -> Callable[[Place], None]:
    return _json(kind, lambda value: value.update(values))


def _without(kind: str, *names: str) -> Callable[[Place], None]:
    return _json(kind, lambda value: [value.pop(name) for name in names])


def _field(at: int, **values: Any) -> Callable[[Place], None]:
    return _json("schema", lambda value: value["fields"][at].update(values))


def _data_field(**values: Any) -> Callable[[Place], None]:
    """The same of one entry after another: a list of values for each field."""

    def do(place: Place) -> None:
        at = -1
        for path in place.files("manifest"):
            container = avro_bytes.read(path.read_bytes())
            for at, record in enumerate(container.records, at + 1):
                for name, items in values.items():
                    record["_FILE"][name] = Branch(0, None) if items[at % len(items)] is None else Branch(1, items[at % len(items)])
            place.keep(path, container.schema, container.records, Style(container.codec))
        place.settle_metadata()

    return do


def _consumer(text: str) -> Callable[[Place], None]:
    return lambda place: (place.path / "consumer" / "consumer-c1").write_text(text) and None


# -- Avro metadata ------------------------------------------------------------------------------------------------------


def _bytes(kind: str, change: Callable[[bytes], bytes]) -> Callable[[Place], None]:
    """Change the bytes of all files of a kind, where the sizes that name them follow."""

    def do(place: Place) -> None:
        for path in place.files(kind):
            path.write_bytes(change(path.read_bytes()))
        _settle_sizes(place, kind)

    return do


def _settle_sizes(place: Place, kind: str) -> None:
    """Write the sizes of manifests into their lists, and of lists into snapshots, without taking the changed files apart."""
    if kind == "manifest":
        place.settle_metadata()
    elif kind == "list":
        place.settle_lists(place.files("list"))


def _records(kind: str, change: Callable[[dict], None], codec: str | None = None) -> Callable[[Place], None]:
    """Change all records of all files of a kind."""

    def do(place: Place) -> None:
        for path in place.files(kind):
            container = avro_bytes.read(path.read_bytes())
            for record in container.records:
                change(record)
            place.keep(path, container.schema, container.records, Style(codec or container.codec))
        _settle_sizes(place, kind)

    return do


def _file(**values: Any) -> Callable[[Place], None]:
    """Change fields of all data files in their entries; nullable fields take their second branch."""

    def change(record: dict) -> None:
        file = record["_FILE"]
        for name, value in values.items():
            file[name] = Branch(1, value) if isinstance(file[name], Branch) else value

    return _records("manifest", change)


def _header(data: bytes, change: Callable[[list], list]) -> bytes:
    """A container with other keys in its header."""
    container = avro_bytes.read(data)
    keys = change([("avro.schema", json.dumps(container.schema).encode()), ("avro.codec", container.codec.encode())])
    return b"Obj\x01" + avro_bytes.header(keys) + data[avro_bytes.header_end(data) - 16 :]


def _block(data: bytes, change: Callable[[int, bytes], bytes]) -> bytes:
    """A container whose first block is another one: a function of its count and its payload, packed."""
    count, payload, rest = avro_bytes.first_block(data)
    return data[: avro_bytes.header_end(data)] + change(count, payload) + rest


def _payload(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """A container without compression whose only block has other bytes."""
    container = avro_bytes.read(data)
    if not container.records:
        return data
    plain = avro_bytes.write(container.schema, container.records, Style("null"))
    sync = plain[-16:]
    return _block(plain, lambda count, payload: _packed(count, change(payload), sync))


def _packed(count: int, payload: bytes, sync: bytes) -> bytes:
    return avro_bytes.long(count) + avro_bytes.long(len(payload)) + payload + sync


def _twice(kind: str) -> Callable[[Place], None]:
    """The first record of each file comes twice."""

    def do(place: Place) -> None:
        for path in place.files(kind):
            container = avro_bytes.read(path.read_bytes())
            records = container.records + copy.deepcopy(container.records[:1])
            place.keep(path, container.schema, records, Style(container.codec))
        _settle_sizes(place, kind)

    return do


def _partition(change: Callable[[bytes], bytes]) -> Callable[[Place], None]:
    return _records("manifest", lambda record: record.update(_PARTITION=change(record["_PARTITION"])))


def _renamed(kind: str, old: str, new: str) -> Callable[[Place], None]:
    """Call a field of the records otherwise."""

    def do(place: Place) -> None:
        for path in place.files(kind):
            container = avro_bytes.read(path.read_bytes())
            text = json.dumps(container.schema).replace(f'"{old}"', f'"{new}"')
            for record in container.records:
                for part in (record, record.get("_FILE", {})):
                    if old in part:
                        part[new] = part.pop(old)
            place.keep(path, json.loads(text), container.records, Style(container.codec))
        _settle_sizes(place, kind)

    return do


# -- index files and data files -----------------------------------------------------------------------------------------


def _index(change: Callable[[bytes], bytes]) -> Callable[[Place], None]:
    def do(place: Place) -> None:
        for path in place.path.glob("index/index-*"):
            path.write_bytes(change(path.read_bytes()))

    return do


def _vectors(change: Callable[[dict], None]) -> Callable[[Place], None]:
    """Change the places of deletion vectors in index manifests."""

    def each(record: dict) -> None:
        ranges = record["_DELETIONS_VECTORS_RANGES"]
        for item in ranges.value or ():
            change(item.value if isinstance(item, Branch) else item)

    return _records("index", each)


def _data(change: Callable[[bytes], bytes], settle: bool = True) -> Callable[[Place], None]:
    def do(place: Place) -> None:
        for path in place.files("data"):
            path.write_bytes(change(path.read_bytes()))
        if settle:
            place.settle()

    return do


def _rows(change: Callable[[pa.Table], pa.Table]) -> Callable[[Place], None]:
    """Write all data files again, with other rows."""

    def do(place: Place) -> None:
        for path in place.files("data"):
            if path.suffix == ".orc":
                orc.write_table(change(orc.read_table(path)), path)
            else:
                pq.write_table(change(pq.read_table(path, use_threads=False)), path)
        place.settle()

    return do


def _kinds(table: pa.Table) -> pa.Table:
    at = table.schema.get_field_index("_VALUE_KIND")
    return table.set_column(at, table.schema.field(at), pa.array([9] * table.num_rows, table.schema.field(at).type))


def _files_named(suffix: str, change: Callable[[bytes], bytes]) -> Callable[[Place], None]:
    def do(place: Place) -> None:
        for path in place.path.rglob(f"*{suffix}"):
            path.write_bytes(change(path.read_bytes()))

    return do


def _gone(kind: str) -> Callable[[Place], None]:
    def do(place: Place) -> None:
        for path in place.files(kind):
            path.unlink()

    return do


def _through_parent(record: dict) -> None:
    file = record["_FILE"]
    file["_FILE_NAME"] = f"../bucket-{record['_BUCKET']}/{file['_FILE_NAME']}"


def _elsewhere(place: Place) -> None:
    """Copies of all data files outside the table, which entries name by their paths."""
    folder = place.path.parents[1] / "elsewhere"
    folder.mkdir()
    for path in place.files("data"):
        (folder / path.name).write_bytes(path.read_bytes())

    def change(record: dict) -> None:
        file = record["_FILE"]
        file["_EXTERNAL_PATH"] = Branch(1, f"file:{folder}/{file['_FILE_NAME']}")

    _records("manifest", change)(place)


def _old_schema_gone(place: Place) -> None:
    (place.path / "schema" / "schema-0").unlink()


def _at(data: bytes, where: int, new: bytes) -> bytes:
    return data[:where] + new + data[where + len(new) :]


def _row(arity: int, *words: int) -> bytes:
    """A serialized row: arity, kind and nulls, words."""
    return struct.pack(">i", arity) + bytes(8) + struct.pack(f"<{len(words)}Q", *words)


DAMAGES: dict[str, Damage] = {
    # JSON
    "not json": Damage(KEYS, _text("snapshot", lambda text: text[: len(text) // 2])),
    "deep json": Damage(KEYS, _set("snapshot", deep=json.loads("[" * 900 + "]" * 900))),
    "json list": Damage(KEYS, _text("snapshot", lambda _: "[1]")),
    "trailing json": Damage(KEYS, _text("snapshot", lambda text: text + '{"a": 1}')),
    "snapshot of another id": Damage(KEYS, _set("snapshot", id=99)),
    "snapshot without schema": Damage(KEYS, _without("snapshot", "schemaId")),
    "snapshot without list": Damage(KEYS, _without("snapshot", "baseManifestList")),
    "snapshot without user": Damage(KEYS, _without("snapshot", "commitUser")),
    "snapshot with a half schema": Damage(KEYS, _set("snapshot", schemaId="x")),
    "tag with another time": Damage(KEYS, _set("tag", tagCreateTime="yesterday"), "tag t1"),
    "tag with another duration": Damage(KEYS, _set("tag", tagTimeRetained=[1]), "tag t1"),
    "schema of another id": Damage(KEYS, _set("schema", id=5)),
    "schema gone": Damage("changed schema parquet", _old_schema_gone),
    "schema without fields": Damage(KEYS, _without("schema", "fields")),
    "schema without highest id": Damage(KEYS, _without("schema", "highestFieldId")),
    "schema with a low highest id": Damage(KEYS, _set("schema", highestFieldId=1)),
    "schema without keys": Damage(KEYS, _without("schema", "primaryKeys")),
    "schema with unknown keys": Damage(KEYS, _set("schema", primaryKeys=["p", "zz"])),
    "schema with a key twice": Damage(KEYS, _set("schema", primaryKeys=["p", "k", "k"])),
    "schema without options": Damage(KEYS, _without("schema", "options")),
    "schema with a nested key": Damage("wide keys parquet", _set("schema", primaryKeys=["r"])),
    "field without name": Damage(KEYS, _json("schema", lambda value: value["fields"][2].pop("name"))),
    "field without id": Damage(KEYS, _json("schema", lambda value: value["fields"][2].pop("id"))),
    "field with the id of another": Damage(KEYS, _field(2, id=0)),
    "field with the name of another": Damage(KEYS, _field(2, name="n")),
    "field with a name of Paimon's": Damage(KEYS, _field(2, name="_VALUE_KIND")),
    "field with half a type": Damage(KEYS, _field(2, type="DECIMAL(3")),
    "consumer not json": Damage(KEYS, _consumer(""), "$consumers"),
    "consumer without number": Damage(KEYS, _consumer('{"nextSnapshot": "soon"}'), "$consumers"),
    # containers
    "magic": Damage(KEYS, _bytes("manifest", lambda data: b"XXXX" + data[4:])),
    "keys of the header": Damage(KEYS, _bytes("manifest", lambda data: _header(data, lambda keys: keys + [(f"k{n}", b"") for n in range(2000)]))),
    "header without schema": Damage(KEYS, _bytes("manifest", lambda data: _header(data, lambda keys: keys[1:]))),
    "header cut off": Damage(KEYS, _bytes("manifest", lambda data: data[:60])),
    "end cut off": Damage(KEYS, _bytes("manifest", lambda data: data[:-20])),
    "block of too many": Damage(KEYS, _bytes("manifest", lambda data: _block(data, lambda _, raw: _packed(10**6, raw, data[-16:])))),
    "empty block with bytes": Damage(KEYS, _bytes("manifest", lambda data: _block(data, lambda _, raw: _packed(0, raw, data[-16:])))),
    "sync": Damage(KEYS, _bytes("manifest", lambda data: data[:-3] + b"xyz")),
    "block does not inflate": Damage(KEYS, _bytes("manifest", lambda data: _block(data, lambda n, raw: _packed(n, b"\0" * len(raw), data[-16:])))),
    "codec": Damage(KEYS, _bytes("manifest", lambda data: _header(data, lambda keys: [keys[0], ("avro.codec", b"zip")]))),
    "schema of Avro": Damage(KEYS, _bytes("manifest", lambda data: _header(data, lambda keys: [("avro.schema", b"{"), keys[1]]))),
    "type of Avro": Damage(KEYS, _bytes("manifest", lambda data: _header(data, lambda keys: [("avro.schema", keys[0][1].replace(b'"long"', b'"lung"')), keys[1]]))),
    "list cut in a record": Damage(KEYS, _bytes("list", lambda data: _payload(data, lambda raw: raw[:-5]))),
    "manifest without a field": Damage(KEYS, _renamed("manifest", "_ROW_COUNT", "_LINE_COUNT")),
    "name with a flipped bit": Damage(KEYS, _renamed("manifest", "_EXTERNAL_PATH", "_EXTERNAL_PATI")),
    # values of manifests
    "kind of entry": Damage(KEYS, _records("manifest", lambda record: record.update(_KIND=2))),
    "file source": Damage(KEYS, _file(_FILE_SOURCE=7)),
    "version of list": Damage(KEYS, _records("list", lambda record: record.update(_VERSION=1))),
    "list shorter than its snapshot says": Damage(KEYS, _json("snapshot", lambda value: value.update(deltaManifestListSize=value["deltaManifestListSize"] + 1))),
    "counts of list": Damage(KEYS, _records("list", lambda record: record.update(_NUM_ADDED_FILES=5))),
    "entry twice": Damage(KEYS, _twice("manifest")),
    "index file twice": Damage(VECTORS, _twice("index")),
    "name of file is a path": Damage(KEYS, _records("manifest", _through_parent)),
    "name of file without ending": Damage(KEYS, _file(_FILE_NAME="data-0")),
    "external path": Damage(KEYS, _elsewhere),
    "two file indexes": Damage(INDEXED, _file(_EXTRA_FILES=["a.index", "b.index"]), "filter"),
    # serialized rows
    "partition too short": Damage(KEYS, _partition(lambda raw: raw[:10])),
    "partition of two fields": Damage(KEYS, _partition(lambda raw: _at(raw, 0, struct.pack(">i", 2)))),
    "text outside its row": Damage(KEYS, _partition(lambda _: _row(1, (400 << 32) | 20))),
    "inline text of nine": Damage(KEYS, _partition(lambda _: _row(1, (0x89 << 56) | 0x78))),
    "text not UTF-8": Damage(KEYS, _partition(lambda _: _row(1, (0x81 << 56) | 0xFF))),
    # indexes
    "vectors begin otherwise": Damage(VECTORS, _index(lambda data: b"\x09" + data[1:])),
    "vector's checksum": Damage(VECTORS, _index(lambda data: data[:-2] + b"xy")),
    "vector's length": Damage(VECTORS, _vectors(lambda place: place.update(f1=0))),
    "vector's place": Damage(VECTORS, _vectors(lambda place: place.update(f2=-1))),
    "vector's count": Damage(VECTORS, _vectors(lambda place: place.update(_CARDINALITY=Branch(1, 4)) if "_CARDINALITY" in place else None)),
    "hashes cut off": Damage(DYNAMIC, _index(lambda data: data[:-2]), "write"),
    "vector's magic": Damage(VECTORS, _index(lambda data: data[:5] + b"abcd" + data[9:])),
    "file index begins otherwise": Damage(INDEXED, _files_named(".index", lambda data: b"x" + data[1:]), "filter"),
    "version of a file index": Damage(INDEXED, _files_named(".index", lambda data: data[:11] + b"\x09" + data[12:]), "filter"),
    "file index cut off": Damage(INDEXED, _files_named(".index", lambda data: data[:20]), "filter"),
    # data files
    "data file gone": Damage(APPEND, _gone("data")),
    "manifest gone": Damage(APPEND, _gone("manifest")),
    "list gone": Damage(APPEND, _gone("list")),
    "more rows by the entry": Damage(APPEND, _file(_ROW_COUNT=4)),
    "more rows by the entry, ORC": Damage(ORC, _file(_ROW_COUNT=4)),
    "more rows by the entry, Avro": Damage(AVRO, _file(_ROW_COUNT=4)),
    "Parquet cut off": Damage(APPEND, _data(lambda data: data[: len(data) // 2])),
    "ORC cut off": Damage(ORC, _data(lambda data: data[: len(data) // 2])),
    "Avro cut off": Damage(AVRO, _data(lambda data: data[:-30])),
    "Avro without its block": Damage(AVRO, _data(lambda data: data[: avro_bytes.header_end(data)], settle=False)),
    "Avro's sync": Damage(AVRO, _data(lambda data: data[:-3] + b"xyz")),
    "Avro's block": Damage(AVRO, _data(lambda data: _block(data, lambda n, raw: _packed(n, b"\0" * len(raw), data[-16:])))),
    "Avro's schema": Damage(AVRO, _data(lambda data: _header(data, lambda keys: [("avro.schema", b"{"), keys[1]]))),
    "Avro's values": Damage(AVRO, _data(lambda data: _payload(data, lambda raw: b"\xff" * 12 + raw[12:]))),
    "Avro's block too long": Damage(AVRO, _data(lambda data: _block(data, lambda n, raw: avro_bytes.long(n) + avro_bytes.long(-5) + raw + data[-16:]))),
    "no first row id": Damage(EVOLUTION, _data_field(_FIRST_ROW_ID=[None])),
    "ids that overlap": Damage(EVOLUTION, _data_field(_FIRST_ROW_ID=[0, 1, 0])),
    "kind of row": Damage(MERGED, _rows(_kinds), "$audit_log"),
    "keys backwards": Damage(MERGED, _rows(lambda table: table.take(list(range(table.num_rows))[::-1]))),
    "column gone": Damage(APPEND, _rows(lambda table: table.drop_columns(["k"]))),
    "text for a number": Damage(APPEND, _rows(lambda table: table.set_column(0, "k", pa.array(["x"] * table.num_rows)))),
    "Parquet's magic": Damage(APPEND, _data(lambda data: data[:-4] + b"PARX")),
    "ORC's magic": Damage(ORC, _data(lambda data: data[:-4] + b"ABCD")),
}  # fmt: skip
