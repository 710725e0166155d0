"""Membership in a set that is much larger than the rows that are asked."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.expr.arrow import evaluate
from paimon_py.expr.bind import bind
from paimon_py.expr.column import col
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field

KINDS = {
    "TINYINT": lambda n: n - 60,
    "SMALLINT": lambda n: n - 60,
    "INT": lambda n: n - 60,
    "BIGINT": lambda n: (n - 60) * 2**56,
    "DATE": lambda n: datetime.date(1970, 1, 1) + datetime.timedelta(n - 60),
    "TIMESTAMP(6)": lambda n: datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=n - 60, microseconds=7),
    "DOUBLE": lambda n: n / 7 - 3,
    "STRING": lambda n: f"x{n}",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("negated", [False, True])
def test_few_rows_in_a_large_set(kind, negated):
    value, arrow = KINDS[kind], to_arrow_type(parse_type(kind))
    allowed = [value(n) for n in range(0, 120, 2)]
    predicate = bind(~col("c").isin(allowed) if negated else col("c").isin(allowed), [Field(0, "c", parse_type(kind))])
    rows = [value(n) if n % 5 else None for n in np.random.default_rng(3).integers(-3, 123, 200).tolist()]
    for start in range(0, 200, 7):
        some = pa.array(rows, arrow).slice(start, 7)
        wanted = [row is not None and (row in allowed) != negated for row in rows[start : start + 7]]
        assert evaluate(predicate, {"c": some}).to_pylist() == wanted
    assert evaluate(predicate, {"c": pa.nulls(3, arrow)}).to_pylist() == [False] * 3
    assert evaluate(predicate, {"c": pa.array([], arrow)}).to_pylist() == []
