"""Targets whose files are whole and lie: manifests and index manifests that were decoded, changed and encoded again.

Names and paths that leave the table are made of those that stand in it. Whatever is done with such a table, files outside
stay as they were and nothing outside is opened.
"""

from __future__ import annotations

import json

import msgspec
from fuzz import corpus
from fuzz.mutate import hostile, value_damaged
from fuzz.table_targets import answered, fits, items
from fuzz.target import RIGHT, SAME_BYTES, Target, Wrong

from paimon_py import Catalog, PaimonError
from paimon_py.codec.manifest.entries import read_manifests, write_manifest
from paimon_py.codec.manifest.lists import (
    read_index_manifest,
    read_manifest_list,
    write_index_manifest,
    write_manifest_list,
)
from paimon_py.spec.data_file import ManifestEntry
from paimon_py.spec.manifest import IndexEntry
from paimon_py.storage.open import open_store

TABLES = ("keyed-parquet", "append-parquet", "vectors", "dynamic", "indexes-apart", "external", "external")
WITH_INDEXES = ("vectors", "vectors-64", "append-vectors", "dynamic")
READINGS = (corpus.plain, corpus.filtered, corpus.entries, corpus.looked_up, corpus.compacted, corpus.written)
BESIDE = {"/outside/secret": b"outside", "/w/d.db/u/schema/schema-0": b"{}", "/w/d.db/u/bucket-0/data-1.parquet": b"another table's"}
BESIDE_EXTERNAL = {"memory://ext/other/secret": b"outside", "memory://other/a/secret": b"outside"}
PLACES = (
    "/outside/secret", "../u/bucket-0/data-1.parquet", "../../u/bucket-0/data-1.parquet", "file:///w/d.db/u/bucket-0/data-1.parquet",
    "memory://ext/other/secret", "memory://other/a/secret", "memory://ext/a/../other/secret", "memory://ext/a/%2e%2e/other/secret",
    "memory:///ext/other/secret", "MEMORY://ext/other/secret", "memory://ext/ab/secret", "file:/etc/passwd", "ftp://h/x", "s3://b/x", "/w/d.db/u/schema/schema-0",
)  # fmt: skip
_memory, _ = open_store("memory://ext", {})


def forged_value(rng, entry, kind, words):
    """An entry with other values in it, one that can be encoded; None where the damage left no entry."""
    value = msgspec.to_builtins(entry, builtin_types=(bytes,))
    file = value.get("file", value)
    what = rng.randrange(6)
    if what == 0:
        file["external_path"] = rng.choice((*PLACES, hostile(rng, rng.choice(PLACES))))
    elif what == 1:
        file["name"] = rng.choice((rng.choice(PLACES), hostile(rng, file["name"])))
    elif what == 2 and "extra_files" in file:
        file["extra_files"] = [rng.choice((hostile(rng, file["name"]), rng.choice(PLACES), file["name"] + ".index"))]
    else:
        value_damaged(rng, value, words)
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, OverflowError):
        return None


def _encoded(encode, entries):
    try:
        return encode(entries)
    except (PaimonError, ValueError, TypeError, OverflowError, AttributeError):
        return None


def _manifest(rng, name):
    """The store of a table with a manifest that lies, and lists and snapshots that go with that manifest."""
    _, path = rng.choice(items([name], r"/manifest/manifest-[0-9a-f]"))
    files = corpus.table_files(name).files
    entries = read_manifests([(path, files[path])]).entries()
    at = rng.randrange(len(entries))
    entry = forged_value(rng, entries[at], ManifestEntry, [*corpus.words(), *PLACES])
    data = None if entry is None or entry == entries[at] else _encoded(write_manifest, [*entries[:at], entry, *entries[at + 1 :]])
    if data is None:
        return None
    store = corpus.store_with(name, path, data)
    sizes = {}
    for _, place in items([name], r"/manifest/manifest-list-"):
        named = read_manifest_list(files[place], place)
        fitted = [msgspec.structs.replace(each, size_bytes=len(data)) if path.endswith("/" + each.name) else each for each in named]
        if fitted != named:
            store.put(place, write_manifest_list(fitted))
            sizes[place.rpartition("/")[2]] = len(store.get(place))
    for _, place in items([name], r"/snapshot/snapshot-\d+$|/tag/tag-"):
        value = json.loads(files[place])
        for key in ("baseManifestList", "deltaManifestList"):
            if value.get(key) in sizes and f"{key}Size" in value:
                value[f"{key}Size"] = sizes[value[key]]
        store.put(place, json.dumps(value).encode())
    return store


def _index_manifest(rng, name):
    _, path = rng.choice(items([name], r"/manifest/index-manifest-"))
    entries = read_index_manifest(corpus.table_files(name).files[path], path)
    at = rng.randrange(len(entries))
    entry = forged_value(rng, entries[at], IndexEntry, [*corpus.words(), *PLACES])
    data = None if entry is None or entry == entries[at] else _encoded(write_index_manifest, [*entries[:at], entry, *entries[at + 1 :]])
    return None if data is None else corpus.store_with(name, path, data)


def manifest(rng):
    return _used(rng, rng.choice(TABLES), _manifest)


def index_manifest(rng):
    return _used(rng, rng.choice(WITH_INDEXES), _index_manifest)


def _used(rng, name, forge):
    """Read, write, compact or drop a table that lies, and look at what lies beside it."""
    store = forge(rng, name)
    reading, draw = rng.choice([each for each in (*READINGS, dropped, dropped) if each is dropped or fits(name, each)]), rng.randrange(12)
    if store is None:
        return SAME_BYTES
    corpus.lay_external()
    if reading is not dropped:
        corpus.right(name, reading, draw)
        corpus.lay_external()
    for path, data in BESIDE.items():
        store.put(path, data)
    for path, data in BESIDE_EXTERNAL.items():
        _memory.put(path, data)
    try:
        if reading is dropped:
            return dropped(store)
        return answered(name, store, reading, draw, opener=_refusing)
    finally:
        _look_beside(store)


def dropped(store):
    Catalog(store, corpus.WAREHOUSE, env=corpus.env()).drop_table("d.t")
    return RIGHT


def _refusing(url, options):
    if not url.startswith("memory://ext/"):
        raise Wrong(f"opened {url}")
    return open_store(url, options)


def _look_beside(store):
    found = corpus.files_of(store, "")
    beside = {path: data for path, data in found.items() if not path.startswith("/w/d.db/t/") and not path.endswith("/.database")}
    external = {path: data for path, data in corpus.files_of(_memory, "memory://ext").items() if not path.startswith("memory://ext/a/")}
    external |= corpus.files_of(_memory, "memory://other")
    if beside != BESIDE or external != BESIDE_EXTERNAL:
        raise Wrong(f"files beside the table: {sorted(beside)} and {sorted(external)}")


def targets():
    """All of them."""
    yield Target("manifest-forged", manifest, 4)
    yield Target("index-manifest-forged", index_manifest, 2)
