"""Random conditions of polars and pyarrow over values on the edges of their types: lazily the same rows as in memory."""

from __future__ import annotations

import random
from datetime import date, datetime, time, timezone
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pytest
from unit.public import new_catalog

from paimon_py import Schema

polars = pytest.importorskip("polars")

NAN, INF = float("nan"), float("inf")
TIMES = [datetime(2020, 1, 1), datetime(2020, 1, 1, 0, 0, 1), datetime(2020, 1, 1, 0, 0, 0, 1000), datetime(2020, 1, 1, 0, 0, 0, 1)]
KINDS = {
    "i8": ("TINYINT", [-128, -1, 0, 1, 127], [-129, 0, 1, 128, 1.5, -0.5]),
    "i64": ("BIGINT", [-(2**63), -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1], [0, 1, 2**53, 2**53 + 1, 1.5, 2.0**53]),
    "f": ("FLOAT", [-0.0, 0.0, 0.1, 1.5, NAN, INF, -1.0], [0.0, -0.0, 0.1, 1, 1.5, 2, NAN, 1e300]),
    "d": ("DOUBLE", [-0.0, 0.0, 0.1, 1.5, NAN, -INF, 2.0**53], [0.0, -0.0, 0.1, 1, 1.5, NAN, 1e300, 2**53 + 1]),
    "s": ("STRING", ["", "a", "ab", "b", "é", "z\U0001f600"], None),
    "y": ("BYTES", [b"", b"a", b"\xff"], None),
    "b": ("BOOLEAN", [True, False], None),
    "day": ("DATE", [date(1, 1, 1), date(1970, 1, 1), date(2024, 2, 29)], None),
    "t0": ("TIMESTAMP(0)", TIMES[:2], TIMES),
    "t3": ("TIMESTAMP(3)", TIMES[:3], TIMES),
    "t6": ("TIMESTAMP(6)", [*TIMES, datetime(1960, 1, 1)], TIMES),
    "t9": ("TIMESTAMP(9)", TIMES, TIMES),
    "z": ("TIMESTAMP(3) WITH LOCAL TIME ZONE", [at.replace(tzinfo=timezone.utc) for at in TIMES[:3]], None),
    "n": ("DECIMAL(10, 2)", [Decimal("1.50"), Decimal("-3.00"), Decimal("0.01")], [Decimal("1.50"), 1, Decimal("1.505"), Decimal("0.009")]),
    "tm": ("TIME(3)", [time(1), time(2, 3, 4)], None),
    "r": ("ROW<x INT, y DOUBLE>", [{"x": 1, "y": 0.0}, {"x": None, "y": NAN}, {"x": 2, "y": -0.0}], [1, 2]),
}  # fmt: skip
OPERATORS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")


class OfPolars:
    column = staticmethod(polars.col)
    field = staticmethod(lambda name, inner: polars.col(name).struct.field(inner))
    is_valid = staticmethod(lambda column: column.is_not_null())
    isin = staticmethod(lambda column, values: column.is_in(values))
    texts = (
        lambda column, text: column.str.starts_with(text), lambda column, text: column.str.ends_with(text),
        lambda column, text: column.str.contains(text, literal=True),
    )  # fmt: skip


class OfArrow:
    column = staticmethod(pc.field)
    field = staticmethod(pc.field)
    is_valid = staticmethod(lambda column: column.is_valid())
    isin = staticmethod(lambda column, values: column.isin(values))
    texts = (pc.starts_with, pc.ends_with, pc.match_substring)


def leaf(rng, library):
    name = rng.choice(list(KINDS))
    _, values, literals = KINDS[name]
    literals = literals or values
    column = library.field(name, "x") if name == "r" else library.column(name)
    kind = rng.random()
    if kind < 0.12:
        return column.is_null()
    if kind < 0.2:
        return library.is_valid(column)
    if kind < 0.35 and name != "r":
        listed = rng.sample(values, min(2, len(values)))
        return library.isin(column, [*listed, None] if rng.random() < 0.3 else listed)
    if kind < 0.45 and name == "s":
        return rng.choice(library.texts)(column, rng.choice(["a", "", "é"]))
    if kind < 0.5 and name == "b":
        return column
    return getattr(column, rng.choice(OPERATORS))(rng.choice(literals))


def condition(rng, library, depth=0):
    kind = rng.random()
    if depth > 2 or kind < 0.4:
        return leaf(rng, library)
    if kind < 0.6:
        return condition(rng, library, depth + 1) & condition(rng, library, depth + 1)
    if kind < 0.8:
        return condition(rng, library, depth + 1) | condition(rng, library, depth + 1)
    return ~condition(rng, library, depth + 1)


@pytest.fixture(scope="module")
def scans(tmp_path_factory):
    """Of a table without a key, and of one whose rows are merged."""
    catalog = new_catalog(str(tmp_path_factory.mktemp("w")))
    columns = Schema([("k", "INT NOT NULL"), *((name, kind) for name, (kind, _, _) in KINDS.items())])
    plain, keyed = catalog.create_table("d.p", columns), catalog.create_table("d.k", columns, primary_key=["k"], options={"bucket": "2"})
    rng = random.Random(5)
    for start in range(0, 60, 20):
        rows = [
            {"k": at, **{name: None if rng.random() < 0.2 else rng.choice(values) for name, (_, values, _) in KINDS.items()}}
            for at in range(start, start + 20)
        ]
        plain.write_arrow(rows)
        keyed.write_arrow([{**row, "k": row["k"] % 30} for row in rows])
    return plain.scan(), keyed.scan()


def of_polars(scan, seed):
    """The keys lazily and in memory; None where polars refuses the condition."""
    whole = scan.to_polars()
    try:
        asked = condition(random.Random(seed), OfPolars)
        expected = whole.filter(asked)["k"].to_list()
    except (polars.exceptions.PolarsError, TypeError):
        return None
    return scan.to_polars(lazy=True).filter(asked).collect()["k"].to_list(), expected


def of_arrow(scan, seed):
    """The keys of the dataset and in memory; None where pyarrow refuses the condition."""
    asked = condition(random.Random(seed), OfArrow)
    try:
        expected = pyarrow.dataset.dataset(scan.to_arrow()).to_table(filter=asked, columns=["k"])["k"].to_pylist()
    except (pa.ArrowException, NotImplementedError):
        return None
    return scan.to_dataset().to_table(filter=asked, columns=["k"])["k"].to_pylist(), expected


def compared(scans, seeds):
    """How many conditions were understood by the libraries."""
    count = 0
    for seed in seeds:
        for scan in scans:
            for found in (of_polars(scan, seed), of_arrow(scan, seed)):
                if found is not None:
                    assert found[0] == found[1], seed
                    count += 1
    return count


def test_random_conditions_find_what_they_find_in_memory(scans):
    assert compared(scans, range(8)) > 24


@pytest.mark.full
@pytest.mark.parametrize("shard", range(4))
def test_many_random_conditions_find_what_they_find_in_memory(scans, shard):
    assert compared(scans, range(1_000 + 200 * shard, 1_200 + 200 * shard)) > 600
