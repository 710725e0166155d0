"""Manifests of writers whose Avro is laid out in another way: fields, items of lists, and branches of unions."""

from __future__ import annotations

import copy
import io
import json

import fastavro
import pytest
from unit.codec.manifest.manifest_entries import entry

from paimon_py.codec.manifest import schemas
from paimon_py.codec.manifest.entries import read_manifests, write_manifest
from paimon_py.errors import CorruptionError

ENTRIES = [entry(number) for number in range(60)]


def written(change, codec="deflate"):
    """A manifest of `ENTRIES` by fastavro, its schema and records changed."""
    records = list(fastavro.reader(io.BytesIO(write_manifest(ENTRIES, "deflate"))))
    schema = json.loads(schemas.MANIFEST)
    file = schema["fields"][-1]["type"]
    change({field["name"]: field for field in file["fields"]}, file, records)
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), records, codec=codec)
    return out.getvalue()


def plain_counts(fields, file, records):
    """Null counts as plain numbers."""
    for which in ("_KEY_STATS", "_VALUE_STATS"):
        stats = {field["name"]: field for field in fields[which]["type"]["fields"]}
        stats["_NULL_COUNTS"]["type"][1]["items"] = "long"
    for record in records:
        for which in ("_KEY_STATS", "_VALUE_STATS"):
            counts = record["_FILE"][which]["_NULL_COUNTS"]
            record["_FILE"][which]["_NULL_COUNTS"] = None if counts is None else [count or 0 for count in counts]


def nullable_names(fields, file, records):
    for name in ("_VALUE_STATS_COLS", "_WRITE_COLS"):
        fields[name]["type"][1]["items"] = ["null", "string"]
    fields["_EXTRA_FILES"]["type"]["items"] = ["null", "string"]


def more_branches(fields, file, records):
    fields["_EMBEDDED_FILE_INDEX"]["type"].append("boolean")
    fields["_CREATION_TIME"]["type"].append("double")


def null_behind(fields, file, records):
    for name in ("_DELETE_ROW_COUNT", "_FILE_SOURCE"):
        fields[name]["type"].reverse()
        del fields[name]["default"]


@pytest.mark.parametrize("change", [plain_counts, nullable_names, more_branches, null_behind])
def test_other_layouts_give_the_same_entries(change):
    found = read_manifests([("m", written(change))]).entries()
    if change is plain_counts:
        assert [one.file.value_stats.null_counts for one in found] == [
            None if one.file.value_stats.null_counts is None else tuple(count or 0 for count in one.file.value_stats.null_counts)
            for one in ENTRIES
        ]  # fmt: skip
    else:
        assert found == ENTRIES


@pytest.mark.parametrize(
    ("kind", "value"),
    [("double", 0.0), ("double", 1.5), ("float", 0.0), ({"type": "fixed", "name": "f", "size": 3}, bytes(3)), ("boolean", False),
     ({"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "double"}]}, {"a": 0, "b": 0.0}),
     ({"type": "map", "values": "double"}, {}), (["null", "int", "string"], None)],
)  # fmt: skip
@pytest.mark.parametrize("at", [0, 5, None])
def test_unknown_fields_are_skipped(kind, value, at):
    def added(fields, file, records):
        file["fields"].insert(len(file["fields"]) if at is None else at, {"name": "_NEW", "type": copy.deepcopy(kind)})
        for record in records:
            record["_FILE"]["_NEW"] = value

    assert read_manifests([("m", written(added))]).entries() == ENTRIES


@pytest.mark.parametrize("count", range(1, 9))
def test_early_releases_have_fewer_fields(count):
    """Java 0.4 to 0.8 wrote neither the source of a file nor its index, and 0.4 not when it was made."""

    def fewer(fields, file, records):
        del file["fields"][-count:]

    found = read_manifests([("m", written(fewer))]).entries()
    assert [one.file.name for one in found] == [one.file.name for one in ENTRIES]
    assert {one.file.write_columns for one in found} == {None}
    if count == 8:
        assert {one.file.creation_time_millis for one in found} == {None}


def test_null_counts_may_be_left_out():
    def fewer(fields, file, records):
        for which in ("_KEY_STATS", "_VALUE_STATS"):
            del fields[which]["type"]["fields"][-1]

    found = read_manifests([("m", written(fewer))]).entries()
    assert {(one.file.key_stats.null_counts, one.file.value_stats.null_counts) for one in found} == {(None, None)}
    assert [one.file.value_stats.min_values for one in found] == [one.file.value_stats.min_values for one in ENTRIES]


@pytest.mark.parametrize("codec", ["null", "zstandard", "bzip2", "xz"])
def test_records_may_have_other_names_and_any_codec(codec):
    def named(fields, file, records):
        file["name"] = "DataFileMeta"
        file["namespace"] = "org.example"
        more_branches(fields, file, records)

    assert read_manifests([("m", written(named, codec))]).entries() == ENTRIES


def test_a_value_of_a_branch_that_java_lacks_is_corruption():
    def told(fields, file, records):
        more_branches(fields, file, records)
        records[5]["_FILE"]["_EMBEDDED_FILE_INDEX"] = True

    with pytest.raises(CorruptionError, match="m cannot be decoded"):
        read_manifests([("m", written(told))])


def test_a_null_among_names_is_corruption():
    def hole(fields, file, records):
        nullable_names(fields, file, records)
        records[3]["_FILE"]["_VALUE_STATS_COLS"] = ["a", None]

    with pytest.raises(CorruptionError):
        read_manifests([("m", written(hole))])
