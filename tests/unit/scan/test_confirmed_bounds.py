"""Footers whose bounds contradict the manifest entry leave nothing out of a filtered scan."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pyarrow as pa
import pytest
from unit.public import QUICK

from paimon_py import Catalog, PaimonError, col
from paimon_py.expr.bind import bind
from paimon_py.expr.prune import Bounds
from paimon_py.formats.part_bounds import matching_parts
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field

ROWS = 600
DATA = pa.table({
    "n": pa.array(range(ROWS), pa.int64()), "d": pa.array([i / 4 for i in range(ROWS)]),
    "s": [f"text {i:04} of the table" for i in range(ROWS)], "x": pa.array([None if i % 3 else i for i in range(ROWS)], pa.int32()),
})  # fmt: skip


QUESTIONS = (
    col("n") >= 590, col("n") < 10, col("d") > 148.0, col("s") == "text 0599 of the table", col("s") < "text 0003",
    col("x").is_null(), col("x") == 0,
)  # fmt: skip


def test_flipped_bits_of_a_parquet_footer_change_hardly_any_answer(tmp_path):
    """Every seventh bit, one question each: 0.3 % at most answer otherwise."""
    catalog = Catalog.open(tmp_path / "wh", QUICK)
    catalog.create_database("d")
    table = catalog.create_table("d.t", DATA.schema)
    table.write_arrow(DATA)
    (path,) = Path(table.location).rglob("data-*.parquet")
    right = [table.scan(where=question).to_arrow() for question in QUESTIONS]
    whole = path.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    wrong, bits = 0, range(8 * footer, 8 * len(whole), 7)
    for number, bit in enumerate(bits):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        place = number % len(QUESTIONS)
        with contextlib.suppress(PaimonError):
            wrong += table.scan(where=QUESTIONS[place]).to_arrow() != right[place]
    assert len(bits) > 500 and wrong <= 0.003 * len(bits), (len(bits), wrong)


def bounds(lows, highs, nulls, kind):
    return Bounds(min=pa.array(lows, kind), max=pa.array(highs, kind), null_count=pa.array(nulls, pa.int64()))


@pytest.mark.parametrize(("lows", "highs", "nulls", "kind", "known", "is_trusted"), [
    ([1, 5], [4, 9], [0, 1], pa.int64(), (1, 9, 1), True),
    ([1, 5], [4, 9], [0, 1], pa.int64(), (1, 9, 2), False),
    ([2, 5], [4, 9], [0, 1], pa.int64(), (1, 9, 1), False),
    ([1, 5], [4, 8], [0, 1], pa.int64(), (1, 9, 1), False),
    ([1, 5], [4, 8], [0, 1], pa.int64(), (None, None, None), True),
    ([1, None], [4, None], [0, 3], pa.int64(), (1, 4, 3), True),
    (["abc", "abd"], ["abc", "b"], [0, 0], pa.string(), ("ab", "cc", 0), False),
    (["abc", "b1"], ["abd", "b2zz"], [0, 0], pa.string(), ("ab", "b3", 0), True),
    (["abc", "b1"], ["abd", "b2zz"], [0, 0], pa.string(), ("abc", "b2zz", 0), True),
    (["abc", "b1"], ["abd", "a2zz"], [0, 0], pa.string(), ("abc", "b2zz", 0), False),
])  # fmt: skip
def test_bounds_leave_parts_out_only_if_the_whole_confirms_them(lows, highs, nulls, kind, known, is_trusted):
    predicate = bind(col("c") < min(low for low in lows if low is not None), [Field(0, "c", parse_type("STRING" if kind == pa.string() else "BIGINT"))])
    least, most, count = known
    whole = {"c": bounds([least], [most], [count], kind)}
    asked = []

    def of_whole():
        asked.append(True)
        return whole

    found = matching_parts(predicate, {"c": bounds(lows, highs, nulls, kind)}, pa.array([9, 9]), of_whole)
    assert found.all() != is_trusted and asked == [True]
