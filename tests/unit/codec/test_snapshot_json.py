"""Snapshot and tag files, byte for byte as Java writes them."""

import pytest

from paimon_py.codec.snapshot_json import snapshot_from_json, snapshot_to_json, tag_from_json, tag_to_json
from paimon_py.errors import CorruptionError, UnsupportedError
from paimon_py.spec.snapshot import CommitKind, Snapshot

JAVA_2 = b"""{
  "version" : 3,
  "uuid" : "0e92e6f3-7445-4d70-8cb3-1340f2154d37",
  "id" : 2,
  "schemaId" : 0,
  "baseManifestList" : "manifest-list-8fdad675-7a48-444d-b332-760684bb4a37-0",
  "baseManifestListSize" : 1110,
  "deltaManifestList" : "manifest-list-8fdad675-7a48-444d-b332-760684bb4a37-1",
  "deltaManifestListSize" : 1113,
  "commitUser" : "oracle-user",
  "commitIdentifier" : 9223372036854775807,
  "commitKind" : "APPEND",
  "timeMillis" : 1795234796402,
  "totalRecordCount" : 2,
  "deltaRecordCount" : 1,
  "nextRowId" : 0
}"""
RETAINED = b""",
  "tagCreateTime" : [ 2026, 11, 21, 4, 19, 56, 409066739 ],
  "tagTimeRetained" : 93784.005000000
}"""
JAVA_09 = b"""{
  "version" : 3,
  "id" : 4,
  "schemaId" : 0,
  "baseManifestList" : "manifest-list-58667c9a-d3fc-422f-92f5-6837bc7c49f2-0",
  "deltaManifestList" : "manifest-list-58667c9a-d3fc-422f-92f5-6837bc7c49f2-1",
  "changelogManifestList" : null,
  "indexManifest" : "index-manifest-9e933124-f5f4-42fa-8a41-754908c0c681-0",
  "commitUser" : "oracle-user",
  "commitIdentifier" : 1004,
  "commitKind" : "COMPACT",
  "timeMillis" : 1795235277826,
  "logOffsets" : { },
  "totalRecordCount" : 4,
  "deltaRecordCount" : -6,
  "changelogRecordCount" : 0
}"""


def test_snapshot_of_java_2_is_written_as_it_was_read():
    snapshot = snapshot_from_json(JAVA_2, "f")
    assert snapshot.commit_kind is CommitKind.APPEND and snapshot.next_row_id == 0
    assert snapshot_to_json(snapshot) == JAVA_2


def test_snapshot_of_java_09_reads_its_nulls_and_offsets():
    snapshot = snapshot_from_json(JAVA_09, "f")
    assert snapshot.changelog_manifest_list is None and snapshot.log_offsets == {} and snapshot.delta_record_count == -6
    assert snapshot_to_json(snapshot) == JAVA_09.replace(b'  "changelogManifestList" : null,\n', b"")


def test_every_key_has_its_place():
    snapshot = Snapshot(
        id=9, schema_id=1, base_manifest_list="b", delta_manifest_list="d", commit_user='u"\\\x01ä', commit_identifier=-1,
        commit_kind=CommitKind.ANALYZE, time_millis=5, uuid="x", base_manifest_list_size=1, delta_manifest_list_size=2,
        changelog_manifest_list="c", changelog_manifest_list_size=3, index_manifest="i", writer_version="w",
        log_offsets={"0": 3}, total_record_count=4, delta_record_count=5, changelog_record_count=6, watermark=-7,
        statistics="s", properties={"k": "v"}, next_row_id=8, operation="WRITE", extra={"newer": {"a": [1, "b"]}},
    )  # fmt: skip
    data = snapshot_to_json(snapshot)
    keys = [line.split(b'"')[1].decode() for line in data.splitlines() if line.startswith(b'  "')]
    order = (
        "version uuid id schemaId baseManifestList baseManifestListSize deltaManifestList deltaManifestListSize"
        " changelogManifestList changelogManifestListSize indexManifest commitUser writerVersion commitIdentifier"
        " commitKind timeMillis logOffsets totalRecordCount deltaRecordCount changelogRecordCount watermark statistics"
        " properties nextRowId operation newer"
    )
    assert keys == order.split()
    assert snapshot_from_json(data, "f") == snapshot


def test_empty_properties_are_left_out():
    snapshot = snapshot_from_json(JAVA_2.replace(b'"nextRowId" : 0', b'"properties" : { }'), "f")
    assert b"properties" not in snapshot_to_json(snapshot)


def test_tag_with_retention_is_written_as_it_was_read():
    data = JAVA_2[:-2] + RETAINED
    tag = tag_from_json(data, "t", "f")
    assert tag.name == "t" and tag.snapshot == snapshot_from_json(JAVA_2, "f")
    assert tag.create_time == (2026, 11, 21, 4, 19, 56, 409066739) and tag.time_retained_seconds == 93784.005
    assert tag_to_json(tag) == data


def test_tag_without_retention_is_the_snapshot():
    assert tag_to_json(tag_from_json(JAVA_2, "t", "f")) == JAVA_2


@pytest.mark.parametrize(
    "change",
    [
        (b'"id" : 2', b'"id" : "two"'),
        (b'"id" : 2', b'"id" : ""'),
        (b'"id" : 2', b'"id" : true'),
        (b'"id" : 2', b'"id" : 2.5'),
        (b'"id" : 2', b'"id" : 99999999999999999999'),
        (b'"id" : 2', b'"other" : 2'),
        (b'"id" : 2', b'"id" : null'),
        (b'"commitUser" : "oracle-user"', b'"commitUser" : [5]'),
        (b'"nextRowId" : 0', b'"properties" : {"a": [1]}'),
        (b'"nextRowId" : 0', b'"logOffsets" : 5'),
        (b'"nextRowId" : 0', b'"properties" : []'),
        (b"}", b""),
        (b"{", b"[{"),
        (b"oracle", b"\xff"),
    ],
)
def test_broken_snapshot_is_corruption_with_its_path(change):
    with pytest.raises(CorruptionError) as caught:
        snapshot_from_json(JAVA_2.replace(*change), "dir/snapshot-2")
    assert caught.value.path == "dir/snapshot-2"


@pytest.mark.parametrize("extra", [b'"tagCreateTime" : 5', b'"tagCreateTime" : [1,2]', b'"tagTimeRetained" : "PT1X"', b'"tagTimeRetained" : "P"', b'"tagCreateTime" : "now"'])
def test_broken_tag_is_corruption(extra):
    with pytest.raises(CorruptionError):
        tag_from_json(JAVA_2[:-2] + b", " + extra + b"}", "t", "f")


@pytest.mark.parametrize(
    ("change", "attribute", "value"),
    [
        ((b'"id" : 2', b'"id" : "2"'), "id", 2),
        ((b'"id" : 2', b'"id" : 2.0'), "id", 2),
        ((b'"id" : 2', b'"id" : 2e0'), "id", 2),
        ((b'"version" : 3', b'"version" : "3"'), "version", 3),
        ((b'"commitUser" : "oracle-user"', b'"commitUser" : 5'), "commit_user", "5"),
        ((b'"nextRowId" : 0', b'"properties" : {"a": 1, "b": null, "c": true}'), "properties", {"a": "1", "c": "true"}),
        ((b'"nextRowId" : 0', b'"logOffsets" : {"0": "7", "1": null, "a": [1]}'), "log_offsets", {"0": 7}),
    ],
)
def test_numbers_and_strings_are_parsed_as_java_parses_them(change, attribute, value):
    assert change[0] in JAVA_2
    assert getattr(snapshot_from_json(JAVA_2.replace(*change), "f"), attribute) == value


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("2026-01-02T03:04", (2026, 1, 2, 3, 4)),
        ("2026-01-02T03:04:05", (2026, 1, 2, 3, 4, 5)),
        ("2026-01-02T03:04:05.25", (2026, 1, 2, 3, 4, 5, 250_000_000)),
    ],
)
def test_times_of_tags_may_be_texts(text, parts):
    extra = f', "tagCreateTime" : "{text}", "tagTimeRetained" : "P1DT2H3M4.5S"}}'.encode()
    tag = tag_from_json(JAVA_2[:-2] + extra, "t", "f")
    assert tag.create_time == parts
    assert tag.time_retained_seconds == 86400 + 2 * 3600 + 3 * 60 + 4.5


def test_a_tag_may_be_retained_for_no_time_at_all():
    extra = b', "tagTimeRetained" : "PT0S"}'
    assert tag_from_json(JAVA_2[:-2] + extra, "t", "f").time_retained_seconds == 0


def test_newer_snapshot_is_refused_by_name():
    with pytest.raises(UnsupportedError, match="snapshot version 4"):
        snapshot_from_json(JAVA_2.replace(b'"version" : 3', b'"version" : 4'), "f")
    with pytest.raises(UnsupportedError, match="REBASE"):
        snapshot_from_json(JAVA_2.replace(b"APPEND", b"REBASE"), "f")
