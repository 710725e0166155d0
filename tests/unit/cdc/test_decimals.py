"""Decimals that are converted at once, beside the conversion of each value; and the search for values that do not fit."""

from __future__ import annotations

import base64
import random
from decimal import Decimal

import pytest

from paimon_py.cdc import Change, SourceColumn, columns, rows_of
from paimon_py.cdc.columns import MISFITS, build
from paimon_py.spec.types import Atomic, Field, Root


def encoded(number):
    size = (number.bit_length() + 8) // 8
    return base64.b64encode(number.to_bytes(size, "big", signed=True)).decode()


ODD = ["", "=", "MDk", "MDk=\n", "TQ=", "A===", "/" * 12, "gAAAAAAAAAA=", "gAAAAAAAAAAA", "f/////////8=", "ä", 5, True, Decimal("1.5"), [1]]


def answer(column, raw):
    try:
        found = build(column, raw)
    except MISFITS as error:
        return type(error), str(error)
    found.validate(full=True)
    return found.type, found.to_pylist()


@pytest.mark.parametrize("seed", range(3))
def test_decimals_are_those_of_each_value(seed, monkeypatch):
    rng, at_once, count = random.Random(seed), columns.decimals_of, 0
    for _ in range(400):
        precision = rng.randrange(1, 39)
        scale = rng.randrange(precision + 1)
        column = SourceColumn("x", Atomic(Root.DECIMAL, precision=precision, scale=scale), "decimal", scale)
        raw = []
        for _ in range(rng.randrange(6)):
            bits = rng.choice([3, 8, 30, 62, 63, 64, 65, 100])
            number = rng.randrange(-(1 << bits), 1 << bits)
            number = number if rng.random() < 0.1 else number % 10**precision * rng.choice([1, -1])
            raw.append(rng.choices([encoded(number), None, rng.choice(ODD)], [80, 15, 5])[0])
        given = answer(column, raw)
        with monkeypatch.context() as patch:
            patch.setattr(columns, "decimals_of", lambda *_: None)
            assert answer(column, raw) == given
        count += at_once(raw, given[0]) is not None if isinstance(given[1], list) else 0
    assert count > 100


def test_values_that_do_not_fit_are_found_with_few_conversions(monkeypatch):
    sizes, kind = [], Atomic(Root.INT)
    monkeypatch.setattr("paimon_py.cdc.rows.build", lambda column, raw: sizes.append(len(raw)) or build(column, raw))
    column = SourceColumn("v", kind, "int32")
    bad = {0: "x", 511: True, 512: 1 << 40, 1023: 1.5}
    changes = [Change("", "t", (column,), (), (("+I", {"v": bad.get(number, number)}),)) for number in range(1024)]
    found = rows_of([Field(0, "v", kind)], changes)
    assert found.data.column("v").to_pylist() == [number for number in range(1024) if number not in bad]
    assert list(found.bad) == list(bad) and "'x' is not a value of its type" in found.bad[0]
    assert sum(sizes) < 10 * 1024 and len(sizes) < 100
