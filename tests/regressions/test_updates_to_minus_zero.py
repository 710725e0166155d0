"""An update of 0.0 to −0.0 was lost in tables without a primary key: a column with equal numbers was not written again."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from paimon_py import Catalog, Schema


@pytest.mark.parametrize("options", [{}, {"deletion-vectors.enabled": "true"}, {"row-tracking.enabled": "true"}, {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}], ids=str)
def test_minus_zero_replaces_zero(options):
    catalog = Catalog.open("memory://zeros")
    catalog.drop_database("d", missing_ok=True, cascade=True)
    catalog.create_database("d")
    table = catalog.create_table("d.t", Schema({"id": "INT", "f": "DOUBLE", "l": "ARRAY<FLOAT>"}), options=options)
    table.write_arrow([{"id": 1, "f": 0.0, "l": [0.0]}, {"id": 2, "f": 0.0, "l": [0.0]}])
    table.update("id = 1", {"f": -0.0, "l": lambda rows: pa.array([[-0.0]] * rows.num_rows, pa.list_(pa.float32()))})
    found = {row["id"]: (math.copysign(1, row["f"]), math.copysign(1, row["l"][0])) for row in table.to_arrow().to_pylist()}
    assert found == {1: (-1, -1), 2: (1, 1)}
