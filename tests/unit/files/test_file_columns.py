"""What files of one schema have in common is derived once, and never used for a file that differs."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from unit.files.build import fields, schema

from paimon_py.errors import CorruptionError
from paimon_py.files.file_columns import file_columns
from paimon_py.formats.base import Alike, ReadSettings
from paimon_py.formats.registry import format_of

COLUMNS = ((0, "a", "INT"), (1, "b", "STRING"), (2, "d", "DECIMAL(5, 2)"))
TABLE = schema(*COLUMNS)


def test_it_is_derived_once_for_equal_schemas_and_questions():
    again = schema(*COLUMNS, schema_id=7)
    first = file_columns(TABLE, None, TABLE.fields, frozenset())
    assert file_columns(again, None, again.fields, frozenset()) is first
    assert first.columns_for(frozenset(["a"])) is first.columns_for(frozenset(["a"]))


@pytest.mark.parametrize("other", [
    (schema(*COLUMNS, keys=("a",)), None, TABLE.fields, frozenset()),
    (schema(*COLUMNS[:2]), None, TABLE.fields, frozenset()),
    (TABLE, ("a", "b"), TABLE.fields, frozenset()),
    (TABLE, None, TABLE.fields[:1], frozenset()),
    (TABLE, None, fields((0, "a", "BIGINT"), *COLUMNS[1:]), frozenset()),
    (TABLE, None, TABLE.fields, frozenset([1])),
    (schema(*COLUMNS, options={"data-evolution.enabled": "true"}), None, TABLE.fields, frozenset()),
    (schema(*COLUMNS, keys=("a",), options={"data-file.thin-mode": "true"}), None, TABLE.fields, frozenset()),
], ids=str)  # fmt: skip
def test_whatever_it_is_derived_from_makes_a_difference(other):
    assert file_columns(*other) is not file_columns(TABLE, None, TABLE.fields, frozenset())


def test_it_says_what_a_reader_of_one_column_needs():
    columns = file_columns(TABLE, None, TABLE.fields[:1], frozenset())
    assert [field.name for field in columns.columns_for(frozenset()).fields] == ["a"]
    assert [field.name for field in columns.columns_for(frozenset(["d"])).fields] == ["a", "d"]
    assert columns.may_hold_decimals and columns.columns_for(frozenset()).may_lack == {"a"}


def file_of(**arrays):
    sink = io.BytesIO()
    pq.write_table(pa.table(arrays), sink, store_schema=False)
    return sink.getvalue()


def read(data, asked, alike):
    opened = format_of("parquet").open(io.BytesIO(data), "/t/f", asked, len(data), ReadSettings(alike=alike))
    ((_, batch),) = opened.positioned_batches([field.name for field in asked], batch_rows=100)
    return batch.to_pylist()


def test_files_of_one_shape_share_their_columns_and_others_do_not():
    asked, alike = list(fields((0, "a", "BIGINT"), (1, "b", "STRING"))), Alike()
    plain = file_of(a=pa.array([1, None]), b=pa.array(["x", "y"]))
    assert read(plain, asked, alike) == [{"a": 1, "b": "x"}, {"a": None, "b": "y"}]
    known = alike.known
    assert read(plain, asked, alike)[0] == {"a": 1, "b": "x"} and alike.known is known
    swapped = file_of(b=pa.array(["z"]), a=pa.array([3]))
    assert read(swapped, asked, alike) == [{"a": 3, "b": "z"}] and alike.known is not known
    views = file_of(a=pa.array([4]), b=pa.array(["w"]).cast(pa.large_string()))
    assert read(views, asked, alike) == [{"a": 4, "b": "w"}]


def test_times_of_96_bits_are_found_after_files_without_them_and_the_other_way_round():
    asked, alike = list(fields((0, "t", "TIMESTAMP(9)"))), Alike()
    times = pa.table({"t": pa.array([1_000_000_007, None], pa.timestamp("ns"))})
    plain, wide = io.BytesIO(), io.BytesIO()
    pq.write_table(times, plain, version="2.6", store_schema=False)
    pq.write_table(times, wide, use_deprecated_int96_timestamps=True, store_schema=False)
    expected = times.to_pylist()
    for data in (plain, wide, wide, plain, plain, wide):
        assert read(data.getvalue(), asked, alike) == expected


def test_a_file_that_lacks_a_column_is_damaged_though_the_one_before_had_it():
    asked, alike = list(fields((0, "a", "BIGINT"), (1, "b", "STRING"))), Alike()
    read(file_of(a=pa.array([1]), b=pa.array(["x"])), asked, alike)
    with pytest.raises(CorruptionError, match="b"):
        read(file_of(a=pa.array([1])), asked, alike)
