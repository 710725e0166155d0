"""A write of the object that had altered a table said that a schema was missing where another one had discarded it."""

from __future__ import annotations

import pytest

from paimon_py import AddColumn, Catalog, Schema, TableNotFoundError


def test_a_discarded_schema_is_no_damage():
    catalog = Catalog.open("memory://discarded")
    catalog.drop_database("d", missing_ok=True, cascade=True)
    catalog.create_database("d")
    table = catalog.create_table("d.t", Schema({"k": "INT NOT NULL"}), primary_key=["k"], options={"bucket": "1"})
    table.write_arrow([{"k": 1}])
    table.create_branch("b").write_arrow([{"k": 2}])
    table.alter(AddColumn("x", "INT"))
    catalog.table("d.t").fast_forward("b", discard=True)
    with pytest.raises(TableNotFoundError, match="its schema rolled back; open it again"):
        table.write_arrow([{"k": 3, "x": 4}])
    assert catalog.table("d.t").to_arrow().to_pylist() == [{"k": 1}, {"k": 2}]
