"""Small Parquet files joined into one: the rows of each, or a file that is left out."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_py.formats.parquet.joined import join_files

MANY = 1 << 30


def written(table, **settings):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **{"store_schema": False, "write_page_checksum": True, **settings})
    return sink.getvalue().to_pybytes()


def rows_of(data, columns=None):
    file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
    return pa.Table.from_batches(list(file.iter_batches(1 << 16, columns=columns, use_threads=False)))


def made(number, count=7):
    keys = range(100 * number, 100 * number + count)
    return pa.table({
        "k": pa.array(keys, pa.int64()),
        "v": pa.array([None if key % 3 == 0 else key for key in keys], pa.int32()),
        "s": ["" if key % 5 == 0 else f"text {key}" * (number + 1) for key in keys],
        "d": [float("nan") if key % 4 == 0 else key / 7 for key in keys],
        "b": [None if key % 2 else key % 5 == 0 for key in keys],
        "m": pa.array([Decimal(key) / 100 for key in keys], pa.decimal128(21, 2)),
        "l": [None if key % 6 == 0 else [key] * (key % 4) for key in keys],
        "r": [None if key % 7 == 3 else {"x": key, "y": str(key)} for key in keys],
    })  # fmt: skip


SETTINGS = {
    "as we write": {"compression": "zstd", "use_dictionary": ["s"], "store_decimal_as_integer": True},
    "dictionaries": {"compression": "snappy", "use_dictionary": True},
    "no statistics": {"compression": "none", "use_dictionary": False, "write_statistics": False},
    "page index": {"compression": "gzip", "write_page_index": True},
    "several row groups": {"row_group_size": 3},
    "arrow schema": {"store_schema": True},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_rows_are_those_of_the_files(name):
    tables = [made(number, 5 + number) for number in range(6)]
    joined = join_files([written(table, **SETTINGS[name]) for table in tables], tables[0].column_names, MANY)
    assert joined.places == list(range(6))
    assert joined.row_counts == [table.num_rows for table in tables]
    found, expected = rows_of(joined.data), pa.concat_tables(tables)
    assert found.to_pydict().__repr__() == expected.cast(found.schema).to_pydict().__repr__()


def test_columns_that_are_not_read_may_have_any_pages():
    tables = [made(number, 400) for number in range(3)]
    files = [written(table, data_page_size=64, write_batch_size=8, use_dictionary=False) for table in tables[:2]]
    assert join_files(files, ["k"], MANY) is None, "several pages"
    one = [written(table.select(["k"]).append_column("s", table["s"])) for table in tables]
    assert rows_of(join_files(one, ["k"], MANY).data, ["k"])["k"].to_pylist() == pa.concat_tables(tables)["k"].to_pylist()


def test_other_files_are_left_out():
    table = made(1)
    good = written(table)
    others = {
        "of another schema": written(table.rename_columns([name.upper() for name in table.column_names])),
        "with other properties": written(table.replace_schema_metadata({"a": "b"}), store_schema=True),
        "of the second page version": written(table, data_page_version="2.0"),
        "without checksums of nested columns": written(table, write_page_checksum=False),
        "cut off": good[:-3],
        "empty": b"",
        "nothing but an end": good[-8:],
        "something else": b"PAR1 is not enough PAR1",
    }
    for name, data in others.items():
        assert join_files([good, data, good], table.column_names, MANY).places == [0, 2], name
    assert join_files([good], table.column_names, MANY) is None
    assert join_files([], table.column_names, MANY) is None
    size = sum(column.total_uncompressed_size for column in _chunks(good))
    assert join_files([good] * 5, table.column_names, 3 * size).places == [0, 1, 2]


def _chunks(data):
    group = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0)
    return [group.column(number) for number in range(group.num_columns)]


@pytest.mark.parametrize("settings", [
    {"compression": "none", "use_dictionary": False, "write_page_checksum": False},
    {"compression": "zstd", "use_dictionary": True},
], ids=["plain", "dictionary"])  # fmt: skip
def test_a_damaged_file_changes_no_other_rows(settings):
    tables = [made(number, 4).select(["k", "v", "s", "b"]) for number in range(3)]
    goods = [written(table, **settings) for table in tables]
    rng = random.Random(len(goods[1]))
    joined_count = 0
    for place in rng.sample(range(len(goods[1])), 250):
        damaged = bytearray(goods[1])
        damaged[place] ^= 1 << rng.randrange(8)
        joined = join_files([goods[0], bytes(damaged), goods[2]], tables[0].column_names, MANY)
        assert joined is not None
        if joined.places != [0, 1, 2] or joined.row_counts != [4, 4, 4]:
            continue
        try:
            found = rows_of(joined.data)
        except (pa.ArrowException, OSError):
            continue
        joined_count += 1
        if found.num_rows == 12:
            assert found.slice(0, 4).equals(tables[0]), place
            assert found.slice(8).equals(tables[2]), place
            alone = _alone(bytes(damaged))
            assert alone is None or found.slice(4, 4).equals(alone), place
    assert joined_count > 10


def _alone(data):
    try:
        return rows_of(data)
    except (pa.ArrowException, OSError):
        return None
