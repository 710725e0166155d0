"""Questions to `files.expiry`: which rows have ended by age, for every type that can say when they began?"""

from __future__ import annotations

import pyarrow as pa
import pytest

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.binary_row import encode
from paimon_py.files.expiry import RecordExpiry
from paimon_py.spec.data_file import DataFile, Stats
from paimon_py.spec.new_schema import Schema, TableSpec, new_table_schema
from paimon_py.spec.type_text import parse_type

NOW = 1_700_000_000_999
HOUR_AGO = 1_700_000_000 - 3600


def table(kind="INT", **options):
    given = {"bucket": "1", "record-level.time-field": "t", "record-level.expire-time": "1 h", **options}
    spec = TableSpec(primary_keys=("k",), options=given)
    return new_table_schema(Schema([("k", "INT"), ("t", kind)]), spec, time_millis=0)


def left(kind, values):
    expiry = RecordExpiry.of(table(kind), NOW)
    column = pa.array(values, pa.int64()).cast(to_arrow_type(parse_type(kind)))
    batches = list(expiry.alive([pa.record_batch({"k": pa.array(range(len(values))), "t": column})]))
    return [row for batch in batches for row in batch.column("k").to_pylist()]


@pytest.mark.parametrize(
    ("kind", "unit"),
    [("INT", 1), ("BIGINT", 1), ("BIGINT", 1000), ("TIMESTAMP(0)", 1), ("TIMESTAMP(3)", 1000),
     ("TIMESTAMP(6)", 1_000_000), ("TIMESTAMP(9)", 10**9), ("TIMESTAMP_LTZ(3)", 1000)],
)  # fmt: skip
def test_rows_end_once_they_are_older_than_the_option_says(kind, unit):
    assert left(kind, [HOUR_AGO * unit, (HOUR_AGO - 1) * unit, None, (HOUR_AGO + 9999) * unit, 0]) == [0, 2, 3]


def test_parts_of_a_second_are_cut_off_toward_1970():
    assert left("TIMESTAMP(3)", [HOUR_AGO * 1000 + 999, HOUR_AGO * 1000 - 1]) == [0]
    assert RecordExpiry.of(table("TIMESTAMP(3)"), 3_600_000).oldest == 0
    column = pa.array([-1, -999, -1000, -1001], pa.int64()).cast(pa.timestamp("ms"))
    batch = pa.record_batch({"t": column})
    (kept,) = RecordExpiry.of(table("TIMESTAMP(3)"), 3_600_000).alive([batch])
    assert kept.num_rows == 2


def test_batches_without_the_column_stay_and_empty_ones_go():
    expiry = RecordExpiry.of(table(), NOW)
    bare = pa.record_batch({"k": pa.array([1])})
    assert list(expiry.alive([bare])) == [bare]
    assert list(expiry.alive([pa.record_batch({"t": pa.array([0, 1], pa.int32())})])) == []


def test_a_table_without_the_options_keeps_all():
    schema = new_table_schema(Schema([("k", "INT")]), TableSpec(primary_keys=("k",), options={"bucket": "1"}), time_millis=0)
    assert RecordExpiry.of(schema, NOW) is None


def file(schema, low, columns=None):
    fields = [field for field in schema.fields if columns is None or field.name in columns]
    values = {"k": pa.array([1], pa.int32()), "t": pa.array([low], to_arrow_type(schema.field("t").type))}
    row = encode([values[field.name] for field in fields], [field.type for field in fields])[0].as_py()
    return DataFile(
        name=f"f{low}{columns}", size_bytes=1, row_count=1, min_sequence=0, max_sequence=0, schema_id=schema.id, level=5,
        value_stats=Stats(row, row, (0,) * len(fields)), value_stats_columns=columns,
    )  # fmt: skip


def test_files_with_an_old_row_are_known_by_their_statistics():
    schema = table()
    files = [
        file(schema, HOUR_AGO - 1),
        file(schema, HOUR_AGO),
        file(schema, None),
        file(schema, 5, ("t",)),
        file(schema, 6, ("k",)),
    ]
    expiry = RecordExpiry.of(schema, NOW)
    assert expiry.find_expired(files, lambda _: schema) == {files[0].name, files[3].name}
