"""Names, paths and options from a table that others tampered with: no call leaves the table, whatever metadata say."""

from __future__ import annotations

import contextlib
import json
import warnings

import msgspec
import pyarrow as pa
import pytest
from unit.public import KEYED, ROWS, env

from paimon_py import Catalog, Changes, CompactionTask, OptionError, PaimonError, PaimonWarning, SetOption, Table, col
from paimon_py.codec.manifest.entries import read_manifests, write_manifest
from paimon_py.codec.manifest.lists import (
    read_index_manifest,
    read_manifest_list,
    write_index_manifest,
    write_manifest_list,
)
from paimon_py.errors import CorruptionError
from paimon_py.scan.split import Split
from paimon_py.spec.redact import shown_url
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.counting_store import CountingStore

HERE = "/w/d.db/t"
EXTERNAL = "data-file.external-paths"
VICTIMS = ("/victim", "/w/d.db/u/bucket-0", "/w/d.db/t2", "/other")
"""Directories of others, each with a file `f`."""

FOUR = pa.table({"p": pa.array([1, 1, 2, 2], pa.int32()), "k": [1, 2, 1, 2], "v": ["x", "y", "x", "y"]})
NAMES = ["../../../victim/f", "/victim/f", "..", ".", "", "a/b", "..\\x", "x\0y", "file:/victim/f", "../../t2/f"]
PLACES = [
    "file:/victim/f", "file:///victim/f", "FILE:/victim/f", "/victim/f", "file:/w/d.db/u/bucket-0/f",
    "file:/w/d.db/t/../t2/f", "file:/w/d.db/t2/f", "../t2/f", "ftp://victim/f", "memory://victim/f", "f", "",
    "s3://victim/f", "file:/outside/../victim/f", "file:/outside2/f", "file:/outside", "http://victim/f?x=file:/outside",
]  # fmt: skip
KINDS = {
    "keyed": {"bucket": "2", "file-index.bloom-filter.columns": "v",
                "file-index.in-manifest-threshold": "1 b", EXTERNAL: "file:/outside"},
    "dynamic": {"bucket": "-1", "dynamic-bucket.target-row-num": "1"},
    "append": {"bucket": "-1", "deletion-vectors.enabled": "true", EXTERNAL: "file:/outside,s3://bucket/x"},
}  # fmt: skip


def tables(kind):
    """A table of two partitions and three commits, in a store with other files around."""
    store = MemoryStore()
    for directory in VICTIMS:
        store.put(f"{directory}/f", b"PAR1 not yours")
    catalog = Catalog(store, "/w", env=env())
    catalog.create_database("d", exist_ok=True)
    keys = [] if kind == "append" else ["p", "k"]
    table = catalog.create_table("d.t", KEYED, primary_key=keys, partition_by=["p"], options=KINDS[kind])
    table.write_arrow(FOUR)
    table.write_arrow(FOUR)
    table.compact(full=True)
    if kind == "append":
        table.delete("k = 1 and p = 1")
    table.create_tag("first", 1)
    return store


@pytest.fixture(scope="module", params=KINDS)
def made(request):
    return request.param, tables(request.param)


# -- tampering ------------------------------------------------------------------------------------------------------------


def rewritten(store, directory, begins, change):
    """Change the files of a directory; how many there were."""
    found = [status for status in store.list(f"{HERE}/{directory}") if status.name.startswith(begins)]
    for status in found:
        store.put(status.path, change(store.get(status.path)))
    assert found
    return len(found)


def snapshots(**fields):
    def tamper(store, text):
        def change(data):
            value = json.loads(data)
            return json.dumps({**value, **dict.fromkeys(fields, text)}).encode()

        rewritten(store, "snapshot", "snapshot-", change)
        rewritten(store, "tag", "tag-", change)

    return tamper


def lists(store, text):
    def change(data):
        return write_manifest_list([msgspec.structs.replace(file, name=text) for file in read_manifest_list(data)])

    rewritten(store, "manifest", "manifest-list-", change)


def is_manifest(name):
    return name.startswith("manifest-") and not name.startswith("manifest-list-")


def manifests(change):
    def tamper(store, text):
        for status in store.list(f"{HERE}/manifest"):
            if is_manifest(status.name):
                entries = read_manifests([(status.path, store.get(status.path))]).entries()
                store.put(status.path, write_manifest([change(entry, text) for entry in entries]))

    return tamper


def of_file(**fields):
    def change(entry, text):
        named = {name: make(text) for name, make in fields.items()}
        return msgspec.structs.replace(entry, file=msgspec.structs.replace(entry.file, **named))

    return manifests(change)


def indexes(**fields):
    def tamper(store, text):
        def change(data):
            return write_index_manifest([changed_index(entry, text, fields) for entry in read_index_manifest(data)])

        rewritten(store, "manifest", "index-manifest-", change)

    return tamper


def changed_index(entry, text, fields):
    return msgspec.structs.replace(entry, **{name: make(text) for name, make in fields.items()})


def options(*names):
    def tamper(store, text):
        def change(data):
            value = json.loads(data)
            value["options"].update(dict.fromkeys(names, text))
            return json.dumps(value).encode()

        rewritten(store, "schema", "schema-", change)

    return tamper


def same(text):
    return text


NAMED = {
    "base list": snapshots(baseManifestList=0),
    "delta list": snapshots(deltaManifestList=0),
    "changelog list": snapshots(changelogManifestList=0),
    "statistics": snapshots(statistics=0),
    "index manifest of the snapshot": snapshots(indexManifest=0),
    "every list": snapshots(baseManifestList=0, deltaManifestList=0, indexManifest=0),
    "manifest": lists,
    "data file": of_file(name=same),
    "file beside": of_file(extra_files=lambda text: (text + ".index",)),
    "index file": indexes(name=same),
}
LOCATED = {
    "external path": of_file(external_path=same),
    "external path of an index": indexes(external_path=same),
}


# -- what is tried --------------------------------------------------------------------------------------------------------


def rows(n=3):
    return pa.table({"p": pa.array([1] * n, pa.int32()), "k": list(range(n)), "v": [f"w{i}" for i in range(n)]})


VERBS = {
    "read": lambda table: table.scan().to_arrow(),
    "find": lambda table: table.scan(where=(col("v") == "x") & (col("p") == 1)).to_arrow(),
    "count": lambda table: table.scan(where=col("v") == "x").count(),
    "explain": lambda table: str(table.scan(where=col("v") == "x").explain(analyze=True)),
    "tag": lambda table: table.scan(tag="first").to_arrow(),
    "manifests": lambda table: [one.manifests() for one in (*table.snapshots(), *(tag.snapshot for tag in table.tags()))],
    "write": lambda table: table.write_arrow(rows()),
    "overwrite": lambda table: table.write_arrow(rows(), overwrite={"p": 1}),
    "truncate": lambda table: table.truncate(),
    "compact": lambda table: table.compact(full=True),
    "tasks": lambda table: [table.run_compaction(task) for task in table.compaction_tasks(full=True)],
    "delete": lambda table: table.delete("k = 1"),
    "update": lambda table: table.update("k >= 0", {"v": "y"}),
    "indexes": lambda table: (table.alter(SetOption("file-index.bitmap.columns", "k")), table.rewrite_file_index()),
    "clean": lambda table: table.compact_manifests(),
    "lookup": lambda table: table.lookup([{"p": 1, "k": 1}]) if table.schema.primary_keys else None,
}
READS = ("read", "find", "tag")


def tried(store, call, *, allowed=HERE, root=HERE):
    """What a verb raises on a table in a store, once it was seen that no call left the table."""
    watched = CountingStore(store)
    before = {f"{directory}/f": store.get(f"{directory}/f") for directory in VICTIMS}
    error = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PaimonWarning)
        try:
            call(Catalog(watched, "/w", env=env()).table("d.t") if root == HERE else Catalog(watched, "/w", env=env()))
        except PaimonError as raised:
            error = raised
    outside = [
        (verb, path) for verb, path in watched.paths
        if not (path == allowed or path.startswith((f"{allowed}/", "/outside/"))) or "/../" in f"{path}/"
    ]  # fmt: skip
    assert not outside
    assert before == {path: store.get(path) for path in before}
    return error


@pytest.mark.parametrize("what", NAMED)
def test_names_in_metadata_stay_in_their_directory(made, what):
    kind, store = made
    if "index" in what and kind == "keyed":
        pytest.skip("has no index files")
    for number, name in enumerate(NAMES):
        tampered = store.copy()
        NAMED[what](tampered, name)
        for verb, call in VERBS.items():
            if number < 1 or verb in READS:
                error = tried(tampered.copy(), call)
                if verb in ("read", "tag") and what in ("base list", "manifest", "every list"):
                    assert isinstance(error, PaimonError), (name, verb)


def test_a_data_file_of_a_hostile_name_is_refused():
    catalog = Catalog(store := MemoryStore(), "/w", env=env())
    catalog.create_database("d")
    catalog.create_table("d.t", KEYED).write_arrow(ROWS)
    for directory in VICTIMS:
        store.put(f"{directory}/f", b"x")
    for name in NAMES:
        tampered = store.copy()
        NAMED["data file"](tampered, name)
        for verb in ("read", "find", "compact", "update", "tasks"):
            error = tried(tampered.copy(), VERBS[verb])
            assert isinstance(error, CorruptionError) or verb in ("compact", "tasks"), (name, verb)


@pytest.mark.parametrize("what", LOCATED)
def test_external_paths_stay_below_the_external_roots(made, what):
    kind, store = made
    if what.endswith("index") and kind == "keyed":
        pytest.skip("has no index files")
    for number, place in enumerate(PLACES):
        tampered = store.copy()
        LOCATED[what](tampered, place)
        for verb, call in VERBS.items():
            if number < 1 or verb in READS:
                error = tried(tampered.copy(), call)
                if verb == "read" and place and what == "external path":
                    assert isinstance(error, CorruptionError) and repr(shown_url(place)) in str(error), (place, error)


@pytest.mark.parametrize("what", [*LOCATED, "file beside"])
def test_a_dropped_table_takes_nothing_of_others_along(made, what):
    kind, store = made
    if kind == "keyed" and what.endswith("index"):
        pytest.skip("has no index files")
    for verb in (lambda catalog: catalog.drop_table("d.t"), lambda catalog: catalog.drop_database("d", cascade=True)):
        for place in PLACES if what in LOCATED else NAMES:
            tampered = store.copy()
            {**LOCATED, **NAMED}[what](tampered, place)
            tampered.delete_tree("/w/d.db/u")
            tampered.delete_tree("/w/d.db/t2")
            with contextlib.suppress(PaimonError), warnings.catch_warnings():
                warnings.simplefilter("ignore", PaimonWarning)
                verb(Catalog(tampered, "/w", env=env()))
            assert tampered.get("/victim/f") and tampered.get("/other/f")


def test_a_dropped_table_says_which_files_it_named_and_left(made):
    kind, store = made
    if kind == "dynamic":
        pytest.skip("has no external roots")
    for place in ("file:/victim/f", "file:/outside/../victim/f"):
        tampered = store.copy()
        of_file(external_path=same)(tampered, place)
        with pytest.warns(PaimonWarning, match="may belong to other tables were kept .*: file:/"):
            Catalog(tampered, "/w", env=env()).drop_table("d.t")
        assert tampered.get("/victim/f") and tampered.stat(HERE) is None


def test_a_root_that_holds_other_tables_gives_none_of_their_files_to_a_drop(made):
    _, store = made
    tampered = store.copy()
    options(EXTERNAL)(tampered, "file:/w,file:/other")
    of_file(external_path=same)(tampered, "file:/w/d.db/u/bucket-0/f")
    with pytest.warns(PaimonWarning, match="file:/w/d.db/u/bucket-0/"):
        Catalog(tampered, "/w", env=env()).drop_table("d.t")
    assert tampered.get("/w/d.db/u/bucket-0/f") and tampered.get("/other/f")


# -- options --------------------------------------------------------------------------------------------------------------

PREFIXES = ["../x-", "sub/x-", "/x-", "..", "..\\x", "x\0", "x\n", "\u202ex", "file:/victim/", "x" * 200, ".x", "x?", "x#", "%2e"]


@pytest.mark.parametrize("option", ["data-file.prefix", "changelog-file.prefix"])
def test_prefixes_that_are_no_part_of_a_name_are_refused(made, option):
    _, store = made
    for prefix in PREFIXES:
        catalog = Catalog(store.copy(), "/w", env=env())
        for call in (
            lambda: catalog.create_table("d.new", KEYED, options={option: prefix}),
            lambda: catalog.table("d.t").alter(SetOption(option, prefix)),
        ):
            with pytest.raises(OptionError) as caught:
                call()
            assert caught.value.option == option and caught.value.value == prefix
        tampered = store.copy()
        options(option)(tampered, prefix)
        for verb in ("write", "overwrite", "update", "compact"):
            error = tried(tampered.copy(), VERBS[verb])
            assert isinstance(error, OptionError) or verb == "compact", prefix
        assert tried(tampered, VERBS["read"]) is None


@pytest.mark.parametrize(
    ("names", "texts"),
    [
        (("data-file.path-directory",), ["../t2", "/victim", "a/../..", "a//b", ".", "x\0y"]),
        (("partition.default-name",), ["..", "../..", "/victim", "a/b"]),
        (("file.compression", "changelog-file.compression", "file.suffix.include.compression"), ["/../../x", "../x"]),
        (("file.format",), ["../x", "parquet/../../x"]),
        (("branch",), ["../x", "../../t2"]),
        (("path",), ["/victim", "file:/victim"]),
        ((EXTERNAL, f"{EXTERNAL}.strategy"), ["file:/", "file:///", "/victim", "file:/a/../victim", "none"]),
        (("manifest.format",), ["../x"]),
    ],
)
def test_options_from_a_table_do_not_lead_outside(made, names, texts):
    _, store = made
    for text in texts:
        tampered = store.copy()
        options(*names)(tampered, text)
        if "file.suffix.include.compression" in names:
            options("file.suffix.include.compression")(tampered, "true")
        if EXTERNAL in names:
            options(f"{EXTERNAL}.strategy")(tampered, "round-robin")
        for verb in ("read", "write", "overwrite", "update", "compact", "tasks"):
            tried(tampered.copy(), VERBS[verb])


def test_partitions_and_buckets_of_any_value_stay_below_the_table():
    store = MemoryStore()
    catalog = Catalog(store, "/w", env=env())
    catalog.create_database("d")
    schema = pa.schema([("..", pa.string()), ("v", pa.string())])
    table = catalog.create_table("d.t", schema, partition_by=[".."])
    values = ["..", "../..", "/victim/f", "", " ", "a\0b", "a\\b", ".", "%2e%2e", "%", "\n", "x" * 60, "ü/ü", None]
    store.put("/victim/f", b"x")
    for directory in VICTIMS:
        store.put(f"{directory}/f", b"x")
    data = pa.table({"..": pa.array(values, pa.string()), "v": ["v"] * len(values)})
    assert tried(store, lambda table: table.write_arrow(data)) is None
    assert table.scan().count() == len(values)
    entries = manifests(lambda entry, number: msgspec.structs.replace(entry, bucket=number))
    for number in (-1, -2, -2147483648, 2147483647):
        tampered = store.copy()
        entries(tampered, number)
        for call in VERBS.values():
            with contextlib.suppress(KeyError, ValueError):
                tried(tampered.copy(), call)


# -- values that travel ---------------------------------------------------------------------------------------------------


def changed_files(value, change):
    """A value of structs with every data file changed."""
    from paimon_py.spec.data_file import DataFile
    from paimon_py.spec.manifest import DeletionPlace, IndexEntry

    if isinstance(value, (DataFile, IndexEntry, DeletionPlace)):
        return change(value)
    if isinstance(value, msgspec.Struct):
        fields = {name: changed_files(getattr(value, name), change) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **fields)
    if isinstance(value, tuple):
        return tuple(changed_files(item, change) for item in value)
    if isinstance(value, dict):
        return {name: changed_files(item, change) for name, item in value.items()}
    return value


def hostile(text, field):
    def change(value):
        if field == "path" and hasattr(value, "path"):
            return msgspec.structs.replace(value, path=text)
        if field == "extra_files" and hasattr(value, "extra_files"):
            return msgspec.structs.replace(value, extra_files=(text,))
        return msgspec.structs.replace(value, **{field: text}) if hasattr(value, field) else value

    return change


@pytest.mark.parametrize("field", ["name", "external_path", "extra_files", "path"])
def test_values_that_travel_do_not_lead_outside(made, field):
    _, store = made
    table = Catalog(store.copy(), "/w", env=env()).table("d.t")
    splits = table.scan().splits()
    tasks = table.compaction_tasks(full=True)
    source = Catalog(written := store.copy(), "/w", env=env()).table("d.t")
    with source.writer() as writer:
        writer.write_arrow(rows())
    changes = writer.changes()
    source.commit(changes, user="me", identifier=7)
    for text in NAMES if field in ("name", "extra_files") else PLACES:
        change = hostile(text, field)
        for split in splits:
            data = bytes(changed_files(split, change))
            tried(store.copy(), lambda table, data=data: table.scan().read(Split.from_bytes(data)).read_all())
        for task in tasks:
            data = bytes(changed_files(task, change))
            tried(store.copy(), lambda table, data=data: table.run_compaction(CompactionTask.from_bytes(data)))
        data = bytes(changed_files(changes, change))
        for there, identifier in ((store, 8), (written, 7), (written, 8)):
            tried(
                there.copy(),
                lambda table, data=data, identifier=identifier: table.commit(
                    Changes.from_bytes(data), user="me", identifier=identifier
                ),
            )


NAMES_GIVEN = ["../x", "..", "a/b", "/victim", "x\0", "a\\b", "", "%2e", " x", "x\n"]


def test_names_that_are_given_do_not_lead_outside(made):
    _, store = made
    for name in NAMES_GIVEN:
        for call in (
            lambda table: table.create_tag(name),
            lambda table: table.delete_tag(name),
            lambda table: table.scan(tag=name).to_arrow(),
            lambda table: table.scan(options={"scan.tag-name": name}).to_arrow(),
            lambda table: table.scan(options={"scan.version": name}).to_arrow(),
            lambda table: table.scan(options={"branch": name}).to_arrow(),
        ):
            assert isinstance(tried(store.copy(), call), PaimonError), name
        for call in (
            lambda catalog: catalog.create_database(name),
            lambda catalog: catalog.drop_database(name, cascade=True),
            lambda catalog: catalog.table(f"d.{name}"),
            lambda catalog: catalog.table(f"{name}.t"),
            lambda catalog: catalog.create_table(f"d.{name}", KEYED),
            lambda catalog: catalog.drop_table(f"d.{name}"),
            lambda catalog: catalog.drop_table(f"{name}.t"),
            lambda catalog: catalog.rename_table("d.t", f"d.{name}"),
        ):
            assert isinstance(tried(store.copy(), call, allowed="/w", root="/w"), PaimonError), name


def test_a_table_of_java_with_external_paths_of_an_earlier_schema_stays_readable(tmp_path):
    catalog = Catalog.open(str(tmp_path / "w"), {"fs.local.fsync": "false"}, env=env())
    catalog.create_database("d")
    strategy = f"{EXTERNAL}.strategy"
    table = catalog.create_table("d.t", KEYED, options={EXTERNAL: f"file:{tmp_path}/one/", strategy: "round-robin"})
    table.write_arrow(ROWS)
    table.alter(SetOption(EXTERNAL, f"file://{tmp_path}/two"))
    table.write_arrow(ROWS)
    table.alter(SetOption(strategy, "none"))
    table.write_arrow(ROWS)
    assert Table.open(table.location, env=env()).scan().count() == 6
    assert Table.open(table.location, env=env()).scan().to_arrow().num_rows == 6
    catalog.drop_table("d.t")
    assert not list(tmp_path.rglob("*.parquet"))
