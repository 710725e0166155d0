"""Wrong file indexes and wrong bucket options: what Java refuses we refuse by name, before a file is touched.

We also refuse what Java only trips over when rows are written. What neither refuses can be written and read here.
"""

from __future__ import annotations

import datetime
import os
from decimal import Decimal

import pyarrow as pa
import pytest

from paimon_py.catalog import Catalog
from paimon_py.errors import OptionError, UsageError
from paimon_py.spec.new_schema import Schema

pytestmark = pytest.mark.java

COLUMNS = [
    ("k", "INT NOT NULL"), ("p", "INT NOT NULL"), ("b", "BOOLEAN"), ("i1", "TINYINT"), ("i8", "BIGINT"), ("f", "FLOAT"),
    ("x", "DOUBLE"), ("s", "STRING"), ("c", "CHAR(3)"), ("by", "BYTES"), ("d", "DECIMAL(9, 2)"), ("w", "DECIMAL(30, 2)"),
    ("dt", "DATE"), ("tm", "TIME(3)"), ("t3", "TIMESTAMP(3)"), ("t9", "TIMESTAMP(9)"),
    ("tz", "TIMESTAMP(6) WITH LOCAL TIME ZONE"), ("ar", {"type": "ARRAY", "element": "INT"}),
    ("m", {"type": "MAP", "key": "STRING NOT NULL", "value": "INT"}),
    ("mi", {"type": "MAP", "key": "INT NOT NULL", "value": "INT"}),
    ("mm", {"type": "MAP", "key": "STRING NOT NULL", "value": {"type": "ARRAY", "element": "INT"}}),
    ("ms", {"type": "MULTISET", "element": "INT"}), ("r", {"type": "ROW", "fields": [{"id": 30, "name": "x", "type": "INT"}]}),
]  # fmt: skip
KINDS = ("bloom-filter", "bitmap", "bsi", "range-bitmap")
ODD_NAMES = ["m[a]", "mi[1]", "mm[a]", "s[a]", "m[", "zz", "", "k,", "k,k", "K", "k ,s", "r.x", "ar[0]", "r[x]", "m[a],m"]
INDEX_OPTIONS = {
    "bloom-filter.k.items": ["0", "-1", "abc", "1.5", "100", "999999999999", ""],
    "bloom-filter.k.fpp": ["0", "1", "-1", "2", "abc", "NaN", "0.5", ""],
    "bitmap.k.version": ["0", "1", "2", "3", "x"],
    "bitmap.k.index-block-size": ["0", "-1", "16 kb", "x", "1 b"],
    "range-bitmap.k.chunk-size": ["0", "-1", "16 kb", "x", "1 b"],
    "bloom-filter.s.items": ["5"],
    "bloom-filter.k.itms": ["5"],
}
BUCKETS = ["0", "-1", "-2", "-3", "1", "2", "abc", "1.5", "", "2147483648", " 2"]
BUCKET_KEYS = ["zz", "k,k", "p", "", "k,", "k, s", "ar", "r", "m", "ms", "x", "w", "b", "by", "t9", "r.x", " k", "K", "s"]
COUNTS = {
    "dynamic-bucket.initial-buckets": "-1", "dynamic-bucket.target-row-num": "-1", "dynamic-bucket.max-buckets": "-1",
    "dynamic-bucket.assigner-parallelism": "-1", "postpone.default-bucket-num": "-2",
    "postpone.target-row-num-per-bucket": "-2",
}  # fmt: skip


def cases():
    """Options, primary key, partition keys."""
    for kind in KINDS:
        for name in [*(name for name, _ in COLUMNS), *ODD_NAMES]:
            yield {f"file-index.{kind}.columns": name}, (), ()
    for name in ("bogus.columns", "columns", "bloom_filter.columns"):
        yield {f"file-index.{name}": "k"}, (), ()
    for name, values in INDEX_OPTIONS.items():
        for value in values:
            yield {f"file-index.{name.split('.')[0]}.columns": "k", f"file-index.{name}": value}, (), ()
    for bucket in BUCKETS:
        yield {"bucket": bucket}, (), ()
        yield {"bucket": bucket}, ("k",), ()
        yield {"bucket": bucket, "bucket-key": "k"}, (), ()
        yield {"bucket": bucket}, ("k", "p"), ("p",)
    for key in BUCKET_KEYS:
        yield {"bucket": "2", "bucket-key": key}, (), ()
        yield {"bucket": "2", "bucket-key": key}, (), ("p",)
        yield {"bucket": "2", "bucket-key": key}, ("k", "s"), ()
    for function in ("default", "mod", "hive", "bogus"):
        for key in ("k", "k,i8", "ar", *(name for name, _ in COLUMNS[2:17])):
            yield {"bucket": "2", "bucket-key": key, "bucket-function.type": function}, (), ()
    for name, bucket in COUNTS.items():
        for value in ("0", "-1", "x", "1"):
            yield {"bucket": bucket, name: value}, ("k",), ()
            yield {"bucket": "2", name: value}, ("k",), ()


def row(schema):
    plain = {
        pa.int32(): 1, pa.int8(): 1, pa.int64(): 1, pa.float32(): 1.0, pa.float64(): 1.0, pa.string(): "a",
        pa.binary(): b"a", pa.bool_(): True, pa.date32(): datetime.date(2020, 1, 1), pa.time32("ms"): datetime.time(1),
    }  # fmt: skip

    def value(kind):
        if pa.types.is_decimal(kind):
            return Decimal(1)
        return datetime.datetime(2020, 1, 1) if pa.types.is_timestamp(kind) else plain.get(kind)

    return pa.Table.from_pylist([{field.name: value(field.type) for field in schema}], schema=schema)


def test_java_refuses_nothing_that_we_take(java, tmp_path):
    catalog = Catalog.open(tmp_path / "ours")
    catalog.create_database("db")
    asked = list(cases())
    steps = []
    for number, (options, keys, parts) in enumerate(asked):
        steps.append(
            {"op": "create", "table": f"db.t{number}", "columns": [list(column) for column in COLUMNS],
             "primaryKeys": list(keys), "partitionKeys": list(parts), "tableOptions": options}
        )  # fmt: skip
    (tmp_path / "java").mkdir()
    outputs = java("2.0.0").run(str(tmp_path / "java"), steps, check=False)
    taken = refused = 0
    for number, ((options, keys, parts), output) in enumerate(zip(asked, outputs, strict=True)):
        try:
            made = catalog.create_table(
                f"db.t{number}", Schema(COLUMNS), primary_key=keys, partition_by=parts, options=options
            )
        except (OptionError, UsageError) as error:
            words = [*options, *(text for text in options.values() if text), "'bucket'", "column '"]
            assert any(word in str(error) for word in words), (options, error)
            assert not os.path.exists(tmp_path / "ours" / "db.db" / f"t{number}"), options
            refused += 1
            continue
        assert output["ok"], (options, keys, parts, output)
        taken += 1
        if number % 5 == 0:
            made.write_arrow(row(made.scan().schema))
            assert made.scan(where="k = 1").count() == (0 if options.get("bucket") == "-2" else 1), options
    assert taken > 100 and refused > 150
