"""Bounds of stripes with decimals of more than 28 digits were rounded, and their rows were not found by value."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from paimon_py import col
from tests.unit.scan.build import table

WIDE = [Decimal(sign + "9" * 34 + ".9998") for sign in ("-", "")]


def test_a_wide_decimal_is_found_in_an_orc_file():
    for value in WIDE:
        options = {"bucket": "1", "write-only": "true", "file.format": "orc"}
        orders = table([("k", "DECIMAL(38, 4) NOT NULL"), ("v", "INT")], options=options, primary_key=["k"])
        shape = pa.schema([pa.field("k", pa.decimal128(38, 4), False), ("v", pa.int32())])
        orders.write_arrow(pa.table({"k": [value], "v": [1]}, schema=shape))
        assert orders.lookup([value]).num_rows == 1
        assert orders.scan(where=col("k") == value).to_arrow().num_rows == 1
