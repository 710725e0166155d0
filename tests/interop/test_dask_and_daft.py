"""The programs of docs/frames.md that read a scan with Dask and Daft give its rows."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_py import Catalog, Schema

PAGE = Path(__file__).parents[2] / "docs" / "frames.md"
pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def table(tmp_path):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", Schema([("x", "BIGINT"), ("p", "STRING")]), partition_by=["p"])
    for number in range(3):
        table.write_arrow(pa.table({"x": range(10 * number - 5, 10 * number + 5), "p": ["a", "b"] * 5}))
    return table


def shown(library, table):
    """The frame that the page makes."""
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if f"import {library}" in block)
    names = {"__name__": "shown", "table": table}
    exec(compile(code, PAGE.name, "exec"), names)
    return names["frame"]


def test_dask(table):
    pytest.importorskip("dask.dataframe")
    frame = shown("dask", table)
    assert frame.npartitions == len(table.scan().splits())
    assert frame.groupby("p").x.sum().compute().to_dict() == {"a": 144, "b": 156}


def test_daft(table):
    daft = pytest.importorskip("daft")
    frame = shown("daft", table)
    found = frame.groupby("p").agg(daft.col("x").sum()).to_pydict()
    assert dict(zip(found["p"], found["x"], strict=True)) == {"a": 144, "b": 156}
    assert sorted(frame.limit(3).to_pydict()) == ["p", "x"]
