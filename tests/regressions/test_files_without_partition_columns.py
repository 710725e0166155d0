"""Files that other systems left (Java's `migrate_table`) hold no partition columns: their values come from the partition."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest
from unit.public import QUICK, env, new_catalog

from paimon_py import Table, col
from paimon_py.codec.manifest.entries import read_manifests, write_manifest

ROWS = {
    "p": pa.array([1, 1, 2, 2, None, None], pa.int32()),
    "q": ["a", "a", "a", "b b", "x/y", None],
    "k": [1, 2, 3, 4, 5, 6],
    "v": ["a", "b", "c", "d", "e", "f"],
}


def without(table, columns):
    """Take columns out of every data file of a table; the manifests get the sizes of the new files."""
    sizes = {}
    for path in Path(table.location).glob("**/data-*"):
        tool = pa.parquet if path.suffix == ".parquet" else pa.orc
        tool.write_table(tool.read_table(path).drop_columns(columns), path)
        sizes[path.name] = path.stat().st_size
    for path in Path(table.location, "manifest").glob("manifest-*-0"):
        if "list" in path.name:
            continue
        entries = read_manifests([(path.name, path.read_bytes())]).entries()
        files = [msgspec.structs.replace(entry.file, size_bytes=sizes[entry.file.name]) for entry in entries]
        path.write_bytes(
            write_manifest([msgspec.structs.replace(entry, file=file) for entry, file in zip(entries, files, strict=True)])
        )
    return Table.open(table.location, QUICK, env=env())


def partitioned(tmp_path, file_format, key=(), **options):
    catalog = new_catalog(tmp_path / "w")
    rows = pa.table(ROWS) if not key else pa.table(ROWS).slice(0, 4)
    schema = pa.schema([pa.field(f.name, f.type, nullable=f.name not in key) for f in rows.schema])
    table = catalog.create_table(
        "d.t", schema, primary_key=list(key), partition_by=["p", "q"], options={"file.format": file_format, **options}
    )
    table.write_arrow(rows)
    return rows, without(table, ["p", "q"])


def sorted_rows(table):
    return table.sort_by("k").to_pylist()


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_values_come_from_the_partition(tmp_path, file_format):
    rows, table = partitioned(tmp_path, file_format)
    assert sorted_rows(table.scan().to_arrow()) == rows.to_pylist()
    assert sorted_rows(table.scan(columns=["q", "k"]).to_arrow()) == rows.select(["q", "k"]).to_pylist()
    assert table.scan(columns=["p"]).count() == 6
    for where in (
        (col("p") == 2) | (col("v") == "a"),
        (col("p") == 1) & (col("k") > 1),
        col("q").is_null() & (col("k") == 6),
        (col("p").is_null() | (col("k") == 3)) & (col("q") != "b b"),
    ):
        expected = [row for row in rows.to_pylist() if _matches(where, row)]
        assert sorted_rows(table.scan(where=where).to_arrow()) == expected
        assert table.scan(where=where).count() == len(expected)


def _matches(where, row):
    one = pa.table({name: pa.array([value], pa.table(ROWS).schema.field(name).type) for name, value in row.items()})
    return _public_filter(one, where)


def _public_filter(one, where):
    from paimon_py.codec.arrow_types import from_arrow_type
    from paimon_py.expr.arrow import evaluate
    from paimon_py.expr.bind import bind
    from paimon_py.spec.types import Field

    fields = [Field(number, field.name, from_arrow_type(field.type)) for number, field in enumerate(one.schema)]
    return evaluate(bind(where, fields), one.combine_chunks().to_batches()[0])[0].as_py()


def test_such_tables_are_changed_and_compacted(tmp_path):
    rows, table = partitioned(tmp_path, "parquet")
    table.update(col("k") == 4, {"v": "changed"})
    table.delete(col("q") == "x/y")
    table.compact(full=True)
    expected = [{**row, "v": "changed"} if row["k"] == 4 else row for row in rows.to_pylist() if row["q"] != "x/y"]
    assert sorted_rows(table.scan().to_arrow()) == expected


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
def test_keyed_tables_merge_and_look_up(tmp_path, engine):
    rows, table = partitioned(tmp_path, "parquet", ("p", "q", "k"), bucket="1", **{"merge-engine": engine})
    table.write_arrow(pa.table({"p": pa.array([1], pa.int32()), "q": ["a"], "k": [2], "v": ["new"]}))
    expected = [{**row, "v": "new"} if row["k"] == 2 else row for row in rows.to_pylist()]
    assert sorted_rows(table.scan().to_arrow()) == expected
    found = table.lookup([{"p": 2, "q": "b b", "k": 4}, {"p": 1, "q": "a", "k": 2}])
    assert sorted_rows(found) == [expected[1], expected[3]]
    table.compact(full=True)
    assert sorted_rows(table.scan().to_arrow()) == expected
