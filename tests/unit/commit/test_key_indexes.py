"""Indexes of levels in tables with a primary key: a commit takes away those whose files it changes, and no others.

Java alone makes such indexes; one that named other files than its level has would hide rows from Java's readers.
"""

from __future__ import annotations

import struct
from types import SimpleNamespace

import msgspec
import pytest
from unit.commit.support import Clock
from unit.maintain.test_after_commit import created, opened, rows

from paimon_py.codec.snapshot_json import snapshot_to_json
from paimon_py.commit.key_indexes import Sources, sources_of, without_dead_indexes
from paimon_py.commit.snapshot_delta import SnapshotDelta
from paimon_py.spec.data_file import EMPTY_ROW, DataFile, FileKind, ManifestEntry
from paimon_py.spec.layout import snapshot_path
from paimon_py.spec.manifest import GlobalIndex, IndexEntry
from paimon_py.spec.snapshot import CommitKind
from paimon_py.storage.memory_store import MemoryStore


def meta(level, *names, version=1):
    each = [struct.pack(">H", len(name.encode())) + name.encode() + struct.pack(">q", 7) for name in names]
    return struct.pack(">iii", version, level, len(names)) + b"".join(each)


def index(name, source, bucket=0, partition=b"p"):
    of = None if source is None else GlobalIndex(row_range_start=0, row_range_end=6, field_id=1, source_meta=source)
    return IndexEntry(kind=FileKind.ADD, partition=partition, bucket=bucket, index_type="btree", name=name, size_bytes=1,
                      row_count=7, global_index=of)  # fmt: skip


def entry(kind, name, level, bucket=0, partition=b"p"):
    file = DataFile(name=name, size_bytes=1, row_count=7, min_sequence=0, max_sequence=6, schema_id=0, level=level)
    return ManifestEntry(kind=kind, partition=partition, bucket=bucket, total_buckets=2, file=file)


def gone(*given, **place):
    return entry(FileKind.DELETE, *given, **place)


def new(*given, **place):
    return entry(FileKind.ADD, *given, **place)


INDEXES = (
    index("4", meta(4, "a", "ü")), index("5", meta(5, "c")), index("other bucket", meta(5, "d"), bucket=1),
    index("other partition", meta(5, "e"), partition=b"q"), index("later version", meta(5, "c", version=2)),
    index("none", None),
)  # fmt: skip


@pytest.mark.parametrize(
    ("deletes", "adds", "dead"),
    [
        ((), (new("n", 0),), set()),
        ((gone("x", 0),), (), {"later version"}),
        ((gone("ü", 4),), (new("ü", 3),), {"4", "later version"}),
        ((), (new("n", 5),), {"5", "later version"}),
        ((gone("x", 0),), (new("n", 4),), {"4", "later version"}),
        ((gone("c", 5),), (new("n", 5),), {"5", "later version"}),
        ((gone("c", 5, bucket=1),), (), set()),
        ((gone("d", 5, bucket=1),), (), {"other bucket"}),
        ((), (new("n", 5, partition=b"q"),), {"other partition"}),
        ((gone("a", 4), gone("c", 5)), (new("n", 5),), {"4", "5", "later version"}),
        ((), (), set()),
    ],
)
@pytest.mark.parametrize("is_new", [False, True])
def test_an_index_goes_with_the_files_of_its_level(deletes, adds, dead, is_new):
    """The index files are those of the state, or those that the commit leaves."""
    part = SnapshotDelta(kind=CommitKind.COMPACT, deletes=deletes, adds=adds, index=INDEXES if is_new else None)
    found = without_dead_indexes(part, SimpleNamespace(index=() if is_new else INDEXES))
    left = tuple(one for one in INDEXES if one.name not in dead)
    assert found.index == (part.index if left == INDEXES else left)
    assert (found.kind, found.deletes, found.adds) == (part.kind, part.deletes, part.adds)


def test_commits_of_tables_that_ask_for_indexes_take_the_dead_ones_away():
    store, clock = MemoryStore(), Clock()
    table = created(store, clock, **{"write-only": "true", "pk-btree.index.columns": "v"})
    table.write_arrow(rows(1))
    table.compact(full=True)
    root, latest = table._root, table._root.snapshots.latest()
    (file,) = [one.file for one in root.manifests.live_entries(latest).entries()]
    made = index("i", meta(file.level, file.name), partition=EMPTY_ROW)
    with_index = msgspec.structs.replace(latest, index_manifest=root.manifests.write_index([made])[0])
    store.put(snapshot_path(root.branch_path, latest.id), snapshot_to_json(with_index))

    def names(table):
        latest = table._root.snapshots.latest()
        return [one.name for one in table._root.manifests.read_index(latest.index_manifest)] if latest.index_manifest else []

    table = opened(store, clock)
    table.write_arrow(rows(2))
    assert names(table) == ["i"], "new rows lie on level 0"
    table.compact(full=True)
    assert names(table) == []


def test_the_files_of_an_index_are_read_from_its_bytes():
    assert sources_of(meta(5, "a", "ü.orc")) == Sources(5, frozenset({"a", "ü.orc"}))
    assert sources_of(meta(0)) == Sources(0, frozenset())
    for broken in (b"", meta(5, "a")[:-1], meta(5, "a") + b"x", meta(5, "a", version=2), meta(5, "a")[:13] + b"\x01\xff" + b"0" * 8):
        assert sources_of(broken) is None
