"""Numbers that are assigned to columns with fewer decimal places."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from paimon_py import SchemaError
from paimon_py.rows.fractions import without_fractions
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field


@pytest.mark.parametrize(
    ("given", "wanted", "value", "converted"),
    [
        (pa.decimal128(2, 2), "DECIMAL(5, 0)", Decimal("0.00"), Decimal(0)),
        (pa.decimal128(2, 2), "DECIMAL(5, 0)", Decimal("0.50"), None),
        (pa.decimal128(5, 2), "DECIMAL(5, 1)", Decimal("12.30"), Decimal("12.3")),
        (pa.decimal128(5, 2), "DECIMAL(5, 1)", Decimal("12.34"), None),
        (pa.decimal128(5, 2), "INT", Decimal("7.00"), 7),
        (pa.decimal128(5, 2), "INT", Decimal("7.01"), None),
        (pa.float64(), "BIGINT", 7.0, 7),
        (pa.float64(), "BIGINT", 7.5, None),
        (pa.decimal128(5, 2), "DOUBLE", Decimal("7.25"), 7.25),
    ],
)
def test_a_number_is_converted_if_nothing_of_it_is_lost(given, wanted, value, converted):
    whole = without_fractions(given, Field(0, "v", parse_type(wanted)))
    array = pa.array([None, value], given)
    if converted is None:
        with pytest.raises(SchemaError, match=r"v: .* \(row 1 of a batch\) does not fit"):
            whole.step(array)
    else:
        made = whole.step(array)
        assert made.to_pylist() == [None, converted]
        assert made.type == whole.type
