"""Binary search of keys in sorted columns, against bisect."""

from __future__ import annotations

import bisect
import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from paimon_py.lsm.search import equal_rows, repeats_rows, search

KINDS = {
    "int": (pa.int32(), lambda draw: draw.randrange(-40, 40)),
    "text": (pa.string(), lambda draw: "".join(draw.choices("abé", k=draw.randrange(4)))),
    "bytes": (pa.binary(), lambda draw: bytes(draw.choices([0, 1, 255], k=draw.randrange(4)))),
    "decimal": (pa.decimal128(30, 2), lambda draw: Decimal(draw.randrange(-40, 40)).scaleb(-2)),
    "flag": (pa.bool_(), lambda draw: draw.random() < 0.5),
}


def order(value):
    return value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize("kinds", [("int",), ("text",), ("decimal",), ("text", "int"), ("int", "bytes", "flag")])
def test_keys_are_found_where_bisect_finds_them(kinds):
    draw = random.Random(str(kinds))
    for size in (0, 1, 2, 7, 60):
        make = lambda: tuple(KINDS[kind][1](draw) for kind in kinds)  # noqa: E731
        rows = sorted({make() for _ in range(size)}, key=lambda key: tuple(map(order, key)))
        keys = [make() for _ in range(40)] + rows[::3]
        columns = [pa.array([row[at] for row in rows], KINDS[kind][0]) for at, kind in enumerate(kinds)]
        wanted = [pa.array([key[at] for key in keys], KINDS[kind][0]) for at, kind in enumerate(kinds)]
        found = search(columns, wanted)
        ordered = [tuple(map(order, row)) for row in rows]
        assert found.places.tolist() == [bisect.bisect_left(ordered, tuple(map(order, key))) for key in keys]
        assert found.equal.tolist() == [key in rows for key in keys]


def test_every_nan_is_one_key_and_the_zeros_are_two():
    odd = np.frombuffer(np.array([0x7FF8000000000001], np.uint64), np.float64)[0]
    rows = pa.array([-1.0, -0.0, 0.0, float("inf"), float("nan")])
    found = search([rows], [pa.array([0.0, -0.0, odd, 2.0])])
    assert found.places.tolist() == [2, 1, 4, 3]
    assert found.equal.tolist() == [True, True, True, False]


@pytest.mark.parametrize("kinds", [("int",), ("text",), ("decimal", "flag"), ("text", "int"), ("int", "bytes", "flag")])
def test_null_is_a_value_below_all_others(kinds):
    """As in keys of tables with `primary-key.nullable`."""
    draw = random.Random(str(kinds))
    for size in (1, 2, 7, 60):
        make = lambda: tuple(None if draw.random() < 0.3 else KINDS[kind][1](draw) for kind in kinds)  # noqa: E731
        nulls = tuple(None for _ in kinds)
        place = lambda key: tuple((value is not None, order(value) if value is not None else 0) for value in key)  # noqa: E731
        rows = sorted({make() for _ in range(size)}, key=place)
        for keys in ([*(make() for _ in range(40)), *rows[::3], nulls], [nulls]):
            columns, wanted = (
                [pa.array([row[at] for row in side], KINDS[kind][0]) for at, kind in enumerate(kinds)] for side in (rows, keys)
            )
            found = search(columns, wanted)
            assert found.places.tolist() == [bisect.bisect_left([place(row) for row in rows], place(key)) for key in keys]
            assert found.equal.tolist() == [key in rows for key in keys]
        assert equal_rows(columns, columns).all() and not repeats_rows(columns)
