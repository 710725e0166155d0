"""Bucket options that are refused, by name; those that only other kinds of tables read pass."""

from __future__ import annotations

import pyarrow as pa
import pytest

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.buckets import bucket_numbers
from paimon_py.errors import OptionError, UnsupportedError
from paimon_py.spec.bucket_rules import HIVE_TYPES
from paimon_py.spec.changed_schema import apply
from paimon_py.spec.new_schema import Schema, TableSpec, new_table_schema
from paimon_py.spec.schema_changes import SetOption
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.validation import validate

COLUMNS = [("k", "INT NOT NULL"), ("v", "INT"), ("t", "TIMESTAMP(3)")]


def schema(options, primary_keys=()):
    spec = TableSpec(primary_keys=primary_keys, options=options)
    return new_table_schema(Schema(COLUMNS), spec, time_millis=1)


def refused(options, primary_keys=()):
    with pytest.raises(OptionError) as caught:
        validate(schema(options, primary_keys))
    return caught.value


@pytest.mark.parametrize("key", ["k,k", "v,k,v"])
def test_a_bucket_key_names_a_column_once(key):
    assert "twice" in str(refused({"bucket": "2", "bucket-key": key}))


@pytest.mark.parametrize("value", ["0", "-1", "-2"])
@pytest.mark.parametrize(
    ("bucket", "name"),
    [
        ("-1", "dynamic-bucket.target-row-num"), ("-1", "dynamic-bucket.max-buckets"), ("-1", "dynamic-bucket.initial-buckets"),
        ("-1", "dynamic-bucket.assigner-parallelism"), ("-2", "postpone.default-bucket-num"),
        ("-2", "postpone.target-row-num-per-bucket"),
    ],
)  # fmt: skip
def test_numbers_that_count_nothing_are_refused_where_they_count(bucket, name, value):
    if (name, value) == ("dynamic-bucket.max-buckets", "-1"):
        validate(schema({"bucket": bucket, name: value}, ("k",)))
        return
    error = refused({"bucket": bucket, name: value}, ("k",))
    assert (error.option, error.value) == (name, value) and "at least 1" in str(error)
    validate(schema({"bucket": "2", name: value}, ("k",)))
    with pytest.raises(OptionError, match=name):
        apply(schema({"bucket": bucket}, ("k",)), [SetOption(name, value)], has_snapshots=True, time_millis=1)


def test_a_bucket_size_of_nothing_is_refused():
    assert refused({"bucket": "-2", "postpone.target-size-per-bucket": "0 b"}, ("k",)).option.endswith("size-per-bucket")


def test_keys_that_hive_does_not_hash_are_refused():
    error = refused({"bucket": "2", "bucket-key": "k,t", "bucket-function.type": "hive"})
    assert "'t'" in str(error) and "TIMESTAMP(3)" in str(error)


@pytest.mark.parametrize("kind", [
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE", "TIME(3)", "CHAR(3)", "STRING", "BINARY(2)",
    "BYTES", "DECIMAL(9, 2)", "TIMESTAMP(3)", "TIMESTAMP(6) WITH LOCAL TIME ZONE",
])  # fmt: skip
def test_hive_hashes_the_types_that_are_allowed(kind):
    data_type = parse_type(kind)
    nothing = [pa.nulls(3, to_arrow_type(data_type))]
    if data_type.root in HIVE_TYPES:
        assert not bucket_numbers(nothing, [data_type], 4, "hive").any()
        return
    with pytest.raises(UnsupportedError, match="bucket key"):
        bucket_numbers(nothing, [data_type], 4, "hive")
