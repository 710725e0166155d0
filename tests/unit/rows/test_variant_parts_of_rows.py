"""Parts of VARIANT columns in conditions and values of delete, update, merge and backfill."""

from __future__ import annotations

import pytest

from paimon_py import Catalog, Schema, SchemaError, UnsupportedError, UsageError, Variant, col, sql, variant
from paimon_py.storage.memory_store import MemoryStore

EVOLVES = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "deletion-vectors.enabled": "true"}
KINDS = {
    "append": {"bucket": "-1"},
    "vectors": {"bucket": "-1", "deletion-vectors.enabled": "true"},
    "column files": {"bucket": "-1", **EVOLVES},
    "shredded column files": {"bucket": "-1", **EVOLVES, "variant.inferShreddingSchema": "true"},
    "keyed": {"bucket": "1"},
}


def user(path, kind="VARIANT", column="v", **more):
    return col(column).variant(path, kind, **more)


@pytest.fixture(params=KINDS)
def table(request):
    catalog = Catalog(MemoryStore(), "/w")
    catalog.create_database("d")
    schema = Schema({"k": "INT NOT NULL", "v": "VARIANT", "n": "INT"})
    keys = ["k"] if request.param == "keyed" else []
    found = catalog.create_table("d.t", schema, primary_key=keys, options=KINDS[request.param])
    for start in (0, 5):
        found.write_arrow([{"k": k, "v": variant({"a": k, "b": {"c": f"x{k}"}}), "n": k} for k in range(start, start + 5)])
    found.write_arrow([{"k": 10, "v": None, "n": None}, {"k": 11, "v": variant({"a": "no number"}), "n": 11}])
    return found


def rows(table):
    found = table.scan().to_arrow().to_pylist()
    return {row["k"]: (None if row["v"] is None else Variant(row["v"]["value"], row["v"]["metadata"]).to_python(), row["n"]) for row in found}


def test_rows_are_found_by_parts(table):
    before = rows(table)
    assert table.delete(user("$.a", "INT", or_null=True) == 3).deleted == 1
    assert table.delete((user("$.b.c", "STRING") == "x4") & (col("k") < 4)).deleted == 0
    assert table.delete((user("$.b.c", "STRING") == "x4") & (col("k") > 3)).deleted == 1
    assert table.delete(user("$.a", "INT", or_null=True).is_null() & col("v").is_not_null()).deleted == 1
    assert table.update(user("$.b.c", "STRING").starts_with("x8") | (col("n") == 1), {"n": -1}).updated == 2
    expected = {k: (v, -1 if k in (1, 8) else n) for k, (v, n) in before.items() if k not in (3, 4, 11)}
    assert rows(table) == expected
    table.update("k = 2", {"v": variant({"a": "text"})})
    with pytest.raises(SchemaError, match="the path"):
        table.delete(user("$.a", "INT") == 1)
    assert rows(table) == {**expected, 2: ({"a": "text"}, 2)}


def test_parts_are_values(table):
    assert table.update("k < 2", {"n": user("$.a", "INT") + 100, "v": user("$.b")}).updated == 2
    assert table.update("k = 2", {"n": user("$.nothing", "INT")}).updated == 1
    assert table.update("k = 10", {"n": user("$.a", "INT")}).updated == 1
    found = rows(table)
    assert [found[k] for k in (0, 1, 2, 10)] == [({"c": "x0"}, 100), ({"c": "x1"}, 101), ({"a": 2, "b": {"c": "x2"}}, None), (None, None)]
    with pytest.raises(SchemaError, match="n: string given, INT needed"):
        table.update("k = 5", {"n": user("$.b.c", "STRING")})
    with pytest.raises(UsageError, match="only VARIANT columns have parts"):
        table.update("k = 5", {"n": user("$.b", "INT", column="n")})
    assert rows(table) == found


def test_merges_compare_and_set_parts(table):
    source = [{"k": k, "n": k * 10} for k in (1, 2, 3)]
    result = table.merge(
        source, on=["k"],
        when_matched_update=[
            (user("$.a", "INT", column="target.v") > 2, {"v": user("$.b", column="target.v")}),
            (user("$.missing", "INT", column="target.v").is_not_null(), {"n": 0}),
            (user("$.a", "INT", column="target.v") == 1, {"n": "source.n"}),
        ],
    )  # fmt: skip
    found = rows(table)
    assert result.updated == 2
    assert [found[k] for k in (1, 2, 3)] == [({"a": 1, "b": {"c": "x1"}}, 10), ({"a": 2, "b": {"c": "x2"}}, 2), ({"c": "x3"}, 3)]


def test_parts_inside_rows_are_refused_and_leave_everything(table):
    catalog = Catalog(MemoryStore(), "/w")
    catalog.create_database("d")
    inner = catalog.create_table("d.t", Schema({"k": "INT", "r": "ROW<v VARIANT>"}), options={"bucket": "-1"})
    with pytest.raises(UnsupportedError, match="inside a ROW"):
        inner.delete(col("r", "v").variant("$.a", "INT") == 1)
    with pytest.raises(UnsupportedError, match="inside a ROW"):
        inner.update("k = 1", {"k": col("r", "v").variant("$.a", "INT")})


def test_a_backfill_takes_parts():
    catalog = Catalog(MemoryStore(), "/w")
    catalog.create_database("d")
    table = catalog.create_table("d.t", Schema({"k": "INT", "v": "VARIANT", "n": "INT"}), options=KINDS["column files"])
    table.write_arrow([{"k": k, "v": variant({"a": k, "b": k % 2 == 0}), "n": None} for k in range(6)])
    assert table.backfill({"n": user("$.a", "INT") * 2}, where=user("$.b", "BOOLEAN") == True).updated == 3  # noqa: E712
    assert [n for _, n in rows(table).values()] == [0, None, 4, None, 8, None]
    assert table.backfill({"n": sql("k * 3")}).updated == 3
