"""Nothing raw comes out of a public call: tables of strangers, odd values and paths end in errors of ours that name them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import fsspec
import msgspec
import numpy as np
import pyarrow as pa
import pytest
from unit.public import KEYED, QUICK, ROWS, env, new_catalog

import paimon_py
from paimon_py import (
    Catalog,
    CorruptionError,
    OptionError,
    PaimonError,
    Schema,
    SchemaError,
    SetOption,
    Table,
    UnsupportedError,
    UsageError,
    col,
)
from paimon_py.codec.arrow_types import from_arrow_type
from paimon_py.codec.json import schema_from_json
from paimon_py.codec.manifest.entries import read_manifests, write_manifest
from paimon_py.codec.manifest.lists import read_manifest_list, write_manifest_list
from paimon_py.codec.snapshot_json import snapshot_from_json, tag_from_json
from paimon_py.errors import StorageError
from paimon_py.expr.sql import parse_where
from paimon_py.spec.type_text import NESTING_MAX
from paimon_py.storage.fsspec_store import FsspecStore
from paimon_py.storage.local_store import LocalStore

MADE = {
    "parted": ({"bucket": "1"}, ["p", "k"], ["p"]),
    "keyed": ({"bucket": "2"}, ["p", "k"]),
    "partial": ({"bucket": "1", "merge-engine": "partial-update"}, ["p", "k"]),
    "append": ({"bucket": "2", "bucket-key": "k"}, []),
    "indexed": ({"file-index.bloom-filter.columns": "k"}, []),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    catalog = new_catalog(tmp_path_factory.mktemp("raw") / "w")
    made = {}
    for name, (options, key, *parted) in MADE.items():
        partition_by = parted[0] if parted else []
        made[name] = catalog.create_table(f"d.{name}", KEYED, primary_key=key, partition_by=partition_by, options=options)
        made[name].write_arrow(ROWS)
    return made


def changed(table, directory, change):
    """A copy of a table whose schema file was changed by a stranger."""
    shutil.copytree(table.location, directory)
    path = Path(directory) / "schema" / "schema-0"
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))
    return lambda: Table.open(str(directory), QUICK, env=env())


def option(name, text):
    return lambda value: value["options"].__setitem__(name, text)


def nested(depth, wrap):
    found = "INT"
    for _ in range(depth):
        found = wrap(found)
    return found


def array(inner):
    return {"type": "ARRAY", "element": inner}


def row(inner):
    return {"type": "ROW", "fields": [{"id": 77, "name": "f", "type": inner}]}


# -- tables of strangers ------------------------------------------------------------------------------------------------


VERBS = {
    "scan": lambda table: table.scan(where="p = 1 AND k = 1").to_arrow(),
    "lookup": lambda table: table.lookup([{"p": 1, "k": 1}]),
    "write": lambda table: table.write_arrow(ROWS),
    "upsert": lambda table: table.upsert(ROWS, on=["p", "k"]),
    "delete": lambda table: table.delete("k = 1"),
    "compact": lambda table: table.compact(),
}


@pytest.mark.parametrize(
    ("kind", "change", "verb", "error", "words"),
    [
        ("partial", option("bucket-key", "nope"), "scan", SchemaError, "no column 'nope'"),
        ("partial", option("bucket-key", "nope"), "lookup", SchemaError, "no column 'nope'"),
        ("partial", option("bucket-key", "nope"), "write", SchemaError, "no column 'nope'"),
        ("append", option("bucket-key", ","), "write", SchemaError, "no column ''"),
        ("append", lambda value: value["options"].pop("bucket-key"), "write", OptionError, "the option 'bucket-key'"),
        ("append", lambda value: value["options"].pop("bucket-key"), "delete", OptionError, "the option 'bucket-key'"),
        ("keyed", lambda value: value["fields"][2].update(name="_LEVEL"), "scan", CorruptionError, "can be '_LEVEL'"),
        ("partial", option("rowkind.field", "nope"), "write", OptionError, "'rowkind.field' = 'nope'"),
        ("keyed", option("rowkind.field", "nope"), "upsert", OptionError, "'rowkind.field' = 'nope'"),
        ("keyed", option("rowkind.field", "nope"), "delete", OptionError, "'rowkind.field' = 'nope'"),
        ("indexed", option("file-index.bloom-filter.k.fpp", "a"), "write", OptionError, "bloom-filter.k.fpp"),
        ("indexed", option("file-index.bloom-filter.k.fpp", "0"), "write", OptionError, "bloom-filter.k.fpp"),
        ("indexed", option("file-index.bloom-filter.k.items", "0"), "write", OptionError, "bloom-filter.k.items"),
        ("keyed", lambda value: value.update(primaryKeys=["k", "k"]), "write", CorruptionError, "names a column twice"),
        ("keyed", lambda value: value["fields"][2].update(name="_KEY_k"), "write", CorruptionError, "can be '_KEY_k'"),
        ("keyed", lambda value: value["fields"][1].update(type=array("INT")), "scan", CorruptionError, "cannot be a key"),
        ("keyed", lambda value: value["fields"][2].update(type=nested(200, row)), "scan", CorruptionError, "nested too deeply"),
        ("keyed", lambda value: value["fields"][2].update(type=nested(65, array)), "scan", CorruptionError, "nested too deeply"),
    ],
)
def test_a_schema_that_contradicts_itself_is_named(tables, tmp_path, kind, change, verb, error, words):
    opened = changed(tables[kind], tmp_path / "t", change)
    with pytest.raises(error, match=words):
        VERBS[verb](opened())


def test_a_source_of_a_merge_is_read_though_the_table_has_no_write_buffer(tables, tmp_path):
    table = changed(tables["keyed"], tmp_path / "t", option("write-buffer-size", "0"))()
    table.upsert(ROWS, on=["p", "k"])
    assert table.scan().count() == 2


DEEP = [b"[" * 900 + b"]" * 900, b'{"a":' * 200 + b"1" + b"}" * 200]


@pytest.mark.parametrize("deep", DEEP)
def test_what_is_carried_along_is_not_nested_deeply(tables, tmp_path, deep):
    table = tables["keyed"]
    for name, decode in (
        ("schema/schema-0", schema_from_json),
        ("snapshot/snapshot-1", snapshot_from_json),
        ("snapshot/snapshot-1", lambda data, path: tag_from_json(data, "x", path)),
    ):
        good = (Path(table.location) / name).read_bytes()
        decode(good, name)
        for key in (b"unknown", b"id", b"timeMillis", b"tagCreateTime"):
            with pytest.raises(CorruptionError) as caught:
                decode(good.rstrip()[:-1] + b', "' + key + b'" : ' + deep + b"}", name)
            assert caught.value.path == name
            if key == b"unknown":
                assert "nested too deeply" in str(caught.value)


@pytest.mark.parametrize("millis", [2**62, -(2**62)])
def test_a_time_that_python_does_not_have_is_corruption(tables, tmp_path, millis):
    shutil.copytree(tables["keyed"].location, tmp_path / "t")
    path = tmp_path / "t" / "snapshot" / "snapshot-1"
    path.write_text(json.dumps({**json.loads(path.read_text()), "timeMillis": millis}))
    snapshot = Table.open(str(tmp_path / "t"), QUICK, env=env()).snapshot()
    assert snapshot.time_millis == millis
    with pytest.raises(CorruptionError) as caught:
        _ = snapshot.time
    assert caught.value.path == str(path)


def fewer_fields(row):
    """A serialized row that says it has another number of fields."""
    return b"\0\0\0\7" + row[4:]


def with_files(table, directory, **values):
    """A copy of a table whose newest manifest says other things of its files."""
    shutil.copytree(table.location, directory)
    path = next(path for path in sorted((directory / "manifest").glob("manifest-*")) if "list" not in path.name)
    entries = read_manifests([(path.name, path.read_bytes())]).entries()
    changes = {name: value(getattr(entries[0].file, name)) if callable(value) else value for name, value in values.items()}
    file = msgspec.structs.replace(entries[0].file, **changes)
    path.write_bytes(write_manifest([msgspec.structs.replace(entries[0], file=file), *entries[1:]]))
    return Table.open(str(directory), QUICK, env=env())


@pytest.mark.parametrize(
    ("values", "verb"),
    [
        ({"min_key": fewer_fields}, "scan"),
        ({"min_key": fewer_fields}, "lookup"),
        ({"max_key": b""}, "compact"),
        ({"name": "\0"}, "scan"),
        ({"name": "../x.parquet"}, "lookup"),
        ({"max_sequence": 2**63 - 1}, "write"),
        ({"value_stats": lambda stats: msgspec.structs.replace(stats, min_values=fewer_fields(stats.min_values))}, "scan"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_what_a_manifest_says_wrongly_names_the_table(tables, tmp_path, values, verb):
    kind = "append" if "value_stats" in values else "keyed"
    table = with_files(tables[kind], tmp_path / "t", **values)
    with pytest.raises(CorruptionError) as caught:
        VERBS[verb](table)
    assert str(tmp_path / "t") in str(caught.value)
    assert caught.value.path


def with_lists(table, directory, change):
    """A copy of a table whose manifest lists say other things of the manifests."""
    shutil.copytree(table.location, directory)
    for path in (directory / "manifest").glob("manifest-list-*"):
        path.write_bytes(write_manifest_list([change(file) for file in read_manifest_list(path.read_bytes())]))
    for path in (directory / "snapshot").glob("snapshot-*"):
        value = json.loads(path.read_text())
        for key in ("baseManifestList", "deltaManifestList"):
            value[f"{key}Size"] = (directory / "manifest" / value[key]).stat().st_size
        path.write_text(json.dumps(value))
    return Table.open(str(directory), QUICK, env=env())


@pytest.mark.parametrize("counts", [(0,) * 5, (2**63 - 1,), (None,)])
def test_null_counts_of_partitions_that_make_no_sense_prune_nothing(tables, tmp_path, counts):
    def change(file):
        stats = msgspec.structs.replace(file.partition_stats, null_counts=counts)
        return msgspec.structs.replace(file, partition_stats=stats)

    table = with_lists(tables["parted"], tmp_path / "t", change)
    assert table.scan(where="p = 1").count() == 1
    table.write_arrow(ROWS)
    table.compact_manifests()
    assert table.scan(where="p = 1").count() == 1


# -- what users give ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", ["1e999999999999999999999", "-1e-9999999999999999999", "+1.5e99999999999999999999"])
def test_a_number_with_a_huge_exponent_is_refused_at_its_place(number):
    with pytest.raises(UsageError, match="exponent") as caught:
        parse_where(f"k = {number}")
    assert f"k = {number}" in str(caught.value)


def arrow_nested(depth):
    found = pa.int32()
    for _ in range(depth):
        found = pa.list_(found)
    return found


def test_types_may_be_nested_as_deeply_as_arrow_data_and_no_deeper():
    text = "ARRAY<" * NESTING_MAX + "INT" + ">" * NESTING_MAX
    assert Schema([("a", text)]).names == ("a",)
    from_arrow_type(arrow_nested(NESTING_MAX))
    for much in (NESTING_MAX + 1, 2000):
        with pytest.raises(SchemaError, match="nested too deeply"):
            Schema([("a", "ARRAY<" * much + "INT" + ">" * much)])
    with pytest.raises(SchemaError, match="nested too deeply"):
        from_arrow_type(arrow_nested(NESTING_MAX + 1))


@pytest.mark.parametrize("columns", [None, 3, col("a") == 1])
def test_columns_come_as_a_list(columns):
    with pytest.raises(UsageError, match="list of"):
        Schema(columns)


def deep():
    found = []
    for _ in range(5000):
        found = [found]
    return found


@pytest.mark.parametrize(
    "call",
    [
        lambda table, value: table.create_tag(value),
        lambda table, value: table.scan(limit=value),
        lambda table, value: table.scan(snapshot_id=value),
        lambda table, value: table.scan(where=value),
        lambda table, value: table.lookup([{"p": 1, "k": value}]),
        lambda table, value: table.update("k = 1", {"v": value}),
        lambda table, value: table.compact(order_by=value),
        lambda table, value: table.alter(value),
        lambda table, value: table.drop_partitions(value),
        lambda table, value: Table.open(value),
        lambda table, value: Catalog.open(value),
        lambda table, value: table.scan().head(value),
    ],
)
def test_an_argument_that_is_nested_too_deeply_is_refused(tables, call):
    with pytest.raises(UsageError):
        call(tables["keyed"], deep())


NO_DIMENSIONS = np.array(1)


@pytest.mark.parametrize(
    "call",
    [
        lambda table: col("k").isin(NO_DIMENSIONS),
        lambda table: col("k").not_in(NO_DIMENSIONS),
        lambda table: Schema(NO_DIMENSIONS),
        lambda table: table.scan(columns=NO_DIMENSIONS),
        lambda table: table.lookup([{"p": 1, "k": 1}], columns=NO_DIMENSIONS),
        lambda table: table.commit(NO_DIMENSIONS),
        lambda table: table.compact(order_by=NotImplemented),
        lambda table: table.compact(order_by=NO_DIMENSIONS),
        lambda table: table.upsert(ROWS, on=[["k"]]),
        lambda table: table.upsert(ROWS, on=NO_DIMENSIONS),
        lambda table: table.alter(SetOption(["bucket"], "1")),
        lambda table: table.alter(SetOption("bucket", ["1"])),
        lambda table: Catalog.open("x", options=1),
        lambda table: Catalog.open("x", options="ab"),
        lambda table: Catalog.open("x", options={1: "a"}),
        lambda table: Catalog(LocalStore(), "/x", table_defaults="ab"),
        lambda table: Catalog(LocalStore(), "/x", options=1.5),
        lambda table: paimon_py.convert_from_spark([1]),
        lambda table: paimon_py.convert_from_spark(ROWS),
    ],
)
def test_what_is_no_list_and_no_mapping_is_refused(tables, call):
    with pytest.raises(UsageError):
        call(tables["keyed"])


def old(unit):
    return pa.array([-(2**62)], pa.int64()).view(pa.timestamp(unit))


@pytest.mark.parametrize(
    ("format_name", "kind", "values", "error"),
    [
        ("avro", "TIMESTAMP(0)", old("s"), SchemaError),
        ("orc", "TIMESTAMP(0)", old("s"), SchemaError),
        ("parquet", "TIMESTAMP(0)", old("s"), SchemaError),
        ("parquet", "ROW<>", pa.array([{}], pa.struct([])), UnsupportedError),
    ],
)
def test_values_that_a_format_cannot_hold_are_refused(tmp_path, format_name, kind, values, error):
    catalog = new_catalog(tmp_path / "w")
    table = catalog.create_table("d.t", Schema([("a", kind), ("b", "INT")]), options={"file.format": format_name})
    with pytest.raises(error, match="cannot be written|does not fit"):
        table.write_arrow(pa.table({"a": values}))
    assert not list(Path(table.location).glob("bucket-*/*"))


def test_keys_that_python_has_no_value_for_are_shown(tmp_path):
    catalog = new_catalog(tmp_path / "w")
    table = catalog.create_table("d.t", Schema([("a", "TIMESTAMP(3)"), ("b", "INT")]))
    times = pa.array([2**62, 2**62], pa.int64()).view(pa.timestamp("ms"))
    rows = pa.table({"a": times, "b": pa.array([1, 2], pa.int32())})
    with pytest.raises(UsageError, match="a=a timestamp.ms. beyond the years"):
        table.upsert(rows, on=["a"])


# -- stores -------------------------------------------------------------------------------------------------------------


ODD_PATHS = ["/tmp/a\0b", "/tmp/\ud800"]
CALLS = {
    "get": lambda store, path: store.get(path),
    "put": lambda store, path: store.put(path, b"x"),
    "put_new": lambda store, path: store.put_new(path, b"x"),
    "list": lambda store, path: store.list(path),
    "stat": lambda store, path: store.stat(path),
    "delete": lambda store, path: store.delete(path),
    "delete_tree": lambda store, path: store.delete_tree(path),
    "open_read": lambda store, path: store.open_read(path),
    "open_write": lambda store, path: store.open_write(path),
    "make_directory": lambda store, path: store.make_directory(path),
    "rename_directory": lambda store, path: store.rename_directory(path, path + "x"),
}


@pytest.mark.parametrize("path", ODD_PATHS, ids=ascii)
@pytest.mark.parametrize("verb", CALLS)
def test_a_path_that_no_file_can_have_is_an_error_of_the_local_store(verb, path):
    try:
        answer = CALLS[verb](LocalStore(), path)
    except StorageError as error:
        assert error.path == path
    else:  # nothing can be there
        assert answer in (None, [])


@pytest.mark.parametrize("path", ["a\0b", "\ud800"], ids=ascii)
def test_a_path_that_no_file_can_have_is_refused_when_a_table_or_a_warehouse_is_opened(path):
    for opener in (Table.open, Catalog.open):
        with pytest.raises(UsageError, match="not a path"):
            opener(path)


def test_a_directory_in_the_place_of_a_file_is_named(tables, tmp_path):
    raw = []
    for pattern in ("snapshot/snapshot-1", "manifest/*", "bucket-*/*"):
        for number, path in enumerate(sorted(Path(tables["keyed"].location).glob(pattern))):
            copied = tmp_path / f"{pattern[:4]}{number}"
            shutil.copytree(tables["keyed"].location, copied)
            place = copied / path.relative_to(tables["keyed"].location)
            place.unlink()
            place.mkdir()
            with pytest.raises(PaimonError) as caught:
                Table.open(str(copied), QUICK, env=env()).scan().to_arrow()
            if str(place) not in str(caught.value):
                raw.append((pattern, caught.value))
    assert raw == []


class Broken(fsspec.AbstractFileSystem):
    """A file system that cannot even be asked."""

    protocol = "broken"
    cachable = False
    error: type[Exception] = ConnectionError

    def __init__(self, **arguments):
        if arguments.pop("fails_to_open", False):
            raise self.error("nobody there")
        super().__init__(**arguments)

    def invalidate_cache(self, path=None):
        raise self.error("nobody there")

    def _open(self, path, *args, **kwargs):
        raise self.error("nobody there")

    ls = info = isdir = cat_file = pipe_file = makedirs = rm_file = rm = _open


@pytest.mark.parametrize("error", [AttributeError, ValueError, RuntimeError])
@pytest.mark.parametrize("where", ["class", "url"])
def test_a_file_system_that_cannot_be_used_is_refused_when_it_is_opened(monkeypatch, error, where):
    def fails(*args):
        raise error("this file system was retired")

    fsspec.register_implementation("broken", Broken, clobber=True)
    if where == "class":
        monkeypatch.setattr(fsspec, "get_filesystem_class", fails)
    else:
        monkeypatch.setattr(Broken, "_get_kwargs_from_urls", staticmethod(fails))
    for opener in (Table.open, Catalog.open):
        with pytest.raises(UsageError, match="broken://"):
            opener("broken://b/w")


@pytest.mark.parametrize("error", [ConnectionError, IsADirectoryError, ValueError, RuntimeError, KeyError])
@pytest.mark.parametrize("fails_to_open", [False, True])
def test_every_failure_of_a_file_system_is_a_storage_error(monkeypatch, error, fails_to_open):
    fsspec.register_implementation("broken", Broken, clobber=True)
    monkeypatch.setattr(Broken, "error", error)
    store = FsspecStore("broken", {"fails_to_open": fails_to_open})
    for verb, call in CALLS.items():
        if verb in ("put_new", "rename_directory"):
            continue  # refused by name: such a store cannot promise them
        with pytest.raises(StorageError) as caught:
            call(store, "broken://b/k")
        assert caught.value.path == "broken://b/k"
        assert isinstance(caught.value.__cause__, error)
