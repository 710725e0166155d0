"""Python rounds sums and shifts of decimals to 28 digits where nobody says otherwise. Bounds of ORC stripes were rounded so,
and reads by longer decimals lost rows (random table 1425 of tests/interop/wide_scripts.py); texts a hair beside the middle
of two small floats were cast to the wrong one."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from unit.public import new_catalog

from paimon_py import col
from paimon_py.files.casts.cast import cast
from paimon_py.spec.type_text import parse_type

LONG = [Decimal("9999999999999999999999999999.9999999999"), Decimal("-1234567890123456789012345678.9012345678"),
        Decimal("12345678901234567890123456.7890123455"), Decimal("0E-10")]  # fmt: skip


@pytest.mark.parametrize("fmt", ["orc", "parquet", "avro"])
def test_long_decimals_are_found_in_every_format(fmt, tmp_path):
    schema = pa.schema([pa.field("k", pa.decimal128(38, 10), nullable=False), ("n", pa.int32())])
    options = {"bucket": "1", "write-only": "true", "file.format": fmt}
    table = new_catalog(tmp_path).create_table("d.t", schema, primary_key=["k"], options=options)
    for number, value in enumerate(LONG):
        table.write_arrow(pa.table([pa.array([value], schema[0].type), [number]], schema))
    for number, value in enumerate(LONG):
        assert table.scan(where=col("k") == value).to_arrow()["n"].to_pylist() == [number]
        assert table.lookup({"k": value})["n"].to_pylist() == [number]


def test_texts_beside_the_middle_of_two_small_floats_go_to_the_nearer_one():
    middle = f"{Decimal(2.0**-150):f}"
    texts = pa.array([f"{text}f" for text in (middle, middle + "1", "-" + middle + "1", middle[:-1])])
    floats = cast(texts, parse_type("STRING"), parse_type("FLOAT")).to_pylist()
    assert floats == [0.0, 2.0**-149, -(2.0**-149), 0.0]
