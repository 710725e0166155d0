from __future__ import annotations

import pytest

from paimon_py.errors import OptionError, UnsupportedError, UsageError
from paimon_py.spec.bucket_mode import is_cross_partition
from paimon_py.spec.new_schema import Schema, TableSpec, new_table_schema
from paimon_py.spec.supported import check_readable, check_same_features, check_writable
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.validation import validate

COLUMNS = [("k", "INT"), ("p", "STRING"), ("v", "INT"), ("t", "TIMESTAMP(9)"), ("a", "ARRAY<INT>")]


def table(columns=COLUMNS, primary_keys=(), partition_keys=(), **options):
    spec = TableSpec(primary_keys=primary_keys, partition_keys=partition_keys, options=options)
    return new_table_schema(Schema(columns), spec, time_millis=1)


PK = {"primary_keys": ("k",), "bucket": "2"}

GOOD = [
    {},
    {"partition_keys": ("p",)},
    {"bucket": "2", "bucket-key": "k,v"},
    PK,
    {**PK, "primary_keys": ("k", "p"), "partition_keys": ("p",), "bucket-key": "k", "sequence.field": "v, t"},
    {**PK, "rowkind.field": "p", "changelog-producer": "input"},
    {**PK, "primary_keys": ("k",), "partition_keys": ("p",)},
    {**PK, "bucket": "-2"},
    {**PK, "bucket-function.type": "mod"},
    {**PK, "snapshot.num-retained.min": "3", "snapshot.num-retained.max": "3"},
    {"metadata.stats-mode": "FULL", "fields.v.stats-mode": "truncate(4)"},
    {"scan.snapshot-id": "3"},
    {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "deletion-vectors.enabled": "true"},
    {"columns": [("a", "INT"), ("b c", "TIMESTAMP(9)")], "file.format": "orc"},
    {"columns": [("a", "INT", None, "7"), ("d", "DATE", None, "2024-01-02"), ("s", "STRING", None, "'x'")]},
]


@pytest.mark.parametrize("good", GOOD)
def test_good_schemas_pass(good):
    validate(table(**good))


BAD = [
    ({"columns": []}, "at least one column"),
    ({"columns": [("a", "INT"), ("a", "INT")]}, "more than once"),
    ({"columns": [("_KEY_a", "INT")]}, "_KEY_"),
    ({"columns": [("_SEQUENCE_NUMBER", "INT")]}, "system"),
    ({"columns": [("rowkind", "INT")]}, "system"),
    ({"columns": [(" ", "INT")]}, "empty"),
    ({"columns": [("a", "ARRAY<ROW<`x\n` INT>>")]}, "control"),
    ({"columns": [("a", "MAP<INT, ROW<x INT, x INT>>")]}, "more than once"),
    ({"primary_keys": ("zz",)}, "zz"),
    ({"primary_keys": ("k", "k")}, "more than once"),
    ({"partition_keys": ("zz",)}, "zz"),
    ({"primary_keys": ("a",)}, "ARRAY"),
    ({"partition_keys": ("a",)}, "ARRAY"),
    ({"primary_keys": ("p",), "partition_keys": ("p",)}, "contains only partition keys"),
    ({"bucket": "0"}, "bucket"),
    ({"bucket": "-2"}, "bucket"),
    ({"bucket": "2"}, "bucket-key"),
    ({"bucket-key": "k"}, "fixed number"),
    ({"bucket": "2", "bucket-key": "zz"}, "zz"),
    ({"bucket": "2", "bucket-key": "k, v"}, "blanks"),
    ({"bucket": "2", "bucket-key": "a"}, "ARRAY"),
    ({"bucket": "2", "bucket-key": "p", "partition_keys": ("p",)}, "partition keys"),
    ({**PK, "bucket-key": "v"}, "primary key"),
    ({"bucket": "2", "bucket-key": "k,v", "bucket-function.type": "mod"}, "mod"),
    ({**PK, "sequence.field": "zz"}, "zz"),
    ({**PK, "sequence.field": "v,v"}, "twice"),
    ({**PK, "sequence.field": "v", "merge-engine": "first-row"}, "first-row"),
    ({**PK, "sequence.field": "v", "fields.v.aggregate-function": "sum"}, "aggregate"),
    ({**PK, "sequence.field": "v", "partition_keys": ("p",)}, "partition keys"),
    ({**PK, "rowkind.field": "zz"}, "zz"),
    ({**PK, "fields.zz.aggregate-function": "sum"}, "zz"),
    ({"changelog-producer": "input"}, "primary key"),
    ({**PK, "changelog-producer": "lookup", "full-compaction.delta-commits": "3"}, "full-compaction"),
    ({**PK, "changelog-producer": "lookup", "streaming-read-overwrite": "true"}, "twice"),
    ({**PK, "changelog-producer": "input", "merge-engine": "first-row"}, "first-row"),
    ({**PK, "changelog-producer": "full-compaction", "deletion-vectors.enabled": "true"}, "deletion-vectors"),
    ({**PK, "merge-engine": "first-row", "deletion-vectors.enabled": "true"}, "first-row"),
    ({"streaming-read-overwrite": "true"}, "append"),
    ({"snapshot.num-retained.min": "0"}, "at least 1"),
    ({"snapshot.num-retained.max": "5"}, "snapshot.num-retained.min"),
    ({"changelog.num-retained.max": "2"}, "changelog.num-retained.min"),
    ({"target-file-row-num": "0"}, "target-file-row-num"),
    ({"file.format": "parqet"}, "parqet"),
    ({"file.format.per.level": "x:avro"}, "level"),
    ({"file.format": "avro"}, "TIMESTAMP"),
    ({"columns": [("t", "TIME(6)")], "file.format": "avro"}, "TIME"),
    ({"columns": [("b c", "INT")], "file.format": "avro"}, "letters"),
    ({**PK, "file.format.per.level": "0:avro"}, "TIMESTAMP"),
    ({"columns": [("v", "VARIANT")], "file.format": "orc"}, "VARIANT"),
    ({"columns": [("v", "VECTOR<FLOAT, 2>")], "file.format": "orc"}, "VECTOR"),
    ({"columns": [("v", "VECTOR<FLOAT, 2>"), ("p", "INT")], "primary_keys": ("v",), "bucket": "1"}, "VECTOR"),
    ({"columns": [("v", "VECTOR<FLOAT, 2>")], "vector.file.format": "parquet"}, "data-evolution"),
    ({"columns": [("v", "VECTOR<FLOAT, 2>", None, "[1, 2]")]}, "default"),
    ({"metadata.stats-mode": "some"}, "some"),
    ({"fields.v.stats-mode": "truncate(x)"}, "truncate"),
    ({"columns": [("a", "INT", None, "x")]}, "default"),
    ({"columns": [("a", "DECIMAL(3, 1)", None, "1000")]}, "default"),
    ({"scan.mode": "from-snapshot"}, "scan.snapshot-id"),
    ({"scan.mode": "latest", "scan.snapshot-id": "3"}, "scan.snapshot-id"),
    ({"primary-key.nullable": "true"}, "primary key"),
    ({**PK, "row-tracking.enabled": "true"}, "row-tracking"),
    ({"data-evolution.enabled": "true"}, "row-tracking"),
    ({"sequence.snapshot-ordering": "true"}, "primary key"),
    ({**PK, "record-level.time-field": "p"}, "record-level"),
]


@pytest.mark.parametrize(("bad", "rule"), BAD)
def test_a_broken_rule_is_named(bad, rule):
    with pytest.raises(UsageError, match=rule):
        validate(table(**bad))


def test_keys_given_as_options_move_into_the_schema():
    schema = table(**{"primary-key": "k, p", "partition": "p", "bucket": "1"})
    assert (schema.primary_keys, schema.partition_keys, schema.options) == (("k", "p"), ("p",), {"bucket": "1"})
    with pytest.raises(OptionError, match="not both"):
        table(primary_keys=("k",), **{"primary-key": "k"})


def test_primary_key_columns_become_not_null():
    schema = table(primary_keys=("k",), bucket="1")
    assert sql_type(schema.field("k").type) == "INT NOT NULL"
    assert sql_type(schema.field("v").type) == "INT"


def test_cross_partition_means_a_key_without_all_partition_keys():
    assert is_cross_partition(table(primary_keys=("k",), partition_keys=("p",)))
    assert not is_cross_partition(table(primary_keys=("k", "p"), partition_keys=("p",)))
    assert not is_cross_partition(table(partition_keys=("p",)))


NOT_READABLE = [
    ({"columns": [("a", "INT"), ("v", "ARRAY<GEOMETRY>")]}, "GEOMETRY type"),
    ({"columns": [("a", "ARRAY<VECTOR<FLOAT, 2>>")]}, "VECTOR inside ARRAY, MAP or MULTISET"),
    ({"columns": [("a", "ROW<m MAP<INT, VECTOR<FLOAT, 2>>>")]}, "VECTOR inside ARRAY, MAP or MULTISET"),
    ({"columns": [("a", "MAP<VARIANT NOT NULL, INT>")]}, "VARIANT as key of MAP or MULTISET"),
    ({"columns": [("a", "ROW<m MULTISET<VARIANT>>")]}, "VARIANT as key of MAP or MULTISET"),
    ({"columns": [("a", "INT"), ("v", "VARIANT")], "bucket": "2", "bucket-key": "v"}, "VARIANT in bucket-key"),
    ({"columns": [("a", "INT"), ("v", "VECTOR<FLOAT, 2>")], "bucket": "2", "bucket-key": "v"}, "VECTOR in bucket-key"),
    ({"type": "format-table"}, "type=format-table"),
    ({"file.format": "csv"}, "file.format=csv"),
    ({"changelog-file.format": "csv"}, "changelog-file.format=csv"),
    ({"file.format.per.level": "0:csv"}, "file.format.per.level=csv"),
    ({"branch": "b1"}, "branch"),
    ({"query-auth.enabled": "true"}, "query-auth.enabled"),
]


@pytest.mark.parametrize(("options", "feature"), NOT_READABLE)
def test_features_that_would_change_the_answer_are_refused_by_name(options, feature):
    for check in (check_readable, check_writable):
        with pytest.raises(UnsupportedError) as caught:
            check(table(**options))
        assert caught.value.feature == feature


@pytest.mark.parametrize(
    ("options", "feature"),
    [
        (
            {"primary_keys": ("k",), "partition_keys": ("p",), "ignore-delete": "true"},
            "ignore-delete and keys that move between partitions",
        ),
        (
            {"metadata.iceberg.storage": "hive-catalog"},
            "TIMESTAMP(9) columns (metadata.iceberg.format-version=3 has them) in tables with "
            "metadata.iceberg.storage=hive-catalog",
        ),
        ({"columns": [("_row_kind", "STRING")]}, "a column called _row_kind"),
        ({"columns": [("b", "BINARY(3)"), ("v", "INT")], "partition_keys": ("b",)}, "BINARY(3) partition key 'b'"),
        ({"columns": [("b", "BYTES"), ("v", "INT")], "partition_keys": ("b",)}, "BYTES partition key 'b'"),
        (
            {
                "columns": [("t", "TIMESTAMP(3) WITH LOCAL TIME ZONE"), ("v", "INT")], "partition_keys": ("t",),
                "partition.legacy-name": "false",
            },
            "TIMESTAMP WITH LOCAL TIME ZONE partition key 't' and partition.legacy-name=false",
        ),
    ],
)
def test_some_tables_can_be_read_but_not_written(options, feature):
    check_readable(table(**options))
    with pytest.raises(UnsupportedError) as caught:
        check_writable(table(**options))
    assert caught.value.feature == feature


@pytest.mark.parametrize("good", [good for good in GOOD if good.get("bucket") != "-2"])
def test_plain_tables_can_be_read_and_written(good):
    check_readable(table(**good))
    check_writable(table(**good))


def test_a_change_may_not_bring_in_a_feature_without_rules():
    check_same_features(table(**PK), table(**{**PK, "write-only": "true"}))
    with pytest.raises(UnsupportedError, match="alter"):
        check_same_features(table(**PK), table(**{**PK, "query-auth.enabled": "true"}))


def test_a_column_that_is_no_column_is_a_usage_error():
    for column in ("a INT", ("a",), ("a", "INT", 3), (1, "INT")):
        with pytest.raises(UsageError):
            Schema([column])
