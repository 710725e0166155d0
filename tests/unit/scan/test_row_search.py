"""Scans decode the columns of a condition first: whether few or many rows match, they return the same."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from paimon_py import Catalog, col
from paimon_py.expr.bind import bind
from paimon_py.scan.row_search import RowSearch
from paimon_py.spec.types import Atomic, Field, Root

FIELDS = (Field(0, "v", Atomic(Root.BIGINT)),)
ROWS = 60_000
TABLES = {
    "append": {},
    "snappy": {"options": {"file.compression": "snappy"}},
    "orc": {"options": {"file.format": "orc"}},
    "partitioned": {"partition_by": ["p"]},
    "row ids": {"options": {"row-tracking.enabled": "true"}},
    "keyed": {"primary_key": ["k"], "options": {"bucket": "1", "write-only": "true"}},
    "deletion vectors": {"options": {"deletion-vectors.enabled": "true"}},
}
WHERE = {
    "one row": col("v") == 17,
    "a text": col("s") == "s40123",
    "none": col("v") == -5,
    "nulls": col("n").is_null() & (col("v") < 100),
    "not a number": col("d") == math.nan,
    "two columns": (col("v") < 2_000) & (col("d") > 0.99),
    "inside a row": col("r", "x") == 31,
    "many": col("v") > 500,
    "with the partition": (col("p") == 1) & (col("v") == 18),
    "either": (col("v") == 3) | (col("s") == "s77"),
}


def rows(rng, begin):
    values = rng.permutation(np.arange(begin, begin + ROWS))
    holes = rng.random(ROWS) < 0.5
    doubles = rng.random(ROWS)
    doubles[[5, 40_000]] = np.nan
    parts = [pa.array(values + 1), pa.array(rng.random(ROWS))]
    return pa.table({
        "p": pa.array((values % 2).astype(np.int32)), "k": pa.array(np.arange(begin, begin + ROWS)), "v": pa.array(values),
        "d": pa.array(doubles), "n": pa.array(values, mask=holes), "s": pa.array([f"s{value}" for value in values]),
        "r": pa.StructArray.from_arrays(parts, ["x", "y"]), "l": pa.array([[value, None] for value in values]),
        "m": pa.array(values).cast(pa.decimal128(21, 2)), "t": pa.array(values, pa.timestamp("us")),
    })  # fmt: skip


@pytest.fixture(scope="module", params=TABLES)
def table(request, tmp_path_factory):
    catalog = Catalog.open(tmp_path_factory.mktemp("search"))
    catalog.create_database("d")
    rng = np.random.default_rng(7)
    first = rows(rng, 0)
    keys = TABLES[request.param].get("primary_key", ())
    schema = pa.schema([field.with_nullable(field.name not in keys) for field in first.schema])
    made = catalog.create_table("d.t", schema, **TABLES[request.param])
    made.write_arrow(first.cast(schema))
    made.write_arrow(rows(rng, ROWS).cast(schema))
    if request.param == "deletion vectors":
        made.delete(col("v").isin([17, 18, 70_000]))
    return made


def comparable(table):
    """NaN is unequal to itself, and `nan` is not."""
    at = table.schema.get_field_index("d")
    return table if at < 0 else table.set_column(at, "d", table.column(at).cast(pa.string()))


@pytest.fixture
def searched(monkeypatch):
    """What the searches find."""
    found, find = [], RowSearch.find

    def noted(self, pieces):
        found.append(find(self, pieces))
        return found[-1]

    monkeypatch.setattr(RowSearch, "find", noted)
    return found


@pytest.mark.parametrize("name", WHERE)
@pytest.mark.parametrize("columns", [None, ["k", "d", "s", "r", "l", "m"], ["s"]])
def test_a_scan_returns_what_it_does_without_searches(table, name, columns, monkeypatch):
    scan = table.scan(where=WHERE[name], columns=columns)
    found, count = scan.to_arrow(), scan.count()
    monkeypatch.setattr(RowSearch, "begin", lambda _self: False)
    assert comparable(found).equals(comparable(scan.to_arrow())) and count == found.num_rows


def test_few_rows_are_searched(table, searched, request):
    found = table.scan(where=WHERE["one row"]).to_arrow()
    asks = request.node.callspec.params["table"] in ("append", "snappy", "partitioned", "row ids", "keyed")
    assert any(rows is not None for rows in searched) == asks
    assert found.num_rows == (request.node.callspec.params["table"] != "deletion vectors")


@pytest.mark.parametrize(
    ("where", "begins", "expected"),
    [
        (col("v") == 17, True, [17]),
        (col("v").isin([17, 70_001]), True, [17]),
        ((col("v") == 17) & (col("v") > 17), True, []),
        ((col("v") == 17) | (col("v") == 18), True, [17, 18]),
        ((col("v") == 17) | (col("v") > 59_998), False, [17, 59_999]),
        (~col("v").isin(list(range(59_999))), False, [59_999]),
        ((col("v") != 17) & (col("v") < 19), False, [*range(17), 18]),
    ],
)
def test_of_narrow_rows_only_those_of_conditions_that_name_values_are_searched(
    where, begins, expected, searched, tmp_path
):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    first = rows(np.random.default_rng(7), 0).select(["v", "s"])
    made = catalog.create_table("d.t", first.schema)
    made.write_arrow(first)
    found = made.scan(where=where).to_arrow().sort_by("v")
    assert bool(searched) == begins
    assert found.to_pydict() == {"v": expected, "s": [f"s{value}" for value in expected]}


def test_files_that_are_not_read_by_page_are_not_searched(searched, tmp_path):
    catalog = Catalog.open(tmp_path / "warehouse")
    catalog.create_database("d")
    first = rows(np.random.default_rng(7), 0)
    options = {"data-file.external-paths": f"file://{tmp_path}/far", "data-file.external-paths.strategy": "round-robin"}
    made = catalog.create_table("d.t", first.schema, options=options)
    made.write_arrow(first)
    assert made.scan(where=WHERE["one row"]).to_arrow().num_rows == 1 and searched == []


def test_many_rows_end_the_search(searched, tmp_path):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    rng = np.random.default_rng(7)
    first = rows(rng, 0)
    made = catalog.create_table("d.t", first.schema)
    for _ in range(4):
        made.write_arrow(first)
    assert made.scan(where=WHERE["many"]).to_arrow().num_rows == 4 * (ROWS - 501)
    assert searched == [None]


def batches(*counts):
    """Batches in which so many rows match."""
    return [(10 * place, pa.RecordBatch.from_arrays([pa.array([row < count for row in range(10)])], ["v"]))
            for place, count in enumerate(counts)]  # fmt: skip


def search():
    return RowSearch(bind(col("v").is_null(), FIELDS), lambda batch: batch.column(0))


def test_positions_of_matching_rows():
    assert search().find(batches(0, 2, 0, 1)) == BitMap([10, 11, 30])
    assert search().find(batches(0, 0)) == BitMap()
    assert search().find([]) == BitMap()


@pytest.mark.parametrize("counts", [(1,), (1, 1), (0, 1, 1), (3, 0, 2, 0, 1)])
def test_matches_in_most_pages_end_the_search(counts):
    assert search().find(batches(*counts)) is None


def test_a_search_that_ends_early_reads_no_more():
    pieces = iter(batches(1, 1, 1, 1))
    assert search().find(pieces) is None
    assert len(list(pieces)) == 2


def test_failed_searches_become_rare():
    made, begun = search(), 0
    for _ in range(200):
        if made.begin():
            begun += 1
            assert made.find(batches(1, 1)) is None
    assert begun < 20
    while not made.begin():
        pass
    assert made.find(batches(0, 0)) == BitMap()
    assert made.begin()
