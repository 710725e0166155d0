"""Sections of many small buckets, whose runs are found with arrays, are those that are found file by file."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_py import Catalog, col
from paimon_py.codec.binary_row import encode
from paimon_py.codec.manifest.entries import read_manifests, write_manifest
from paimon_py.lsm.intervals import runs_of, sections_of
from paimon_py.lsm.runs import age_of
from paimon_py.scan.plan import Packing, PlanOrigin, data_files, keyed_sections, parts_by_bucket, splits_of
from paimon_py.scan.plan_snapshot import SnapshotPlanner
from paimon_py.spec.data_file import DataFile, FileKind, FileSource, ManifestEntry
from paimon_py.spec.types import Atomic, Root

PARTITIONS = [encode([pa.array([number], pa.int32())], [Atomic(Root.INT)])[0].as_py() for number in range(3)]
FILES = st.tuples(
    st.integers(0, 2), st.integers(0, 2), st.integers(0, 9), st.integers(0, 4), st.integers(0, 4), st.integers(0, 2),
    st.integers(0, 2), st.sampled_from([None, 0, 3]), st.sampled_from([None, *FileSource]), st.booleans(),
)  # fmt: skip


def entries_of(drawn):
    """Entries of files with keys from a few, sequence numbers that may be equal, and other properties now and then."""
    return read_manifests([("m", write_manifest([
        ManifestEntry(
            kind=FileKind.ADD, partition=PARTITIONS[partition], bucket=bucket, total_buckets=3,
            file=DataFile(
                name=f"f{number * 7919 % 101}", size_bytes=10 + number, row_count=5, min_sequence=sequence,
                max_sequence=sequence + longer, schema_id=0, level=level, delete_row_count=deletes, source=source,
                external_path=f"/x/{number}" if beside else None, extra_files=("i",) if beside else (),
                embedded_index=b"e" if beside and level else None,
            ),
        )
        for number, (partition, bucket, _, _, sequence, longer, level, deletes, source, beside) in enumerate(drawn)
    ]))])  # fmt: skip


def keys_of(drawn):
    lows = [low for _, _, low, *_ in drawn]
    return lows, [low + wide for _, _, low, wide, *_ in drawn]


@given(st.lists(FILES, min_size=1, max_size=14), st.booleans())
def test_sections_are_those_of_files_one_by_one(drawn, settles):
    entries, (lows, highs) = entries_of(drawn), keys_of(drawn)
    alone = np.array([partition == 1 for partition, *_ in drawn]) if settles else None
    found = keyed_sections(entries, [pa.array(lows)], [pa.array(highs)], alone)
    files, sections, buckets = data_files(entries), [], []
    first_seen = list(dict.fromkeys(partition for partition, *_ in drawn))
    places = [(first_seen.index(partition), bucket) for partition, bucket, *_ in drawn]
    for place in sorted(set(places)):
        numbers = [number for number, own in enumerate(places) if own == place]
        own = [np.array([ends[number] for number in numbers]) for ends in (lows, highs)]
        for section in sections_of(*own):
            section = [numbers[at] for at in section]
            if alone is not None and alone[section[0]]:
                sections += [[[file]] for file in section]
                buckets += [place] * len(section)
                continue
            runs = runs_of(section, lows, highs)
            sections.append(sorted(runs, key=lambda run: age_of([files[file] for file in run])))
            buckets.append(place)
    assert found.sections == sections
    assert [places[runs[0][0]] for runs in found.sections] == buckets
    assert [one == two for one, two in itertools.pairwise(found.groups)] == [one == two for one, two in itertools.pairwise(buckets)]


@given(st.lists(FILES, min_size=1, max_size=14), st.booleans())
def test_files_have_what_their_entries_have(drawn, indexed):
    columns = entries_of(drawn)
    for file, entry in zip(data_files(columns, indexed=indexed), columns.entries(), strict=True):
        for name in ("name", "size_bytes", "row_count", "min_sequence", "max_sequence", "level", "delete_row_count", "source", "external_path"):
            assert getattr(file, name) == getattr(entry.file, name)
        beside = (entry.file.extra_files, entry.file.embedded_index) if indexed else ((), None)
        assert (file.extra_files, file.embedded_index) == beside


@given(st.lists(FILES, min_size=1, max_size=14), st.integers(1, 40))
def test_splits_of_some_buckets_after_the_other_are_all_splits(drawn, target):
    place, packing = PlanOrigin(snapshot_id=1, schema_id=0), Packing(target_bytes=target, open_file_bytes=1)
    lows, highs = keys_of(drawn)
    entries = entries_of(drawn)

    def splits(part):
        at = [names.index(name) for name in part.names().to_pylist()]
        low, high = (pa.array([ends[number] for number in at]) for ends in (lows, highs))
        return splits_of(part, keyed_sections(part, [low], [high]), None, place, packing)

    names = entries.names().to_pylist()
    assert [split for part in parts_by_bucket(entries) for split in splits(part)] == splits(entries)


TABLES = {
    "keyed": {"primary_key": ["p", "k"], "options": {"bucket": "2", "write-only": "true"}},
    "vectors": {"primary_key": ["p", "k"], "options": {"bucket": "2", "deletion-vectors.enabled": "true"}},
    "first row": {"primary_key": ["p", "k"], "options": {"bucket": "1", "merge-engine": "first-row"}},
    "append": {"options": {"bucket": "-1"}},
    "append vectors": {"options": {"bucket": "-1", "deletion-vectors.enabled": "true"}},
    "evolving": {"options": {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true"}},
}
SCHEMA = pa.schema([pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])


@pytest.mark.parametrize("shape", TABLES)
def test_first_splits_are_those_of_the_whole_plan(tmp_path, shape):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", SCHEMA, partition_by=["p"], **TABLES[shape])
    rng = np.random.default_rng(3)
    for number in range(4):
        keys = rng.permutation(np.arange(number * 20, number * 20 + 60))
        table.write_arrow(pa.table({"p": (keys % 9).astype(np.int32), "k": keys, "v": keys * number}, SCHEMA))
        if number == 2 and "vectors" in shape:
            table.delete(col("k") < 30)
    for where in (None, col("p") > 3, col("k") < 50, (col("v") > 10) & (col("p") < 8)):
        whole = table.scan(where=where).to_arrow()
        for limit in (1, 7, 30, 10_000):
            scan = table.scan(where=where, limit=limit)
            request, snapshot = scan._table_request, table._root.latest()
            planned = SnapshotPlanner(table._root, request, snapshot).plan()
            for enough in {scan._enough, None}:
                lazily = SnapshotPlanner(table._root, request, snapshot).iter_first(enough)
                assert list(lazily) == list(planned.up_to(enough).splits)
            assert scan.to_arrow().equals(whole.slice(0, limit)) and scan.count() == min(limit, whole.num_rows)


def test_a_limit_makes_splits_of_some_buckets_only(tmp_path, monkeypatch):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", SCHEMA, partition_by=["p"], **TABLES["keyed"])
    for _ in range(2):
        table.write_arrow(pa.table({"p": np.arange(100, dtype=np.int32), "k": np.arange(100), "v": np.arange(100)}, SCHEMA))
    made, pack = [], SnapshotPlanner.pack

    def counted(self, entries, *others):
        made.append(len(entries))
        return pack(self, entries, *others)

    monkeypatch.setattr(SnapshotPlanner, "pack", counted)
    assert table.scan(limit=3).to_arrow().num_rows == 3
    assert sum(made) < 30
