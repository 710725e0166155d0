"""Values of another table by row id: every row of every commit, after updates and deletions, against a dict."""

from __future__ import annotations

import random

import pytest

from paimon_py import Catalog, NotFoundError, Schema, UnsupportedError
from paimon_py.codec.blob_refs import BlobRef, BlobViewRef
from paimon_py.scan.blob_views import BlobViews

EVOLVES = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
COLUMNS = {"id": "INT", "a": "BLOB", "b": "BLOB", "p": "INT"}


@pytest.fixture
def catalog(tmp_path):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("db")
    catalog.create_table("db.v", Schema({"id": "INT"}))
    return catalog


def made(catalog, name="db.u", **options):
    return catalog.create_table(name, Schema(COLUMNS), partition_by=["p"], options={**EVOLVES, "deletion-vectors.enabled": "true", **options})


def values(catalog, *refs):
    return BlobViews(catalog.table("db.v")._root).values([None if ref is None else BlobViewRef(*ref) for ref in refs])


def filled(table):
    """Rows of two commits and two partitions; some were updated and some deleted. The values of `a` and `b` by row id."""
    for commit in range(2):
        table.write_arrow([
            {"id": n, "a": None if n % 5 == 4 else f"a{n}".encode(), "b": f"b{n}".encode() * 3, "p": n % 2}
            for n in range(commit * 10, commit * 10 + 10)
        ])  # fmt: skip
    table.update("id = 3", {"b": b"new"})
    table.delete("id IN (0, 7, 12)")
    found = table.scan(columns=["_ROW_ID", "a", "b"]).to_arrow().to_pylist()
    assert len(found) == 17
    return {row["_ROW_ID"]: (row["a"], row["b"]) for row in found}


def test_every_row_has_its_value(catalog):
    rows = filled(made(catalog))
    wanted = [(row, column) for row in rows for column in (0, 1)] * 2
    random.Random(1).shuffle(wanted)
    found = values(catalog, None, *(("db.u", column + 1, row) for row, column in wanted), None)
    assert found == [None, *(rows[row][column] for row, column in wanted), None]


def test_each_row_can_be_asked_for_alone_and_rows_that_are_gone_are_named(catalog):
    rows = filled(made(catalog))
    for row in range(max(rows) + 3):
        if row in rows:
            assert values(catalog, ("db.u", 1, row)) == [rows[row][0]]
        else:
            with pytest.raises(NotFoundError, match=f"row {row} of db.u, which no longer exists"):
                values(catalog, ("db.u", 1, next(iter(rows))), ("db.u", 1, row))


def test_several_tables_and_references(catalog, tmp_path):
    first = filled(made(catalog))
    (tmp_path / "x").write_bytes(b"0123456789")
    refers = catalog.create_table("db.r", Schema({"id": "INT", "a": "BLOB"}), options={**EVOLVES, "blob-descriptor-field": "a"})
    refers.write_arrow([{"id": 1, "a": bytes(BlobRef(f"{tmp_path}/x", 3, 5))}, {"id": 2, "a": None}])
    ids = dict(refers.scan(columns=["id", "_ROW_ID"]).to_arrow().to_pandas().itertuples(index=False))
    row = next(row for row in first if first[row][0] is not None)
    assert values(catalog, ("db.r", 1, ids[1]), ("db.u", 1, row), ("db.r", 1, ids[2])) == [b"34567", first[row][0], None]


@pytest.mark.parametrize("field", [0, 3, 4])
def test_columns_without_blobs_are_named(catalog, field):
    filled(made(catalog))
    with pytest.raises(NotFoundError, match=f"column {field} of db.u, not one of its BLOB columns"):
        values(catalog, ("db.u", field, 0))


def test_tables_without_row_ids_and_empty_ones(catalog):
    made(catalog)
    with pytest.raises(NotFoundError, match="row 0 of db.u"):
        values(catalog, ("db.u", 1, 0))
    with pytest.raises(UnsupportedError, match="lacks data-evolution.enabled"):
        values(catalog, ("db.v", 0, 0))
