"""Metadata files written by Java 0.9, 1.4 and 2.0: every manifest, list, index manifest, snapshot and tag."""

from __future__ import annotations

import io
import json
from pathlib import Path

import fastavro
import golden
import pytest
from locate import CORPUS
from unit.codec.manifest.manifest_entries import by_fastavro, fold, stats_by_fastavro

from paimon_py.codec.avro.container import header_bytes, read_header
from paimon_py.codec.manifest import entries as manifest_avro
from paimon_py.codec.manifest import schemas as manifest_schemas
from paimon_py.codec.manifest.copy import copy_manifests
from paimon_py.codec.manifest.entries import read_manifests
from paimon_py.codec.manifest.lists import (
    read_index_manifest,
    read_manifest_list,
    write_index_manifest,
    write_manifest_list,
)
from paimon_py.codec.snapshot_json import snapshot_from_json, snapshot_to_json, tag_from_json, tag_to_json
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.manifests import Manifests
from paimon_py.metadata.snapshots import Snapshots
from paimon_py.metadata.tags import Tags
from paimon_py.storage.local_store import LocalStore

_SAMPLE = ("manifest-", "dv32-", "travel-tags", "mixed-")
CASES = [
    pytest.param(case, id=case.name, marks=() if case.name.startswith(_SAMPLE) else pytest.mark.full)
    for case in golden.cases(str(CORPUS))
]
OF_PYPAIMON = [case for case in CASES if case.id.startswith("py-")]
OF_JAVA_2 = [case for case in CASES if "--java-" not in case.id and "mixed" not in case.id and case not in OF_PYPAIMON]
_RANGES = ("_MIN_BUCKET", "_MAX_BUCKET", "_MIN_LEVEL", "_MAX_LEVEL", "_MIN_ROW_ID", "_MAX_ROW_ID")


@pytest.fixture(scope="module", params=CASES)
def table(request, tmp_path_factory) -> Path:
    case = request.param
    warehouse = Path(golden.unpack(case, tmp_path_factory.mktemp("golden")))
    database, name = case.table.split(".", 1)
    return warehouse / f"{database}.db" / name.split("$")[0]


def files(table: Path, directory: str, prefix: str) -> list[tuple[str, bytes]]:
    paths = sorted((table / directory).glob(prefix + "*")) if (table / directory).is_dir() else []
    return [(str(path), path.read_bytes()) for path in paths]


def manifests(table: Path) -> list[tuple[str, bytes]]:
    return [blob for blob in files(table, "manifest", "manifest-") if "/manifest-list-" not in blob[0]]


def test_manifests_read_as_an_independent_reader_sees_them(table, monkeypatch):
    blobs = manifests(table)
    expected = [one for _, data in blobs for one in by_fastavro(data)]
    for few in (0, 10**9):
        monkeypatch.setattr(manifest_avro, "_FEW_ENTRIES", few)
        columns = read_manifests(blobs)
        assert columns.entries() == expected
    copied = copy_manifests(columns, "zstd", 8 << 20)
    assert [one for part in copied for one in by_fastavro(part.data)] == expected


def test_lock_step_reads_every_manifest(table, monkeypatch):
    def refuse(*_):
        raise AssertionError("fell back to reading record by record")

    monkeypatch.setattr(manifest_avro, "_FEW_ENTRIES", 0)
    monkeypatch.setattr(manifest_avro, "walk", refuse)
    for blob in manifests(table):
        read_manifests([blob])


def test_lists_read_as_an_independent_reader_sees_them(table):
    for path, data in files(table, "manifest", "manifest-list-"):
        read = read_manifest_list(data, path)
        records = list(fastavro.reader(io.BytesIO(data)))
        assert [file.name for file in read] == [record["_FILE_NAME"] for record in records]
        assert [file.partition_stats for file in read] == [stats_by_fastavro(r["_PARTITION_STATS"]) for r in records]
        for file, record in zip(read, records, strict=True):
            counts = (file.size_bytes, file.added_files, file.deleted_files, file.schema_id)
            assert counts == tuple(
                record[key] for key in ("_FILE_SIZE", "_NUM_ADDED_FILES", "_NUM_DELETED_FILES", "_SCHEMA_ID")
            )
            assert [getattr(file, key[1:].lower()) for key in _RANGES] == [record.get(key) for key in _RANGES]
        assert read_manifest_list(write_manifest_list(read)) == read


def test_index_manifests_read_as_an_independent_reader_sees_them(table):
    for path, data in files(table, "manifest", "index-manifest-"):
        read = read_index_manifest(data, path)
        records = list(fastavro.reader(io.BytesIO(data)))
        written = list(fastavro.reader(io.BytesIO(write_index_manifest(read))))
        assert [{key: new[key] for key in old} for new, old in zip(written, records, strict=True)] == [
            _with_cardinality(record) for record in records
        ]


@pytest.mark.parametrize("table", OF_JAVA_2, indirect=True)
def test_headers_are_those_that_java_2_writes(table):
    for path, data in files(table, "manifest", ""):
        name = Path(path).name
        kind = "MANIFEST_LIST" if "-list-" in name else "INDEX_MANIFEST" if name.startswith("index") else "MANIFEST"
        header = read_header(data, path)
        if header.schema == getattr(manifest_schemas, kind):
            assert data.startswith(header_bytes(header.schema, header.codec))
        else:
            assert len(header.schema) < len(getattr(manifest_schemas, kind))


@pytest.mark.parametrize("table", OF_PYPAIMON, indirect=True)
def test_snapshots_of_pypaimon_are_written_with_the_same_values(table):
    for path, data in files(table, "snapshot", "snapshot-"):
        if path.rpartition("-")[2].isdigit():
            assert json.loads(snapshot_to_json(snapshot_from_json(data, path))) == json.loads(data)


@pytest.mark.parametrize("table", [case for case in CASES if case not in OF_PYPAIMON], indirect=True)
def test_snapshots_and_tags_are_written_as_java_writes_them(table):
    for path, data in files(table, "snapshot", "snapshot-"):
        if not path.rpartition("-")[2].isdigit():
            continue
        snapshot = snapshot_from_json(data, path)
        written = snapshot_to_json(snapshot)
        assert not snapshot.extra
        assert written == data or b" : null" in data
        assert snapshot_from_json(written, path) == snapshot
    for path, data in files(table, "tag", "tag-"):
        tag = tag_from_json(data, "t", path)
        assert tag_to_json(tag) == data or b" : null" in data


def test_live_files_of_every_snapshot_and_tag_fold_as_defined(table):
    store, root = LocalStore(), str(table)
    env = Env(pool=SerialPool())
    found = Snapshots(store, root)
    kept = [found.get(number) for number in found.ids()] + [tag.snapshot for tag in Tags(store, root).list()]
    shared = Manifests(store, root, env)
    for snapshot in kept[-40:]:
        listed = shared.base_and_delta(snapshot)
        entries = [one for file in listed for one in by_fastavro((table / "manifest" / file.name).read_bytes())]
        assert shared.live_entries(snapshot).entries() == [one for one in fold(entries) if one.kind == 0]
        assert snapshot.total_record_count in (None, sum(one.file.row_count for one in fold(entries)))
    if found.ids():
        assert found.latest_id() == found.ids()[-1] and found.earliest_id() == found.ids()[0]


def _with_cardinality(record: dict) -> dict:
    """Records of Java 0.9 have no cardinality; ours say null."""
    ranges = record["_DELETIONS_VECTORS_RANGES"]
    index = record.get("_GLOBAL_INDEX")
    return (
        record
        | {"_DELETIONS_VECTORS_RANGES": ranges and [{**item, "_CARDINALITY": item.get("_CARDINALITY")} for item in ranges]}
        | ({} if index is None else {"_GLOBAL_INDEX": {"_SOURCE_META": None} | index})
    )


