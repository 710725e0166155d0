"""Small Parquet files that are decoded as one file: they have the rows that each of them has alone."""

from __future__ import annotations

import io
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from unit.public import new_catalog

from paimon_py.formats.parquet.footer import leaf_elements, split_tail, tail
from paimon_py.formats.parquet.joined import join_files
from paimon_py.formats.parquet.thrift import BINARY, I64, LIST, STRUCT, Reader, Sequence, encode
from paimon_py.scan import parcel

CODECS = ["snappy", "zstd", "none", "gzip", "lz4"]
COLUMNS = ["i", "s", "l", "d"]


def settings_of(chance):
    """How a writer writes its files."""
    return {
        "compression": chance.choice(CODECS), "use_dictionary": chance.random() < 0.5, "row_group_size": chance.choice([None, 9]),
        "data_page_version": chance.choice(["1.0", "2.0"]), "write_page_index": chance.random() < 0.3, "write_statistics": chance.random() < 0.7,
        "write_page_checksum": chance.random() < 0.8,
    }  # fmt: skip


def some_files(chance, number):
    """Files of a writer, and some of others."""
    usual = {**settings_of(chance), "write_page_checksum": True, "data_page_version": "1.0"}
    return [some_file(chance, usual if at < 3 or chance.random() < 0.8 else settings_of(chance)) for at in range(number)]


def some_file(chance, settings):
    def column(value):
        return [None if chance.random() < nulls else value() for _ in range(count)]

    count, nulls = chance.choice([1, 3, 20]), chance.choice([0.1, 0.1, 1])
    rows = pa.table({
        "i": pa.array(column(lambda: chance.randrange(9)), pa.int32()), "s": pa.array(column(lambda: "é" * chance.choice([0, 2, 40])), pa.string()),
        "l": pa.array(column(lambda: [1] * chance.randrange(3)), pa.list_(pa.int64())), "d": pa.array(column(lambda: 1.5), pa.float64()),
    })  # fmt: skip
    sink = io.BytesIO()
    pq.write_table(rows, sink, **settings)
    return sink.getvalue()


def rows_of(data):
    return pq.ParquetFile(io.BytesIO(data)).read()


def edited(data, edit):
    """The file with other metadata of its columns."""
    body, footer = split_tail(data)
    found = Reader(footer).struct()
    for group in found[4][1].items:
        for chunk in group[1][1].items:
            edit(chunk[3][1])
    return body + tail(encode(found))


@pytest.mark.parametrize("seed", range(10))
def test_a_joined_file_has_the_rows_of_its_files(seed):
    chance = random.Random(seed)
    files = some_files(chance, 16)
    joined = join_files(files, COLUMNS, 1 << 20)
    assert joined is not None and len(joined.places) > 1
    assert rows_of(joined.data).equals(pa.concat_tables([rows_of(files[place]) for place in joined.places]))
    assert joined.row_counts == [rows_of(files[place]).num_rows for place in joined.places]


def test_metadata_that_few_writers_write_are_left_out_or_harmless():
    texts = LIST, Sequence(STRUCT, [{1: (BINARY, b"key"), 2: (BINARY, b"value")}])
    chance = random.Random(0)
    files = [some_file(chance, {"write_page_checksum": True}) for _ in range(9)]
    assert join_files([edited(data, lambda column: column.update({8: texts})) for data in files], COLUMNS, 1 << 20) is None
    filters = [edited(data, lambda column: column.update({14: (I64, 2 * chance.randrange(99))})) for data in files]
    joined = join_files(filters, COLUMNS, 1 << 20)
    assert joined is not None
    assert rows_of(joined.data).equals(pa.concat_tables([rows_of(files[place]) for place in joined.places]))


def test_imported_files_are_read_together_as_they_are_read_alone(tmp_path, monkeypatch):
    chance = random.Random(3)
    source = tmp_path / "source"
    source.mkdir()
    for number, data in enumerate(some_files(chance, 30)):
        if number % 5 == 0:
            texts = LIST, Sequence(STRUCT, [{1: (BINARY, b"key")}])
            data = edited(data, lambda column, texts=texts: column.update({8: texts}))  # noqa: PLW2901
        (source / f"f{number:02}.parquet").write_bytes(data)
    catalog = new_catalog(tmp_path / "lake")
    catalog.import_files("d.t", source)
    table = catalog.table("d.t")
    together = table.to_arrow()
    monkeypatch.setattr(parcel, "is_small", lambda _file: False)
    assert together.equals(table.to_arrow()) and together.num_rows


def test_a_schema_element_without_a_name_is_damage():
    root = {4: (BINARY, b"root"), 5: (I64, 2)}
    for elements in ([root, {4: (I64, 2)}], [root, {1: (I64, 2)}], [root, 7], [7]):
        with pytest.raises(ValueError, match="a schema"):
            leaf_elements(elements)
