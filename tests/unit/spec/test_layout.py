"""Paths and names (format.md §1)."""

import pytest

from paimon_py.errors import CorruptionError, UsageError
from paimon_py.spec import layout
from paimon_py.spec.schema import TableSchema


def schema(**options):
    return TableSchema(id=0, fields=(), highest_field_id=0, options=options)


def test_metadata_lies_where_java_puts_it():
    table = "s3://bucket/w/db.db/t/"
    assert layout.schema_path(table, 0) == "s3://bucket/w/db.db/t/schema/schema-0"
    assert layout.snapshot_path(table, 7) == "s3://bucket/w/db.db/t/snapshot/snapshot-7"
    assert layout.latest_hint_path("/t") == "/t/snapshot/LATEST"
    assert layout.earliest_hint_path("/t") == "/t/snapshot/EARLIEST"
    assert layout.tag_path("/t", "v1") == "/t/tag/tag-v1"
    assert layout.manifest_path("/t", "manifest-x-0") == "/t/manifest/manifest-x-0"
    assert layout.index_directory("/t") == "/t/index"
    assert layout.statistics_path("/t", "stat-x-0") == "/t/statistics/stat-x-0"
    assert layout.branch_root("/t", "b") == "/t/branch/branch-b"
    assert layout.branch_root("/t", "main") == layout.branch_root("/t", None) == "/t"
    assert layout.table_path("/w", "demo", "flights") == "/w/demo.db/flights"


def test_data_files_lie_in_partition_and_bucket():
    part = layout.partition_path(["month", "carrier"], ["3", "U/A"])
    assert part == "month=3/carrier=U%2FA"
    assert layout.data_file_path(layout.bucket_path("/t", schema(), part, 2), "f.parquet") == "/t/month=3/carrier=U%2FA/bucket-2/f.parquet"
    assert layout.data_file_path(layout.bucket_path("/t", schema(), "", 0), "f.orc") == "/t/bucket-0/f.orc"
    assert layout.bucket_dir(-2) == "bucket-postpone"
    moved = schema(**{"data-file.path-directory": "data/here"})
    assert layout.bucket_path("/t", moved, "", 1) == "/t/data/here/bucket-1"


def test_a_data_directory_outside_the_table_is_corruption():
    for text in ("../x", "/abs", "a//b", "a/./b"):
        with pytest.raises(CorruptionError):
            layout.bucket_path("/t", schema(**{"data-file.path-directory": text}), "", 0)


@pytest.mark.parametrize("value", [None, "", " ", "\t \u2003"])
def test_null_empty_and_blank_share_the_default_directory(value):
    assert layout.partition_path(["p"], [value]) == "p=__DEFAULT_PARTITION__"
    assert layout.partition_path(["p"], [value], "none") == "p=none"


def test_a_no_break_space_is_not_blank_for_java():
    assert layout.partition_path(["p"], ["\u00a0"]) == "p=\u00a0"


def test_escaping_touches_exactly_the_listed_characters():
    special = [chr(code) for code in (*range(0x20), 0x7F)] + list("\"#%'*/:=?\\{}[]^")
    for letter in map(chr, range(0x100)):
        expected = f"%{ord(letter):02X}" if letter in special else letter
        assert layout.escape(letter) == expected
        assert layout.unescape(layout.escape(letter)) == letter


def test_unescape_leaves_other_percent_signs():
    assert layout.unescape("100%zz%2") == "100%zz%2"
    assert layout.unescape("a%3Ab%3d") == "a:b="


def test_only_prefix_and_digits_are_numbered_names():
    assert layout.parse_number("snapshot-", "snapshot-12") == 12
    for name in ("snapshot-", "snapshot-99x", "snapshot--1", "LATEST", "12", "snapshot-1.tmp", "snapshot-٣"):
        assert layout.parse_number("snapshot-", name) is None


@pytest.mark.parametrize(
    "name",
    ["", "..", ".hidden", "a/b", "a\\b", "a\0b", "a\nb", " a", "a ", "x" * 256, "é" * 128, "a%2Fb", "a?b", "a#b"],
)
def test_hostile_names_are_refused(name):
    for kind in ("database", "table", "tag", "branch"):
        with pytest.raises(UsageError, match=kind):
            layout.check_name(kind, name)
    with pytest.raises(UsageError):
        layout.tag_path("/t", name)


def test_ordinary_names_pass():
    for name in ("flights", "Größe_1", "2024-01-02", "v1.0", "a b", "表"):
        assert layout.check_name("table", name) == name


def test_column_names_may_be_almost_anything():
    for name in ("a.b", "a/b", "größe", "with space", "x" * 255):
        assert layout.check_column_name(name) == name
    for name in ("", "  ", "a\nb", "a\0", "x" * 256):
        with pytest.raises(UsageError):
            layout.check_column_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a\\b", "a\0"])
def test_file_names_from_metadata_must_be_plain(name):
    with pytest.raises(CorruptionError):
        layout.check_file_name(name)
    with pytest.raises(CorruptionError):
        layout.data_file_path("/t/bucket-0", name)
