"""What an Iceberg reader sees of a table in a store: a small reader of its own, which knows nothing of paimon_py's."""

from __future__ import annotations

import io
import json
import re

import fastavro
import pyarrow.parquet as pq
from pyroaring import BitMap64

from paimon_py.storage.store import FileMissingError

PLAIN = {"metadata.iceberg.manifest-compression": "null"}
"""fastavro alone inflates no snappy."""


def version_of(store, directory):
    """The version that a reader finds: the hint, then the next numbers; None if there is none."""
    names = {status.name for status in store.list(directory)}
    found = {int(match[1]) for name in names if (match := re.fullmatch(r"v(\d+)\.metadata\.json", name))}
    try:
        number = int(store.get(f"{directory}/version-hint.text"))
    except FileMissingError:
        return None
    while number + 1 in found:
        number += 1
    return number


def metadata(store, directory, number=None):
    number = version_of(store, directory) if number is None else number
    return None if number is None else json.loads(store.get(f"{directory}/v{number}.metadata.json"))


def avro(store, path):
    reader = fastavro.reader(io.BytesIO(store.get(path)))
    return list(reader), reader.metadata


def manifests(store, value, snapshot_id=None):
    snapshot = snapshot_of(value, snapshot_id)
    return avro(store, snapshot["manifest-list"])[0]


def snapshot_of(value, snapshot_id=None):
    wanted = value["current-snapshot-id"] if snapshot_id is None else snapshot_id
    return next(one for one in value["snapshots"] if one["snapshot-id"] == wanted)


def live_files(store, value, snapshot_id=None):
    """The data files, and the dead rows by path."""
    files, dead = [], {}
    for manifest in manifests(store, value, snapshot_id):
        data = store.get(manifest["manifest_path"])
        assert len(data) == manifest["manifest_length"]
        for entry in avro(store, manifest["manifest_path"])[0]:
            file = entry["data_file"]
            if entry["status"] == 2:
                continue
            if file["content"] == 0:
                files.append(file)
                continue
            whole = store.get(file["file_path"])
            assert whole[:4] == whole[-4:] == b"PFA1" and len(whole) == file["file_size_in_bytes"]
            blob = whole[file["content_offset"] :][: file["content_size_in_bytes"]]
            dead[file["referenced_data_file"]] = set(BitMap64.deserialize(blob[8:-4]))
            assert len(dead[file["referenced_data_file"]]) == file["record_count"]
    assert len({file["file_path"] for file in files}) == len(files)
    return files, dead


def rows(store, value, snapshot_id=None):
    """All rows, as sorted lists of values in the order of the current schema; columns are found by their ids."""
    schema = next(one for one in value["schemas"] if one["schema-id"] == value["current-schema-id"])
    files, dead = live_files(store, value, snapshot_id)
    found = []
    for file in files:
        table = pq.read_table(io.BytesIO(store.get(file["file_path"])))
        ids = {int((f.metadata or {}).get(b"PARQUET:field_id", b"-1")): f.name for f in table.schema}
        assert table.num_rows == file["record_count"]
        gone = dead.pop(file["file_path"], set())
        for at, row in enumerate(table.to_pylist()):
            if at not in gone:
                found.append([row.get(ids.get(field["id"])) for field in schema["fields"]])
    assert not dead, "vectors of files that are not live"
    return sorted(found, key=repr)


def seen(store, directory):
    """The number of the snapshot and its rows; None before the first publication."""
    value = metadata(store, directory)
    return None if value is None else (value["current-snapshot-id"], rows(store, value))
