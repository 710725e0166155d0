"""Files of every type, format and codec that we write, read by Java; and what its push-down makes of their statistics."""

from __future__ import annotations

import datetime
import decimal
import random

import golden
import pyarrow as pa
import pytest
from unit.formats.samples import every_type, make_batch
from values import canonical_rows, difference, ours

from paimon_py import Catalog, Schema
from paimon_py.formats.parquet import write as parquet_write
from paimon_py.spec.type_text import print_type
from paimon_py.spec.types import VectorType

pytestmark = pytest.mark.java

CODECS = {
    "parquet": ("zstd", "none", "snappy", "gzip", "lz4"),
    "orc": ("zstd", "none", "zlib", "snappy", "lz4"),
    "avro": ("zstd", "null", "deflate", "snappy", "bzip2", "xz"),
}


def create(warehouse, columns, options):
    catalog = Catalog.open(str(warehouse))
    catalog.create_database("db")
    return catalog.create_table("db.t", Schema(columns), options={"bucket": "-1", **options})


def read(session, warehouse, columns, **extra):
    step = {"op": "read", "table": "db.t", **extra}
    return canonical_rows(columns, session.run(str(warehouse), [step], check=True)[0]["result"])


def columns_for(format_name, version):
    """Java 0.9 shifts NOT NULL items of lists and maps in Parquet and takes a row of nulls for null, in its own files too.

    VECTOR came with 2.0, in Avro with 1.4.
    """
    knows_vectors = version == "2.0.0" or (format_name, version) == ("avro", "1.4.2")
    fields = [field for field in every_type(format_name) if knows_vectors or not isinstance(field.type, VectorType)]
    if (format_name, version) != ("parquet", "0.9.0"):
        return fields
    wrong = ("MULTISET", "STRING NOT NULL")
    return [f for f in fields if f.name != "row" and not any(word in str(print_type(f.type)) for word in wrong)]


@pytest.mark.parametrize("version", ["2.0.0", "1.4.2", "0.9.0"])
@pytest.mark.parametrize("format_name", CODECS)
def test_java_reads_every_type(format_name, version, java, tmp_path):
    fields = columns_for(format_name, version)
    columns = [[field.name, print_type(field.type)] for field in fields]
    for codec in CODECS[format_name] if version == "2.0.0" else CODECS[format_name][:1]:
        warehouse = tmp_path / codec
        table = create(warehouse, columns, {"file.format": format_name, "file.compression": codec})
        first, second = make_batch(fields, format_name, 1, 60), make_batch(fields, format_name, 2, 60)
        batches = [first, second.slice(7, 20), first.slice(59)]
        for batch in batches:
            table.write_arrow(pa.Table.from_batches([batch]))
        want = ours(columns, pa.Table.from_batches(batches))
        assert difference(columns, want, read(java(version), warehouse, columns)) is None, codec
        assert difference(columns, want, ours(columns, table.scan().to_arrow())) is None, codec


FILTERS = [
    ["=", "d", "NaN"], [">", "d", 100.0], [">=", "f", 120.0], ["<", "d", -90.0], ["!=", "d", 0.0], ["=", "d", -0.0],
    ["=", "d", 0.0], ["between", "d", -5.0, 5.0], ["in", "d", [1.0, "NaN"]], ["=", "i", 777], ["<", "l", -480],
    [">", "m", "600.00"], ["=", "n", "5.0000000000"], ["startsWith", "s", "é" * 190], ["isNull", "z"],
    [">", "z", "2002-09-01T00:00:00"], ["between", "t", "2001-01-01T00:00:00", "2001-01-05T00:00:00"],
]  # fmt: skip
TYPES = {
    "i": "INT",
    "s": "STRING",
    "d": "DOUBLE",
    "f": "FLOAT",
    "m": "DECIMAL(9, 2)",
    "n": "DECIMAL(38, 10)",
    "t": "TIMESTAMP(6)",
    "z": "TIMESTAMP(9)",
    "l": "BIGINT",
}


def filtered_rows(count):
    source = random.Random(3)
    start = datetime.datetime(2000, 1, 1)

    def row(n):
        number = float("nan") if 300 < n < 320 or n % 311 == 0 else {500: -0.0, 600: 0.0}.get(n, n / 4 - 100)
        when = start + datetime.timedelta(days=n, microseconds=n)
        text = "é" * source.randint(0, 200) + str(n)
        values = (n, text, number, number, decimal.Decimal(n) - 300, decimal.Decimal(n) - 300, when, when, n - 500)
        return {name: None if source.random() < 0.05 else value for name, value in zip(TYPES, values)}

    return [row(n) for n in range(count)]


@pytest.mark.parametrize("version", ["2.0.0", "1.4.2", "0.9.0"])
@pytest.mark.parametrize("format_name", ["parquet", "orc"])
def test_java_loses_no_rows_by_our_statistics(format_name, version, java, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_write, "ROW_GROUP_ROWS", 100)
    columns = [[name, kind] for name, kind in TYPES.items()]
    table = create(tmp_path, columns, {"file.format": format_name, "orc.row.index.stride": "1000"})
    rows = filtered_rows(1000)
    table.write_arrow(pa.Table.from_pylist(rows, table.scan().to_arrow().schema))
    types = {name: golden.parse_type(kind) for name, kind in columns}
    everything = ours(columns, table.scan().to_arrow())
    matching = 0
    for tree in FILTERS:
        want = [row for row in everything if golden.matches(dict(zip(TYPES, row)), tree, types)]
        found = read(java(version), tmp_path, columns, filter=tree)
        got = [row for row in found if golden.matches(dict(zip(TYPES, row)), tree, types)]
        assert difference(columns, want, got) is None, tree
        matching += bool(want)
    assert matching >= 14
