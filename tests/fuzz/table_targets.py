"""Targets that are files of a table: one is damaged, the table is read, compacted or written, and the rows compared."""

from __future__ import annotations

import functools
import re

from fuzz import corpus
from fuzz.corpus import OWN, TableFiles
from fuzz.mutate import any_damaged, flipped, orc_footer, parquet_footer
from fuzz.target import RIGHT, SAME_BYTES, UNDETECTED, Target

FORMATS = ("parquet", "orc", "avro")
SCANS = (corpus.plain, corpus.plain, corpus.filtered, corpus.filtered, corpus.projected, corpus.counted)
METADATA = (corpus.plain, corpus.filtered, corpus.listed, corpus.entries)


def items(names, pattern):
    """(table, path) of every file whose path below its table matches."""
    found = []
    for name in names:
        made: TableFiles = corpus.table_files(name)
        found += [(name, path) for path in made.files if re.search(pattern, path[len(made.location) :])]
    return found


def answered(name, store, reading, draw, opener=None):
    """Read a table whose store was meddled with, and compare."""
    found = reading(corpus.opened(store, name, opener), corpus.known(name), draw)
    return RIGHT if corpus.same(found, corpus.right(name, reading, draw)) else UNDETECTED


def table_target(name, tables, pattern, readings, weight=1):
    """Damages files whose path matches, one for each input."""

    @functools.cache
    def places():
        return items(tables, pattern)

    @functools.cache
    def others():
        return [corpus.table_files(table).files[path] for table, path in places()]

    def run(rng):
        table, path = rng.choice(places())
        reading, draw = rng.choice([each for each in readings if fits(table, each)]), rng.randrange(12)
        data = corpus.table_files(table).files[path]
        corpus.right(table, reading, draw)
        damaged = any_damaged(rng, data, others(), corpus.words())
        if damaged == data:
            return SAME_BYTES
        return answered(table, corpus.store_with(table, path, damaged), reading, draw)

    return Target(name, run, weight)


def fits(table, reading):
    """Whether a table has that reading."""
    if reading is corpus.looked_up:
        return corpus.known(table).keys is not None
    if reading is corpus.by_tag:
        return bool(corpus.known(table).tags)
    return True


def sweep_target(name, table, pattern, readings, bounds=None):
    """Every bit of the files that match, or of a part of them, flipped alone."""

    @functools.cache
    def ranges():
        found = []
        for _, path in items([table], pattern):
            data = corpus.table_files(table).files[path]
            start, end = bounds(data) if bounds else (0, len(data))
            found.append((path, 8 * start, 8 * (end - start)))
        return found

    def run(number):
        for path, first, bits in ranges():
            if number < bits:
                break
            number -= bits
        reading = readings[number % len(readings)]
        corpus.right(table, reading, number % 12)
        data = corpus.table_files(table).files[path]
        return answered(table, corpus.store_with(table, path, flipped(data, first + number)), reading, number % 12)

    return Target(name, run, sweep=lambda: sum(bits for _, _, bits in ranges()))


def of_java(*words):
    """Tables of Java whose names have one of the words."""
    return [name for name in corpus.JAVA if any(word in name for word in words)]


def targets():
    """All of them."""
    mixed = ["keyed-parquet", "vectors", "append-parquet", "dynamic"]
    java = ["travel-tags", "travel-tags--java-090", "expiry-pk--java-090", "dv32-merge-on-read", "evolution-pk-avro", "stats-full-pk"]
    some = [*mixed, *java]
    data = {
        "parquet": [name for name in (*OWN, *corpus.JAVA) if "parquet" in name],
        "orc": [name for name in (*OWN, *corpus.JAVA) if "orc" in name],
        "avro": [name for name in (*OWN, *corpus.JAVA) if "avro" in name],
    }
    vectors = ["vectors", "vectors-64", "append-vectors", "append-dv", "dv32-merge-on-read", "index-pk"]
    dynamic = ["dynamic", "dynamic-small-target", "dynamic-small-target--java-090"]
    indexed = ["indexes-apart", "indexes-keyed", "index-bitmap-file", "index-bsi-file", "index-range-bitmap-file", "index-pk"]
    embedded = ["indexes", "index-bitmap-v1-embedded", "index-bloom-filter-embedded"]
    yield table_target("snapshot", some, r"/snapshot/snapshot-\d+$", METADATA, 2)
    yield table_target("hint", some, r"/snapshot/(LATEST|EARLIEST)$", METADATA)
    yield table_target("schema", [*some, "indexes", "keyed-avro", "types-deep-parquet"], r"/schema/schema-\d+$", (*METADATA, corpus.written), 3)
    yield table_target("tag", ["vectors", "travel-tags", "travel-tags--java-090"], r"/tag/tag-", (corpus.by_tag, corpus.listed))
    yield table_target("manifest-list", some, r"/manifest/manifest-list-", (*METADATA, corpus.compacted), 2)
    yield table_target("manifest", [*some, *embedded], r"/manifest/manifest-[0-9a-f]", (*METADATA, corpus.compacted), 3)
    yield table_target("index-manifest", [*vectors, *dynamic], r"/manifest/index-manifest-", (corpus.plain, corpus.written), 2)
    for name in FORMATS:
        yield table_target(f"data-{name}", data[name], rf"bucket-.*/data-.*\.{name}$", SCANS, 4)
        yield table_target(
            f"data-{name}-keyed", [f"keyed-{name}"], rf"bucket-.*/data-.*\.{name}$",
            (corpus.plain, corpus.looked_up, corpus.ordered, corpus.explained, corpus.compacted, corpus.written),
        )  # fmt: skip
    yield table_target("vectors", vectors, r"/index/index-|bucket-.*/index-", (corpus.plain, corpus.counted, corpus.compacted))
    yield table_target("hash-index", dynamic, r"/index/index-", (corpus.written,))
    yield table_target("file-index", indexed, r"\.index$", (corpus.filtered, corpus.explained), 2)
    yield sweep_target("bits-snapshot", "vectors", r"/snapshot/", METADATA)
    yield sweep_target("bits-tag", "vectors", r"/tag/", (corpus.by_tag,))
    yield sweep_target("bits-schema", "append-avro", r"/schema/", (corpus.plain, corpus.filtered))
    yield sweep_target("bits-manifest-list", "append-avro", r"/manifest/manifest-list-.*-0$", METADATA)
    yield sweep_target("bits-manifest", "append-avro", r"/manifest/manifest-[0-9a-f].*-0$", METADATA)
    yield sweep_target("bits-index-manifest", "append-vectors", r"/manifest/index-manifest-", (corpus.plain,))
    yield sweep_target("bits-vectors", "append-vectors", r"/index/index-", (corpus.plain,))
    yield sweep_target("bits-hash-index", "dynamic", r"/index/index-", (corpus.written,))
    yield sweep_target("bits-parquet-footer", "append-parquet-plain", r"/data-.*000-0\.parquet$", (corpus.filtered, corpus.plain), parquet_footer)
    yield sweep_target("bits-orc-footer", "append-orc-plain", r"/data-.*000-0\.orc$", (corpus.filtered, corpus.plain), orc_footer)
    yield sweep_target("bits-java-parquet-footer", "types-timestamps-parquet", r"/data-.*\.parquet$", (corpus.filtered, corpus.plain), parquet_footer)
    yield sweep_target("bits-java-orc-footer", "types-timestamps-orc", r"/data-.*\.orc$", (corpus.filtered, corpus.plain), orc_footer)
